"""The figures of the pages that explore a text, from a trace to the JSON that is sent.

What a page computes for each view is included: patterns, the lens, rollout, a comparison. Results
that take a page minutes (head profiles, importance, curves) are random numbers here, since they do
not change the size or the drawing time of a figure.
"""

import functools
from collections.abc import Iterator, Sequence

import numpy as np

from bench.sent import (
    AT,
    FULL,
    GIVEN,
    HALF,
    THIRD,
    Sent,
    Shown,
    figure,
    model,
    other,
    pooled,
    some,
    traced,
)
from mha_viz import pruning
from mha_viz.analysis import compare, dot_product, logit_attribution, predictions
from mha_viz.analysis.predictions import Predictions
from mha_viz.app.pages.compare import MAX_TOKENS
from mha_viz.app.pages.head.dot_product import N_KEYS
from mha_viz.app.pages.head.maps import HALF_PAGE_TICKS, masked
from mha_viz.app.pages.head.values import N_SHOWN
from mha_viz.app.pages.next_token import lens, position_window, positions
from mha_viz.app.pages.next_token.continuation import N_CANDIDATES
from mha_viz.app.widgets.chart import without_hover
from mha_viz.figures import candidates, logit_effects, softmax_steps, token_grid
from mha_viz.figures.cells import Colours, cell_map
from mha_viz.figures.dot_product import dot_product_figure
from mha_viz.figures.grid import head_grid, thumbnail_size
from mha_viz.figures.head_map import head_map
from mha_viz.figures.heatmap import head_heatmap
from mha_viz.figures.predictions import compare_predictions
from mha_viz.figures.pruning_curves import Curve, pruning_curves
from mha_viz.figures.scatter import rank_scatter
from mha_viz.figures.theme import LIGHT
from mha_viz.figures.token_losses import token_losses
from mha_viz.figures.values import matrix_heatmap
from mha_viz.figures.window import whole
from mha_viz.heads.rollout import rollout
from mha_viz.trace import Array

N_ROWS = 5  # most likely tokens for every position
L, H = 12, 12


def all_heads(T: int) -> Sent:
    size = thumbnail_size(H)
    block = -(-T // size)
    drawn = head_grid(traced(T).thumbnails(size), LIGHT)
    return figure(drawn, HALF, HALF, pooled(block))


def one_head(T: int) -> Sent:
    trace = traced(T)
    drawn = head_heatmap(trace.pattern(*AT), trace.tokens, LIGHT)
    return Sent(without_hover(drawn), HALF, HALF, pooled(whole(T).block))


def product(T: int) -> Sent:
    terms = dot_product.dot_product(traced(T), *AT, T - 1, T // 2)
    order = terms.order(by_size=False).tolist()
    return figure(dot_product_figure(terms.q, terms.k, order, LIGHT), 700, 390)


def softmax(T: int) -> Sent:
    row = dot_product.softmax_row(traced(T), *AT, T - 1)
    keys = row.strongest(N_KEYS, also=T // 2)
    tokens, columns = traced(T).tokens, (row.scores, row.exps, row.weights)
    rows = [softmax_steps.SoftmaxRow(tokens[j], j, *(float(c[j]) for c in columns)) for j in keys]
    rows.append(softmax_steps.SoftmaxRow("sum", None, None, 1.0, 1.0))
    drawn = softmax_steps.softmax_steps(rows, LIGHT, selected=T // 2)
    return figure(drawn, THIRD, softmax_steps.height(len(rows)))


def scores(T: int) -> Sent:
    values = dot_product.scores(traced(T), *AT)
    return _cells(values, "signed", float(np.abs(values).max()), width=THIRD)


def value_weighted(T: int) -> Sent:
    norms = logit_attribution.value_norms(model(), traced(T), *AT)
    values = masked(traced(T).pattern(*AT)) * norms[None, :]
    return _cells(values, "root", float(np.nanmax(values)))


def sink_hidden(T: int) -> Sent:
    rest = dot_product.without_first(traced(T).pattern(*AT), renormalised=True)
    return _cells(masked(rest), "root", 1.0)


def sink_log(T: int) -> Sent:
    return _cells(masked(traced(T).pattern(*AT)), "log", 1.0)


def _cells(values: Array, colours: Colours, top: float, width: int = HALF) -> Sent:
    tokens, block = traced(len(values)).tokens, whole(len(values)).block
    drawn = cell_map(values, tokens, LIGHT, colours=colours, top=top, ticks=HALF_PAGE_TICKS)
    return figure(drawn, width, width, pooled(block))


def direct_effect(T: int) -> Sent:
    effects = logit_attribution.head_effect(model(), traced(T), *AT)
    raised = np.argsort(-effects, kind="stable")[:N_SHOWN]
    values = (effects[raised] - effects.mean()).tolist()
    drawn = logit_effects.logit_effects(_labels(raised.tolist()), values, LIGHT)
    return figure(drawn, HALF, logit_effects.height(N_SHOWN))


def every_position(T: int) -> Sent:
    ids, at = traced(T).token_ids, _positions(T)
    all_of = predictions.join(list(predictions.predict(model(), ids, positions.N_RANKS)))
    part = slice(at.start, at.stop)
    values = {"rank": all_of.ranks, "p": all_of.p_actual, "loss": all_of.losses}
    notes = [(name, [f"{column[i]:.3g}" for i in at]) for name, column in values.items()]
    actual = [*traced(T).tokens, "?"][at.start + 1 : at.stop + 1]
    top, p = all_of.ids[part, :N_ROWS].T, all_of.probabilities[part, :N_ROWS].T
    labels = [_labels(row) for row in top.tolist()]
    hovers = [
        [[f"after position {i}", f"{labels[r][c]} {p[r, c]:.4f}"] for c, i in enumerate(at)]
        for r in range(len(labels))
    ]
    return _tokens(T, labels, p, hovers, [("actual", actual), *notes])


def logit_lens(T: int) -> Sent:
    at = _positions(T)
    layers = list(predictions.lens(model(), traced(T).token_ids, at, lens.N_RANKS))
    labels = [_labels(layer.ids[:, 0].tolist()) for layer in layers]
    p = np.stack([layer.probabilities[:, 0] for layer in layers])
    return _tokens(T, labels, p, [list(_lens_hovers(layer, at)) for layer in layers], [])


def _lens_hovers(layer: Predictions, at: range) -> Iterator[list[str]]:
    """The hover of each cell of a row of the lens."""
    for i, ids, probabilities in zip(at, layer.ids.tolist(), layer.probabilities, strict=True):
        ranked = zip(_labels(ids), probabilities, strict=True)
        yield [f"position {i}", *(f"{label} {p:.4f}" for label, p in ranked)]


def _positions(T: int) -> range:
    return range(max(0, T - position_window.MAX_POSITIONS), T)


def _tokens(
    T: int,
    labels: Sequence[Sequence[str]],
    probabilities: Array,
    hovers: list[list[list[str]]],
    notes: list[tuple[str, list[str]]],
) -> Sent:
    at, (n_rows, n) = _positions(T), probabilities.shape
    grid = token_grid.Grid(
        columns=[traced(T).tokens[i] for i in at],
        rows=[f"row {i}" for i in range(n_rows)],
        tokens=labels,
        probabilities=probabilities,
        hovers=hovers,
        outlined=np.zeros((n_rows, n), dtype=np.bool_),
        notes=notes,
        first=at.start,
        selected=T - 1,
    )
    height = token_grid.height(n_rows, len(notes))
    return figure(token_grid.token_grid(grid, LIGHT), FULL, height, some(n, T, "positions"))


def _labels(ids: list[int]) -> list[str]:
    return [token.label for token in model().read(ids)]


def step(T: int) -> Sent:
    steps = predictions.continue_text(model(), traced(T).token_ids, 1, n_candidates=N_CANDIDATES)
    first = next(steps)
    p = first.p_model.tolist()
    drawn = candidates.candidates_figure(_labels(first.ids.tolist()), p, p, 0, LIGHT)
    return figure(drawn, HALF, candidates.height(len(p)))


def profiles(T: int) -> Sent:
    del T
    return _heads(_random(L, H), GIVEN)


def combined(T: int) -> Sent:
    drawn = head_heatmap(rollout(traced(T)).clip(0, 1), traced(T).tokens, LIGHT)
    return figure(drawn, HALF, HALF, pooled(whole(T).block))


def change(T: int) -> Sent:
    return _heads(compare.change(traced(T), other(T)).distance)


def _heads(values: np.ndarray, shown: str = "") -> Sent:
    drawn = head_map(values, LIGHT, bounds=(0.0, 1.0), selected=AT, name="measure")
    return figure(drawn, HALF, 560, shown)


def difference(T: int) -> Sent:
    alignment = compare.align_traces(traced(T), other(T))
    a, b = compare.aligned_patterns(traced(T), other(T), *AT, alignment)
    n = min(MAX_TOKENS, len(a))
    values, tokens = masked((b - a)[:n, :n]), [traced(T).tokens[i] for i in alignment.a[:n]]
    drawn = matrix_heatmap(values, LIGHT, rows="from", columns="to", both=True, tokens=tokens)
    return figure(drawn, 640, 420, some(n, len(a), "aligned tokens"))


def next_tokens(T: int) -> Sent:
    rows = pruning.next_tokens(*_passes(T), 12)
    before, after = [row.before for row in rows], [row.after for row in rows]
    drawn = compare_predictions(_labels([row.id for row in rows]), before, after, LIGHT)
    return figure(drawn, 600, 44 + 23 * len(rows))


def losses(T: int) -> Sent:
    full, ablated = _passes(T)
    drawn = token_losses(traced(T).tokens, full.losses(), ablated.losses(), LIGHT)
    return figure(drawn, 600, 230)


def _passes(T: int) -> tuple[pruning.Pass, pruning.Pass]:
    full = _full_model(T)
    return full, full.without([AT])


@functools.cache
def _full_model(T: int) -> pruning.Pass:
    return pruning.Pass.of(model(), traced(T).token_ids)


def importance(T: int) -> Sent:
    del T
    x, y = _random(2, L, H)
    drawn = rank_scatter(x, y, LIGHT, selected=AT, names=("exact", "gradient"))
    return figure(drawn, 600, 340, GIVEN)


def curves(T: int) -> Sent:
    del T
    x = range(0, L * H + 1, 4)
    exact, gradient, random = _random(3, len(x)).cumsum(axis=1).tolist()
    lines = [Curve("exact", x, exact), Curve("gradient", x, gradient)]
    lines.append(Curve("random", x, random, [0.9 * y for y in random], random))
    drawn = pruning_curves(lines, LIGHT, uniform=1.0, budget=1.01, title="loss")
    return figure(drawn, 600, 360, GIVEN)


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).random(shape)


ATTENTION = (Shown("All heads", all_heads), Shown("One head", one_head))
HEAD = (
    Shown("Why this weight: q × k", product, any_text=True),
    Shown("Why this weight: softmax", softmax, any_text=True),
    Shown("Why this weight: scores", scores),
    Shown("Values: value-weighted", value_weighted),
    Shown("Sink: hidden, renormalised", sink_hidden),
    Shown("Sink: log scale", sink_log),
    Shown("Values: direct effect", direct_effect),
)
REST = (
    Shown("Every position", every_position),
    Shown("Logit lens", logit_lens),
    Shown("Generate: one step", step, most=1023),
    Shown("Head profiles: one measure", profiles, any_text=True),
    Shown("Combined heads: rollout", combined),
    Shown("Compare: change of every head", change),
    Shown("Compare: difference", difference),
    Shown("Ablation: next token", next_tokens),
    Shown("Ablation: loss of each token", losses),
    Shown("Importance: exact against gradient", importance, any_text=True),
    Shown("Curves", curves, any_text=True),
)

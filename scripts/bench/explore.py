"""The figures of the pages that explore a text, from a trace to the JSON that is sent.

What a page computes for a view alone is part of it: a pattern, the lens, a rollout, a comparison.
What takes a page minutes (the passport, importance, curves) is given as seeded random numbers: the
figure is as large and as slow for any.
"""

import functools
from collections.abc import Sequence

import numpy as np
from mha_viz.app.pages.next_token.common import COLUMNS, in_rows

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
from mha_viz.analysis import compare, logit_attribution
from mha_viz.analysis import dot_product as explain
from mha_viz.analysis import predictions as expectations
from mha_viz.analysis.predictions import Predictions
from mha_viz.app.pages.compare import MOST_SHOWN
from mha_viz.app.pages.head.dot_product import RUNGS
from mha_viz.app.pages.head.maps import LABELS, only_seen
from mha_viz.app.pages.head.values import PUSHED
from mha_viz.app.pages.next_token.generate import CANDIDATES
from mha_viz.app.pages.next_token.lens import TOP
from mha_viz.app.pages.next_token.positions import KEPT
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

LIKELIEST = 5  # rows of the table of every position
L, H = 12, 12


def all_heads(T: int) -> Sent:
    size = thumbnail_size(H)
    block = -(-T // size)
    drawn = head_grid(traced(T).thumbnails(size), LIGHT, block=block)
    return figure(drawn, HALF, HALF, pooled(block))


def one_head(T: int) -> Sent:
    trace = traced(T)
    drawn = head_heatmap(trace.pattern(*AT), trace.tokens, LIGHT)
    return Sent(without_hover(drawn), HALF, HALF, pooled(whole(T).block))


def dot_product(T: int) -> Sent:
    found = explain.dot_product(traced(T), *AT, T - 1, T // 2)
    at = found.order(by_size=False).tolist()
    return figure(dot_product_figure(found.q, found.k, at, LIGHT), 700, 390)


def softmax(T: int) -> Sent:
    row = explain.softmax_row(traced(T), *AT, T - 1)
    keys = row.strongest(RUNGS, also=T // 2)
    tokens, columns = traced(T).tokens, (row.scores, row.exps, row.weights)
    rows = [softmax_steps.SoftmaxRow(tokens[j], j, *(float(c[j]) for c in columns)) for j in keys]
    rows.append(softmax_steps.SoftmaxRow("sum", None, None, 1.0, 1.0))
    drawn = softmax_steps.softmax_steps(rows, LIGHT, selected=T // 2)
    return figure(drawn, THIRD, softmax_steps.height(len(rows)))


def scores(T: int) -> Sent:
    found = explain.scores(traced(T), *AT)
    return _cells(found, "signed", float(np.abs(found).max()), width=THIRD)


def value_weighted(T: int) -> Sent:
    norms = logit_attribution.value_norms(model(), traced(T), *AT)
    found = only_seen(traced(T).pattern(*AT)) * norms[None, :]
    return _cells(found, "root", float(np.nanmax(found)))


def sink_hidden(T: int) -> Sent:
    rest = explain.without_first(traced(T).pattern(*AT), renormalised=True)
    return _cells(only_seen(rest), "root", 1.0)


def sink_log(T: int) -> Sent:
    return _cells(only_seen(traced(T).pattern(*AT)), "log", 1.0)


def _cells(values: Array, colours: Colours, top: float, width: int = HALF) -> Sent:
    T = len(values)
    drawn = cell_map(values, traced(T).tokens, LIGHT, colours=colours, top=top, ticks=LABELS)
    return figure(drawn, width, width, pooled(whole(T).block))


def direct_effect(T: int) -> Sent:
    effect = logit_attribution.head_effect(model(), traced(T), *AT)
    chosen = np.argsort(-effect, kind="stable")[:PUSHED]
    values = (effect[chosen] - effect.mean()).tolist()
    drawn = logit_effects.logit_effects(_names(chosen.tolist()), values, LIGHT)
    return figure(drawn, HALF, logit_effects.height(PUSHED))


def every_position(T: int) -> Sent:
    seen = expectations.join(list(expectations.predict(model(), traced(T).token_ids, KEPT)))
    at = _window(T)
    ids = seen.ids[at.start : at.stop, :LIKELIEST].T
    shares = seen.probabilities[at.start : at.stop, :LIKELIEST].T
    follows = [*traced(T).tokens, "?"][at.start + 1 : at.stop + 1]
    numbers = {"rank": seen.ranks, "p": seen.p_actual, "loss": seen.losses}
    notes = [(name, [f"{values[i]:.3g}" for i in at]) for name, values in numbers.items()]
    labels = in_rows(_names(ids.ravel().tolist()), len(at))
    hovers = [
        [[f"after position {i}", f"{name} {share:.4f}"] for i, name, share in
         zip(at, names, row, strict=True)]
        for names, row in zip(labels, shares, strict=True)
    ]  # fmt: skip
    return _tokens(T, labels, shares, hovers, [("follows", follows), *notes])


def logit_lens(T: int) -> Sent:
    at = _window(T)
    layers = list(expectations.lens(model(), traced(T).token_ids, at, TOP))
    labels = [_names(layer.ids[:, 0].tolist()) for layer in layers]
    shares = np.stack([layer.probabilities[:, 0] for layer in layers])
    return _tokens(T, labels, shares, [_of_layer(layer, at) for layer in layers], [])


def _of_layer(layer: Predictions, at: range) -> list[list[str]]:
    """The words on each cell of a row of the lens."""
    names = in_rows(_names(layer.ids.ravel().tolist()), TOP)
    return [
        [f"position {i}", *(f"{n} {p:.4f}" for n, p in zip(names[c], row, strict=True))]
        for (c, i), row in zip(enumerate(at), layer.probabilities, strict=True)
    ]


def _window(T: int) -> range:
    return range(max(0, T - COLUMNS), T)


def _tokens(
    T: int,
    labels: Sequence[Sequence[str]],
    shares: Array,
    hovers: list[list[list[str]]],
    notes: list[tuple[str, list[str]]],
) -> Sent:
    at = _window(T)
    shape = shares.shape
    drawn = token_grid.token_grid(
        token_grid.Grid(
            columns=[traced(T).tokens[i] for i in at], rows=[f"row {i}" for i in range(shape[0])],
            tokens=labels, probabilities=shares, hovers=hovers,
            outlined=np.zeros(shape, dtype=np.bool_), notes=notes, first=at.start, selected=T - 1,
        ),
        LIGHT,
    )  # fmt: skip
    height = token_grid.height(shape[0], len(notes))
    return figure(drawn, FULL, height, some(len(at), T, "positions"))


def _names(ids: list[int]) -> list[str]:
    return [token.label for token in model().read(ids)]


def step(T: int) -> Sent:
    made = next(
        expectations.continue_text(model(), traced(T).token_ids, 1, n_candidates=CANDIDATES)
    )
    before = made.p_model.tolist()
    drawn = candidates.candidates_figure(_names(made.ids.tolist()), before, before, 0, LIGHT)
    return figure(drawn, HALF, candidates.height(len(before)))


def passport(T: int) -> Sent:
    del T
    return _heads(_random(L, H), GIVEN)


def merged(T: int) -> Sent:
    drawn = head_heatmap(rollout(traced(T)).clip(0, 1), traced(T).tokens, LIGHT)
    return figure(drawn, HALF, HALF, pooled(whole(T).block))


def change(T: int) -> Sent:
    return _heads(compare.change(traced(T), other(T)).distance)


def _heads(values: np.ndarray, shown: str = "") -> Sent:
    drawn = head_map(values, LIGHT, bounds=(0.0, 1.0), selected=AT, name="measure")
    return figure(drawn, HALF, 560, shown)


def difference(T: int) -> Sent:
    pairs = compare.align_traces(traced(T), other(T))
    a, b = compare.aligned_patterns(traced(T), other(T), *AT, pairs)
    n = min(MOST_SHOWN, len(a))
    drawn = matrix_heatmap(
        only_seen((b - a)[:n, :n]), LIGHT, rows="from", columns="to", both=True,
        tokens=[traced(T).tokens[i] for i in pairs.a[:n]],
    )  # fmt: skip
    return figure(drawn, 640, 420, some(n, len(a), "aligned tokens"))


def predictions(T: int) -> Sent:
    found = pruning.next_tokens(*_passes(T), 12)
    drawn = compare_predictions(
        _names([c.id for c in found]), [c.before for c in found], [c.after for c in found], LIGHT
    )
    return figure(drawn, 600, 44 + 23 * len(found))


def losses(T: int) -> Sent:
    whole_model, now = _passes(T)
    drawn = token_losses(traced(T).tokens, whole_model.losses(), now.losses(), LIGHT)
    return figure(drawn, 600, 230)


def _passes(T: int) -> tuple[pruning.Pass, pruning.Pass]:
    whole_model = _whole_model(T)
    return whole_model, whole_model.without([AT])


@functools.cache
def _whole_model(T: int) -> pruning.Pass:
    return pruning.Pass.of(model(), traced(T).token_ids)


def importance(T: int) -> Sent:
    del T
    x, y = _random(2, L, H)
    drawn = rank_scatter(x, y, LIGHT, selected=AT, names=("exact", "gradient"))
    return figure(drawn, 600, 340, GIVEN)


def curves(T: int) -> Sent:
    del T
    x = range(0, L * H + 1, 4)
    values = _random(3, len(x)).cumsum(axis=1).tolist()
    found = [Curve(name, x, y) for name, y in zip(("exact", "gradient"), values, strict=False)]
    found.append(Curve("random", x, values[2], [0.9 * y for y in values[2]], values[2]))
    drawn = pruning_curves(found, LIGHT, uniform=1.0, budget=1.01, title="loss")
    return figure(drawn, 600, 360, GIVEN)


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).random(shape)


ATTENTION = (Shown("All heads", all_heads), Shown("One head", one_head))
HEAD = (
    Shown("q × k, element by element", dot_product, any_text=True),
    Shown("Softmax of a query", softmax, any_text=True),
    Shown("Scores", scores),
    Shown("Value-weighted", value_weighted),
    Shown("Sink hidden, renormalised", sink_hidden),
    Shown("Sink, log scale", sink_log),
    Shown("Direct effect on the next token", direct_effect),
)
REST = (
    Shown("Next token at every position", every_position),
    Shown("Logit lens", logit_lens),
    Shown("A step of a continuation", step, most=1023),
    Shown("Passport, one measure", passport, any_text=True),
    Shown("Rollout", merged),
    Shown("Compare: change of every head", change),
    Shown("Compare: difference", difference),
    Shown("Pruning: what comes next", predictions),
    Shown("Pruning: loss of each token", losses),
    Shown("Pruning: exact against gradient", importance, any_text=True),
    Shown("Pruning curves", curves, any_text=True),
)

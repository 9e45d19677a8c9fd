"""What the model expects on both sides: next tokens, heads that raise one, losses, logit lens."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from mha_viz.analysis.compare import Alignment
from mha_viz.analysis.logit_attribution import heads_towards
from mha_viz.analysis.outcome import Outcome, outcome
from mha_viz.app.messages import escaped
from mha_viz.app.pages.compare.sides import OtherSide
from mha_viz.app.view import View
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.choices import segmented_control
from mha_viz.app.widgets.recipes import recipe
from mha_viz.app.work.progress import Reporter, ResultSlots, wait_for
from mha_viz.export import Drawn, Given, rows_data
from mha_viz.figures import paired_effects as effects_figure
from mha_viz.figures.paired_effects import paired_effects
from mha_viz.figures.predictions import compare_predictions
from mha_viz.figures.theme import TextSizes, Theme
from mha_viz.figures.token_grid import Grid, height, token_grid
from mha_viz.figures.token_losses import token_losses
from mha_viz.head import Head
from mha_viz.model import Model
from mha_viz.trace import Array, Trace

PARTS = ["Next token", "Loss and logit lens"]
N_TOKENS = 5  # the most likely on either side
N_HEADS = 5
RUNS = ("before", "after")
BEFORE = "outcome(model, trace.token_ids, position)"
AFTER = "outcome(other_model, other.token_ids, other_position, head_gate=gate)"
EFFECTS = "heads_towards(model, trace.token_ids, token, position=position)"
OTHER_EFFECTS = (
    "heads_towards(other_model, other.token_ids, other_token, position=other_position, "
    "head_gate=gate)"
)

_outcomes = ResultSlots[Outcome](24)
_effects = ResultSlots[tuple[Array, Array]](16)


@dataclass(frozen=True, slots=True, eq=False)
class Both:
    """The outcomes of both sides, each at its own position."""

    before: Outcome
    after: Outcome
    position: int  # on the other side


def outcomes(view: View, other: OtherSide, alignment: Alignment) -> Both | None:
    """What both sides predict after the selected token; None while they run.

    The other side's position is the aligned one, or else its last.
    """
    at = np.flatnonzero(alignment.a == view.token)
    position = int(alignment.b[at[0]]) if len(at) else other.trace.n_tokens - 1
    before = _outcome(view.model, view.trace, view.trace_key, view.token, None)
    after = _outcome(other.model, other.trace, other.trace_key, position, other.gate)
    return None if before is None or after is None else Both(before, after, position)


def _outcome(
    model: Model, trace: Trace, trace_key: str, position: int, gate: Array | None
) -> Outcome | None:
    def work(report: Reporter) -> Outcome:
        def on_layer(done: int) -> None:
            report(done / trace.n_layers)

        return outcome(model, trace.token_ids, position, head_gate=gate, on_layer=on_layer)

    slot = _outcomes(trace_key, position)
    return wait_for(slot, "Predicting the next token", work, lane="outcome")


def most_likely(model: Model, of: Outcome) -> str:
    """The label of the most likely next token."""
    return model.read([int(of.probabilities.argmax())])[0].label


def first_after(view: View, other: OtherSide, both: Both) -> float | None:
    """The probability, on the other side, of the token that is most likely before."""
    token = same_token(view.model, other.model, int(both.before.probabilities.argmax()))
    return None if token is None else float(both.after.probabilities[token])


def same_token(model: Model, other: Model, token: int) -> int | None:
    """The id of the same text in the other model, or None if it is not one token there."""
    if model is other or model.description.tokenizer_hash == other.description.tokenizer_hash:
        return token if token < other.config.vocab_size else None
    ids = other.tokenizer.encode(model.text_of([token]), add_special_tokens=False).ids
    return int(ids[0]) if len(ids) == 1 and ids[0] < other.config.vocab_size else None


def show(view: View, other: OtherSide, alignment: Alignment, both: Both) -> None:
    """The predictions of both sides, in two tabs."""
    given = {
        **other.given,
        "other_position": both.position,
        "before": Given(both.before, BEFORE, __name__),
        "after": Given(both.after, AFTER, __name__),
        "alignment": Given(alignment, other.alignment_code, "mha_viz.app.pages.compare.patterns"),
    }
    part = segmented_control("Compare predictions", PARTS, PARTS[0], "outcome", show_label=False)
    if part == PARTS[0]:
        left, right = st.columns([2, 3], gap="medium")
        with left:
            _next_tokens(view, given)
        with right:
            _heads(view, other, both, given)
        return
    left, right = st.columns([3, 2], gap="medium")
    with left:
        _losses(view, other, alignment, both, given)
    with right:
        _lens(view, both, given)


def _next_tokens(view: View, given: Mapping[str, Any]) -> None:
    token = f"{escaped(view.trace.tokens[view.token])} ({view.token})"
    caption("Next-token prediction", f"The {N_TOKENS} most likely tokens after {token}.")
    drawn = recipe(view, _draw_next, **given, n=N_TOKENS)
    figure, data = drawn.make()
    said = "; ".join(f"{row[0]} {row[1]:.3f}, then {row[2]:.3f}" for row in data.table()[1])
    chart(
        drawn,
        figure=figure,
        key="next",
        name="Next token before and after",
        height=32 + 34 * N_TOKENS,
        alt=said,
    )


def _draw_next(
    model: Model,
    other_model: Model,
    before: Outcome,
    after: Outcome,
    n: int,
    theme: Theme,
    sizes: TextSizes,
) -> Drawn:
    p: dict[str, list[float]] = {}
    for token in np.argsort(-before.probabilities)[: 2 * n].tolist():
        same = same_token(model, other_model, token)
        q = 0.0 if same is None else float(after.probabilities[same])
        p[model.read([token])[0].label] = [float(before.probabilities[token]), q]
    for token in np.argsort(-after.probabilities)[: 2 * n].tolist():
        same = same_token(other_model, model, token)
        q = 0.0 if same is None else float(before.probabilities[same])
        label = other_model.read([token])[0].label
        p.setdefault(label, [q, float(after.probabilities[token])])
    labels = sorted(p, key=lambda label: -max(p[label]))[:n]
    first, second = ([p[label][side] for label in labels] for side in (0, 1))
    figure = compare_predictions(labels, first, second, theme, sizes=sizes)
    data = rows_data(["token", *RUNS], list(zip(labels, first, second, strict=True)))
    return figure, data


def _heads(view: View, other: OtherSide, both: Both, given: Mapping[str, Any]) -> None:
    """The heads that raise the first prediction, before and after."""
    token = int(both.before.probabilities.argmax())
    other_token = same_token(view.model, other.model, token)
    label = escaped(view.model.read([token])[0].label)
    sizes = [(trace.n_layers, trace.n_heads) for trace in (view.trace, other.trace)]
    if other_token is None or sizes[0] != sizes[1]:
        return
    found = _both_effects(view, other, both, token, other_token)
    if found is None:
        return
    first, second = found
    sums = [f"{np.nansum(effects):+.1f}".replace("-", "−") for effects in found]
    caption(
        f"Heads that raise {label}",
        "Direct effect on its logit, relative to the mean over the vocabulary; largest changes "
        f"first. All heads together: <b>{sums[0]} → {sums[1]}</b>.",
    )
    drawn = recipe(
        view,
        _draw_effects,
        **given,
        token=token,
        other_token=other_token,
        effects=Given(first, EFFECTS, __name__),
        other_effects=Given(second, OTHER_EFFECTS, __name__),
        n=N_HEADS,
    )
    figure, data = drawn.make()
    chart(
        drawn,
        figure=figure,
        key="effects",
        name="Heads that raise the first prediction",
        height=effects_figure.height(min(N_HEADS, int(np.isfinite(first).sum()))),
        alt="; ".join(
            f"L{row[0]} H{row[1]} {row[2]:+.2f}, then {row[3]:+.2f}"
            for row in sorted(data.table()[1], key=lambda row: -abs(row[3] - row[2]))[:N_HEADS]
        ),
    )


def _both_effects(
    view: View, other: OtherSide, both: Both, token: int, other_token: int
) -> tuple[Array, Array] | None:
    def work(report: Reporter) -> tuple[Array, Array]:
        first = heads_towards(view.model, view.trace.token_ids, token, position=view.token)
        report(0.5)
        second = heads_towards(
            other.model,
            other.trace.token_ids,
            other_token,
            position=both.position,
            head_gate=other.gate,
        )
        return first, second

    slot = _effects(view.trace_key, other.trace_key, view.token)
    return wait_for(slot, "Measuring what heads add", work, lane="effects of heads")


def _draw_effects(
    effects: Array,
    other_effects: Array,
    n: int,
    theme: Theme,
    sizes: TextSizes,
) -> Drawn:
    known = np.nan_to_num(np.abs(other_effects - effects), nan=-1.0)
    order = np.argsort(-known, axis=None, kind="stable")
    every = [Head(*divmod(int(flat), effects.shape[1])) for flat in order]
    heads = [head for head in every if known[head] >= 0]
    labels = [head.label for head in heads[:n]]
    first, second = ([float(x[head]) for head in heads] for x in (effects, other_effects))
    figure = paired_effects(labels, first[:n], second[:n], theme, sizes=sizes)
    rows = [[*head, a, b] for head, a, b in zip(heads, first, second, strict=True)]
    data = rows_data(["layer", "head", *RUNS], rows)
    return figure, data


def _losses(
    view: View,
    other: OtherSide,
    alignment: Alignment,
    both: Both,
    given: Mapping[str, Any],
) -> None:
    """The loss of each aligned token on both sides."""
    places = (alignment.a > 0) & (alignment.b > 0)
    if not places.any():
        st.info("No token after the first is aligned, so there is no loss to compare.")
        return
    first = both.before.losses[alignment.a[places] - 1]
    second = both.after.losses[alignment.b[places] - 1]
    caption(
        "Loss by token",
        f"−ln p of each aligned token. Line: before (mean {first.mean():.2f}). Bars: after (mean "
        f"{second.mean():.2f}). Orange: the loss rose. Blue: it fell.",
    )
    chart(
        recipe(view, _draw_losses, **given),
        key="losses",
        name="Loss by token before and after",
        height=240,
        alt=f"Mean loss {first.mean():.3f} nats before and {second.mean():.3f} after.",
    )


def _draw_losses(
    trace: Trace,
    before: Outcome,
    after: Outcome,
    alignment: Alignment,
    theme: Theme,
    sizes: TextSizes,
) -> Drawn:
    places = (alignment.a > 0) & (alignment.b > 0)
    a, b = alignment.a[places], alignment.b[places]
    tokens = [trace.tokens[i] for i in a]
    first, second = before.losses[a - 1], after.losses[b - 1]
    figure = token_losses(["", *tokens], first, second, theme, names=RUNS, sizes=sizes)
    rows = list(zip(a.tolist(), tokens, first.tolist(), second.tolist(), strict=True))
    data = rows_data(["position", "token", *RUNS], rows)
    return figure, data


def _lens(view: View, both: Both, given: Mapping[str, Any]) -> None:
    """The most likely token after each layer on both sides."""
    token = f"{escaped(view.trace.tokens[view.token])} ({view.token})"
    caption("Logit lens", f"What each layer would predict after {token}. Colour: probability.")
    n_rows = max(len(both.before.lens_ids), len(both.after.lens_ids))
    drawn = recipe(view, _draw_lens, **given)
    figure, data = drawn.make()
    chart(
        drawn,
        figure=figure,
        key="lenses",
        name="Logit lens before and after",
        height=height(n_rows, sizes=view.sizes),
        alt="; ".join(f"{row[0]}: {row[1]} before, {row[3]} after" for row in data.table()[1]),
    )


def _draw_lens(
    model: Model,
    other_model: Model,
    before: Outcome,
    after: Outcome,
    theme: Theme,
    sizes: TextSizes,
) -> Drawn:
    rows = []
    for layer in range(max(len(before.lens_ids), len(after.lens_ids))):
        row: list[object] = [f"after L{layer - 1}" if layer else "embedding"]
        for reader, side in ((model, before), (other_model, after)):
            if layer < len(side.lens_ids):
                label = reader.read([int(side.lens_ids[layer])])[0].label
                row += [label, float(side.lens_probabilities[layer])]
            else:
                row += ["", 0.0]
        rows.append(row)
    tokens = [[str(row[1]), str(row[3])] for row in rows]
    p = np.array([[row[2], row[4]] for row in rows], dtype=np.float32)
    sides = list(zip(RUNS, (1, 3), strict=True))
    grid = Grid(
        columns=list(RUNS),
        rows=[str(row[0]) for row in rows],
        tokens=tokens,
        probabilities=p,
        hovers=[
            [[f"{row[0]}, {run}", f"{row[at]} {row[at + 1]:.4f}"] for run, at in sides]
            for row in rows
        ],
        outlined=np.zeros(p.shape, dtype=bool),
        numbered=False,
        bold=np.array([[pair[side] == tokens[-1][side] for side in (0, 1)] for pair in tokens]),
    )
    figure = token_grid(grid, theme, sizes=sizes)
    data = rows_data(["layer", "before", "p before", "after", "p after"], rows)
    return figure, data

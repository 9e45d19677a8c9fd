"""The Logit lens part: what the model would say, were it to stop after an earlier layer."""

from collections.abc import Iterator, Sequence

import numpy as np
import streamlit as st

from mha_viz.analysis import predictions
from mha_viz.analysis.predictions import Predictions
from mha_viz.app.messages import escaped
from mha_viz.app.pages.next_token.common import (
    drawn,
    following,
    in_rows,
    names,
    next_ids,
    pairs,
    share,
    table_button,
    tokens_box,
    window,
)
from mha_viz.app.view import View
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.choices import segmented_control
from mha_viz.app.work.progress import Reporter, results
from mha_viz.figures.token_grid import Grid, height, token_grid

TOP = 5  # tokens of each cell that the hover tells
COLOURS = {
    "top token": "the token that is named",
    "final choice": "the token that the last layer puts first",
    "actual next token": "the token that does follow in the text",
}
LIMITS = (
    "Its limits: ln_f and W_U were trained to read the last residual stream alone. An earlier "
    "one may hold an answer in directions that they do not read, so what is not seen here may "
    "still be known; and the model itself never says what is read off in between. Where W_U is "
    "the embedding table, the first row repeats the token itself. A lens trained for each layer "
    "reads more (Belrose et al. 2023). Formula and idea: nostalgebraist 2020."
)


def show(view: View) -> None:
    """Layers down, positions across: the likeliest token of each, as far as it is computed."""
    colour = segmented_control(
        "Colour is the probability of", list(COLOURS), "top token", "lens_colour"
    )
    at = window(view, view.trace.n_tokens)
    layers = _layers(view, at)
    if not layers:
        return
    _grid(view, layers, at, colour)
    _when(view, layers, at)
    left, right = st.columns([2, 3], gap="medium", vertical_alignment="center")
    left.latex(r"\text{softmax}\big(\mathrm{ln_f}(\mathrm{resid}_\ell)\,W_U\big)")
    right.caption(LIMITS)
    table_button("logit_lens.csv", lambda: _numbers(view, layers, at), "Numbers as CSV")


def _layers(view: View, at: range) -> list[Predictions]:
    model, ids = view.model, view.trace.token_ids

    def work(report: Reporter) -> Iterator[Predictions]:
        k = min(TOP, model.config.vocab_size)
        yield from predictions.lens(model, ids, at, k, on_progress=report)

    layers, _ = results(
        f"lens {view.trace_key} {at.start} {at.stop}", work,
        total=model.config.n_layers + 1, what="layers", lane="lens"
    )  # fmt: skip
    return layers


def _rows(n: int) -> list[str]:
    return ["embedding", *(f"after L{layer}" for layer in range(n - 1))]


def _grid(view: View, layers: Sequence[Predictions], at: range, colour: str) -> None:
    whole = len(layers) == view.trace.n_layers + 1
    top = np.stack([layer.ids[:, 0] for layer in layers])
    labels = in_rows(names(view, top.ravel().tolist()), len(at))
    caption(
        "What each layer would say",
        "a row is the residual stream after a layer, a column a position: its likeliest next "
        f"token, with ln_f and W_U applied to it. Colour: probability of {COLOURS[colour]}. Bold: "
        "the token that the last layer puts first; framed: the one that does follow."
        f"{drawn(at, view.trace.n_tokens)}",
    )
    shades = {
        "top token": [layer.probabilities[:, 0] for layer in layers],
        "final choice": [layer.p_final for layer in layers],
        "actual next token": [layer.p_actual for layer in layers],
    }
    grid = Grid(
        columns=[view.trace.tokens[i] for i in at],
        rows=_rows(len(layers)),
        tokens=labels,
        probabilities=np.stack(shades[colour]),
        hovers=[
            _hovers(view, layer, name, at)
            for layer, name in zip(layers, _rows(len(layers)), strict=True)
        ],
        outlined=top == next_ids(view, at),
        bold=top == top[-1] if whole else None,
        notes=[("follows", [token or "?" for token in following(view, at)])],
        first=at.start,
        chosen=view.token,
    )
    tokens_box(
        token_grid(grid, view.theme, sizes=view.sizes), key="lens", name="logit-lens",
        height=height(len(layers), 1, sizes=view.sizes), n=len(at),
        shown=view.token - at.start, alt=_alt(view, grid, at),
    )  # fmt: skip


def _hovers(view: View, layer: Predictions, name: str, at: range) -> list[list[str]]:
    tokens = in_rows(names(view, layer.ids.ravel().tolist()), layer.ids.shape[1])
    found: list[list[str]] = []
    for column, i in enumerate(at):
        lines = [f"{name}, at {view.trace.tokens[i]} ({i})"]
        lines += [
            f"{token} {p:.4f}"
            for token, p in zip(tokens[column], layer.probabilities[column], strict=True)
        ]
        if rank := int(layer.ranks[column]):
            follows = view.trace.tokens[i + 1]
            lines.append(f"follows: {follows} {layer.p_actual[column]:.4f}, rank {rank:,}")
        found.append(lines)
    return found


def _alt(view: View, grid: Grid, at: range) -> str:
    column = max(0, min(view.token - at.start, len(at) - 1))
    said = "; ".join(
        f"{name} {row[column]} {share(shares[column])}"
        for name, row, shares in zip(grid.rows, grid.tokens, grid.probabilities, strict=True)
    )
    return f"At {grid.columns[column]} ({at[column]}): {said}."


def _when(view: View, layers: Sequence[Predictions], at: range) -> None:
    """From where on the pinned position says what it ends with."""
    if len(layers) <= view.trace.n_layers:
        return
    column = max(0, min(view.token - at.start, len(at) - 1))
    says = [int(layer.ids[column, 0]) for layer in layers]
    held = next(i for i in range(len(says)) if len(set(says[i:])) == 1)
    final, token = names(view, [says[-1], view.trace.token_ids[at[column]]])
    at_layer = ["at the embedding", *_rows(len(says))[1:]]
    before = [at_layer[i] for i in range(held) if says[i] == says[-1]]
    since = "no earlier layer does"
    if held < len(says) - 1:
        since = f"the lens does {at_layer[held]} and ever since"
    elif before:
        since = f"the lens did {', '.join(before)}, and {at_layer[held - 1]} it does not"
    p = share(layers[-1].probabilities[column, 0])
    st.html(
        f'<div class="caption">At <b>{escaped(token)}</b> ({at[column]:,}) the model puts '
        f"<b>{escaped(final)}</b> first, with {p}; {since}."
        "</div>"
    )


def _numbers(
    view: View, layers: Sequence[Predictions], at: range
) -> tuple[list[str], list[list[object]]]:
    k = layers[0].ids.shape[1]
    header = ["after", "position", "token", "p of final", "p of follows"]
    header += [f"{name} {rank}" for rank in range(1, k + 1) for name in ("likeliest", "p")]
    rows: list[list[object]] = []
    for name, layer in zip(_rows(len(layers)), layers, strict=True):
        labels = in_rows(names(view, layer.ids.ravel().tolist()), k)
        for column, i in enumerate(at):
            row = [name, i, view.trace.tokens[i]]
            row += [float(layer.p_final[column]), float(layer.p_actual[column])]
            rows.append([*row, *pairs(labels[column], layer.probabilities[column])])
    return header, rows

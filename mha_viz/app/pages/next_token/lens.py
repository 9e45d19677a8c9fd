"""The Logit lens tab: the prediction that each layer's residual stream would give."""

from collections.abc import Iterator, Sequence

import numpy as np
import streamlit as st

from mha_viz.analysis.predictions import Predictions
from mha_viz.analysis.predictions import lens as logit_lens
from mha_viz.app.messages import escaped
from mha_viz.app.pages.next_token.position_window import note, visible_positions
from mha_viz.app.pages.next_token.scrolling_grid import scrolling_grid
from mha_viz.app.pages.next_token.token_labels import (
    actual_next_ids,
    actual_next_labels,
    label_rows,
    labels,
    ranked_cells,
    ranked_header,
    two_digits,
)
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.choices import segmented_control
from mha_viz.app.widgets.download_buttons import download_csv
from mha_viz.app.widgets.recipes import recipe
from mha_viz.app.work.progress import Reporter, results
from mha_viz.export import Drawn, Given, rows_data, table_csv
from mha_viz.figures.theme import TextSizes, Theme
from mha_viz.figures.token_grid import Grid, token_grid
from mha_viz.model import Model
from mha_viz.trace import Trace

LAYERS = (
    "list(logit_lens(model, trace.token_ids, positions, min(N_RANKS, model.config.vocab_size)))"
)
N_RANKS = 5  # most likely tokens that a hover lists
COLOURS = {
    "top token": "the token in the cell",
    "final choice": "the final layer's choice",
    "actual next token": "the actual next token",
}
LIMITS = (
    "Limits: ln_f and W_U were trained to read the final residual stream only. An earlier one may "
    "hold the answer in directions that they do not read, so a token that is missing here may "
    "still be encoded. The model never outputs these intermediate predictions. Where W_U is the "
    "embedding table, the first row nearly always repeats the input token. A lens trained for each "
    "layer recovers more (Belrose et al. 2023). Method: nostalgebraist 2020."
)


def show(view: View) -> None:
    """The most likely token at each layer (row) and position (column), as they are computed."""
    colour = segmented_control("Colour: probability of", list(COLOURS), "top token", "lens_colour")
    positions = visible_positions(view, view.trace.n_tokens)
    layers = _layers(view, positions)
    if not layers:
        return
    _grid(view, layers, positions, colour)
    if len(layers) == view.trace.n_layers + 1:
        _first_layer_with_final_choice(view, layers, positions)
    left, right = st.columns([2, 3], gap="medium", vertical_alignment="center")
    left.latex(r"\text{softmax}\big(\mathrm{ln_f}(\mathrm{resid}_\ell)\,W_U\big)")
    with right:
        explained.note(LIMITS)
    download_csv(
        "Download CSV",
        "logit_lens.csv",
        lambda origin: table_csv(*_table(view.model, view.trace, layers, positions), origin),
    )


def _layers(view: View, positions: range) -> list[Predictions]:
    """The predictions from the embedding and from each layer, as far as they are computed."""
    model, ids = view.model, view.trace.token_ids

    def work(report: Reporter) -> Iterator[Predictions]:
        k = min(N_RANKS, model.config.vocab_size)
        yield from logit_lens(model, ids, positions, k, on_progress=report)

    name = f"lens {view.trace_key} {positions.start} {positions.stop}"
    n_layers = model.config.n_layers + 1
    layers, _ = results(name, work, total=n_layers, what="layers", lane="lens")
    return layers


def _row_names(n: int) -> list[str]:
    return ["embedding", *(f"after L{layer}" for layer in range(n - 1))]


def _grid(view: View, layers: Sequence[Predictions], positions: range, colour: str) -> None:
    caption(
        "What each layer would predict",
        "Each row reads the residual stream at one depth through ln_f and W_U; each column is a "
        f"position. Cells show the most likely next token. Colour: probability of "
        f"{COLOURS[colour]}. Bold: same as the final layer's choice; outlined: the actual next "
        f"token.{note(positions, view.trace.n_tokens)}",
        also="logit lens",
    )
    grid = _make_grid(view.model, view.trace, layers, positions, colour, view.token)
    alt = _alt(grid, _column(view, positions))
    drawn = recipe(
        view,
        _draw_lens,
        positions=positions,
        layers=Given(layers, LAYERS),
        colour=colour,
    )
    scrolling_grid(view, drawn, grid, key="lens", name="Logit lens", alt=alt)


def _draw_lens(
    model: Model,
    trace: Trace,
    layers: Sequence[Predictions],
    positions: range,
    colour: str,
    position: int,
    theme: Theme,
    sizes: TextSizes,
) -> Drawn:
    grid = _make_grid(model, trace, layers, positions, colour, position)
    figure = token_grid(grid, theme, sizes=sizes)
    data = rows_data(*_table(model, trace, layers, positions))
    return figure, data


def _make_grid(
    model: Model,
    trace: Trace,
    layers: Sequence[Predictions],
    positions: range,
    colour: str,
    selected: int,
) -> Grid:
    probabilities = {
        "top token": [layer.probabilities[:, 0] for layer in layers],
        "final choice": [layer.p_final for layer in layers],
        "actual next token": [layer.p_actual for layer in layers],
    }
    top = np.stack([layer.ids[:, 0] for layer in layers])
    complete = len(layers) == trace.n_layers + 1
    row_names = _row_names(len(layers))
    return Grid(
        columns=[trace.tokens[i] for i in positions],
        rows=row_names,
        tokens=label_rows(model, top),
        probabilities=np.stack(probabilities[colour]),
        hovers=[
            _hovers(model, trace, *row, positions) for row in zip(layers, row_names, strict=True)
        ],
        outlined=top == actual_next_ids(trace, positions),
        bold=top == top[-1] if complete else None,
        notes=[("actual", [token or "?" for token in actual_next_labels(trace, positions)])],
        first=positions.start,
        selected=selected,
    )


def _hovers(
    model: Model, trace: Trace, layer: Predictions, name: str, positions: range
) -> list[list[str]]:
    """For each position: the layer, its most likely tokens, and the actual next token."""
    hovers: list[list[str]] = []
    for column, (i, top) in enumerate(zip(positions, label_rows(model, layer.ids), strict=True)):
        lines = [f"{name}, at {trace.tokens[i]} ({i})"]
        ranked = zip(top, layer.probabilities[column], strict=True)
        lines += [f"{token} {p:.4f}" for token, p in ranked]
        if rank := int(layer.ranks[column]):
            actual, p = trace.tokens[i + 1], layer.p_actual[column]
            lines.append(f"actual next token: {actual} {p:.4f}, rank {rank:,}")
        hovers.append(lines)
    return hovers


def _column(view: View, positions: range) -> int:
    """The column of the selected token, or the one nearest to it."""
    return max(0, min(view.token - positions.start, len(positions) - 1))


def _alt(grid: Grid, column: int) -> str:
    rows = "; ".join(
        f"{name} {tokens[column]} {two_digits(probabilities[column])}"
        for name, tokens, probabilities in zip(
            grid.rows, grid.tokens, grid.probabilities, strict=True
        )
    )
    return f"At {grid.columns[column]} ({grid.first + column}): {rows}."


def _first_layer_with_final_choice(
    view: View, layers: Sequence[Predictions], positions: range
) -> None:
    """Says from which layer on the lens ranks the model's final choice first, at this position."""
    column = _column(view, positions)
    position = positions[column]
    top = [int(layer.ids[column, 0]) for layer in layers]
    final, token = labels(view.model, [top[-1], view.trace.token_ids[position]])
    p = two_digits(layers[-1].probabilities[column, 0])
    explained.html(
        f'<div class="caption">At <b>{escaped(token)}</b> ({position:,}), the model\'s top token '
        f"is <b>{escaped(final)}</b> (p {p}). {_since(top)}</div>"
    )


def _since(top: Sequence[int]) -> str:
    """A sentence on the row from which the final choice, the last of `top`, is ranked first."""
    last = len(top) - 1
    places = ["at the embedding", *_row_names(len(top))[1:]]
    first = next(i for i in range(len(top)) if len(set(top[i:])) == 1)
    if first < last:
        return f"The lens ranks it first {places[first]} and in every later row."
    earlier = [places[i] for i in range(last) if top[i] == top[-1]]
    if earlier:
        return f"The lens also ranks it first {', '.join(earlier)}, but not {places[last - 1]}."
    return "No earlier layer ranks it first."


def _table(
    model: Model, trace: Trace, layers: Sequence[Predictions], positions: range
) -> tuple[list[str], list[list[object]]]:
    k = layers[0].ids.shape[1]
    header = ["layer", "position", "token", "p of final choice", "p of actual next token"]
    rows: list[list[object]] = []
    for name, layer in zip(_row_names(len(layers)), layers, strict=True):
        top = label_rows(model, layer.ids)
        rows += [
            [
                name,
                i,
                trace.tokens[i],
                float(layer.p_final[column]),
                float(layer.p_actual[column]),
                *ranked_cells(top[column], layer.probabilities[column]),
            ]
            for column, i in enumerate(positions)
        ]
    return [*header, *ranked_header(k)], rows

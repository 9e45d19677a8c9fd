"""The “Every position” tab: the prediction after each token, and the actual next token."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from mha_viz.analysis.predictions import POSITIONS, Predictions, join, predict
from mha_viz.app.messages import plain
from mha_viz.app.pages.next_token.position_window import (
    MAX_POSITIONS,
    note,
    select_token,
    visible_positions,
)
from mha_viz.app.pages.next_token.scrolling_grid import scrolling_grid
from mha_viz.app.pages.next_token.token_labels import (
    actual_next_ids,
    actual_next_labels,
    label_rows,
    ranked_cells,
    ranked_header,
    two_digits,
)
from mha_viz.app.view import View
from mha_viz.app.widgets.caption import caption, metrics
from mha_viz.app.widgets.choices import segmented_control
from mha_viz.app.widgets.download_buttons import download_csv
from mha_viz.app.widgets.recipes import recipe
from mha_viz.app.work.progress import Reporter, results
from mha_viz.export import Drawn, Given, rows_data, table_csv
from mha_viz.figures.theme import TextSizes, Theme
from mha_viz.figures.token_grid import Grid, token_grid
from mha_viz.model import Model
from mha_viz.trace import Trace

PREDICTIONS = "join(list(predict(model, trace.token_ids, min(N_RANKS, model.config.vocab_size))))"
N_RANKS = 10  # most likely tokens computed for each position
N_SURPRISES = 5  # positions named for a long text
LARGE_LOSS = 20  # nats; perplexities above are not written out


def show(view: View) -> None:
    """The loss on this text, and the most likely next tokens beside the actual ones."""
    predictions = _predictions(view)
    if predictions is None:
        return
    n = len(predictions.ids)
    _metrics(predictions)
    if n > MAX_POSITIONS:
        _surprises(view, predictions)
    n_rows = segmented_control("Show top", [3, 5, N_RANKS], 5, "likeliest")
    _grid(view, predictions, visible_positions(view, n), n_rows)
    download_csv(
        "Download CSV",
        "next_tokens.csv",
        lambda origin: table_csv(*_table(view.model, view.trace, predictions), origin),
    )


def _predictions(view: View) -> Predictions | None:
    """The predictions of the positions computed so far; None if there are none yet."""
    model, ids = view.model, view.trace.token_ids

    def work(report: Reporter) -> Iterator[Predictions]:
        yield from predict(model, ids, min(N_RANKS, model.config.vocab_size), on_progress=report)

    n_batches = -(-len(ids) // POSITIONS)
    name, what = f"predictions {view.trace_key}", f"batches of {POSITIONS} positions"
    batches, _ = results(name, work, total=n_batches, what=what, lane="positions")
    return join(batches) if batches else None


def _metrics(predictions: Predictions) -> None:
    """Loss, perplexity and accuracy on this text."""
    losses = predictions.losses[~np.isnan(predictions.losses)].astype(np.float64)
    if not len(losses):
        st.info("A single token has no next token, so there is no loss. Type a longer text.")
        return
    ranks = predictions.ranks[predictions.ranks > 0]
    loss = float(losses.mean())
    perplexity = f"{math.exp(loss):,.1f}" if loss < LARGE_LOSS else "over 4.8 × 10⁸"
    metrics(
        f"mean loss <b>{loss:.3f}</b> nats per token over {len(losses):,} tokens",
        f"perplexity <b>{perplexity}</b>",
        f"top-1 accuracy <b>{(ranks == 1).mean():.0%}</b>",
        f"top-5 accuracy <b>{(ranks <= 5).mean():.0%}</b>",
    )


def _surprises(view: View, predictions: Predictions) -> None:
    """The tokens with the largest loss, as buttons that select the position before them."""
    caption(
        "Most surprising tokens",
        "Largest loss in nats. Click one to select the position that predicts it.",
    )
    losses = np.nan_to_num(predictions.losses, nan=-1.0)
    with st.container(horizontal=True):
        for position in np.argsort(-losses, kind="stable")[:N_SURPRISES].tolist():
            token = plain(view.trace.tokens[position + 1])
            label = f"{token} ({position + 1:,}) · {losses[position]:.1f}"
            key = f"to position {position}"
            st.button(label, key=key, on_click=select_token, args=(position,))


def _grid(view: View, predictions: Predictions, positions: range, n_rows: int) -> None:
    grid = _make_grid(view.model, view.trace, predictions, positions, n_rows, view.token)
    caption(
        "After each token",
        f"The {len(grid.rows)} most likely next tokens, coloured by probability p; the actual next "
        "token is outlined. Below: that token with its rank among "
        f"{view.model.config.vocab_size:,}, its p and its loss −ln p in nats."
        f"{note(positions, len(predictions.ids))}",
    )
    alt = "; ".join(
        f"after {token} ({i}): {first} {two_digits(p)}"
        + (
            f", actual next token {following} with rank {predictions.ranks[i]:,}"
            if following
            else ""
        )
        for i, token, first, p, following in zip(
            positions,
            grid.columns,
            grid.tokens[0],
            grid.probabilities[0],
            actual_next_labels(view.trace, positions),
            strict=True,
        )
    )
    drawn = recipe(
        view,
        _draw_positions,
        predictions=Given(predictions, PREDICTIONS),
        positions=positions,
        n_rows=n_rows,
    )
    scrolling_grid(view, drawn, grid, key="positions", name="Next tokens", alt=alt)


def _draw_positions(
    model: Model,
    trace: Trace,
    predictions: Predictions,
    positions: range,
    n_rows: int,
    position: int,
    theme: Theme,
    sizes: TextSizes,
) -> Drawn:
    grid = _make_grid(model, trace, predictions, positions, n_rows, position)
    figure = token_grid(grid, theme, sizes=sizes)
    data = rows_data(*_table(model, trace, predictions))
    return figure, data


def _make_grid(
    model: Model,
    trace: Trace,
    predictions: Predictions,
    positions: range,
    n_rows: int,
    selected: int,
) -> Grid:
    part = slice(positions.start, positions.stop)
    ids = predictions.ids[part, :n_rows].T
    probabilities = predictions.probabilities[part, :n_rows].T
    top, actual = label_rows(model, ids), actual_next_labels(trace, positions)
    tokens = [trace.tokens[i] for i in positions]
    return Grid(
        columns=tokens,
        rows=[str(rank + 1) for rank in range(len(ids))],
        tokens=top,
        probabilities=probabilities,
        hovers=[
            [
                [f"after {tokens[n]} ({i})", f"{row[n]} {p[n]:.4f}, rank {rank}"]
                for n, i in enumerate(positions)
            ]
            for rank, (row, p) in enumerate(zip(top, probabilities, strict=True), 1)
        ],
        outlined=ids == actual_next_ids(trace, positions),
        notes=_notes(predictions, positions, actual),
        first=positions.start,
        selected=selected,
    )


def _notes(
    predictions: Predictions, positions: range, actual: Sequence[str]
) -> list[tuple[str, Sequence[str]]]:
    """The rows below the grid: the actual next tokens, their rank, probability and loss."""

    def written(values: NDArray[Any], form: str) -> list[str]:
        pairs = zip(positions, actual, strict=True)
        return [format(values[i], form) if following else "" for i, following in pairs]

    p_actual = written(predictions.p_actual, ".3f")
    return [
        ("actual", [following or "?" for following in actual]),
        ("rank", written(predictions.ranks, ",d")),
        ("p", ["<.001" if p == "0.000" else p for p in p_actual]),
        ("loss", written(predictions.losses, ".2f")),
    ]


def _table(
    model: Model, trace: Trace, predictions: Predictions
) -> tuple[list[str], list[list[object]]]:
    """The predictions at all positions, drawn or not."""
    n, k = predictions.ids.shape
    header = ["position", "token", "actual next token", "rank", "p", "loss", *ranked_header(k)]
    top, actual = label_rows(model, predictions.ids), actual_next_labels(trace, range(n))
    rows = [
        [
            i,
            trace.tokens[i],
            actual[i],
            int(predictions.ranks[i]),
            float(predictions.p_actual[i]),
            float(predictions.losses[i]),
            *ranked_cells(top[i], predictions.probabilities[i]),
        ]
        for i in range(n)
    ]
    return header, rows

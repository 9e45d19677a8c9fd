"""The Every position part: what the model expects after each token, and what did follow."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from mha_viz.analysis import predictions
from mha_viz.analysis.predictions import POSITIONS, Predictions
from mha_viz.app.messages import plain
from mha_viz.app.pages.next_token.common import (
    COLUMNS,
    drawn,
    following,
    in_rows,
    names,
    next_ids,
    pairs,
    pin,
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

KEPT = 10  # likeliest tokens of each position
SURPRISES = 5  # positions that are named in a long text


def show(view: View) -> None:
    """The table, and how well the model expected this text."""
    seen_so_far = _expected(view)
    if seen_so_far is None:
        return
    n = len(seen_so_far.ids)
    _score(view, seen_so_far)
    if n > COLUMNS:
        _surprises(view, seen_so_far)
    top = segmented_control("Likeliest", [3, 5, KEPT], 5, "likeliest")
    _table(view, seen_so_far, window(view, n), top)
    table_button("next_tokens.csv", lambda: _numbers(view, seen_so_far), "Numbers as CSV")


def _expected(view: View) -> Predictions | None:
    model, ids = view.model, view.trace.token_ids

    def work(report: Reporter) -> Iterator[Predictions]:
        yield from predictions.predict(
            model, ids, min(KEPT, model.config.vocab_size), on_progress=report
        )

    parts, _ = results(
        f"expected {view.trace_key}", work, total=-(-len(ids) // POSITIONS),
        what=f"parts of {POSITIONS} tokens", lane="positions"
    )  # fmt: skip
    return predictions.join(parts) if parts else None


def _score(view: View, seen: Predictions) -> None:
    """Loss, perplexity, and how often the model was right."""
    losses = seen.losses[~np.isnan(seen.losses)].astype(np.float64)
    if not len(losses):
        st.info("Nothing follows the only token, so it has no loss: type a second one.")
        return
    ranks = seen.ranks[seen.ranks > 0]
    loss = float(losses.mean())
    perplexity = f"{math.exp(loss):,.1f}" if loss < 20 else "beyond all bounds"
    st.html(
        f'<div class="score"><span><b>{loss:.3f}</b> nats a token, mean over '
        f"{len(losses):,}</span><span>perplexity <b>{perplexity}</b></span>"
        f"<span>the likeliest was right <b>{(ranks == 1).mean():.0%}</b></span>"
        f"<span>among the first five <b>{(ranks <= 5).mean():.0%}</b></span></div>"
    )


def _surprises(view: View, seen: Predictions) -> None:
    """The tokens that were expected least; a press goes there."""
    caption("Least expected", "tokens of the largest loss, in nats; a press goes there.")
    losses = np.nan_to_num(seen.losses, nan=-1.0)
    with st.container(horizontal=True):
        for at in np.argsort(-losses, kind="stable")[:SURPRISES].tolist():
            name = plain(view.trace.tokens[at + 1])
            st.button(
                f"{name} ({at + 1:,}) · {losses[at]:.1f}", on_click=pin, args=(at,),
                key=f"to position {at}",
            )  # fmt: skip


def _table(view: View, seen: Predictions, at: range, top: int) -> None:
    n, V = len(seen.ids), view.model.config.vocab_size
    part = slice(at.start, at.stop)
    ids, shares = seen.ids[part, :top].T, seen.probabilities[part, :top].T
    labels = in_rows(names(view, ids.ravel().tolist()), len(at))
    follows = following(view, at)
    caption(
        "After each token",
        f"the {len(ids)} likeliest next tokens, coloured by probability p; framed is the one "
        f"that does follow. Below: that one, its rank among {V:,}, its p, and its loss −ln p in "
        f"nats.{drawn(at, n)}",
    )
    grid = Grid(
        columns=[view.trace.tokens[i] for i in at],
        rows=[str(rank + 1) for rank in range(len(ids))],
        tokens=labels,
        probabilities=shares,
        hovers=[
            [
                [f"after {view.trace.tokens[i]} ({i})", f"{label} {p:.4f}, rank {rank + 1}"]
                for i, label, p in zip(at, row, row_shares, strict=True)
            ]
            for rank, (row, row_shares) in enumerate(zip(labels, shares, strict=True))
        ],
        outlined=ids == next_ids(view, at),
        notes=_notes(seen, at, follows),
        first=at.start,
        chosen=view.token,
    )
    tokens_box(
        token_grid(grid, view.theme, sizes=view.sizes), key="positions", name="next-tokens",
        height=height(len(ids), len(grid.notes), sizes=view.sizes), n=len(at),
        shown=view.token - at.start,
        alt="; ".join(
            f"after {token} ({i}): {first} {share(p)}"
            + (f", {follow} follows with rank {seen.ranks[i]:,}" if follow else "")
            for i, token, first, p, follow in zip(
                at, grid.columns, labels[0], shares[0], follows, strict=True
            )
        ),
    )  # fmt: skip


def _notes(seen: Predictions, at: range, follows: Sequence[str]) -> list[tuple[str, Sequence[str]]]:
    def told(values: NDArray[Any], form: str) -> list[str]:
        return [
            format(values[i], form) if follow else "" for i, follow in zip(at, follows, strict=True)
        ]

    return [
        ("follows", [follow or "?" for follow in follows]),
        ("rank", told(seen.ranks, ",d")),
        ("p", [t if float(t or 1) else "<.001" for t in told(seen.p_actual, ".3f")]),
        ("loss", told(seen.losses, ".2f")),
    ]


def _numbers(view: View, seen: Predictions) -> tuple[list[str], list[list[object]]]:
    """All positions, whatever is drawn."""
    n, k = seen.ids.shape
    labels = in_rows(names(view, seen.ids.ravel().tolist()), k)
    header = ["position", "token", "follows", "rank", "probability", "loss"]
    header += [f"{name} {rank}" for rank in range(1, k + 1) for name in ("likeliest", "p")]
    rows: list[list[object]] = []
    for i, follow in enumerate(following(view, range(n))):
        row = [i, view.trace.tokens[i], follow, int(seen.ranks[i])]
        row += [float(seen.p_actual[i]), float(seen.losses[i])]
        rows.append([*row, *pairs(labels[i], seen.probabilities[i])])
    return header, rows

"""Losses as they fall, and what each head looks at meanwhile."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from mha_viz.figures.scale import hidden, position
from mha_viz.figures.text import literal
from mha_viz.figures.theme import MONO, NORMAL, SANS, Theme, Type, colorscale, rgb
from mha_viz.tokens import label
from mha_viz.trace import Array

HEADS_A_ROW = 8
LABELS_UP_TO = 4  # heads a row; beyond that a cell is smaller than a letter
WIDTH = 460  # pixels of a column of the page
CLEAR = "rgba(0,0,0,0)"


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """The losses of one kind of model, in nats a character; NaN where there is none (yet)."""

    label: str
    steps: Array  # [n]
    train: Array  # [seeds, n]
    validation: Array  # [seeds, n]

    @property
    def last(self) -> tuple[int, float]:
        """The last step that every seed has reached, and the mean validation loss there."""
        means = self.validation.mean(axis=0)
        done = np.flatnonzero(~np.isnan(means))
        return (int(self.steps[done[-1]]), float(means[done[-1]])) if len(done) else (0, math.nan)


def loss_curves(
    curves: Sequence[Curve], even: float, n_steps: int, theme: Theme, *, sizes: Type = NORMAL
) -> go.Figure:
    """Loss over step: validation strong, training faint, `even` as a dashed line.

    With several seeds the strong line is their mean, a band reaches from the lowest to the highest,
    and each has a thin line. The end of a strong line says whose it is, and its loss.
    """
    low, high = _range(curves, even)
    data: list[dict[str, object]] = []
    notes = [_even_note(even, theme, sizes)]
    order = sorted(range(len(curves)), key=lambda i: (curves[i].last[1], i))
    for i, curve in enumerate(curves):
        data += _lines(curve, _colour(theme, i))
        if not math.isnan(curve.last[1]):
            below = i == order[0]
            notes.append(_end_note(curve, _colour(theme, i), n_steps, below, theme, sizes))
    rule = {
        "type": "line", "xref": "x domain", "x0": 0, "x1": 1, "y0": even, "y1": even,
        "line": {"color": theme.control, "width": 1, "dash": "dash"},
    }  # fmt: skip
    layout = _layout(theme, sizes) | {
        "margin": {"l": 4 * sizes.tick, "r": 20, "t": 8, "b": 3.4 * sizes.tick},
        "shapes": [rule], "annotations": notes,
        "xaxis": _axis("step", theme, sizes) | {"range": [0, n_steps], "tickformat": ",d"},
        "yaxis": _axis("loss, nats a character", theme, sizes)
        | {"range": [low, high], "showgrid": True, "gridcolor": theme.hairline, "nticks": 6},
    }  # fmt: skip
    return go.Figure(data=data, layout=layout)


def head_triangles(
    models: Sequence[tuple[str, Array]], sample: str, theme: Theme, *, sizes: Type = NORMAL
) -> go.Figure:
    """The pattern of each head of each model: `(name, [H, T, T])`, on the same characters.

    Every model starts a row of its own; a row is a query, a column a key; blank is masked. Cells
    are square where width and height keep the proportions of the figure.
    """
    T = len(sample)
    most = max(len(pattern) for _, pattern in models)
    a_row = min(max(most, LABELS_UP_TO), HEADS_A_ROW)
    z, hover, starts = _mosaic(models, sample, a_row)
    heatmap = {
        "type": "heatmap", "z": position(z, "sqrt"), "zmin": 0, "zmax": 1,
        "colorscale": colorscale(theme), "showscale": False, "xgap": 1, "ygap": 1,
        "hoverongaps": False, "text": hover, "hovertemplate": "%{text}<extra></extra>",
    }  # fmt: skip
    notes = [
        {
            "text": _name(name, _colour(theme, i)), "x": -0.5, "y": start - 0.6, "xanchor": "left",
            "yanchor": "bottom", "showarrow": False, "font": {"size": sizes.note + 1},
        }
        for i, ((name, _), start) in enumerate(zip(models, starts, strict=True))
    ]  # fmt: skip
    marks = [literal(label(c.encode("utf-8", "replace"))) for c in sample]
    axis: dict[str, object] = {
        "showgrid": False, "zeroline": False, "showline": False, "ticks": "", "fixedrange": True,
        "ticklabeloverflow": "allow", "tickangle": 0,
        "tickfont": {"size": sizes.tick, "family": MONO, "color": theme.muted},
    }  # fmt: skip
    rows, columns = z.shape
    lettered = most <= LABELS_UP_TO
    margin = {"l": 22 if lettered else 2, "r": 2, "t": 2, "b": 20 if lettered else 2}
    inside, room = WIDTH - margin["l"] - margin["r"], margin["t"] + margin["b"]
    across = [c * (T + 1) + i for c in range(most) for i in range(T)] if lettered else []
    down = [start + i for start in starts for i in range(T)] if lettered else []
    layout = _layout(theme, sizes) | {
        "margin": margin, "width": WIDTH, "height": round(rows / columns * inside) + room,
        "annotations": notes,
        "xaxis": axis | {"range": [-0.6, columns - 0.4],
                         "tickvals": across, "ticktext": marks * (len(across) // T)},
        "yaxis": axis | {"range": [rows - 0.4, -0.6],
                         "tickvals": down, "ticktext": marks * (len(down) // T)},
    }  # fmt: skip
    return go.Figure(data=[heatmap], layout=layout)


def _mosaic(
    models: Sequence[tuple[str, Array]], sample: str, a_row: int
) -> tuple[Array, list[list[str]], list[int]]:
    """Weights with NaN between the triangles, a text for each cell, and each model's first row."""
    T = len(sample)
    side = T + 1
    marks = [literal(label(c.encode("utf-8", "replace"))) for c in sample]
    bands: list[Array] = []
    texts: list[list[str]] = []
    starts: list[int] = []
    for _, pattern in models:
        title = np.full((a_row // 2, a_row * side - 1), np.nan, dtype=np.float32)
        texts += [[""] * title.shape[1]] * len(title)
        bands.append(title)
        starts.append(len(texts))
        n_rows = -(-len(pattern) // a_row)
        band = np.full((n_rows * side, a_row * side), np.nan, dtype=np.float32)
        text = [[""] * (a_row * side) for _ in range(n_rows * side)]
        for head, weights in enumerate(pattern):
            top, left = head // a_row * side, head % a_row * side
            band[top : top + T, left : left + T] = np.where(hidden(T, T), np.nan, weights)
            for q in range(T):
                for k in range(q + 1):
                    text[top + q][left + k] = (
                        f"H{head}: from {marks[q]} ({q}) to {marks[k]} ({k}): {weights[q, k]:.3f}"
                    )
        bands.append(band[:-1, :-1])
        texts += [line[:-1] for line in text[:-1]]
    return np.concatenate(bands), texts, starts


def _lines(curve: Curve, colour: str) -> list[dict[str, object]]:
    """Back to front: the band, each seed, training, validation."""
    x = curve.steps
    several = len(curve.validation) > 1
    base: dict[str, object] = {"type": "scatter", "mode": "lines", "x": x, "hoverinfo": "skip"}
    lines = []
    if several:
        lowest, highest = curve.validation.min(axis=0), curve.validation.max(axis=0)
        lines += [
            base | {"y": lowest, "line": {"width": 0}},
            base | {"y": highest, "line": {"width": 0}, "fill": "tonexty",
                    "fillcolor": _veil(colour, 0.18)},
            *(base | {"y": y, "line": {"width": 1, "color": _veil(colour, 0.5)}}
              for y in curve.validation),
        ]  # fmt: skip
    faint = {"width": 1, "color": _veil(colour, 0.6), "dash": "dot"}
    shown = f"{literal(curve.label)} · step %{{x:,}}: "
    return [
        *lines,
        base | {"y": curve.train.mean(axis=0), "line": faint},
        base | {"y": curve.validation.mean(axis=0), "line": {"width": 2.5, "color": colour},
                "hoverinfo": "all", "hovertemplate": f"{shown}%{{y:.3f}}<extra></extra>"},
    ]  # fmt: skip


def _end_note(
    curve: Curve, colour: str, n_steps: int, below: bool, theme: Theme, sizes: Type
) -> dict[str, object]:
    """The label at the end of a line: under the lowest, above the others."""
    step, loss = curve.last
    late = step > n_steps / 2
    return {
        "text": f"{_name(curve.label, colour)} <b>{loss:.3f}</b>", "x": step, "y": loss,
        "xanchor": "right" if late else "left", "yanchor": "top" if below else "bottom",
        "xshift": 0 if late else 6, "yshift": -4 if below else 4, "showarrow": False,
        "font": {"size": sizes.note + 1, "color": theme.ink}, "bgcolor": _veil(theme.page, 0.8),
        "borderpad": 1,
    }  # fmt: skip


def _even_note(even: float, theme: Theme, sizes: Type) -> dict[str, object]:
    n = round(math.exp(even))
    return {
        "text": f"guessing evenly: ln {n:,} = {even:.3f}", "xref": "x domain", "x": 1, "y": even,
        "xanchor": "right", "yanchor": "bottom", "showarrow": False,
        "font": {"size": sizes.note, "color": theme.muted},
    }  # fmt: skip


def _name(text: str, colour: str) -> str:
    """The label after a square of its colour: text of that colour would be too pale to read."""
    return f'<span style="color:{colour}">■</span> {literal(text)}'


def _range(curves: Sequence[Curve], even: float) -> tuple[float, float]:
    """What the vertical axis spans: all losses and the even guess, with room for the labels."""
    values = [np.asarray([even])]
    values += [losses[~np.isnan(losses)] for c in curves for losses in (c.train, c.validation)]
    seen = np.concatenate(values)
    low, high = float(seen.min()), float(seen.max())
    if high == low:  # nothing but the even guess yet
        return 0.0, max(even * 1.1, 1.0)
    room = 0.12 * (high - low)
    return low - room, high + room


def _colour(theme: Theme, i: int) -> str:
    """The first is ink in the palette, which is the text's; the others tell models apart."""
    return theme.categorical[1 + i % (len(theme.categorical) - 1)]


def _veil(colour: str, opacity: float) -> str:
    r, g, b = rgb(colour)
    return f"rgba({r},{g},{b},{opacity})"


def _axis(title: str, theme: Theme, sizes: Type) -> dict[str, object]:
    return {
        "title": {"text": title, "font": {"size": sizes.note, "color": theme.muted}, "standoff": 6},
        "fixedrange": True, "zeroline": False, "showgrid": False, "linecolor": theme.control,
        "tickfont": {"size": sizes.tick, "color": theme.muted},
    }  # fmt: skip


def _layout(theme: Theme, sizes: Type) -> dict[str, object]:
    return {
        "template": "none", "paper_bgcolor": CLEAR, "plot_bgcolor": CLEAR, "dragmode": False,
        "showlegend": False, "hovermode": "closest", "font": {"family": SANS, "color": theme.ink},
        "hoverlabel": {"bgcolor": theme.surface, "bordercolor": theme.query,
                       "font": {"family": SANS, "size": sizes.tick + 1, "color": theme.ink}},
    }  # fmt: skip

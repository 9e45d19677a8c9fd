"""Losses of models during training."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from mha_viz.figures.base import Spec, Style, hover
from mha_viz.figures.marks import horizontal_line, line, stroke
from mha_viz.figures.text import escape
from mha_viz.figures.theme import NORMAL, TextSizes, Theme, rgb
from mha_viz.trace import Array


@dataclass(frozen=True, slots=True, eq=False)
class LossCurve:
    """The losses of one kind of model, in nats per character; NaN where not measured yet."""

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
    curves: Sequence[LossCurve],
    uniform: float,
    n_steps: int,
    theme: Theme,
    *,
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """Loss over step: validation strong, training faint, `uniform` guessing as a dashed line.

    With several seeds, the strong line is their mean, a band runs from the lowest to the highest,
    and each seed has a thin line. The end of a strong line shows the model's name and its loss.
    """
    style = Style(theme, sizes)
    lowest = min(range(len(curves)), key=lambda i: (curves[i].last[1], i))
    traces: list[Spec] = []
    notes = [_uniform_note(uniform, style)]
    for i, curve in enumerate(curves):
        traces += _lines(curve, model_colour(theme, i))
        if not math.isnan(curve.last[1]):
            notes.append(_end_note(curve, model_colour(theme, i), n_steps, i == lowest, style))
    border = {"showline": True, "linecolor": theme.control}
    y_axis = style.axis(
        "loss, nats per character", grid=True, range=_range(curves, uniform), nticks=6
    )
    return style.figure(
        *traces,
        margin={"l": 4 * sizes.text, "r": 20, "t": 8, "b": 3.4 * sizes.text},
        shapes=[horizontal_line(uniform, **stroke(theme.control, 1, "dash"))],
        annotations=notes,
        xaxis=style.axis("step", range=[0, n_steps], tickformat=",d") | border,
        yaxis=y_axis | border,
    )


def model_colour(theme: Theme, i: int) -> str:
    """The colour of model i; skips the first of the palette, which is the colour of text."""
    return theme.categorical[1 + i % (len(theme.categorical) - 1)]


def model_name(text: str, colour: str) -> str:
    """The label after a square in its colour; text in that colour would be too pale to read."""
    return f'<span style="color:{colour}">■</span> {escape(text)}'


def _lines(curve: LossCurve, colour: str) -> list[Spec]:
    """Back to front: the band, each seed, training, validation."""
    x, traces = curve.steps, []
    if len(curve.validation) > 1:
        lowest, highest = curve.validation.min(axis=0), curve.validation.max(axis=0)
        band = {"fill": "tonexty", "fillcolor": _transparent(colour, 0.18)}
        traces = [line(x, lowest, colour, 0), line(x, highest, colour, 0) | band]
        traces += [line(x, y, _transparent(colour, 0.5), 1) for y in curve.validation]
    train = line(x, curve.train.mean(axis=0), _transparent(colour, 0.6), 1)
    train["line"]["dash"] = "dot"
    text = {"hoverinfo": "all"} | hover(f"{escape(curve.label)} · step %{{x:,}}: %{{y:.3f}}")
    return [*traces, train, line(x, curve.validation.mean(axis=0), colour, 2.5) | text]


def _end_note(curve: LossCurve, colour: str, n_steps: int, below: bool, style: Style) -> Spec:
    """The label at the end of a line: below the lowest line, above the others."""
    step, loss = curve.last
    late = step > n_steps / 2
    text = f"{model_name(curve.label, colour)} <b>{loss:.3f}</b>"
    anchor = f"{'right' if late else 'left'} {'top' if below else 'bottom'}"
    shift = {"xshift": 0 if late else 6, "yshift": -4 if below else 4}
    behind = {"bgcolor": _transparent(style.theme.page, 0.8), "borderpad": 1}
    return style.note(text, step, loss, anchor=anchor, font=style.ink(1)) | shift | behind


def _uniform_note(loss: float, style: Style) -> Spec:
    text = f"uniform guessing: ln {round(math.exp(loss)):,} = {loss:.3f}"
    return style.note(text, 1, loss, anchor="right bottom", xref="x domain")


def _range(curves: Sequence[LossCurve], uniform: float) -> tuple[float, float]:
    """All losses and the uniform guess, with room for the labels."""
    values = [np.asarray([uniform])]
    values += [losses[~np.isnan(losses)] for c in curves for losses in (c.train, c.validation)]
    seen = np.concatenate(values)
    low, high = float(seen.min()), float(seen.max())
    if high == low:  # no loss was measured yet
        return 0.0, max(uniform * 1.1, 1.0)
    room = 0.12 * (high - low)
    return low - room, high + room


def _transparent(colour: str, opacity: float) -> str:
    r, g, b = rgb(colour)
    return f"rgba({r},{g},{b},{opacity})"

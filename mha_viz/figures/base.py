"""The parts that all figures share: background, fonts, hover label, legend, axes and notes.

A figure is built once, from plain dicts, because each update of a go.Figure costs as much as
building it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from mha_viz.figures.text import escape
from mha_viz.figures.theme import MONO, SANS, TextSizes, Theme

Spec = dict[str, Any]  # a part of a figure, in Plotly's own keys

CLEAR = "rgba(0,0,0,0)"
HIDDEN: Spec = {"visible": False, "fixedrange": True}  # an axis that only has a range
BARE: Spec = {"showgrid": False, "showline": False, "zeroline": False, "ticks": ""}


@dataclass(frozen=True, slots=True)
class Style:
    """The parts of a figure in one theme and at one text size."""

    theme: Theme
    sizes: TextSizes

    def figure(self, *traces: Spec, **layout: Any) -> go.Figure:
        """A figure of the traces; `layout` adds to the shared layout, or overrides it."""
        shared = {
            "template": "none",
            "paper_bgcolor": CLEAR,
            "plot_bgcolor": CLEAR,
            "font": {"family": SANS, "color": self.theme.ink},
            "hoverlabel": self.hover_label(),
            "hovermode": "closest",
            "dragmode": False,
            "barmode": "overlay",
            "showlegend": False,
        }
        return go.Figure(data=traces, layout=shared | layout)

    def hover_label(self) -> Spec:
        """The hover label, monospaced like all tokens and numbers."""
        theme = self.theme
        return {"bgcolor": theme.surface, "bordercolor": theme.query, "font": self.mono(1)}

    def ink(self, larger: int = 0) -> Spec:
        """The font of names and legends."""
        return {"size": self.sizes.text + larger, "color": self.theme.ink}

    def muted(self, larger: int = 0) -> Spec:
        """The font of ticks and notes."""
        return {"size": self.sizes.text + larger, "color": self.theme.muted}

    def mono(self, larger: int = 0, colour: str = "") -> Spec:
        """The font of tokens."""
        return self.ink(larger) | {"family": MONO, "color": colour or self.theme.ink}

    def axis(self, title: str = "", *, grid: bool = False, **more: Any) -> Spec:
        """An axis with muted ticks that cannot be zoomed."""
        axis = BARE | {"fixedrange": True, "tickfont": self.muted()}
        if title:
            axis |= self.title(title)
        if grid:
            axis |= {"showgrid": True, "gridcolor": self.theme.hairline}
        return axis | more

    def title(self, text: str) -> Spec:
        """The title of an axis."""
        return {"title": {"text": escape(text), "font": self.muted(), "standoff": 6}}

    def rows(self, labels: Sequence[str], **more: Any) -> Spec:
        """A y axis with a label for each row, from the top down; labels must be escaped."""
        n = len(labels)
        labelled = {"tickvals": list(range(n)), "ticktext": labels, "ticklabeloverflow": "allow"}
        return self.axis(range=[n - 0.5, -0.5], tickfont=self.mono(1)) | labelled | more

    def legend(self, *, clickable: bool = True) -> Spec:
        """A legend in one line above the plot; a click on an entry hides or shows its trace."""
        placed = {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "font": self.ink(1)}
        return placed if clickable else placed | {"itemclick": False, "itemdoubleclick": False}

    def colour_bar(self, at: Sequence[float], labels: Sequence[str], **more: Any) -> Spec:
        """A colour bar with `labels` at the positions `at` of the scale."""
        bar = {"tickvals": at, "ticktext": labels, "tickangle": 0, "tickfont": self.muted(-1)}
        return bar | {"ticks": "", "outlinewidth": 0} | more

    def note(self, text: str, x: float, y: float, *, anchor: str, **more: Any) -> Spec:
        """Escaped text with its `anchor`, for example "left middle", at (x, y)."""
        xanchor, yanchor = anchor.split()
        note = {"text": text, "x": x, "y": y, "xanchor": xanchor, "yanchor": yanchor}
        return note | {"showarrow": False, "font": self.muted()} | more

    def selected(self, text: str) -> str:
        """Escaped text, styled as the label of the selection."""
        return f'<b><span style="color:{self.theme.query}">{text}</span></b>'


def hover(template: str) -> Spec:
    """The hover text of a trace, without the box that would name the trace."""
    return {"hovertemplate": f"{template}<extra></extra>"}

"""View: everything that decides what a page draws, gathered once per run and never changed."""

from collections.abc import Sequence
from dataclasses import dataclass

from mha_viz.figures.scale import Scale
from mha_viz.figures.theme import NORMAL, STAGE, TextSizes, Theme
from mha_viz.figures.window import Window, clamp_window
from mha_viz.head import Head
from mha_viz.model import Description, Model
from mha_viz.trace import Trace


@dataclass(frozen=True, slots=True)
class View:
    """What is shown: a trace, the selected head and token, and how they are drawn.

    `trace_key` identifies the trace (model, text, cut and template) in caches and in the browser.
    `source` and `device` are the names by which the model was obtained.
    """

    source: str
    device: str | None
    model: Model
    trace: Trace
    trace_key: str
    layer: int
    head: int
    token: int
    window_edges: Sequence[int] | None
    scale: Scale
    dim_sink: bool
    stage: bool
    theme: Theme

    @property
    def about(self) -> Description:
        """The model's name, source and size."""
        return self.model.description

    @property
    def at(self) -> Head:
        """The selected head."""
        return Head(self.layer, self.head)

    @property
    def window(self) -> Window | None:
        """The part of the heatmap that is zoomed in on; None for the whole pattern."""
        if self.window_edges is None:
            return None
        return clamp_window(self.window_edges, self.trace.n_tokens)

    @property
    def window_text(self) -> str:
        """The window as links write it; empty for the whole pattern."""
        w = self.window
        return "" if w is None else f"{w.first_query}-{w.end_query}-{w.first_key}-{w.end_key}"

    @property
    def sizes(self) -> TextSizes:
        """Text sizes for Plotly."""
        return STAGE if self.stage else NORMAL

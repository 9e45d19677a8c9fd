"""View: everything that decides what a page draws, gathered once a run and then only read."""

from collections.abc import Sequence
from dataclasses import dataclass

from mha_viz.figures.scale import Scale
from mha_viz.figures.theme import NORMAL, STAGE, Theme, Type
from mha_viz.figures.window import Window, clamp_window
from mha_viz.head import Head
from mha_viz.model import Description, Model
from mha_viz.trace import Trace


@dataclass(frozen=True, slots=True)
class View:
    """What is shown: a trace, the chosen head and token, and how it is drawn.

    `trace_key` names the trace in caches and in the browser: model, text and cut. `source` and
    `device` are what the model was asked for by.
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
        """Where the model comes from."""
        return self.model.description

    @property
    def at(self) -> Head:
        """The selected head."""
        return Head(self.layer, self.head)

    @property
    def window(self) -> Window | None:
        """The part of the heatmap that is zoomed in on, if any."""
        if self.window_edges is None:
            return None
        return clamp_window(self.window_edges, self.trace.n_tokens)

    @property
    def window_text(self) -> str:
        """The window as links write it; empty for the whole pattern."""
        w = self.window
        return "" if w is None else f"{w.first_query}-{w.end_query}-{w.first_key}-{w.end_key}"

    @property
    def sizes(self) -> Type:
        """Text sizes for Plotly."""
        return STAGE if self.stage else NORMAL

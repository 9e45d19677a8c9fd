"""Which heads the lines show, and which of their weights."""

from dataclasses import dataclass

import streamlit as st

from mha_viz.app.messages import notice
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.choices import check_link, segmented_control
from mha_viz.head import Head
from mha_viz.heads.patterns import kept_heads

MAX_HEADS = 8  # as many as there are colours that can be told apart
MAX_PER_TOKEN = 8  # lines, for each head
DIRECTIONS = ["vertical", "horizontal"]
AS_MEAN = "their mean"


@dataclass(frozen=True, slots=True)
class Settings:
    """Which lines are drawn, and in which direction."""

    direction: str
    threshold: float
    most_per_token: int
    without_sink: bool

    @property
    def first_key(self) -> int:
        """The first key that lines may lead to."""
        return int(self.without_sink)

    @property
    def is_vertical(self) -> bool:
        """Whether the rows of tokens stand left and right."""
        return self.direction == DIRECTIONS[0]


def choose_heads(view: View) -> list[list[Head]]:
    """The selected head and those that are added to it, one by one, or all of them for a mean."""
    trace, state = view.trace, st.session_state
    options = [Head(i, h).key for i in range(trace.n_layers) for h in kept_heads(trace, i)]
    if unknown := [key for key in state.get("beside") or [] if key not in options]:
        state["beside"] = [key for key in state["beside"] if key in options]
        notice(f"{view.about.name} has no {', '.join(unknown[:5])}. Showing the other heads.")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        as_mean = (
            segmented_control("Lines of", ["each head", AS_MEAN], "each head", "of") == AS_MEAN
        )
        most = len(options) if as_mean else MAX_HEADS
        if (n := len({view.at.key, *(state.get("beside") or [])})) > most:
            others = [key for key in state["beside"] if key != view.at.key]
            state["beside"] = others[: most - 1]
            notice(f"{n} heads are too many to tell apart. Showing {most}, or their mean.")
        added = explained.multiselect(
            f"Heads besides {view.at.label}",
            options,
            key="beside",
            bind="query-params",
            max_selections=most if as_mean else most - 1,
            placeholder="any number" if as_mean else f"up to {MAX_HEADS - 1}, from any layer",
        )
        _layer_button(view, most)
        if as_mean:
            st.button("Show all heads", on_click=_set_heads, args=(options,), key="lines_all")
    check_link("beside", added)
    heads = [Head.parse(key) for key in dict.fromkeys([view.at.key, *added])][:most]
    return [heads] if as_mean else [[head] for head in heads]


def _layer_button(view: View, most: int) -> None:
    """A button that shows `most` heads of the selected layer, or all if it has fewer."""
    kept = kept_heads(view.trace, view.layer)
    first = kept.index(view.head) if len(kept) > most else 0
    shown = [*kept, *kept][first : first + min(len(kept), most)]
    number = "all" if len(shown) == len(kept) else len(shown)
    others = [Head(view.layer, head).key for head in shown if head != view.head]
    label = f"Show {number} heads of layer {view.layer}"
    st.button(label, on_click=_set_heads, args=(others,), key="lines_layer")


def _set_heads(keys: list[str]) -> None:
    st.session_state["beside"] = keys


def choose_settings() -> Settings:
    """Draws the inputs that say which lines are drawn."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        direction = segmented_control("Direction", DIRECTIONS, DIRECTIONS[0], "direction")
        threshold = explained.slider(
            "Threshold",
            0.0,
            1.0,
            0.05,
            0.01,
            key="threshold",
            bind="query-params",
            width=220,
            help="The smallest weight that gets a line",
        )
        most = explained.slider(
            "Lines per token",
            1,
            MAX_PER_TOKEN,
            4,
            key="most",
            bind="query-params",
            width=180,
            help="How many of a token's largest weights are drawn, per head",
        )
        without_sink = explained.toggle(
            "Leave out the first token",
            key="no_sink",
            bind="query-params",
            help="Many heads rest on the first token, their attention sink. Without it, the lines "
            "show what else they look at; the weights stay the same.",
        )
    check_link("threshold", str(threshold))
    check_link("most", str(most))
    check_link("no_sink", str(without_sink).lower())
    return Settings(direction, float(threshold), int(most), without_sink)

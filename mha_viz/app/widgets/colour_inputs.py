"""The inputs for the colours of patterns, on the pages that draw some."""

import streamlit as st

from mha_viz.app.widgets import explained
from mha_viz.app.widgets.choices import check_link
from mha_viz.figures.scale import Scale

SCALES: dict[str, Scale] = {"√ weight": "sqrt", "weight": "weight", "vs uniform": "share"}
# Pages that draw patterns in the selected colours: the key of the choice between their parts, and
# the parts that do (all of them if none is named). Elsewhere these inputs are not shown.
COLOURED: dict[str, tuple[str, tuple[str, ...]]] = {
    "attention": ("", ()),
    "compare": ("", ()),
    "heads": ("numbers_of", ("Combined heads",)),
    "next_token": ("expects", ("Generate",)),
}


def colour_inputs(page: str) -> tuple[Scale, bool]:
    """The colour scale of patterns, and whether the first token's column is dimmed.

    Draws the inputs where they change a figure; after a page without them, they are as they were.
    """
    if not _is_coloured(page):
        return next(iter(SCALES.values())), False
    state, names = st.session_state, list(SCALES)
    for key in ("colour", "sink"):
        if key not in state and key not in st.query_params and f"{key}_kept" in state:
            state[key] = state[f"{key}_kept"]
    scale: str = explained.segmented_control(
        "Colour",
        names,
        default=names[0],
        key="colour",
        bind="query-params",
        required=True,
        help="What a colour stands for: the square root of the weight (√), which shows small "
        "weights too; the weight itself; or the weight divided by that of a head that looks at "
        "all tokens equally (vs uniform)",
    )
    dim_sink = explained.toggle(
        "Dim the first-token sink",
        key="sink",
        bind="query-params",
        help="Draws the first token's column at 25% opacity; the weights stay the same",
    )
    state["colour_kept"], state["sink_kept"] = scale, dim_sink
    check_link("colour", scale)
    check_link("sink", str(dim_sink).lower())
    return SCALES[scale], dim_sink


def _is_coloured(page: str) -> bool:
    if page not in COLOURED:
        return False
    key, parts = COLOURED[page]
    return not parts or (st.session_state.get(key) or st.query_params.get(key)) in parts

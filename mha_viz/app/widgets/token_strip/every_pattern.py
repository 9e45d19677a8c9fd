"""The patterns of all heads in the browser, so that another head shows without the server."""

from pathlib import Path

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from mha_viz.app.browser import component_code
from mha_viz.app.view import View
from mha_viz.trace import Array, Trace

MOST_BYTES = 1_300_000  # of a text whose patterns are sent: 128 tokens with 144 heads
FINE, FINE_END = 60, 0.02  # codes for the weights below 0.02, evenly spaced in their square root
STEP = 0.005  # of the other codes: no step contains a boundary of rounding to two digits
_every_pattern = st.components.v2.component(
    "mha_viz_every_pattern",
    js=component_code(Path(__file__).parent / "every_pattern.js"),
)


def every_pattern(view: View) -> None:
    """Sends the patterns of all heads to the browser, once per text, unless they are too large."""
    trace = view.trace
    n_weights = trace.n_layers * trace.n_heads * trace.n_tokens * (trace.n_tokens + 1) // 2
    if n_weights > MOST_BYTES:
        return
    with st.container(key="unseen patterns"):
        _every_pattern(key="patterns", data=_packed(view.trace_key, trace))


@st.cache_resource(max_entries=8, show_spinner=False)
def _packed(trace_key: str, _trace: Trace) -> bytes:
    """The 16 characters of the key, then the codes of each head, layer by layer."""
    heads = [(i, h) for i in range(_trace.n_layers) for h in range(_trace.n_heads)]
    return trace_key.encode() + b"".join(codes(_trace.pattern(*at)).tobytes() for at in heads)


def codes(pattern: Array) -> NDArray[np.uint8]:
    """The lower triangle of a pattern `[T, T]`, row by row, a byte for each weight.

    The middle of a code's step has the same two digits as the weight. A pruned head, whose pattern
    is NaN, has code 0 everywhere.
    """
    weights = np.nan_to_num(pattern[np.tril_indices(len(pattern))].astype(np.float64))
    fine = np.sqrt(weights / FINE_END) * FINE
    coarse = FINE + np.minimum((weights - FINE_END) / STEP, 255 - FINE)
    return np.where(weights < FINE_END, fine, coarse).astype(np.uint8)

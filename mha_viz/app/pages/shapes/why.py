"""The Why section of the walkthrough: the code of one head beside that of all heads, both run."""

import streamlit as st

from mha_viz.app.messages import escaped
from mha_viz.app.pages.shapes.walk import Walkthrough
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption, metrics
from mha_viz.figures.journey.setting import MOST_TOKENS
from mha_viz.lessons.why import CodeLine, Pair, Why, why


def show(view: View, walk: Walkthrough, index: int) -> None:
    """Why there is no loop over heads; `index` is that of a head among those of the layer."""
    key = (view.trace_key, walk.name, tuple(walk.steps[0].shape))
    found = _run(key, index, _walk=walk)
    head, H = walk.heads[index], found.n_heads
    runs = f"runs all {H} heads" if H > 1 else "needs no change to run more heads than one"
    caption(
        "Why",
        "“@” multiplies the last two axes and repeats over the axes before them. With H in front, "
        f"the code of one head {runs}: no loop.",
    )
    st.html(_side_by_side(found.pairs, head, found.n_heads))
    _measured(found, walk, head)


@st.cache_resource(max_entries=8, show_spinner=False)
def _run(key: tuple[object, ...], index: int, *, _walk: Walkthrough) -> Why:
    del key  # names the layer and the text in the cache
    return why(_walk.attention, _walk.steps[0].tensor[:1, :MOST_TOKENS], index)


def _side_by_side(pairs: tuple[Pair, ...], head: int, H: int) -> str:
    """Both codes, lines level, with the shape of each; H is orange where it is one axis more."""
    one = "".join(_line(pair.one, pair) for pair in pairs)
    every = "".join(_line(pair.all, pair, H) for pair in pairs)
    rows = f' style="grid-row: span {len(pairs) + 1}"'
    return (
        f'<div class="whyloop"><div{rows}><b class="head">head {head} alone</b>{one}</div>'
        f'<div{rows}><b class="head">all heads at once: one axis more</b>{every}</div></div>'
    )


def _line(line: CodeLine | None, pair: Pair, H: int = 0) -> str:
    """A line and its shape; at the side of all heads, given H, also what sets it apart."""
    if line is None:
        return '<code class="none"></code><span class="none"></span>'
    shape = line.shape
    if H and shape.count(",") == 2:  # three axes, of which heads are the first
        shape = shape.replace(f"[{H},", f"[<b>{H}</b>,", 1)
    added = ' class="added"' if H and pair.one is None else ""
    same = "<i>same line</i>" if H and pair.same else ""
    return f"<code{added}>{escaped(line.code)}</code>{same}<span>{shape}</span>"


def _measured(found: Why, walk: Walkthrough, head: int) -> None:
    """How far the results of both codes are apart."""
    metrics(
        f"<b>{_difference(found.z)}</b> z of head {head}, computed alone and with all heads",
        f"<b>{_difference(found.every_z)}</b> the same for every head",
        f"<b>{_difference(found.one_of_all)}</b> the code of all heads with H = 1, against "
        "the code of one",
        f"<b>{_difference(found.one_in_module)}</b> the module with n_heads = 1, against "
        "the code of one",
    )
    explained.note(
        f"Both versions were run on {walk.name}; the numbers are the largest differences. W_q, W_k "
        "and W_v are the columns of this head and W_o its rows, so out is what this head adds. "
        "Run one by one and added up, the outputs of the heads differ from those of the code of "
        f"all heads by {_difference(found.out)}. With b_O added, that code differs from the "
        f"module by {_difference(found.module)}. "
        "The last digits of a float32 sum depend on the order of addition. "
        + " ".join(found.changes)
    )


def _difference(number: float) -> str:
    return f"{number:.1e}" if number else "0 (identical)"

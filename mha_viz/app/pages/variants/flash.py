"""FlashAttention: the memory of attention, measured, and its online softmax tile by tile."""

import inspect
from dataclasses import dataclass

import numpy as np
import streamlit as st
import torch

from mha_viz.app.messages import escaped, notice, plain, problem
from mha_viz.app.view import View
from mha_viz.app.widgets.caption import caption, model_name
from mha_viz.app.widgets.chart import chart, square
from mha_viz.app.widgets.choices import segmented_control
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.widgets.stepper import steps
from mha_viz.app.work.progress import Reporter, ResultSlots, wait_for
from mha_viz.attention import attention_scores, causal_mask, masked_softmax
from mha_viz.figures.cache_sizes import in_bytes
from mha_viz.figures.lines import Line, Ticks, line_chart
from mha_viz.figures.tiles import running_figure, tiles_figure
from mha_viz.lessons import flash
from mha_viz.lessons.flash import Tile
from mha_viz.lessons.peak_memory import Use, attention_memory
from mha_viz.trace import Array

_uses = ResultSlots[list[Use]](8)
LENGTHS = (64, 128, 256, 512, 1024, 2048)
MOST_BYTES = 2**30  # of the explicit way; a length that needs more is left out
MOST_TOKENS = 64
BLOCKS = [4, 8, 16, 32]


@dataclass(frozen=True, slots=True, eq=False)
class Tiled:
    """A head tile by tile, and what the explicit way makes of it."""

    tiles: tuple[Tile, ...]
    z: Array  # [T, d_h], explicit
    apart: float  # the largest difference of the two in the end

    def distance(self, at: int) -> Array:
        """`[b_q]`: how far the output of each query at work is from its end, as a length."""
        tile = self.tiles[at]
        rest = tile.o.numpy() - self.z[tile.queries.start : tile.queries.stop]
        found: Array = np.linalg.norm(rest, axis=-1)
        return found


def show(view: View) -> None:
    """Memory against T, then the tiles of the chosen head."""
    _memory(view)
    if view.head not in view.model.config.kept_heads(view.layer):
        problem(f"{view.at.label} was taken out of this model. Choose another head.")
        return
    _tiles(view)


def _memory(view: View) -> None:
    config = view.model.config
    H, d_h = config.n_heads, config.d_head
    lengths = tuple(T for T in LENGTHS if 12.2 * H * T * T <= MOST_BYTES)
    uses = _measured(lengths, H, d_h)
    if uses is None:
        return
    left, right = st.columns([3, 2], gap="medium")
    with left:
        caption(
            "Memory of attention",
            f"the most bytes at once over T positions; {H} heads of {d_h} as in "
            f"{escaped(model_name(view))}, random q, k and v in float32. Measured on this "
            "computer's CPU, both ways in one go, without the inputs; both axes are logarithmic.",
        )
        _memory_chart(view, uses)
    with right:
        _memory_words(uses, lengths)


def _memory_chart(view: View, uses: list[Use]) -> None:
    T = [use.T for use in uses]
    explicit, fused = [use.explicit for use in uses], [use.fused for use in uses]
    # Below the measured lines, which would hide them.
    square = [explicit[0] / 2 * (t / T[0]) ** 2 for t in T]
    straight = [fused[0] / 2 * t / T[0] for t in T]
    ticks = [2.0**n for n in range(14, 34, 4)]
    theme = view.theme
    figure = line_chart(
        T,
        [
            Line("explicit", explicit, theme.muted),
            Line("fused kernel", fused, theme.accent),
            Line("slope of T²", square, theme.muted, guide=True),
            Line("slope of T", straight, theme.accent, guide=True),
        ],
        theme, x_title="positions T", y_title="", log=True, x_ticks=Ticks(T, [str(t) for t in T]),
        y_ticks=Ticks(ticks, [in_bytes(n) for n in ticks]), hover="%{y:,} bytes",
        sizes=view.sizes,
    )  # fmt: skip
    last = uses[-1]
    chart(
        figure, key="attention_memory", height=330,
        alt=f"At T = {last.T}: explicit {in_bytes(last.explicit)}, fused {in_bytes(last.fused)}.",
    )  # fmt: skip


def _memory_words(uses: list[Use], lengths: tuple[int, ...]) -> None:
    st.latex(r"\underbrace{3\,H\,T^2}_{\text{explicit}}\qquad "
             r"\underbrace{H\,T\,d_h + O(T)}_{\text{fused}}\quad\text{numbers}")  # fmt: skip
    st.markdown(
        "The explicit way holds the scores, the masked scores and the pattern of every head. The "
        "fused kernel works through tiles and holds the output and a work space, which grow "
        "with the text and not with its square."
    )
    st.dataframe(
        {
            "T": [use.T for use in uses],
            "explicit": [in_bytes(use.explicit) for use in uses],
            "fused": [in_bytes(use.fused) for use in uses],
            "ratio": [f"{use.explicit / use.fused:.1f} ×" for use in uses],
        },
        hide_index=True, key="memory_table", alt="Bytes of both ways at each T.",
    )  # fmt: skip
    if len(lengths) < len(LENGTHS):
        st.caption(f"Longer texts are left out: the explicit way would need over "
                   f"{in_bytes(MOST_BYTES)}.")  # fmt: skip
    st.caption("Dao et al. 2022, section 3.1 and theorem 1.")
    download_table(
        "attention_memory.csv", ("T", "explicit, bytes", "fused, bytes"),
        [(use.T, use.explicit, use.fused) for use in uses],
    )  # fmt: skip


def _measured(lengths: tuple[int, ...], n_heads: int, d_head: int) -> list[Use] | None:
    def work(report: Reporter) -> list[Use]:
        return attention_memory(
            lengths, n_heads, d_head, on_length=lambda done: report(done / len(lengths))
        )

    slot = _uses(lengths, n_heads, d_head)
    return wait_for(slot, "Measuring memory", work, lane="memory")


def _tiles(view: View) -> None:
    T = min(view.trace.n_tokens, MOST_TOKENS)
    if view.trace.n_tokens > T:
        notice(f"Tiles are shown for the first {T} of {view.trace.n_tokens:,} tokens.")
    block = segmented_control("Positions a tile", BLOCKS, BLOCKS[0], "block")
    found = _tiled(view.trace_key, view.layer, view.head, T, block, _view=view)
    caption(
        f"{view.at.label} tile by tile",
        f"{block} queries by {block} keys at a time. Grey is finished and forgotten; violet are "
        "the weights e^(s − m) of the tile at work, outlined; what lies beyond the diagonal is "
        "never computed. Beside it the running maximum m and sum ℓ of the queries at work, and "
        "how far each output is from its end (the length of the difference).",
    )
    steps("Tile", "tile", len(found.tiles), lambda at: _tile(view, found, at))
    columns = st.columns([2, 3, 4], gap="medium")
    with columns[0]:
        st.latex(r"m' = \max(m,\ \max_j s_j)")
    with columns[1]:
        st.latex(r"\ell' = e^{m - m'}\,\ell + \sum_j e^{s_j - m'}")
    with columns[2]:
        st.latex(r"o' = \frac{1}{\ell'}\Big(e^{m - m'}\,\ell\,o + \sum_j e^{s_j - m'}\,v_j\Big)")
    st.caption("Dao et al. 2022, section 3.1 and algorithm 1; the order of the tiles is that of "
               "Dao 2023, algorithm 1.")  # fmt: skip
    with st.expander("The code that does it"):
        for part in (flash.tiled_attention, flash.tiles, flash._online_softmax):
            st.code(inspect.getsource(part), language="python")
        st.caption("mha_viz/tiled.py")


def _tile(view: View, found: Tiled, at: int) -> None:
    tile = found.tiles[at]
    tokens = view.trace.tokens[: len(found.z)]
    st.markdown(_words(found, tokens, at))
    left, right = st.columns(2, gap="small")
    weights = torch.exp(tile.scores - tile.m[..., None]).numpy()
    weights = np.where(np.isinf(tile.scores.numpy()), np.nan, weights)
    ranges = [(each.queries, each.keys) for each in found.tiles]
    with left:
        square(
            tiles_figure(ranges, at, weights, tokens, view.theme, sizes=view.sizes), "tiles",
            f"Tile {at + 1} of {len(ranges)}: queries {_span(tile.queries)}, keys "
            f"{_span(tile.keys)}.",
        )  # fmt: skip
    with right:
        chart(
            running_figure(
                tokens[tile.queries.start : tile.queries.stop], _panels(found, at), view.theme,
                sizes=view.sizes,
            ),
            key="running", height=440,
            alt=f"Running values of {len(tile.queries)} queries; their outputs are at most "
            f"{found.distance(at).max():.3g} from the end.",
        )  # fmt: skip


def _panels(found: Tiled, at: int) -> dict[str, tuple[Array, tuple[float, float]]]:
    """The running values at this tile, each on the range that it has over all tiles."""
    tile = found.tiles[at]
    m = np.concatenate([each.m.numpy() for each in found.tiles])
    total = np.concatenate([each.l.numpy() for each in found.tiles])
    apart = np.concatenate([found.distance(i) for i in range(len(found.tiles))])
    return {
        "maximum m": (tile.m.numpy(), _limits(m)),
        "sum ℓ": (tile.l.numpy(), _limits(total)),
        "from the end": (found.distance(at), _limits(apart)),
    }


def _limits(values: Array) -> tuple[float, float]:
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    room = 0.05 * (high - low) or 1.0
    return (low - room if low < 0 else 0.0), high + room


def _words(found: Tiled, tokens: tuple[str, ...], at: int) -> str:
    tile, n = found.tiles[at], len(found.tiles)
    last = at + 1 == n or found.tiles[at + 1].queries != tile.queries
    ends = " to ".join(plain(tokens[i]) for i in dict.fromkeys((tile.queries[0], tile.queries[-1])))
    said = (
        f"Tile {at + 1} of {n}: queries {_span(tile.queries)} ({ends}) look at keys "
        f"{_span(tile.keys)}."
    )
    if at + 1 == n:
        return (
            f"{said} All is done: the largest difference from the explicit way is "
            f"**{found.apart:.1e}**."
        )
    return f"{said} These queries are done." if last else said


def _span(positions: range) -> str:
    return f"{positions[0]} to {positions[-1]}" if len(positions) > 1 else f"{positions[0]}"


@st.cache_resource(max_entries=32, show_spinner=False)
def _tiled(trace_key: str, layer: int, head: int, T: int, block: int, *, _view: View) -> Tiled:
    trace = _view.trace
    q, k, v = (torch.tensor(x[layer, head, :T]) for x in (trace.q, trace.k, trace.v))
    scale = trace.scales[layer]
    pattern = masked_softmax(attention_scores(q, k, scale), causal_mask(T, T))
    z = pattern @ v
    out = flash.tiled_attention(q, k, v, block=block, scale=scale)
    return Tiled(
        tiles=tuple(flash.tiles(q, k, v, block=block, scale=scale)),
        z=z.numpy(),
        apart=float((out - z).abs().max()),
    )

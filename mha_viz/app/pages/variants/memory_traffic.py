"""Where FlashAttention keeps what, and how much it moves between slow and fast memory."""

from collections.abc import Sequence

import streamlit as st

from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.widgets.recipes import recipe
from mha_viz.export import Drawn, rows_data
from mha_viz.figures.lines import Line, Ticks, line_chart
from mha_viz.figures.text import format_bytes
from mha_viz.figures.theme import TextSizes, Theme
from mha_viz.lessons.flash import fitting_block, moved_values

FAST_BYTES = 192 * 1024  # of an A100's multiprocessor: Dao et al. 2022, section 2.1
BYTES = 2  # per value, as GPUs run attention in 16 bits
LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
PLACES = """
| | Slow memory (HBM): tens of GB, 1.5–2.0 TB/s | Fast memory (SRAM): 192 KB per multiprocessor, about 19 TB/s |
|---|---|---|
| **Explicit** | q, k, v, z, and **all scores and weights**, $T^2$ numbers per head each | parts of one product at a time |
| **Tiles** | q, k, v, z | one tile: b rows of q, k, v and z, **b² scores**, and m and ℓ of b queries |
"""  # noqa: E501


def show(view: View) -> None:
    """The two kinds of memory, and the bytes moved over T."""
    H, d_h = view.model.config.n_heads, view.model.config.d_head
    block = fitting_block(FAST_BYTES, d_h, bytes_per_value=BYTES)
    caption(
        "What lies where",
        "A GPU computes in a small fast memory and keeps everything else in a large slow one. "
        "FlashAttention keeps a tile in the fast one until it is done. "
        "Sizes and speeds are those of an A100 (Dao et al. 2022, section 2.1).",
    )
    explained.paragraph(PLACES)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        caption(
            "Bytes moved over T",
            f"Counted, not measured: reads and writes of slow memory for one layer with {H} heads "
            f"of width {d_h}, {BYTES} bytes per value, in tiles of {block} × {block}. Both axes "
            "are logarithmic.",
        )
        rows = traffic(H, d_h, block)
        sentence = traffic_sentence(rows)
        drawn = recipe(view, _draw_traffic, H=H, d_h=d_h, block=block)
        chart(drawn, key="bytes_moved", name="Bytes moved over T", height=300, alt=sentence)
    with right:
        st.latex(
            r"\begin{gathered}\text{explicit: } 4\,T\,d_h + 4\,T^2 \\"
            r"\text{tiles: } 2\,T\,d_h + 2\,d_h \textstyle\sum_{i \ge 1} \min(i\,b,\ T)"
            r"\end{gathered}"
        )
        explained.paragraph(
            "These are values per head; the sum has a term for each block of b queries."
        )
        explained.paragraph(
            "Explicit attention reads q and k and writes the scores; reads them and writes the "
            "weights; reads those and v and writes z. Tiles read q and write z once, and read k "
            "and v once for each block of b queries."
        )
        explained.paragraph(sentence)
        explained.note(
            "Dao et al. 2022, section 2.2 (algorithm 0), section 3.1 (algorithm 1) and section "
            "3.2 (theorem 2: $\\Theta(T d_h + T^2)$ against $\\Theta(T^2 d_h^2 / M)$ values for a "
            "fast memory of M values). Order of the tiles: Dao 2023, algorithm 1."
        )
        header = ["T", "explicit (bytes)", "tiles (bytes)"]
        download_table("bytes_moved.csv", header, rows)


def traffic(H: int, d_h: int, block: int) -> list[tuple[int, int, int]]:
    """(T, bytes of explicit attention, bytes of tiles) for all heads of a layer."""
    counted = [(T, moved_values(T, d_h, block=block)) for T in LENGTHS]
    return [(T, H * m.explicit * BYTES, H * m.tiled * BYTES) for T, m in counted]


def traffic_sentence(rows: Sequence[tuple[int, int, int]]) -> str:
    """How the two compare at the last T."""
    T, explicit, tiled = rows[-1]
    less, more = sorted((explicit, tiled))
    winner = "tiles move" if tiled < explicit else "explicit attention moves"
    return (
        f"At T = {T:,} explicit attention moves {format_bytes(explicit)} and tiles "
        f"{format_bytes(tiled)}: {winner} **{more / less:.1f}×** less, although both compute the "
        "same z."
    )


def _draw_traffic(H: int, d_h: int, block: int, theme: Theme, sizes: TextSizes) -> Drawn:
    rows = traffic(H, d_h, block)
    T, explicit, tiled = ([row[i] for row in rows] for i in range(3))
    byte_ticks = [2.0**n for n in range(14, 44, 4)]
    figure = line_chart(
        T,
        [Line("explicit", explicit, theme.muted), Line("tiles", tiled, theme.accent)],
        theme,
        x_title="positions T",
        y_title="",
        log=True,
        x_ticks=Ticks(T, [f"{t:,}" for t in T]),
        y_ticks=Ticks(byte_ticks, [format_bytes(n) for n in byte_ticks]),
        value_format="%{y:,} bytes",
        sizes=sizes,
    )
    data = rows_data(["T", "explicit (bytes)", "tiles (bytes)"], rows)
    return figure, data

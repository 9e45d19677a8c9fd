"""The Cost part: FLOPs, bytes and measured times of a layer of any size, and the GPT-2 family."""

import streamlit as st

from mha_viz.app.messages import problem
from mha_viz.app.pages.many_heads import measured
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption, model_name
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.choices import number_input, segmented_control, selectbox
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.widgets.recipes import recipe
from mha_viz.app.widgets.tables import facts, table
from mha_viz.attention import fitting_head_counts, head_width
from mha_viz.errors import ShapeError
from mha_viz.export import Drawn, columns_data
from mha_viz.figures.lines import Line, Ticks, line_chart
from mha_viz.figures.text import format_bytes
from mha_viz.figures.theme import TextSizes, Theme
from mha_viz.lessons.counting import (
    GPT2_SIZES,
    attention_flops,
    attention_parameters,
    crossover,
    gpt2_parameters,
    layer_bytes,
)
from mha_viz.lessons.implementations import toy_shapes

OWN = "H"  # as many key/value heads as query heads, whatever H is
DTYPES = {"float32": 4, "bfloat16": 2, "float16": 2}
TOY = {"B": 5, "T": 6, "d_in": 3, "d_out": 18}
TOY_HEAD_COUNTS = (1, 2, 3, 6, 9, 18)


def show(view: View) -> None:
    """One layer of the chosen size, then parameters of the GPT-2 family and the toy batch."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        C = number_input("Width C = d_model", 1, 65536, 512, "count_C")
        H = number_input("Heads H", 1, 4096, 8, "count_H")
        shared = [OWN, *(str(n) for n in range(H // 2, 0, -1) if H % n == 0)]
        chosen = selectbox("Key/value heads G", shared, OWN, "count_G")
        T = number_input("Positions T", 1, 1_000_000, 1024, "count_T")
        dtype = segmented_control("dtype", list(DTYPES), "float32", "count_dtype")
    G = H if chosen == OWN else int(chosen)
    try:
        head_width(C, H)
    except ShapeError as error:
        problem(str(error))
        with st.container(horizontal=True):
            for fits in fitting_head_counts(C, H):
                st.button(f"H = {fits}, d_h = {C // fits}", on_click=_count_heads, args=(fits,))
    else:
        _one_layer(view, C, H, G, T, DTYPES[dtype])
    _family(view)
    toy_batch()


def _count_heads(n_heads: int) -> None:
    st.session_state["count_H"] = n_heads


def _one_layer(view: View, C: int, H: int, G: int, T: int, n_bytes: int) -> None:
    left, right = st.columns(2, gap="medium")
    with left:
        _growth(view, C, H, G, T)
    with right:
        measured.show(view, C, H, G, T)
    left, right = st.columns(2, gap="medium")
    with left:
        _flops(C, H, G, T)
    with right:
        _parameters(C, H, G)
        _bytes(C, H, G, T, n_bytes)


def _growth(view: View, C: int, H: int, G: int, T: int) -> None:
    """The FLOPs of the projections and of the T² terms over T, and where the lines cross."""
    at = crossover(C, H, n_kv_heads=G)
    caption(
        "FLOPs over T",
        f"C = {C:,}, H = {H:,}, G = {G:,}, d_h = {C // H:,}: projections grow with T, the scores, "
        "the softmax and the weighted sum with T². Orange: your T. Both axes are logarithmic.",
    )
    sentence = crossover_sentence(C, H, G, T)
    drawn = recipe(view, _draw_growth, C=C, H=H, G=G, T=T)
    chart(drawn, key="flops_over_T", name="FLOPs over T", height=300, alt=sentence)
    st.latex(r"T^{*} = \frac{4\,C\,d_h\,(H + G)}{H\,(4\,d_h + 6)}" + rf"\approx {at:,.0f}")
    explained.paragraph(sentence)


def crossover_sentence(C: int, H: int, G: int, T: int) -> str:
    """Which terms of this layer cost more at T, and the T where that changes."""
    at, flops = crossover(C, H, n_kv_heads=G), attention_flops(T, C, H, n_kv_heads=G)
    share = flops.quadratic / flops.total
    larger = "outweigh" if flops.quadratic > flops.linear else "cost less than"
    return (
        f"At T = {T:,} the T² terms are **{share:.0%}** of all FLOPs and {larger} the projections. "
        f"The crossover lies at T = {at:,.0f}, {at / C:.2f} times C."
    )


def growth(C: int, H: int, G: int, T: int) -> tuple[list[int], list[int], list[int]]:
    """Powers of two around T and the crossover; the FLOPs of projections and of T² terms there."""
    end = max(T, int(4 * crossover(C, H, n_kv_heads=G)), 256)
    lengths = [2**n for n in range(4, 32) if 2 ** (n - 1) < end]
    flops = [attention_flops(n, C, H, n_kv_heads=G) for n in lengths]
    return lengths, [each.linear for each in flops], [each.quadratic for each in flops]


def _draw_growth(C: int, H: int, G: int, T: int, theme: Theme, sizes: TextSizes) -> Drawn:
    lengths, linear, quadratic = growth(C, H, G, T)
    powers = range(0, 24, 2)
    figure = line_chart(
        lengths,
        [
            Line("projections", linear, theme.muted),
            Line("T² terms", quadratic, theme.accent),
        ],
        theme,
        x_title="positions T",
        y_title="FLOPs",
        log=True,
        x_ticks=Ticks(lengths[::2], [f"{n:,}" for n in lengths[::2]]),
        y_ticks=Ticks([10.0**n for n in powers], [f"10<sup>{n}</sup>" for n in powers]),
        marked=T,
        sizes=sizes,
    )
    data = columns_data(T=lengths, projection_flops=linear, quadratic_flops=quadratic)
    return figure, data


def _flops(C: int, H: int, G: int, T: int) -> None:
    """The FLOPs step by step, beside those of one head of the same total width."""
    several, single = attention_flops(T, C, H, n_kv_heads=G), attention_flops(T, C, 1)
    caption("FLOPs of one layer, one sequence", f"T = {T:,}; a multiply-add counts as two.")
    steps = ["projection", "scores", "softmax", "weighted_sum", "output", "total"]
    shared = f", G = {G}" if G != H else ""
    header = ["FLOPs", f"{H} heads of {C // H}{shared}", f"one head of {C}"]
    rows = [[s.replace("_", " "), getattr(several, s), getattr(single, s)] for s in steps]
    table(header, rows)
    explained.paragraph(
        f"The matrix products of {H:,} heads cost **{several.matmul / single.matmul:.2f}×** those "
        f"of one head with the same total width: {several.matmul:,} and {single.matmul:,} FLOPs. "
        "Only the scaling and the softmax, which touch every score, grow with H."
    )
    download_table("flops.csv", header, rows)


def _parameters(C: int, H: int, G: int) -> None:
    without_biases, with_biases = (
        attention_parameters(C, H, n_kv_heads=G, bias=bias) for bias in (False, True)
    )
    caption("Parameters of one layer", "")
    if G == H:
        st.latex(r"W_Q, W_K, W_V, W_O \in \mathbb{R}^{C \times C} \;\Rightarrow\; 4\,C^2")
        how = f"whatever H is: 4 × {C:,}²"
    else:
        st.latex(r"2\,C\,H\,d_h + 2\,C\,G\,d_h")
        how = f"2 × {C:,}² for W_Q and W_O, 2 × {C:,} × {G * C // H:,} for W_K and W_V"
    explained.paragraph(
        f"**{without_biases.total:,}** weights without biases, {how}. "
        f"With biases: {with_biases.total:,}."
    )


def _bytes(C: int, H: int, G: int, T: int, n_bytes: int) -> None:
    held = layer_bytes(T, C, H, n_kv_heads=G, bytes_per_value=n_bytes)
    caption(
        "Bytes of one layer, one sequence",
        f"{n_bytes} bytes per value, T = {T:,}. The scores are in float32, whatever the dtype.",
    )
    facts(
        {
            "weights": format_bytes(held.weights),
            "activations x, q, k, v, z, out": format_bytes(held.activations),
            "KV cache, 2 · T · G · d_h": format_bytes(held.cache),
            "scores, H · T²": f"{format_bytes(held.scores)}; none with the fused kernel",
        }
    )


def _family(view: View) -> None:
    config, network = view.model.config, view.model.network
    caption("GPT-2 family", "Parameters of all attention layers and in total, including biases.")
    rows: list[list[object]] = []
    for size in GPT2_SIZES:
        attention = size.n_layers * attention_parameters(size.d_model, size.n_heads).total
        sizes = [size.name, size.n_layers, str(size.n_heads), size.d_head, size.d_model]
        rows.append([*sizes, attention, gpt2_parameters(size)])
    counts = sorted({len(config.kept_heads(i)) for i in range(config.n_layers)})
    heads = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    attention = sum(p.numel() for block in network.blocks for p in block.attn.parameters())
    name = model_name(view).rstrip("/").rpartition("/")[2]
    sizes = [f"{name} (loaded)", config.n_layers, heads, config.d_head, config.d_model]
    rows.append([*sizes, attention, view.about.n_parameters])
    header = ["model", "L", "H", "d_h", "C", "attention", "total"]
    table(header, rows)
    download_table("gpt2_sizes.csv", header, rows)


def toy_batch() -> None:
    """A batch small enough to count by hand: the number of heads does not change its shape."""
    B, T, d_in, d_out = TOY.values()
    caption(
        "Toy batch",
        f"Input [{B}, {T}, {d_in}], d_out = {d_out}. The output has the same shape for every "
        "number of heads.",
    )
    shapes = toy_shapes(B, T, d_in, d_out, TOY_HEAD_COUNTS)
    counts = zip(TOY_HEAD_COUNTS, shapes, strict=True)
    table(["heads", "width of a head", "output"], [[n, d_out // n, str(s)] for n, s in counts])

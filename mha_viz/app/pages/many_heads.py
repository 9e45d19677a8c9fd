"""The Many heads page: implementations of one layer, the output projection, and its costs."""

from collections.abc import Sequence

import numpy as np
import streamlit as st
import torch

from mha_viz.app.messages import problem
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption, model_name
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.choices import choose_part, number_input
from mha_viz.app.widgets.download_buttons import download_matrix, download_table
from mha_viz.app.widgets.tables import table
from mha_viz.app.work import jobs
from mha_viz.app.work.progress import Reporter, ResultSlots, results, wait_for
from mha_viz.attention import MultiHeadAttention, fitting_head_counts, head_width
from mha_viz.errors import ShapeError
from mha_viz.figures.timing import timing_chart
from mha_viz.figures.values import matrix_heatmap
from mha_viz.lessons.counting import (
    GPT2_SIZES,
    attention_flops,
    attention_parameters,
    gpt2_parameters,
)
from mha_viz.lessons.implementations import Comparison, Timing, benchmark, compare, toy_shapes
from mha_viz.reference import head_reach

PARTS = ["Implementations", "Output projection", "Parameters and FLOPs"]
MOST_TOKENS = 128
BENCHMARK = {"d_model": 768, "T": 256}
HEAD_COUNTS = (1, 2, 4, 8, 12, 24, 48, 96)
TOY = {"B": 5, "T": 6, "d_in": 3, "d_out": 18}
TOY_HEAD_COUNTS = (1, 2, 3, 6, 9, 18)
_comparisons = ResultSlots[tuple[Comparison, ...]](8)


def show(view: View) -> None:
    """The selected part."""
    part: str = choose_part(PARTS, "many")
    if part == "Parameters and FLOPs":
        counting(view)
        return
    attention = view.model.network.blocks[view.layer].attn
    if not attention.n_heads:
        problem(f"All heads of layer {view.layer} have been pruned. Choose another layer.")
    elif part == "Implementations":
        speed(view)
        implementations(view)
    else:
        output_projection(view, attention)


def implementations(view: View) -> None:
    """Each implementation: its difference from the module on this text, and its code."""
    T = min(view.trace.n_tokens, MOST_TOKENS)
    text = "this text" if view.trace.n_tokens == T else f"the first {T} tokens"
    caption(
        "Implementations of the same layer",
        f"Layer {view.layer} on {text}: largest absolute difference from the module's output, in "
        "float32.",
    )
    for comparison in _compare(view, T) or ():
        implementation, difference = comparison.implementation, comparison.difference
        result = f"{difference:.1e}" if difference else "0, bit for bit"
        with st.expander(f"{implementation.title}: {result}"):
            explained.paragraph(implementation.sentence)
            st.code(implementation.source, language="python", wrap_lines=True)


def _compare(view: View, T: int) -> tuple[Comparison, ...] | None:
    network, layer = view.model.network, view.layer
    ids = torch.tensor([view.trace.token_ids[:T]], device=view.model.device)

    def work(report: Reporter) -> tuple[Comparison, ...]:
        x = network.attention_input(ids, layer)
        return compare(network.blocks[layer].attn, x, on_progress=report)

    slot = _comparisons(view.trace_key, layer, T)
    return wait_for(slot, "Running the other implementations", work, lane="implementations")


def speed(view: View) -> None:
    """The fused projection against a loop over heads, timed for several numbers of heads."""
    caption(
        "One fused projection or a loop over heads",
        f"Time of a layer with C = {BENCHMARK['d_model']} on T = {BENCHMARK['T']} positions. Both "
        "versions run alternately on the server; best of seven. The outputs are equal up to "
        "rounding.",
    )
    timings, _ = results(
        "benchmark",
        lambda report: benchmark(**BENCHMARK, head_counts=HEAD_COUNTS),
        total=len(HEAD_COUNTS),
        what="numbers of heads",
    )
    _benchmark_chart(view, timings)
    again, download = st.columns([1, 3])
    again.button(
        "Measure again", on_click=jobs.forget, args=("benchmark",), icon=":material/replay:"
    )
    with download:
        header = ["heads", "fused projection (ms)", "loop over heads (ms)", "largest difference"]
        rows = [[t.n_heads, t.fused_ms, t.loop_ms, t.difference] for t in timings]
        download_table("benchmark.csv", header, rows)


def _benchmark_chart(view: View, timings: Sequence[Timing]) -> None:
    alt = "Nothing has been measured yet."
    if timings:
        last = timings[-1]
        alt = f"{last.n_heads} heads: fused {last.fused_ms:.1f} ms, loop {last.loop_ms:.1f} ms."
    figure = timing_chart(
        [t.n_heads for t in timings],
        [t.fused_ms for t in timings],
        [t.loop_ms for t in timings],
        view.theme,
        all_heads=HEAD_COUNTS,
        sizes=view.sizes,
    )
    chart(figure, key="benchmark", height=300, alt=alt)


def output_projection(view: View, attention: MultiHeadAttention) -> None:
    """Which output channels each head can write to, without W_O and with it."""
    st.latex(
        r"\mathrm{out} = [\,z_0 \mid \dots \mid z_{H-1}\,]\,W_O + b_O = \sum_h z_h W_O^h + b_O"
    )
    explained.paragraph(
        "Without W_O, the heads are only concatenated: each slice of d_h output channels belongs "
        "to one head, so no channel combines two heads. W_O lets every head write to every "
        "channel (Vaswani et al. 2017, section 3.2.2)."
    )
    for with_projection in (False, True):
        _reach(view, attention, with_projection)


def _reach(view: View, attention: MultiHeadAttention, with_projection: bool) -> None:
    """A heatmap of how strongly each head can write to each output channel."""
    title = "With W_O" if with_projection else "Without W_O"
    reach = head_reach(attention, with_projection).float().cpu().numpy()
    relative = (reach / reach.max()).astype(np.float32)
    caption(
        title,
        f"Layer {view.layer}. Each row is a head, each column an output channel. Colour (√ "
        "scale): norm of the d_h weights from the head to the channel, relative to the largest.",
    )
    figure = matrix_heatmap(
        relative,
        view.theme,
        rows="head",
        columns="channel",
        weights=True,
        tokens=[f"H{head}" for head in view.model.config.kept_heads(view.layer)],
        sizes=view.sizes,
    )
    share = float((reach > 0).mean())
    alt = f"{title}: each head writes to {share:.0%} of {reach.shape[1]} channels on average."
    chart(figure, key=f"reach {title}", height=230, alt=alt)
    download_matrix(f"reach_{'with' if with_projection else 'without'}_W_O.csv", relative)


def counting(view: View) -> None:
    """Parameters and FLOPs of a layer of any size, and parameters of the GPT-2 family."""
    with st.container(horizontal=True):
        C = number_input("Width C = d_model", 1, 65536, 512, "count_C")
        H = number_input("Heads H", 1, 4096, 8, "count_H")
        T = number_input("Positions T", 1, 1_000_000, 1024, "count_T")
    left, right = st.columns(2, gap="medium")
    with left:
        try:
            head_width(C, H)
            _one_layer(C, H, T)
        except ShapeError as error:
            problem(str(error))
            with st.container(horizontal=True):
                for fits in fitting_head_counts(C, H):
                    st.button(f"H = {fits}, d_h = {C // fits}", on_click=_count_heads, args=(fits,))
    with right:
        _family(view)
    toy_batch()


def _count_heads(n_heads: int) -> None:
    st.session_state["count_H"] = n_heads


def _one_layer(C: int, H: int, T: int) -> None:
    without_biases, with_biases = (attention_parameters(C, H, bias=bias) for bias in (False, True))
    several, single = (attention_flops(T, C, n) for n in (H, 1))
    st.latex(r"W_Q, W_K, W_V, W_O \in \mathbb{R}^{C \times C} \;\Rightarrow\; 4\,C^2")
    explained.paragraph(
        f"**{without_biases.total:,}** weights without biases, whatever H is: 4 × {C:,}². "
        f"With biases: {with_biases.total:,}. "
        f"The matrix products of {H:,} heads cost **{several.matmul / single.matmul:.2f}×** those "
        f"of one head with the same total width: {several.matmul:,} and {single.matmul:,} FLOPs. "
        "Only the scaling and the softmax, which touch every score, grow with H."
    )
    steps = ["projection", "scores", "softmax", "weighted_sum", "output", "total"]
    header = ["FLOPs", f"{H} heads of {C // H}", f"one head of {C}"]
    rows = [[s.replace("_", " "), getattr(several, s), getattr(single, s)] for s in steps]
    caption("One layer, one sequence", f"FLOPs for T = {T:,}; a multiply-add counts as two.")
    table(header, rows)
    download_table("flops.csv", header, rows)


def _family(view: View) -> None:
    config, network = view.model.config, view.model.network
    caption("GPT-2 family", "Parameters of attention and in total, including biases.")
    rows: list[list[object]] = []
    for size in GPT2_SIZES:
        attention = size.n_layers * attention_parameters(size.d_model, size.n_heads).total
        sizes = [size.name, size.n_layers, str(size.n_heads), size.d_model]
        rows.append([*sizes, attention, gpt2_parameters(size)])
    counts = sorted({len(config.kept_heads(i)) for i in range(config.n_layers)})
    heads = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    attention = sum(p.numel() for block in network.blocks for p in block.attn.parameters())
    name = model_name(view).rstrip("/").rpartition("/")[2]
    sizes = [f"{name} (loaded)", config.n_layers, heads, config.d_model]
    rows.append([*sizes, attention, view.about.n_parameters])
    header = ["model", "L", "H", "C", "attention", "total"]
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

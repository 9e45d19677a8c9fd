"""What the Many heads page is made of: other tellings, the output projection, and the counting."""

from collections.abc import Sequence

import numpy as np
import streamlit as st
import torch

from mha_viz.app.messages import problem
from mha_viz.app.view import View
from mha_viz.app.widgets.caption import caption, model_name
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.choices import choose_part, number_input
from mha_viz.app.widgets.download_buttons import download_matrix, download_table
from mha_viz.app.widgets.tables import table
from mha_viz.app.work import jobs
from mha_viz.app.work.progress import Reporter, ResultSlots, results, wait_for
from mha_viz.attention import MultiHeadAttention, fitting_head_counts, head_width
from mha_viz.errors import ShapeError
from mha_viz.figures.timing import race_chart
from mha_viz.figures.values import matrix_heatmap
from mha_viz.lessons.counting import (
    GPT2_SIZES,
    attention_flops,
    attention_parameters,
    gpt2_parameters,
)
from mha_viz.lessons.implementations import Heat, Telling, race, tellings, toy_shapes
from mha_viz.reference import head_reach

PARTS = ["Tellings", "Output projection", "Counting"]
MOST_TOKENS = 128
RACE = {"d_model": 768, "T": 256}
HEADS = (1, 2, 4, 8, 12, 24, 48, 96)
_told = ResultSlots[tuple[Telling, ...]](8)
TOY = {"B": 5, "T": 6, "d_in": 3, "d_out": 18}
TOY_HEADS = (1, 2, 3, 6, 9, 18)


def show(view: View) -> None:
    """The chosen lesson."""
    part: str = choose_part(PARTS, "many")
    if part == "Counting":
        counting(view)
        return
    attention = view.model.network.blocks[view.layer].attn
    if not attention.n_heads:
        problem(
            f"Every head of layer {view.layer} was taken out of this model. Choose another layer."
        )
    elif part == "Tellings":
        timing(view)
        tellings_table(view, attention)
    else:
        reach(view, attention)


def tellings_table(view: View, attention: MultiHeadAttention) -> None:
    """Each telling, how far it is from the module on this text, and its code."""
    T = min(view.trace.n_tokens, MOST_TOKENS)
    where = "this text" if view.trace.n_tokens == T else f"the first {T} tokens"
    caption(
        "The same layer, told again",
        f"layer {view.layer} on {where}: the largest difference of any output from the module's, "
        "in float32.",
    )
    for telling in _tellings(view, T) or ():
        apart = f"{telling.difference:.1e}" if telling.difference else "0, bit for bit"
        with st.expander(f"{telling.title}: {apart}"):
            st.markdown(telling.sentence)
            st.code(telling.code, language="python", wrap_lines=True)


def _tellings(view: View, T: int) -> tuple[Telling, ...] | None:
    network, layer = view.model.network, view.layer
    ids = torch.tensor([view.trace.token_ids[:T]], device=view.model.device)

    def work(report: Reporter) -> tuple[Telling, ...]:
        x = network.attention_input(ids, layer)
        return tellings(network.blocks[layer].attn, x, on_progress=report)

    slot = _told(view.trace_key, layer, T)
    return wait_for(slot, "Telling the layer in six ways", work, lane="tellings")


def timing(view: View) -> None:
    """One product for all heads against a list of them, measured while one looks."""
    caption(
        "One product or many",
        f"time of a layer with C = {RACE['d_model']} on T = {RACE['T']} positions, both ways in "
        "turns on this machine, the shortest of seven runs; the outputs are equal.",
    )
    done, _ = results(
        "race", lambda report: race(**RACE, heads=HEADS), total=len(HEADS), what="numbers of heads"
    )
    _draw_race(view, done)
    again, save = st.columns([1, 3])
    again.button("Measure again", on_click=jobs.forget, args=("race",), icon=":material/replay:")
    with save:
        download_table(
            "race.csv", ["heads", "fused ms", "list ms", "largest difference"],
            [[h.n_heads, h.fused, h.listed, h.difference] for h in done],
        )  # fmt: skip


def _draw_race(view: View, done: Sequence[Heat]) -> None:
    last = (
        f"At {done[-1].n_heads} heads {done[-1].fused:.1f} ms against {done[-1].listed:.1f} ms."
        if done
        else "Nothing is measured yet."
    )
    chart(
        race_chart(
            [h.n_heads for h in done], [h.fused for h in done], [h.listed for h in done],
            view.theme, all_heads=HEADS, sizes=view.sizes,
        ),
        key="race", height=300, alt=last,
    )  # fmt: skip


def reach(view: View, attention: MultiHeadAttention) -> None:
    """Which output channels a head reaches, with W_O and without."""
    st.latex(
        r"\mathrm{out} = [\,z_0 \mid \dots \mid z_{H-1}\,]\,W_O + b_O = \sum_h z_h W_O^h + b_O"
    )
    st.markdown(
        "Without W_O the heads only lie side by side: each slice of d_h output channels belongs to "
        "one head, and nothing that two heads found can meet in one channel. W_O lets every head "
        "write to every channel. (Vaswani et al. 2017, section 3.2.2)"
    )
    names = [f"H{head}" for head in view.model.config.kept_heads(view.layer)]
    for with_projection, title in ((False, "Without W_O"), (True, "With W_O")):
        found = head_reach(attention, with_projection).float().cpu().numpy()
        relative = (found / found.max()).astype(np.float32)
        caption(
            title,
            f"layer {view.layer}: a row is a head, a column an output channel; how strongly the "
            "head writes there (norm of its d_h weights), against the strongest.",
        )
        reached = int((found > 0).any(axis=0).sum()), float((found > 0).mean())
        chart(
            matrix_heatmap(
                relative, view.theme, rows="head", columns="channel", weights=True, tokens=names,
                sizes=view.sizes,
            ),
            key=f"reach {title}", height=230,
            alt=f"{title}: of {reached[0]} channels a head reaches {reached[1]:.0%}.",
        )  # fmt: skip
        download_matrix(f"reach_{'with' if with_projection else 'without'}.csv", relative)


def counting(view: View) -> None:
    """Weights and FLOPs of a layer for sizes of one's own, and of the GPT-2 family."""
    with st.container(horizontal=True):
        C = number_input("C = d_model", 1, 65536, 512, "count_C")
        H = number_input("H heads", 1, 4096, 8, "count_H")
        T = number_input("T positions", 1, 1_000_000, 1024, "count_T")
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
    toy()


def _count_heads(n_heads: int) -> None:
    st.session_state["count_H"] = n_heads


def _one_layer(C: int, H: int, T: int) -> None:
    plain, biased = (attention_parameters(C, H, bias=bias) for bias in (False, True))
    many, one = (attention_flops(T, C, n) for n in (H, 1))
    st.latex(r"W_Q, W_K, W_V, W_O \in \mathbb{R}^{C \times C} \;\Rightarrow\; 4\,C^2")
    st.markdown(
        f"**{plain.total:,}** weights without biases, whatever H is: 4 × {C:,}². "
        f"With biases {biased.total:,}. "
        f"{H:,} heads cost **{many.matmul / one.matmul:.2f} ×** the products of one head of the "
        f"same width: {many.matmul:,} FLOPs against {one.matmul:,}. Only the softmax grows with H."
    )
    parts = ["projection", "scores", "softmax", "weighted_sum", "output", "total"]
    header = ["FLOPs", f"{H} heads of {C // H}", f"one head of {C}"]
    rows = [[p.replace("_", " "), getattr(many, p), getattr(one, p)] for p in parts]
    caption("One layer, one sequence", f"FLOPs for T = {T:,}; a multiply-add is two.")
    table(header, rows)
    download_table("flops.csv", header, rows)


def _family(view: View) -> None:
    config, network = view.model.config, view.model.network
    caption("GPT-2 family", "all weights, and those of attention (biases included).")
    header = ["model", "L", "H", "C", "attention", "all"]
    rows: list[list[object]] = [
        [
            size.name, size.n_layers, str(size.n_heads), size.d_model,
            size.n_layers * attention_parameters(size.d_model, size.n_heads).total,
            gpt2_parameters(size),
        ]
        for size in GPT2_SIZES
    ]  # fmt: skip
    kept = sorted({len(config.kept_heads(i)) for i in range(config.n_layers)})
    heads = str(kept[0]) if len(kept) == 1 else f"{kept[0]} to {kept[-1]}"
    here = sum(weight.numel() for block in network.blocks for weight in block.attn.parameters())
    name = model_name(view).rstrip("/").rpartition("/")[2]
    rows.append(
        [f"{name} (loaded)", config.n_layers, heads, config.d_model, here, view.about.n_parameters]
    )
    table(header, rows)
    download_table("sizes.csv", header, rows)


def toy() -> None:
    """A batch small enough to count by hand: the output's shape does not depend on the heads."""
    B, T, d_in, d_out = TOY.values()
    caption(
        "A toy batch",
        f"input [{B}, {T}, {d_in}], d_out = {d_out}: run for each number of heads.",
    )
    shapes = toy_shapes(B, T, d_in, d_out, TOY_HEADS)
    rows = [[n, d_out // n, str(shape)] for n, shape in zip(TOY_HEADS, shapes, strict=True)]
    table(["heads", "head size", "output"], rows)

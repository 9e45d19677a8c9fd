"""The Output projection part: which channels each head can write to, without W_O and with it."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from mha_viz.app.messages import problem
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.download_buttons import download_matrix
from mha_viz.app.widgets.recipes import recipe
from mha_viz.attention import MultiHeadAttention
from mha_viz.export import Drawn, Given, matrix_data
from mha_viz.figures.theme import TextSizes, Theme
from mha_viz.figures.values import matrix_heatmap
from mha_viz.reference import head_reach
from mha_viz.trace import Array

REACH = "head_reach(model.network.blocks[layer].attn, projection).float().cpu().numpy()"


def show(view: View) -> None:
    """Both pictures of the selected layer."""
    attention = view.model.network.blocks[view.layer].attn
    if not attention.n_heads:
        problem(f"All heads of layer {view.layer} have been pruned. Choose another layer.")
        return
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
    share = float((reach > 0).mean())
    alt = f"{title}: each head writes to {share:.0%} of {reach.shape[1]} channels on average."
    drawn = recipe(
        view,
        _draw_reach,
        projection=with_projection,
        reach=Given(reach, REACH),
        heads=Given(view.model.config.kept_heads(view.layer), "model.config.kept_heads(layer)"),
    )
    chart(
        drawn, key=f"reach {title}", name=f"Reach of each head {title.lower()}", height=230, alt=alt
    )
    download_matrix(f"reach_{'with' if with_projection else 'without'}_W_O.csv", relative)


def _draw_reach(
    reach: Array, heads: Sequence[int], layer: int, theme: Theme, sizes: TextSizes
) -> Drawn:
    relative = (reach / reach.max()).astype(np.float32)
    names = [f"H{head}" for head in heads]
    figure = matrix_heatmap(
        relative, theme, rows="head", columns="channel", weights=True, tokens=names, sizes=sizes
    )
    arrays = {"relative norm": relative, "heads": heads, "layer": layer}
    sides = ("row", names), ("channel", ())
    data = matrix_data(relative, *sides, value="relative norm", labels="head", arrays=arrays)
    return figure, data

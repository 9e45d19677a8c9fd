"""The Masks part: which token may look at which, and the selected head under each mask."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st
import torch
from numpy.typing import NDArray
from torch import Tensor

from mha_viz.app.messages import notice
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import square
from mha_viz.app.widgets.choices import number_input, segmented_control
from mha_viz.app.widgets.download_buttons import download_matrix
from mha_viz.app.widgets.recipes import recipe
from mha_viz.app.widgets.selection import n_first_tokens, selected_index
from mha_viz.app.widgets.tables import facts
from mha_viz.attention import MultiHeadAttention
from mha_viz.export import Drawn, Given, pattern_data
from mha_viz.figures.masks import mask_figure, masked_pattern
from mha_viz.figures.theme import TextSizes, Theme
from mha_viz.model import Model
from mha_viz.trace import Array, Trace

MAX_TOKENS = 128
DEFAULT_WINDOW = 4
PAD = "pad"


@dataclass(frozen=True, slots=True)
class Mask:
    """What a mask is for, its formula, the line of code that makes it, and its source."""

    purpose: str
    formula: str
    code: str
    source: str


MASKS = {
    "causal": Mask(
        "For models that generate text from left to right: if a token could see the next one, "
        "there would be nothing to predict. This is GPT-2's own mask.",
        r"\text{allowed}_{ij} = [\,j \le i\,]",
        "mask = torch.ones(T, T, dtype=torch.bool).tril()",
        "Vaswani et al. 2017, section 3.2.3",
    ),
    "bidirectional": Mask(
        "For encoders, which read a complete text: every token looks at every token.",
        r"\text{allowed}_{ij} = 1",
        "mask = torch.ones(T, T, dtype=torch.bool)",
        "Vaswani et al. 2017, section 3.2.3; Devlin et al. 2019, section 3",
    ),
    "cross-attention": Mask(
        "For decoders that read a second text, as in translation: queries come from one sequence, "
        "keys and values from the other. Here the second half of the text looks at the first half.",
        r"q = x_{2}\,W_Q\qquad k,\,v = x_{1}\,W_{K,V}\qquad x = [x_1\ x_2]",
        "out = attention(x[:, half:], x[:, :half])  # queries from [B, T_q, C], keys [B, T_k, C]",
        "Vaswani et al. 2017, section 3.2.3",
    ),
    "padding": Mask(
        "For batches of texts with different lengths: shorter texts are padded and no token may "
        "look at padding. Padding rows see no key; their weights and z are zero.",
        r"\text{allowed}_{ij} = [\,i < n\,]\,[\,j < n\,]",
        "real = torch.arange(T) < n\nmask = real[:, None] & real[None, :]",
        "Vaswani et al. 2017, section 3.2.3 (a mask on the scores)",
    ),
    "sliding window": Mask(
        "For long texts: each token looks only at the last w tokens, so the work grows with T "
        "instead of T², and the cache never holds more than w tokens.",
        r"\text{allowed}_{ij} = [\,0 \le i - j < w\,]",
        "mask = torch.ones(T, T, dtype=torch.bool).tril().triu(1 - w)",
        "Beltagy et al. 2020, section 3.1; Jiang et al. 2023, section 2",
    ),
}


@dataclass(frozen=True, slots=True, eq=False)
class MaskedHead:
    """A head under a mask, and the tokens of its rows and columns."""

    mask: NDArray[np.bool_]  # [T_q, T_k]
    pattern: Array  # [T_q, T_k]
    z: Array  # [T_q, d_h]
    queries: tuple[str, ...]
    keys: tuple[str, ...]


def show(view: View) -> None:
    """The mask and the pattern under it, what the mask is for, and the line that makes it."""
    if selected_index(view) is None:
        return
    name = segmented_control("Mask", list(MASKS), "causal", "mask")
    window = 0
    if name == "sliding window":
        window = number_input("Window size w", 1, MAX_TOKENS, DEFAULT_WINDOW, "reach")
    T = n_first_tokens(view, MAX_TOKENS)
    if name == "cross-attention" and T < 2:
        notice("Cross-attention uses two halves of the text, so it needs at least two tokens.")
        return
    head = _masked_head(view.trace_key, view.layer, view.head, T, name, window, _view=view)
    code = "_apply_mask(model, trace, layer, head, T, mask, window)"
    given = {"T": T, "mask": name, "window": window, "masked": Given(head, code)}
    left, right = st.columns(2, gap="small")
    with left:
        _mask(view, name, head, given)
    with right:
        _pattern(view, head, given)
    _explanation(name, head)
    download_matrix(f"{name.replace(' ', '_')}_pattern.csv", head.pattern, rows=head.queries)


def _mask(view: View, name: str, head: MaskedHead, given: Mapping[str, Any]) -> None:
    caption(
        "The mask",
        "Rows are queries, columns are keys. Blue: the query may look at the key; blank: it may "
        "not.",
    )
    alt = f"The {name} mask allows {int(head.mask.sum()):,} of {head.mask.size:,} pairs."
    square(recipe(view, _draw_mask, **given), key="mask_map", name=f"The {name} mask", alt=alt)


def _draw_mask(masked: MaskedHead, theme: Theme, sizes: TextSizes) -> Drawn:
    figure = mask_figure(masked.mask, masked.queries, masked.keys, theme, sizes=sizes)
    sides = masked.queries, masked.keys
    data = pattern_data(masked.mask * 1.0, sides[0], keys=sides[1], name="mask", value="allowed")
    return figure, data


def _pattern(view: View, head: MaskedHead, given: Mapping[str, Any]) -> None:
    caption(
        f"{view.at.label} under this mask",
        "Each row shows what one token looks at; it adds up to 1, or to 0 if it sees no key. "
        "Colour: √ weight.",
    )
    row = head.pattern[-1 if head.mask[-1].any() else 0]
    alt = (
        f"Pattern of {view.at.label} under the mask, {len(head.queries)} queries by "
        f"{len(head.keys)} keys; the largest weight in the last row that sees a key is "
        f"{row.max():.2f}."
    )
    name = f"Pattern of {view.at.label} under the mask"
    square(recipe(view, _draw_masked, **given), key="masked_map", name=name, alt=alt)


def _draw_masked(
    masked: MaskedHead, layer: int, head: int, theme: Theme, sizes: TextSizes
) -> Drawn:
    pattern, queries, keys = masked.pattern, masked.queries, masked.keys
    figure = masked_pattern(pattern, masked.mask, queries, keys, theme, sizes=sizes)
    data = pattern_data(pattern, queries, keys=keys, layer=layer, head=head)
    return figure, data


def _explanation(name: str, head: MaskedHead) -> None:
    mask = MASKS[name]
    left, right = st.columns([3, 2], gap="medium")
    with left:
        explained.paragraph(mask.purpose)
        st.latex(mask.formula)
        st.code(mask.code, language="python", wrap_lines=True)
        explained.note(f"{mask.source}.")
    with right:
        facts(_facts(head))
        sentence = "GPT-2 was trained only with the causal mask."
        if name != "causal":
            sentence += (
                " The head was never trained with this mask, so the picture shows how the mask "
                "works, not what the head has learnt."
            )
        explained.paragraph(sentence)


def _facts(head: MaskedHead) -> dict[str, str]:
    sums = head.pattern.sum(axis=1)
    empty = ~head.mask.any(axis=1)
    rows = {
        "mask": f"[T_q, T_k] = {list(head.mask.shape)}, torch.bool",
        "allowed": f"{int(head.mask.sum()):,} of {head.mask.size:,} pairs",
        "row sums": _sums(sums[~empty]),
    }
    if empty.any():
        weight, z = head.pattern[empty].max(), np.abs(head.z[empty]).max()
        rows["rows without keys"] = f"{int(empty.sum())}; largest weight {weight:g}, |z| {z:g}"
    return rows


def _sums(sums: Array) -> str:
    return f"1 (within {np.abs(sums - 1).max():.0e})" if len(sums) else "no row sees a key"


def without_causal_mask(attention: MultiHeadAttention) -> MultiHeadAttention:
    """A module with the same weights that masks nothing by itself; `attention` is not changed."""
    unmasked = copy.copy(attention)
    unmasked.causal = False
    return unmasked


def make_mask(name: str, T: int, n: int, window: int) -> Tensor:
    """The boolean mask `[T, T]` of that name; the first `n` tokens are not padding."""
    ones = torch.ones(T, T, dtype=torch.bool)
    if name == "causal":
        return ones.tril()
    if name == "padding":
        real = torch.arange(T) < n
        return real[:, None] & real[None, :]
    if name == "sliding window":
        return ones.tril().triu(1 - window)
    return ones


@st.cache_resource(max_entries=32, show_spinner=False)
def _masked_head(
    trace_key: str, layer: int, head: int, T: int, name: str, window: int, *, _view: View
) -> MaskedHead:
    return _apply_mask(_view.model, _view.trace, layer, head, T, name, window)


def _apply_mask(
    model: Model, trace: Trace, layer: int, head: int, T: int, name: str, window: int
) -> MaskedHead:
    network, tokens = model.network, trace.tokens[:T]
    ids = torch.tensor([trace.token_ids[:T]], device=model.device)
    x = network.attention_input(ids, layer)
    attention = without_causal_mask(network.blocks[layer].attn)
    index = model.config.kept_heads(layer).index(head)
    if name == "cross-attention":
        half = T // 2
        mask = torch.ones(T - half, half, dtype=torch.bool)
        return _run(attention, index, x[:, half:], x[:, :half], mask, tokens[half:], tokens[:half])
    n_padding = max(2, T // 4) if name == "padding" else 0
    padded = torch.nn.functional.pad(x, (0, 0, 0, n_padding))
    labels = (*tokens, *[PAD] * n_padding)
    mask = make_mask(name, T + n_padding, T, window)
    return _run(attention, index, padded, None, mask, labels, labels)


@torch.inference_mode()
def _run(
    attention: MultiHeadAttention,
    index: int,
    x: Tensor,
    kv: Tensor | None,
    mask: Tensor,
    queries: Sequence[str],
    keys: Sequence[str],
) -> MaskedHead:
    """Head `index` of the layer on `x` under the mask; keys and values are from `kv` if given."""
    record = attention.explicit(x, kv, mask=mask.to(x.device))
    return MaskedHead(
        mask=mask.numpy(),
        pattern=record.pattern[0, index].float().cpu().numpy(),
        z=record.z[0, index].float().cpu().numpy(),
        queries=tuple(queries),
        keys=tuple(keys),
    )

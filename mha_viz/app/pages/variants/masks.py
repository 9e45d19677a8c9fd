"""Masks: who may look at whom, and what the chosen head does under each."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st
import torch
from numpy.typing import NDArray
from torch import Tensor

from mha_viz.app.messages import notice, problem
from mha_viz.app.view import View
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import square
from mha_viz.app.widgets.choices import number_input, segmented_control
from mha_viz.app.widgets.download_buttons import download_matrix
from mha_viz.app.widgets.tables import facts
from mha_viz.attention import MultiHeadAttention
from mha_viz.figures.masks import mask_figure, masked_pattern
from mha_viz.trace import Array

MOST_TOKENS = 128
REACH = 4
PAD = "pad"


@dataclass(frozen=True, slots=True)
class Kind:
    """A mask: what it is for, its formula, and the line that makes it."""

    sentence: str
    formula: str
    code: str
    source: str


KINDS = {
    "causal": Kind(
        "For models that write from left to right: a token that could see the next one would have "
        "nothing to predict. This is GPT-2's own mask.",
        r"\text{allowed}_{ij} = [\,j \le i\,]",
        "mask = torch.ones(T, T, dtype=torch.bool).tril()",
        "Vaswani et al. 2017, section 3.2.3",
    ),
    "bidirectional": Kind(
        "For encoders, which read a text that is there as a whole: every token looks at every "
        "other.",
        r"\text{allowed}_{ij} = 1",
        "mask = torch.ones(T, T, dtype=torch.bool)",
        "Vaswani et al. 2017, section 3.2.3; Devlin et al. 2019, section 3",
    ),
    "cross-attention": Kind(
        "For a decoder that reads another text, as in translation: queries come from one sequence, "
        "keys and values from the other. Here the second half of the text asks the first half.",
        r"q = x_{2}\,W_Q\qquad k,\,v = x_{1}\,W_{K,V}\qquad x = [x_1\ x_2]",
        "out = attention(x[:, half:], x[:, :half])  # [B, T_q, C] asks, [B, T_k, C] is read",
        "Vaswani et al. 2017, section 3.2.3",
    ),
    "padding": Kind(
        "For texts of unequal length in one batch: the shorter are filled up, and nobody may look "
        "at the filling. A row of filling sees no key at all; its weights and its z are zeros.",
        r"\text{allowed}_{ij} = [\,i < n\,]\,[\,j < n\,]",
        "real = torch.arange(T) < n\nmask = real[:, None] & real[None, :]",
        "Vaswani et al. 2017, section 3.2.3 (a mask on the scores)",
    ),
    "sliding window": Kind(
        "For long texts: each token looks at the last few alone, so the work stops growing with "
        "the square of the text, and the cache stops growing at all.",
        r"\text{allowed}_{ij} = [\,0 \le i - j < w\,]",
        "mask = torch.ones(T, T, dtype=torch.bool).tril().triu(1 - w)",
        "Beltagy et al. 2020, section 3.1; Jiang et al. 2023, section 2",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Masked:
    """A head under a mask, and the tokens of its rows and columns."""

    mask: NDArray[np.bool_]  # [T_q, T_k]
    pattern: Array  # [T_q, T_k]
    z: Array  # [T_q, d_h]
    queries: tuple[str, ...]
    keys: tuple[str, ...]


def show(view: View) -> None:
    """The mask and the pattern under it, what it is for, and the line that makes it."""
    if view.head not in view.model.config.kept_heads(view.layer):
        problem(f"{view.at.label} was taken out of this model. Choose another head.")
        return
    name = segmented_control("Mask", list(KINDS), "causal", "mask")
    reach = number_input("Keys in reach w", 1, MOST_TOKENS, REACH, "reach") if name == (
        "sliding window"
    ) else 0  # fmt: skip
    T = min(view.trace.n_tokens, MOST_TOKENS)
    if view.trace.n_tokens > T:
        notice(f"Masks are shown for the first {T} of {view.trace.n_tokens:,} tokens.")
    if name == "cross-attention" and T < 2:
        notice("Cross-attention needs two texts: type at least two tokens, a half each.")
        return
    found = _masked(view.trace_key, view.layer, view.head, T, name, reach, _view=view)
    _pictures(view, name, found)
    _words(name, found)
    download_matrix(f"{name.replace(' ', '_')}_pattern.csv", found.pattern, rows=found.queries)


def _pictures(view: View, name: str, found: Masked) -> None:
    left, right = st.columns(2, gap="small")
    n_allowed, n = int(found.mask.sum()), found.mask.size
    with left:
        caption("The mask", "a row asks, a column is read; blue: it may look, blank: it may not.")
        square(
            mask_figure(found.mask, found.queries, found.keys, view.theme, sizes=view.sizes),
            "mask_map", f"The {name} mask: {n_allowed:,} of {n:,} pairs may look.",
        )  # fmt: skip
    with right:
        caption(
            f"{view.at.label} under it",
            "each row adds up to 1, or to 0 without a key; colour = √ weight.",
        )
        square(
            masked_pattern(
                found.pattern, found.mask, found.queries, found.keys, view.theme, sizes=view.sizes
            ),
            "masked_map", _alt(view, found),
        )  # fmt: skip


def _alt(view: View, found: Masked) -> str:
    row = found.pattern[len(found.pattern) - 1 if found.mask[-1].any() else 0]
    best = int(row.argmax())
    return (
        f"Pattern of {view.at.label} under the mask, {len(found.queries)} queries by "
        f"{len(found.keys)} keys; the largest weight of the last row that sees a key is "
        f"{row[best]:.2f}."
    )


def _words(name: str, found: Masked) -> None:
    kind = KINDS[name]
    left, right = st.columns([3, 2], gap="medium")
    with left:
        st.markdown(kind.sentence)
        st.latex(kind.formula)
        st.code(kind.code, language="python", wrap_lines=True)
        st.caption(f"{kind.source}.")
    sums = found.pattern.sum(axis=1)
    empty = ~found.mask.any(axis=1)
    rows = {
        "mask": f"[T_q, T_k] = {list(found.mask.shape)}, torch.bool",
        "may look": f"{int(found.mask.sum()):,} of {found.mask.size:,} pairs",
        "rows add up to": _sums(sums[~empty]),
    }
    if empty.any():
        rows["rows without a key"] = (
            f"{int(empty.sum())}; largest weight {found.pattern[empty].max():g}, largest size of "
            f"z {np.abs(found.z[empty]).max():g}"
        )
    with right:
        facts(rows)
        st.markdown(
            "GPT-2 was trained with the causal mask alone."
            + ("" if name == "causal" else " Under this one the head meets what it never met in "
               "training: the picture shows the mask at work, not a skill.")
        )  # fmt: skip


def _sums(sums: Array) -> str:
    return f"1 (within {np.abs(sums - 1).max():.0e})" if len(sums) else "no row sees a key"


def without_causal_rule(attention: MultiHeadAttention) -> MultiHeadAttention:
    """The same weights in a module that hides no key by itself; the one given stays as it is."""
    free = copy.copy(attention)
    free.causal = False
    return free


def made_mask(name: str, T: int, n: int, reach: int) -> Tensor:
    """The mask `[T, T]` of a kind; `n` tokens are real where the rest is padding."""
    whole = torch.ones(T, T, dtype=torch.bool)
    real = torch.arange(T) < n
    makers: dict[str, Callable[[], Tensor]] = {
        "causal": whole.tril,
        "bidirectional": lambda: whole,
        "padding": lambda: real[:, None] & real[None, :],
        "sliding window": lambda: whole.tril().triu(1 - reach),
    }
    return makers[name]()


@st.cache_resource(max_entries=32, show_spinner=False)
def _masked(
    trace_key: str, layer: int, head: int, T: int, name: str, reach: int, *, _view: View
) -> Masked:
    network, tokens = _view.model.network, _view.trace.tokens[:T]
    ids = torch.tensor([_view.trace.token_ids[:T]], device=_view.model.device)
    x = network.attention_input(ids, layer)
    free = without_causal_rule(network.blocks[layer].attn)
    place = _view.model.config.kept_heads(layer).index(head)
    if name == "cross-attention":
        half = T // 2
        whole = torch.ones(T - half, half, dtype=torch.bool)
        return _under(free, x[:, half:], x[:, :half], whole, place, tokens[half:], tokens[:half])
    n_pad = max(2, T // 4) if name == "padding" else 0
    filled = torch.nn.functional.pad(x, (0, 0, 0, n_pad))
    labels = (*tokens, *[PAD] * n_pad)
    mask = made_mask(name, T + n_pad, T, reach)
    return _under(free, filled, None, mask, place, labels, labels)


@torch.inference_mode()
def _under(
    attention: MultiHeadAttention, x: Tensor, kv: Tensor | None, mask: Tensor, place: int,
    queries: Sequence[str], keys: Sequence[str],
) -> Masked:  # fmt: skip
    record = attention.explicit(x, kv, mask=mask.to(x.device))
    return Masked(
        mask=mask.numpy(),
        pattern=record.pattern[0, place].float().cpu().numpy(),
        z=record.z[0, place].float().cpu().numpy(),
        queries=tuple(queries),
        keys=tuple(keys),
    )

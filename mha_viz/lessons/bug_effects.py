"""What a bug does to a model: its loss over a text, what it reads ahead, what its heads are given.

The loss of a model that reads ahead depends on how the text is read. Read whole, a piece of text is
one input, and every position may use the tokens after it. One token at a time, as when it writes,
a token is predicted from an input that ends right before it.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from mha_viz.attention import merge_heads, split_heads
from mha_viz.callbacks import OnProgress
from mha_viz.errors import ShapeError
from mha_viz.lessons.bugs import attention_with_bug
from mha_viz.network import Network

Piece = Sequence[int]  # at least two token ids
LENGTH = 64  # tokens of a piece; one at a time costs half of its square
MAX_LOGITS = 2**25  # held at once


class HeadPiece(NamedTuple):
    """The d_h numbers that one head computed from one token."""

    token: int
    head: int


def pieces(texts: Sequence[Sequence[int]], length: int = LENGTH) -> list[list[int]]:
    """The token ids of texts in pieces of at most `length`; a piece of one token is dropped."""
    cut = [list(ids[n : n + length]) for ids in texts for n in range(0, len(ids), length)]
    return [piece for piece in cut if len(piece) > 1]


@torch.inference_mode()
def loss_whole(network: Network, texts: Sequence[Piece], bug: str | None) -> float:
    """The mean loss of all tokens but the first of each piece, in nats; each is read whole.

    Raises ShapeError if the network cannot run with this bug.
    """
    total, most = 0.0, max(1, MAX_LOGITS // (LENGTH * network.config.vocab_size))
    for _, group in groupby(sorted(texts, key=len), key=len):
        for ids in torch.split(torch.tensor(list(group), device=network.device), most):
            logits = network.unembed(_last_residual(network, ids[:, :-1], bug)).float()
            total += float(F.cross_entropy(logits.mT, ids[:, 1:], reduction="sum"))
    return total / sum(len(piece) - 1 for piece in texts)


@torch.inference_mode()
def loss_writing(
    network: Network,
    texts: Sequence[Piece],
    bug: str | None,
    *,
    on_progress: OnProgress | None = None,
) -> float:
    """As `loss_whole`, one token at a time: each is predicted from a pass over those before it.

    `on_progress` is called with the fraction that is done.
    """
    total, longest = 0.0, max(map(len, texts))
    for length in range(1, longest):
        # Pieces of the same length: padding would change what some bugs do.
        begun = [piece[: length + 1] for piece in texts if len(piece) > length]
        ids = torch.tensor(begun, device=network.device)
        last = _last_residual(network, ids[:, :-1], bug)[:, -1]
        logits = network.unembed(last).float()
        total += float(F.cross_entropy(logits, ids[:, -1], reduction="sum"))
        if on_progress is not None:
            on_progress((length + 1) ** 2 / longest**2)
    return total / sum(len(piece) - 1 for piece in texts)


def loss_or_nan(network: Network, texts: Sequence[Piece], bug: str | None) -> float:
    """`loss_whole`, or NaN if the network cannot run with this bug."""
    try:
        return loss_whole(network, texts, bug)
    except ShapeError:
        return float("nan")


@torch.inference_mode()
def change_before_the_last(network: Network, ids: Tensor, bug: str | None) -> float:
    """How far the logits before the last position move when the last of `ids` `[1, T]` changes.

    The largest magnitude over positions and tokens; a causal model gives 0, and so does one token.
    """
    other = ids.clone()
    other[:, -1] = (other[:, -1] + 1) % network.config.vocab_size
    before, after = (
        network.unembed(_last_residual(network, each, bug)[:, :-1]) for each in (ids, other)
    )
    return float((before - after).abs().max()) if ids.shape[1] > 1 else 0.0


def rows_of_head(n_tokens: int, n_heads: int, head: int, bug: str | None) -> list[HeadPiece]:
    """The pieces of q in the rows of a head, without a bug or with "no transpose"."""
    x = torch.arange(n_tokens * n_heads).view(1, n_tokens, n_heads)
    q = x.reshape(1, n_heads, n_tokens, 1) if bug == "no transpose" else split_heads(x, n_heads, 1)
    return [HeadPiece(*divmod(int(piece), n_heads)) for piece in q[0, head, :, 0]]


def row_of_merge(n_tokens: int, n_heads: int, row: int, bug: str | None) -> list[HeadPiece]:
    """The pieces of z in a row of the merged heads, without a bug or with "no transpose back"."""
    z = torch.arange(n_heads * n_tokens).view(1, n_heads, n_tokens, 1)
    wrong = bug == "no transpose back"
    merged = z.reshape(1, n_tokens, n_heads) if wrong else merge_heads(z)
    return [HeadPiece(int(p) % n_tokens, int(p) // n_tokens) for p in merged[0, row]]


@torch.no_grad()
def softmax_gradient(d_head: int, scale: float, *, keys: int = 64, queries: int = 512) -> float:
    """How much the softmax lets through: the sum over i and j of |d weight_i / d score_j|.

    That is 2 (1 - sum of weight_i^2), here its mean over seeded random queries and keys whose
    components have variance 1. A score then has variance d_head before it is multiplied by `scale`:
    Vaswani et al. 2017, section 3.2.1, footnote 4.
    """
    generator = torch.Generator().manual_seed(d_head)
    q, k = (torch.randn(n, d_head, generator=generator) for n in (queries, keys))
    weights = (q @ k.T * scale).softmax(-1)
    return float((2 * (1 - weights.square().sum(-1))).mean())


def _last_residual(network: Network, ids: Tensor, bug: str | None) -> Tensor:
    """The residual stream `[B, T, C]` after the last block, with the bug in every layer."""
    resid = network.embed(ids)
    for block in network.blocks:
        steps = attention_with_bug(block.attn, block.attention_input(resid), bug)
        resid = block.after_attention(resid, steps.out)
    return resid

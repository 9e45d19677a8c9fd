"""Trace: a frozen record of one forward pass, which computes any pattern on demand.

It keeps q, k and v, whose size grows with T. Patterns grow with T x T, so each is computed when it
is asked for: softmax(q k^T * scale) with the causal mask, in float32 (Vaswani et al. 2017).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mha_viz.callbacks import OnLayer
from mha_viz.errors import ShapeError
from mha_viz.head import Head
from mha_viz.tokens import Token

Array = NDArray[np.float32]
Cut = Literal["start", "end"]

ROWS = 128  # queries at a time; keys after the last of them are masked, so they are skipped


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """The result of one model on one text. The arrays are read-only float32.

    `q`, `k`, `v` are `[L, H, T, d_h]`; pruned heads are NaN. `logits` `[V]` are those of the last
    position. `scales[l]` multiplies the dot products of layer l. `left_out` tokens were dropped at
    the `cut` of the text; `replaced` characters were not valid Unicode and became U+FFFD. `read_as`
    is the text that all tokens spell if it differs from `text`, else "". `template` is the number
    of tokens that the tokenizer's template added before the text, and after it.
    """

    model: str
    text: str
    details: tuple[Token, ...]
    q: Array = field(repr=False)
    k: Array = field(repr=False)
    v: Array = field(repr=False)
    logits: Array = field(repr=False)
    scales: tuple[float, ...]
    cut: Cut = "end"
    left_out: int = 0
    replaced: int = 0
    read_as: str = ""
    template: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        L, H, T, d_h = self.q.shape
        for name in ("k", "v"):
            if getattr(self, name).shape != (L, H, T, d_h):
                raise ShapeError(
                    f"{name} has shape {list(getattr(self, name).shape)}; q has {[L, H, T, d_h]}."
                )
        if len(self.details) != T or len(self.scales) != L:
            raise ShapeError(
                f"There are {len(self.details)} tokens and {len(self.scales)} scales, but q has "
                f"shape {[L, H, T, d_h]}."
            )
        for name in ("q", "k", "v", "logits"):
            array = getattr(self, name)
            array.setflags(write=False)
            # A view of a read-only array cannot be made writable again; the array itself could.
            object.__setattr__(self, name, array.view())

    @property
    def n_layers(self) -> int:
        """The number of layers, L."""
        return len(self.q)

    @property
    def n_heads(self) -> int:
        """The number of heads per layer, H, including pruned heads."""
        return len(self.q[0])

    @property
    def n_tokens(self) -> int:
        """The number of tokens, T."""
        return len(self.details)

    @property
    def tokens(self) -> tuple[str, ...]:
        """A label for each token, as `tokens.label` makes it."""
        return tuple(token.label for token in self.details)

    @property
    def text_queries(self) -> NDArray[np.intp] | None:
        """The positions without a special token, over which means run; None if they are all.

        A query that marks the end of a text says nothing about what a head does with text. As keys,
        special tokens do count.
        """
        positions = np.flatnonzero([token.kind != "special" for token in self.details])
        return None if len(positions) == self.n_tokens else positions

    @property
    def token_ids(self) -> list[int]:
        """The id of each token in the model's vocabulary."""
        return [token.id for token in self.details]

    @property
    def token_bytes(self) -> tuple[bytes, ...]:
        """The text that each token stands for, in UTF-8.

        Joined, they are the text that was read (`text` or `read_as`) without the dropped tokens, if
        the tokenizer keeps spaces, as a byte-level one does. An unnamed id stands for nothing.
        """
        return tuple(token.bytes for token in self.details)

    def pattern(self, layer: int, head: int) -> Array:
        """`[T, T]`: row i holds how much query i looks at each key, and sums to 1.

        Raises HeadNotFound for a head that the model does not have.
        """
        self._check(layer, head)
        T = self.n_tokens
        out = np.zeros((T, T), dtype=np.float32)
        for start, rows in self._row_blocks(layer, head):
            out[start : start + len(rows), : rows.shape[1]] = rows
        return out

    def patterns(self, layer: int) -> Array:
        """`[H, T, T]`: the patterns of all heads of a layer. Raises HeadNotFound."""
        self._check(layer, 0)
        return np.stack([self.pattern(layer, head) for head in range(self.n_heads)])

    def thumbnails(
        self, size: int = 64, *, relative: bool = False, on_layer: OnLayer | None = None
    ) -> Array:
        """`[L, H, s, s]`, s <= size: every pattern, max-pooled over square blocks of equal side.

        With `relative`, weights are divided by those of uniform attention before they are pooled.
        Only one pattern is in memory at a time. `on_layer` is called with the number of layers
        done; an exception that it raises stops the work. Raises ShapeError for a size below 1.
        """
        if size < 1:
            raise ShapeError(f"size = {size}; a thumbnail needs at least one cell per side.")
        block = -(-self.n_tokens // size)
        side = -(-self.n_tokens // block)
        out = np.empty((self.n_layers, self.n_heads, side, side), dtype=np.float32)
        for layer in range(self.n_layers):
            for head in range(self.n_heads):
                pattern = self.pattern(layer, head)
                values = relative_to_uniform(pattern) if relative else pattern
                out[layer, head] = max_pool(values, block)
            if on_layer is not None:
                on_layer(layer + 1)
        return out

    def _row_blocks(self, layer: int, head: int) -> Iterator[tuple[int, Array]]:
        """(first query, rows of the pattern up to the last query of the block)."""
        T = self.n_tokens
        q = self.q[layer, head] * np.float32(self.scales[layer])
        k = self.k[layer, head]
        for start in range(0, T, ROWS):
            end = min(start + ROWS, T)
            scores = q[start:end] @ k[:end].T
            diagonal = scores[:, start:end]
            diagonal[_above_diagonal(end - start)] = -np.inf
            scores -= scores.max(axis=1, keepdims=True)
            np.exp(scores, out=scores)
            scores /= scores.sum(axis=1, keepdims=True)
            yield start, scores

    def _check(self, layer: int, head: int) -> None:
        Head(layer, head).check(self.n_layers, self.n_heads, model=self.model)


def max_pool(pattern: Array, block: int) -> Array:
    """The largest weight in each block x block square. A mean would blur one-token diagonals."""
    if block == 1:
        return pattern
    rows, columns = (np.arange(0, n, block) for n in pattern.shape)
    pooled: Array = np.maximum.reduceat(np.maximum.reduceat(pattern, rows, 0), columns, 1)
    return pooled


def relative_to_uniform(pattern: Array, first_query: int = 0) -> Array:
    """Each weight of `[..., T_q, T_k]` times i + 1, for queries i from `first_query` on.

    Uniform attention gives each of the i + 1 keys of query i the weight 1 / (i + 1).
    """
    n_keys = np.arange(pattern.shape[-2], dtype=np.float32) + np.float32(first_query + 1)
    return pattern * n_keys[:, None]


def _above_diagonal(n: int) -> NDArray[np.bool_]:
    return ~np.tri(n, dtype=np.bool_)

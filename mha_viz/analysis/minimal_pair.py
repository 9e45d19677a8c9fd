"""Minimal pairs of a text: one word changed, so that the rest is the same and something happens.

Every word of a short list that is one token takes the place of one token before the query:

    pairs = minimal_pairs(model, trace.token_ids, query=16)
    model.trace_ids(swapped(trace.token_ids, pairs.swaps[0].position, pairs.swaps[0].token))

Tokens after the query cannot change what it looks at, so they are neither swapped nor run.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from torch import Tensor

from mha_viz.callbacks import OnProgress
from mha_viz.errors import ShapeError
from mha_viz.head import Head
from mha_viz.model import Model
from mha_viz.tokens import Token

# Words of one kind can take each other's place in a sentence; none takes “an”.
KINDS = (
    ("little", "great", "golden", "silver", "red", "black", "white", "blue"),
    ("young", "poor", "kind", "wise"),
    ("king", "queen", "princess", "man", "woman", "boy", "girl", "cat", "dog", "fox"),
    ("ring", "flower", "house", "door", "tree", "key", "crown", "mat", "rug", "letter"),
    ("gave", "took", "saw", "found", "had", "made", "sat", "lay", "went", "came"),
    ("Mary", "John", "Tom", "Anna", "Ben", "Ada"),
    ("one", "two", "three", "four", "five", "six"),
    ("the", "a", "his", "her", "my"),
)
WORDS = tuple(dict.fromkeys(word for kind in KINDS for word in kind))
MULTIPLY_ADDS = 4e10  # of all swaps together: about a second on two cores
LEAST = 6  # swaps that are always tried
BATCH = 4096  # tokens that are run at a time
KEPT = 24  # swaps in the ranking


@dataclass(frozen=True, slots=True)
class Swap:
    """One token replaced by another, and what that changes at the query.

    `row` is half the sum of the absolute differences of the query's weights, for the head where it
    is largest; `prediction` is the same for the probabilities of the next token. Both lie between 0
    and 1. `plain` is 0 if one word takes the place of another of its kind, 1 if of another whole
    word, 2 if of anything else.
    """

    position: int
    token: int
    row: float
    head: Head
    prediction: float
    plain: int

    @property
    def size(self) -> float:
        """The sum of the two changes: the best swaps change both."""
        return self.row + self.prediction


@dataclass(frozen=True, slots=True)
class Pairs:
    """The best swaps, the best one first. `tried` of the `possible` swaps were run."""

    swaps: tuple[Swap, ...]
    tried: int
    possible: int


def swapped(ids: Sequence[int], position: int, token: int) -> list[int]:
    """The ids with the one at `position` replaced."""
    return [*ids[:position], token, *ids[position + 1 :]]


@torch.inference_mode()
def minimal_pairs(
    model: Model,
    ids: Sequence[int],
    query: int,
    *,
    multiply_adds: float = MULTIPLY_ADDS,
    on_progress: OnProgress | None = None,
) -> Pairs:
    """The swaps of one token before `query` that change most there, plain words first.

    A swap of a plainer kind comes first if it changes at least half as much as any. A long text or
    a large model has more swaps than `multiply_adds` allow; then the plainest are tried first, one
    word at each position before the next word, and first where the query looks most or just before
    that. `on_progress` is called with the fraction done; an exception that it raises stops the
    work. Raises ShapeError for a query
    outside the text, TextError as `Model.check_ids` does.
    """
    given = model.check_ids(ids)
    if not 0 <= query < len(given):
        raise ShapeError(f"query = {query}; the text has positions 0 to {len(given) - 1}.")
    ids = given[: query + 1]
    rows, probabilities = _run(model, [ids])
    asked = _possible(model, ids, _attention(rows[0]))
    cfg, T = model.config, len(ids)
    cost = T * (model.description.n_parameters + cfg.n_layers * T * cfg.d_model)
    tried = asked[: max(LEAST, int(multiply_adds / cost))]
    found: list[Swap] = []
    for batch in _batches(tried, max(1, BATCH // len(ids))):
        texts = [swapped(ids, position, token) for position, token, _ in batch]
        new_rows, new_probabilities = _run(model, texts)
        distances = np.nan_to_num((new_rows - rows).abs().sum(-1).cpu().numpy() / 2)  # [n, L, H]
        changes = (new_probabilities - probabilities).abs().sum(-1).cpu().numpy() / 2
        for (position, token, plain), distance, change in zip(
            batch, distances, changes, strict=True
        ):
            head = Head(*map(int, np.unravel_index(distance.argmax(), distance.shape)))
            row = float(distance[head])
            found.append(Swap(position, token, row, head, float(change), plain))
        if on_progress is not None:
            on_progress(len(found) / len(tried))
    return Pairs(_ranked(found), len(tried), len(asked))


def _ranked(found: Sequence[Swap]) -> tuple[Swap, ...]:
    """The best KEPT; the plainest come first among those that change at least half the most."""
    enough = max((swap.size for swap in found), default=0.0) / 2

    def key(swap: Swap) -> tuple[int, float, int, int]:
        last = 3 if swap.size < enough else swap.plain
        return last, -swap.size, swap.position, swap.token

    return tuple(sorted(found, key=key)[:KEPT])


def _possible(
    model: Model, ids: Sequence[int], attention: Sequence[float]
) -> list[tuple[int, int, int]]:
    """(position, token, how plain) of every swap, in the order in which they are tried."""
    tokens = model.read(ids)
    order = sorted(range(len(ids) - 1), key=lambda p: (-max(attention[p : p + 2]), p))
    vocabulary = {form: _single(model, form) for word in WORDS for form in _forms(word)}
    found: list[tuple[tuple[int, int, int], tuple[int, int, int]]] = []
    for rank, position in enumerate(order):
        token = tokens[position]
        if token.kind in ("special", "unnamed"):
            continue
        before, word = _parts(token)
        whole = word.isalpha() and not _goes_on(tokens[position + 1])
        tried = [0, 0, 0]
        for other in WORDS:
            form = before + (other[0].upper() + other[1:] if word[:1].isupper() else other)
            new = vocabulary.get(form)
            if new is not None and new != token.id:
                plain = 0 if whole and _same_kind(word, other) else 1 if whole else 2
                found.append(((plain, tried[plain], rank), (position, new, plain)))
                tried[plain] += 1
    return [swap for _, swap in sorted(found)]


def _parts(token: Token) -> tuple[str, str]:
    """The space before the word of a token, and the word; a mark or a newline takes a space."""
    text = token.bytes.decode("utf-8", "replace")
    word = text.removeprefix(" ")
    return (" " if text.startswith(" ") or not word.isalpha() else ""), word


def _goes_on(token: Token) -> bool:
    """Whether the token continues the word before it."""
    return token.bytes[:1].isalpha() or token.bytes[:1] > b"\x7f"


def _same_kind(word: str, other: str) -> bool:
    lower = word.lower()
    return any(other in kind and (word in kind or lower in kind) for kind in KINDS)


def _forms(word: str) -> tuple[str, ...]:
    upper = word[0].upper() + word[1:]
    return tuple(dict.fromkeys((f" {word}", word, f" {upper}", upper)))


def _single(model: Model, text: str) -> int | None:
    """The id of a text that is one token, or None."""
    ids = model.tokenizer.encode(text, add_special_tokens=False).ids
    if len(ids) != 1 or ids[0] >= model.config.vocab_size:
        return None
    return int(ids[0]) if model.text_of(ids) == text else None


def _batches(
    swaps: Sequence[tuple[int, int, int]], size: int
) -> Iterator[list[tuple[int, int, int]]]:
    rest = iter(swaps)
    while batch := list(islice(rest, size)):
        yield batch


def _run(model: Model, texts: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """The weights of the last query `[n, L, H, T]`, and what it predicts `[n, V]`."""
    run = model.network.run(torch.tensor(texts, device=model.device))
    q, k, _ = run.qkv.float()  # [L, n, H, T, d_h]
    scales = torch.tensor([model.config.scale(layer) for layer in range(model.config.n_layers)])
    scores = (q[..., -1:, :] @ k.mT)[..., 0, :] * scales.to(q.device)[:, None, None, None]
    return scores.softmax(-1).transpose(0, 1), run.logits.float().softmax(-1)


def _attention(rows: Tensor) -> list[float]:
    """The largest weight of any head on each position, `[T]`."""
    return [float(x) for x in rows.nan_to_num().amax((0, 1)).cpu()]

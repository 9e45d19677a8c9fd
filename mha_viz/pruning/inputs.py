"""Checked inputs of the pruning functions: texts or token ids, heads, gates."""

import operator
from collections.abc import Iterable, Sequence
from typing import TypeAlias, cast

import numpy as np
import torch
from torch import Tensor

from mha_viz.errors import ShapeError, TextError
from mha_viz.head import Head
from mha_viz.model import Model
from mha_viz.network import NetworkConfig

Text: TypeAlias = str | Sequence[int]  # as typed, or as token ids


def token_ids(model: Model, text: Text) -> Tensor:
    """The ids `[1, T]` of a text, on the model's device.

    Raises TextError for fewer than two tokens, since the first has no loss, for more than
    n_positions, and for an id that the model does not have.
    """
    ids = _ids(model, text)
    if len(ids) < 2:
        raise TextError(
            f"The text has {'1 token' if ids else 'no tokens'}. The loss measures how well each "
            "next token is predicted, so the text needs at least two tokens."
        )
    return torch.tensor([model.check_ids(ids)], device=model.device)


def one_or_many(texts: Text | Iterable[Text]) -> list[Text]:
    """The texts as a list; a single text becomes a list of one. Raises TextError if it is empty."""
    if isinstance(texts, str):
        return [texts]
    given = list(texts)
    if not given:
        raise TextError("There is no text. Give a text, or a list of texts.")
    if isinstance(given[0], str) or np.ndim(given[0]):
        return cast("list[Text]", given)
    return [cast("list[int]", given)]


def chunks(model: Model, texts: Text | Iterable[Text], length: int) -> list[list[int]]:
    """The ids of the texts in chunks of at most `length` tokens; chunks of one token are dropped.

    Raises TextError if no chunk is left, ShapeError for a length that the model cannot read.
    """
    return [ids for _, ids in numbered_chunks(model, texts, length)]


def numbered_chunks(
    model: Model, texts: Text | Iterable[Text], length: int
) -> list[tuple[int, list[int]]]:
    """As `chunks`, each after the index of its text."""
    _check_length(model, length)
    all_chunks = [
        (number, ids[start : start + length])
        for number, ids in enumerate(_ids(model, text) for text in one_or_many(texts))
        for start in range(0, len(ids), length)
    ]
    kept = [(number, chunk) for number, chunk in all_chunks if len(chunk) > 1]
    if not kept:
        raise TextError("None of the texts has two tokens, so there is no loss. Give longer texts.")
    return kept


def n_losses(model: Model, texts: Iterable[Text]) -> list[int]:
    """How many tokens of each text have a loss: all but the first."""
    return [len(_ids(model, text)) - 1 for text in texts]


def windows(model: Model, texts: Text | Iterable[Text], length: int) -> Tensor:
    """The texts, joined by newlines, as windows `[N, length]`; an incomplete window is dropped.

    Token ids are joined without newlines. Raises TextError if the texts are shorter than a window,
    ShapeError for a length that the model cannot read.
    """
    _check_length(model, length)
    given = one_or_many(texts)
    if all(isinstance(text, str) for text in given):
        ids = _ids(model, "\n".join(map(str, given)))
    else:
        ids = [i for text in given for i in _ids(model, text)]
    n = len(ids) // length
    if not n:
        raise TextError(
            f"The reference text has {len(ids):,} tokens. To replace a head in a text of "
            f"{length:,} tokens it needs at least {length:,}: give a longer reference text."
        )
    return torch.tensor(ids[: n * length], device=model.device).view(n, length)


def gate_without(config: NetworkConfig, heads: Iterable[Head]) -> Tensor:
    """A gate `[L, H]`: 0 at these heads, 1 elsewhere. Raises HeadNotFound."""
    gate = torch.ones(config.n_layers, config.n_heads)
    for layer, head in heads:
        config.check_head(layer, head)
        gate[layer, head] = 0.0
    return gate


def all_heads(config: NetworkConfig) -> list[Head]:
    """The heads of the model, layer by layer, without pruned ones."""
    layers = range(config.n_layers)
    return [Head(layer, head) for layer in layers for head in config.kept_heads(layer)]


def _ids(model: Model, text: Text) -> list[int]:
    if isinstance(text, str):
        return model.input_ids(text)
    try:
        return [operator.index(i) for i in text]
    except TypeError as error:
        raise TextError(
            f"{text!r:.60} is neither a text nor a list of token ids. Give a str or integers."
        ) from error


def _check_length(model: Model, length: int) -> None:
    limit = model.config.n_positions
    if not 2 <= length <= limit:
        raise ShapeError(f"length = {length}; this model reads from 2 to {limit} tokens at once.")

"""What the lab is given, checked: texts or token ids, heads, gates."""

import operator
from collections.abc import Iterable, Sequence
from typing import TypeAlias, cast

import numpy as np
import torch
from torch import Tensor

from mha_viz.errors import ShapeError, TextError
from mha_viz.gpt2 import GPT2Config
from mha_viz.head import Head
from mha_viz.model import Model

Text: TypeAlias = str | Sequence[int]  # as typed, or as token ids


def token_ids(model: Model, text: Text) -> Tensor:
    """The ids `[1, T]` of a text, on the model's device.

    Raises TextError for fewer than two tokens, of which none would have a loss, for more than
    n_positions, and for an id that the model does not have.
    """
    ids = _ids(model, text)
    limit, V = model.config.n_positions, model.config.vocab_size
    if len(ids) < 2:
        raise TextError(
            f"The text has {'1 token' if ids else 'no tokens'}. A loss is how well each next token "
            "was foreseen, so it takes two tokens at least."
        )
    if len(ids) > limit:
        raise TextError(
            f"The text has {len(ids):,} tokens; {model.description.name} reads {limit:,} at once. "
            "Shorten it, or cut it into pieces."
        )
    if not 0 <= min(ids) <= max(ids) < V:
        raise TextError(
            f"The token ids reach from {min(ids)} to {max(ids)}; {model.description.name} knows "
            f"those from 0 to {V - 1}."
        )
    return torch.tensor([ids], device=model.device)


def one_or_many(texts: Text | Iterable[Text]) -> list[Text]:
    """A list of texts, also where one alone was given. Raises TextError for none."""
    if isinstance(texts, str):
        return [texts]
    found = list(texts)
    if not found:
        raise TextError("There is no text. Give one, or a list of several.")
    if isinstance(found[0], str) or np.ndim(found[0]):
        return cast("list[Text]", found)
    return [cast("list[int]", found)]


def chunks(model: Model, texts: Text | Iterable[Text], length: int) -> list[list[int]]:
    """The ids of the texts, each cut into pieces of at most `length` tokens, none of a single one.

    Raises TextError where nothing is left, ShapeError for a length that the model cannot read.
    """
    _check_length(model, length)
    found = [
        ids[start : start + length]
        for ids in (_ids(model, text) for text in one_or_many(texts))
        for start in range(0, len(ids), length)
    ]
    kept = [piece for piece in found if len(piece) > 1]
    if not kept:
        raise TextError("None of the texts has two tokens, so there is no loss. Give longer ones.")
    return kept


def windows(model: Model, texts: Text | Iterable[Text], length: int) -> Tensor:
    """The texts one after the other, a line each, as windows `[N, length]`; a rest is left out.

    Raises TextError where the texts do not fill one, ShapeError for a length that does not fit.
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
            f"The reference text has {len(ids):,} tokens; what replaces a head in a text of "
            f"{length:,} is computed from as many at least. Give a longer one."
        )
    return torch.tensor(ids[: n * length], device=model.device).view(n, length)


def gate_without(config: GPT2Config, heads: Iterable[Head]) -> Tensor:
    """A gate `[L, H]`: 0 at these heads, 1 elsewhere. Raises HeadNotFound."""
    gate = torch.ones(config.n_layers, config.n_heads)
    for layer, head in heads:
        check_head(config, layer, head)
        gate[layer, head] = 0.0
    return gate


def check_head(config: GPT2Config, layer: int, head: int) -> None:
    """Raises HeadNotFound for a head outside of the model, or pruned from it."""
    L, H = config.n_layers, config.n_heads
    kept = config.kept_heads(layer) if 0 <= layer < L else ()
    Head(layer, head).check(L, H, kept, model="this model")


def all_heads(config: GPT2Config) -> list[Head]:
    """The heads that the model has, layer by layer."""
    L = config.n_layers
    return [Head(layer, head) for layer in range(L) for head in config.kept_heads(layer)]


def _ids(model: Model, text: Text) -> list[int]:
    if isinstance(text, str):
        return model.encode(text)[0]
    try:
        return [operator.index(i) for i in text]
    except TypeError as error:
        raise TextError(f"{text!r:.60} is neither a text nor a list of token ids.") from error


def _check_length(model: Model, length: int) -> None:
    limit = model.config.n_positions
    if not 2 <= length <= limit:
        raise ShapeError(f"length = {length}; this model reads from 2 to {limit} tokens at once.")

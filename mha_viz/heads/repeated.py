"""Repeated random tokens, on which induction heads are measured (Olsson et al. 2022).

In ordinary text, the token after an earlier copy is often also the previous token or a frequent
one. In random tokens, only the repetition helps to predict the next token.
"""

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from mha_viz.errors import ShapeError, TextError

if TYPE_CHECKING:
    from mha_viz.model import Model

TWICE = (64, 2)  # (tokens, copies) for the duplicate-token and induction measures
FOUR_TIMES = (25, 4)  # (tokens, copies) for prefix matching, as in Olsson et al. 2022


@dataclass(frozen=True, slots=True)
class Repeated:
    """Token ids that repeat every `period` tokens; within one copy, all ids are different."""

    ids: tuple[int, ...]
    period: int


def repeated_tokens(model: "Model", period: int, copies: int, seed: int) -> Repeated:
    """`period` random tokens, written `copies` times; they depend on seed and tokenizer only.

    They are drawn uniformly from tokens that are whole text: no special token, no part of a
    character, no unused id. No start token precedes them. The period is shorter if n_positions is
    too small for all copies, or the vocabulary has too few such tokens. Raises ShapeError for a
    period or copies below 1, TextError if there is no room for one token in each copy.
    """
    if period < 1 or copies < 1:
        raise ShapeError(f"period = {period}, copies = {copies}; both must be at least 1.")
    order = np.random.default_rng(seed).permutation(model.config.vocab_size)
    text_ids = (i for i in order.tolist() if _is_text(model, i))
    once = tuple(islice(text_ids, min(period, model.config.n_positions // copies)))
    if not once:
        raise TextError(
            f"The measures on repeated tokens need {copies} positions or more, and a token that is "
            f"text; {model.description.name} has {model.config.n_positions} positions. Choose "
            "another model."
        )
    return Repeated(once * copies, len(once))


def _is_text(model: "Model", token_id: int) -> bool:
    (token,) = model.read([token_id])
    return token.kind == "text" and bool(token.bytes)

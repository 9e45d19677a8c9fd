"""Random tokens, written several times: what an induction head is told by (Olsson et al. 2022).

Running text would mix things up: the token after an earlier copy is often the previous one too, or
simply a frequent one. Among random tokens nothing but the repetition helps.
"""

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from mha_viz.errors import ShapeError

if TYPE_CHECKING:
    from mha_viz.model import Model

TWICE = (64, 2)  # (tokens, copies) for duplicate-token and induction
FOUR_TIMES = (25, 4)  # for prefix matching, as Olsson et al. 2022 have it


@dataclass(frozen=True, slots=True)
class Repeated:
    """Token ids that repeat every `period` tokens, of which no two in one copy are alike."""

    ids: tuple[int, ...]
    period: int


def repeated_tokens(model: "Model", period: int, copies: int, seed: int) -> Repeated:
    """`period` random tokens, written `copies` times; the same for the same seed and tokenizer.

    They are ordinary: no special token, no part of a character, no id without a piece of text;
    each of these is as likely as any other. No start token stands before them. The period is
    shorter where the model reads too few positions for all copies, or has too few such tokens.
    Raises ShapeError for a period or copies below 1.
    """
    if period < 1 or copies < 1:
        raise ShapeError(f"period = {period}, copies = {copies}; both are 1 at least.")
    order = np.random.default_rng(seed).permutation(model.config.vocab_size)
    ordinary = (i for i in order.tolist() if _is_ordinary(model, i))
    once = tuple(islice(ordinary, min(period, model.config.n_positions // copies)))
    return Repeated(once * copies, len(once))


def _is_ordinary(model: "Model", token_id: int) -> bool:
    (token,) = model.read([token_id])
    return token.kind == "text" and bool(token.bytes)

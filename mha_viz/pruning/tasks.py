"""Small tests of what heads are for: to go on with a repetition, and to tell who is meant.

Induction: random tokens, twice; a model that goes on as the first copy did knows the second
(Olsson et al. 2022). Logit difference: how much more a right answer is expected than a wrong one;
with `ioi_prompts`, whom a sentence with two names means (Wang et al. 2023).
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mha_viz.errors import ShapeError, TextError
from mha_viz.heads import repeated
from mha_viz.model import Model
from mha_viz.pruning.ablation import Scores, ablate_each_head
from mha_viz.pruning.passes import ZERO, Pass, Replacement
from mha_viz.pruning.replacements import Method
from mha_viz.trace import Array

SEGMENT = 64  # random tokens, written twice
SEEDS = range(5)
NAMES = (
    "Mary", "John", "Tom", "James", "Anne", "Peter", "Alice", "Jack", "Paul", "Henry", "Jane",
    "Robert", "Martha", "David", "Sarah", "Michael", "Laura", "Kevin", "Emily", "Daniel",
)  # fmt: skip
TEMPLATES = (  # {x} and {y} are two people, of whom {b} acts: the other is meant
    "When {x} and {y} came home in the evening, {b} gave the letter to",
    "After {x} and {y} had finished the bread, {b} handed the plate to",
    "While {x} and {y} were waiting at the door, {b} showed the picture to",
    "Because {x} and {y} had found a key in the garden, {b} offered it to",
    "Before {x} and {y} went to bed, {b} read a story to",
    "As {x} and {y} sat in the little boat, {b} threw a rope to",
)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text and two ways to go on, each a single token, written with the space before it."""

    text: str
    right: str
    wrong: str


def repeated_tokens(model: Model, *, segment: int = SEGMENT, seed: int = 0) -> list[int]:
    """`2 segment` ids: random words of the model's vocabulary, drawn evenly, and the same again.

    Special tokens are left out. Raises ShapeError where the model cannot read so many.
    """
    limit = model.config.n_positions // 2
    if not 2 <= segment <= limit:
        raise ShapeError(f"segment = {segment}; here it is from 2 to {limit} tokens.")
    return list(repeated.repeated_tokens(model, segment, 2, seed).ids)


def induction_loss(
    model: Model,
    *,
    gate: Tensor | Array | None = None,
    replacement: Replacement = ZERO,
    segment: int = SEGMENT,
    seeds: Iterable[int] = SEEDS,
) -> float:
    """The mean loss on the second copy of `repeated_tokens`, in nats a token.

    The first token of the second copy is left out: nothing tells that a copy begins. A model that
    only guesses has about ln V. Raises ShapeError as `repeated_tokens` and `Pass.of` do.
    """
    found = [
        Pass.of(
            model,
            repeated_tokens(model, segment=segment, seed=seed),
            gate=gate,
            replacement=replacement,
        ).losses()[segment:]
        for seed in seeds
    ]
    return float(np.mean(found, dtype=np.float64))


def induction_effects(
    model: Model,
    *,
    method: Method | Replacement = "zero",
    segment: int = SEGMENT,
    seeds: Iterable[int] = SEEDS,
) -> Scores:
    """`[L, H]`: how much `induction_loss` rises without that head alone, in nats a token."""
    found = [
        ablate_each_head(
            model,
            repeated_tokens(model, segment=segment, seed=seed),
            method=method,
            first=segment + 1,
        )
        for seed in seeds
    ]
    mean: Scores = np.mean(found, axis=0)
    return mean


@torch.inference_mode()
def logit_differences(
    model: Model,
    prompts: Sequence[Prompt],
    *,
    gate: Tensor | Array | None = None,
    replacement: Replacement = ZERO,
) -> NDArray[np.float64]:
    """`[n]`: logit(right) - logit(wrong) after each prompt; e to it is how many times likelier.

    Raises TextError for an answer that is not a single token, and as `token_ids` does.
    """
    found = []
    for prompt in prompts:
        right, wrong = single_token(model, prompt.right), single_token(model, prompt.wrong)
        one = Pass.of(model, prompt.text, gate=gate, replacement=replacement)
        logits = model.network.W_U(model.network.ln_f(one.resid[-1][0, -1])).float()
        found.append(float(logits[right] - logits[wrong]))
    return np.array(found)


def single_token(model: Model, answer: str) -> int:
    """The id of an answer. Raises TextError where the tokenizer needs several tokens for it."""
    ids, _ = model.encode(answer)
    if len(ids) != 1:
        parts = " + ".join(token.label for token in model.read(ids))
        raise TextError(
            f"The answer `{answer}` is {len(ids)} tokens to {model.description.name} ({parts}); "
            "choose a word that is a single one, with the space that stands before it."
        )
    return ids[0]


def single_token_names(model: Model) -> list[str]:
    """Those of `NAMES` that are one token each after a space."""
    return [name for name in NAMES if len(model.encode(f" {name}")[0]) == 1]


def ioi_prompts(model: Model, n: int = 12, *, seed: int = 0) -> list[Prompt]:
    """Prompts such as "When Mary and Tom came home …, Tom gave the letter to", right " Mary".

    They take turns with the templates and with who is named first; the names are drawn by `seed`.
    Raises TextError where the tokenizer has no two names of one token.
    """
    names, rng = single_token_names(model), random.Random(seed)
    if len(names) < 2:
        raise TextError(
            f"{model.description.name} has no two of the names here as single tokens, so this "
            "test cannot be asked. Write prompts of your own, with answers that are one token."
        )
    found = []
    for i in range(n):
        a, b = rng.sample(names, 2)
        x, y = (a, b) if i // len(TEMPLATES) % 2 == 0 else (b, a)
        text = TEMPLATES[i % len(TEMPLATES)].format(x=x, y=y, b=b)
        found.append(Prompt(text, right=f" {a}", wrong=f" {b}"))
    return found

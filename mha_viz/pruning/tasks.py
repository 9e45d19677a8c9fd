"""Small probes of what heads do: completing a repeated sequence, identifying an indirect object.

Induction: random tokens, written twice. A model that continues as in the first copy predicts the
second (Olsson et al. 2022). Logit difference: the right answer's logit minus the wrong one's. With
`ioi_prompts` the answer is the indirect object of a sentence with two names (Wang et al. 2023).
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

SEGMENT = 64  # random tokens in one copy
SEEDS = range(5)
NAMES = (
    "Mary", "John", "Tom", "James", "Anne", "Peter", "Alice", "Jack", "Paul", "Henry", "Jane",
    "Robert", "Martha", "David", "Sarah", "Michael", "Laura", "Kevin", "Emily", "Daniel",
)  # fmt: skip
TEMPLATES = (  # {x} and {y} are two people; {b} is one of them, and the answer is the other
    "When {x} and {y} came home in the evening, {b} gave the letter to",
    "After {x} and {y} had finished the bread, {b} handed the plate to",
    "While {x} and {y} were waiting at the door, {b} showed the picture to",
    "Because {x} and {y} had found a key in the garden, {b} offered it to",
    "Before {x} and {y} went to bed, {b} read a story to",
    "As {x} and {y} sat in the little boat, {b} threw a rope to",
)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text and two possible next tokens, each written with the space before it."""

    text: str
    right: str
    wrong: str


def repeated_tokens(model: Model, *, segment: int = SEGMENT, seed: int = 0) -> list[int]:
    """`segment` random ids of the vocabulary, uniformly drawn, written twice.

    None of them is a special token. Raises ShapeError for a segment below 2, or one that
    does not fit into n_positions twice.
    """
    limit = model.config.n_positions // 2
    if not 2 <= segment <= limit:
        raise ShapeError(f"segment = {segment}; this model allows from 2 to {limit} tokens.")
    return list(repeated.repeated_tokens(model, segment, 2, seed).ids)


def induction_loss(
    model: Model,
    *,
    gate: Tensor | Array | None = None,
    replacement: Replacement = ZERO,
    segment: int = SEGMENT,
    seeds: Iterable[int] = SEEDS,
) -> float:
    """The mean loss on the second copy of `repeated_tokens`, in nats per token.

    The first token of the second copy does not count, because nothing predicts where the copy
    begins. Uniform guessing gives ln V. Raises ShapeError as `repeated_tokens` and `Pass.of` do.
    """
    losses = [
        Pass.of(
            model,
            repeated_tokens(model, segment=segment, seed=seed),
            gate=gate,
            replacement=replacement,
        ).losses()[segment:]
        for seed in seeds
    ]
    return float(np.mean(losses, dtype=np.float64))


def induction_effects(
    model: Model,
    *,
    method: Method | Replacement = "zero",
    segment: int = SEGMENT,
    seeds: Iterable[int] = SEEDS,
) -> Scores:
    """`[L, H]`: how much `induction_loss` rises with that head alone ablated, in nats per token."""
    effects = [
        ablate_each_head(
            model,
            repeated_tokens(model, segment=segment, seed=seed),
            method=method,
            first=segment + 1,
        )
        for seed in seeds
    ]
    mean: Scores = np.mean(effects, axis=0)
    return mean


@torch.inference_mode()
def logit_differences(
    model: Model,
    prompts: Sequence[Prompt],
    *,
    gate: Tensor | Array | None = None,
    replacement: Replacement = ZERO,
) -> NDArray[np.float64]:
    """`[n]`: logit(right) - logit(wrong) after each prompt.

    Its exponential is the ratio of the two probabilities. Raises TextError for an
    answer that is not a single token, and as `token_ids` does.
    """
    differences = []
    for prompt in prompts:
        right, wrong = model.single_token(prompt.right), model.single_token(prompt.wrong)
        last = Pass.of(model, prompt.text, gate=gate, replacement=replacement).resid[-1][0, -1]
        logits = model.network.unembed(last).float()
        differences.append(float(logits[right] - logits[wrong]))
    return np.array(differences)


def single_token_names(model: Model) -> list[str]:
    """Those of `NAMES` that are a single token after a space."""
    return [name for name in NAMES if len(model.encode(f" {name}")[0]) == 1]


def ioi_prompts(model: Model, n: int = 12, *, seed: int = 0) -> list[Prompt]:
    """Prompts such as "When Mary and Tom came home …, Tom gave the letter to", right " Mary".

    Templates alternate, and so does the order of the names; `seed` determines the names. Raises
    TextError if fewer than two names are single tokens.
    """
    names, rng = single_token_names(model), random.Random(seed)
    if len(names) < 2:
        raise TextError(
            f"{model.description.name} has fewer than two of the names as single tokens, so this "
            "task does not apply. Write prompts of your own, with answers that are one token."
        )
    prompts = []
    for i in range(n):
        a, b = rng.sample(names, 2)
        x, y = (a, b) if i // len(TEMPLATES) % 2 == 0 else (b, a)
        text = TEMPLATES[i % len(TEMPLATES)].format(x=x, y=y, b=b)
        prompts.append(Prompt(text, right=f" {a}", wrong=f" {b}"))
    return prompts

"""Text generation: one token at a time, each from the logits at the last position.

With a key/value cache a step computes the newest token alone and reads the keys and values of the
others; without it, each step computes all positions again. Both choose the same tokens, unless
rounding decides between almost equal logits.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mha_viz.errors import ShapeError
from mha_viz.network import Network


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is chosen; a temperature of 0 takes the most likely one (greedy).

    Logits are divided by `temperature`. Then the `top_k` most likely tokens are kept (0 keeps all),
    and of these the fewest that hold at least `top_p` of the probability (Holtzman et al. 2020);
    1 keeps all. Tokens as likely as the last of the `top_k` are kept too.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.temperature < 0 or self.top_k < 0 or not 0 < self.top_p <= 1:
            raise ShapeError(
                f"temperature = {self.temperature}, top_k = {self.top_k}, top_p = {self.top_p}; "
                "expected a temperature and a top_k of at least 0, and a top_p in (0, 1]."
            )


GREEDY = Sampling()
SMALLEST = torch.finfo(torch.float64).tiny


def filtered(logits: Tensor, sampling: Sampling) -> Tensor:
    """Logits `[V]` divided by the temperature, in float64; -inf where top-k or top-p removes them.

    The temperature must be above 0. In float32 the cumulative sum of all probabilities rounds to 1
    too early, and even a top-p of 1 would remove tokens.
    """
    scores = logits.double() / sampling.temperature
    if sampling.top_k:
        least = scores.topk(min(sampling.top_k, len(scores))).values[-1]
        scores = scores.masked_fill(scores < least, -torch.inf)
    if sampling.top_p < 1:
        ascending, order = scores.sort()
        removed = ascending.softmax(-1).cumsum(-1) <= 1 - sampling.top_p
        removed[-1] = False
        scores[order[removed]] = -torch.inf
    return scores


def probabilities(logits: Tensor, sampling: Sampling) -> Tensor:
    """The distribution that a token is drawn from, float64 `[V]`, for logits `[V]`.

    It is 0 only for removed tokens; all others get at least the smallest positive number.
    """
    if sampling.temperature == 0:
        return torch.nn.functional.one_hot(logits.argmax(), len(logits)).double()
    scores = filtered(logits, sampling)
    return scores.softmax(-1).clamp(min=SMALLEST).masked_fill(scores.isneginf(), 0.0)


def chooser(sampling: Sampling) -> Callable[[Tensor], int]:
    """A function from logits `[V]` to a token id; all its draws use one random generator."""
    generator = torch.Generator().manual_seed(sampling.seed)

    def choose(logits: Tensor) -> int:
        if sampling.temperature == 0:
            return int(logits.argmax())
        weights = probabilities(logits.cpu(), sampling).float()  # float64 would draw other tokens
        return int(torch.multinomial(weights, 1, generator=generator))

    return choose


@torch.inference_mode()
def generate(
    network: Network,
    ids: Sequence[int],
    n_new: int,
    *,
    sampling: Sampling = GREEDY,
    cached: bool = True,
) -> Iterator[int]:
    """The next `n_new` token ids after `ids`, one by one; fewer if n_positions is reached.

    Raises ShapeError if `ids` is empty or longer than n_positions.
    """
    limit = network.config.n_positions
    so_far = list(ids)
    network.check_ids(torch.tensor([so_far]), 0)
    choose = chooser(sampling)
    cache = network.empty_cache(min(limit, len(so_far) + n_new)) if cached else None
    new = so_far
    for _ in range(min(n_new, limit - len(so_far))):
        logits = network(torch.tensor([new], device=network.device), cache=cache)[0, -1]
        token = choose(logits)
        so_far.append(token)
        new = [token] if cached else so_far
        yield token

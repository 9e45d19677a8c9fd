"""Trains a model further after its heads were made to share keys and values.

The mean of a group's keys and values is only a start: Ainslie et al. 2023, section 2.1, train for
5% of the original steps afterwards. Here a run is a few hundred short steps, so that it can be
watched. Losses are in nats per token.
"""

import copy
import csv
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from mha_viz.lessons.grouped_query import grouped_gpt2
from mha_viz.network import Network

BATCH, LENGTH = 2, 256  # windows per step, tokens per window
STEPS = 300
MEASURED_AT = (0, 5, 10, 20, 40, 70, 100, 150, 200, 250, 300)
LEARNING_RATE, WARM_UP = 2.5e-4, 20  # the peak, and the steps until it


@dataclass(frozen=True, slots=True)
class Recovery:
    """The held-out losses of one model after each step of MEASURED_AT."""

    n_kv_heads: int
    losses: tuple[float, ...]

    @property
    def converted(self) -> float:
        """The loss right after the conversion."""
        return self.losses[0]

    @property
    def trained_on(self) -> float:
        """The loss after the last step."""
        return self.losses[-1]

    def won_back(self, as_trained: float) -> float:
        """The share of the conversion's cost in loss that further training wins back."""
        return (self.converted - self.trained_on) / (self.converted - as_trained)


class TrainingOn:
    """A run that can be stopped after any step and continued from `state`.

    It trains a copy of `network` with G = `n_kv_heads`; the network itself does not change. The
    windows come from `ids` `[n]`, chosen by the seed. Raises ShapeError if G does not divide H.
    """

    def __init__(self, network: Network, n_kv_heads: int, ids: Tensor, *, seed: int = 0) -> None:
        own = network.config.n_kv_heads or network.config.n_heads
        shared = network if n_kv_heads == own else grouped_gpt2(network, n_kv_heads)
        self.network = copy.deepcopy(shared).requires_grad_(True)
        self.step = 0
        self._ids = ids
        self._length = min(LENGTH, network.config.n_positions, len(ids) - 1)
        self._rng = torch.Generator().manual_seed(seed)
        self._adamw = torch.optim.AdamW(
            self.network.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.95), weight_decay=0.0
        )

    @torch.enable_grad()
    def advance(self) -> float:
        """One step of AdamW on a batch of windows; returns the loss on that batch before it."""
        starts = torch.randint(len(self._ids) - self._length, (BATCH,), generator=self._rng)
        windows = torch.stack([self._ids[s : s + self._length + 1] for s in starts.tolist()])
        loss = F.cross_entropy(self.network(windows[:, :-1]).mT, windows[:, 1:])
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        for group in self._adamw.param_groups:
            group["lr"] = LEARNING_RATE * _schedule(self.step)
        self._adamw.step()
        self._adamw.zero_grad(set_to_none=True)
        self.step += 1
        return float(loss.detach())

    def state(self) -> dict[str, Any]:
        """All that a later run needs to continue, for `torch.save`."""
        return {
            "step": self.step,
            "network": self.network.state_dict(),
            "adamw": self._adamw.state_dict(),
            "rng": self._rng.get_state(),
        }

    def resume(self, state: dict[str, Any]) -> None:
        """Continues from a `state`."""
        self.step = state["step"]
        self.network.load_state_dict(state["network"])
        self._adamw.load_state_dict(state["adamw"])
        self._rng.set_state(state["rng"])


def story_ids(encode: Callable[[str], tuple[list[int], int]], stories: str) -> Tensor:
    """The token ids `[n]` of a text that may be longer than `encode` allows, line by line."""
    lines = stories.splitlines(keepends=True)
    return torch.tensor([token for line in lines for token in encode(line)[0]])


@torch.inference_mode()
def held_out_loss(network: Network, chunks: Sequence[Sequence[int]]) -> float:
    """The mean over all tokens that have one before them, each chunk read separately."""
    total, n_tokens = 0.0, 0
    for chunk in chunks:
        ids = torch.tensor([chunk])
        logits = network(ids[:, :-1])
        total += float(F.cross_entropy(logits[0], ids[0, 1:], reduction="sum"))
        n_tokens += len(chunk) - 1
    return total / n_tokens


def read_recoveries(path: Path) -> list[Recovery]:
    """The runs in a file of `write_recoveries`, in its order."""
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    groups = dict.fromkeys(int(row["G"]) for row in rows)
    return [
        Recovery(G, tuple(float(row["loss"]) for row in rows if int(row["G"]) == G)) for G in groups
    ]


def write_recoveries(path: Path, recoveries: Sequence[Recovery], *, comment: str) -> None:
    """Writes a comment, then one row for each run and step: G, step, loss."""
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(f"# {comment}\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["G", "step", "loss"])
        for run in recoveries:
            steps = zip(MEASURED_AT, run.losses, strict=False)
            writer.writerows([run.n_kv_heads, step, f"{loss:.4f}"] for step, loss in steps)


def measured(run: TrainingOn, n_steps: int) -> Iterator[int]:
    """Advances a run to `n_steps`; yields each step of MEASURED_AT that it reaches."""
    while True:
        if run.step in MEASURED_AT:
            yield run.step
        if run.step >= n_steps:
            return
        run.advance()


def _schedule(step: int) -> float:
    """The factor on the learning rate: a warm-up, then a cosine down to a tenth."""
    cosine = 0.55 + 0.45 * math.cos(math.pi * min(step / STEPS, 1.0))
    return min(1.0, (step + 1) / WARM_UP) * cosine

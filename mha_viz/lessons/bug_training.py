"""The character model trained with a bug from the start, and the stored losses of such runs.

A model that reads ahead is measured twice. Read whole, a window is one input, as in training: every
position may use what stands after it. As it writes, a position is predicted from an input that ends
there, one character at a time.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn import functional as F

from mha_viz.assets import ASSETS
from mha_viz.errors import SourceError
from mha_viz.lessons.bugs import BUGS, attention_with_bug
from mha_viz.lessons.char_model import (
    CharModel,
    Corpus,
    Settings,
    batches,
    one_thread,
    train_step,
    validation_loss,
    validation_windows,
)

STORED = ASSETS / "bugs.csv"
HEADER = ("bug", "step", "whole", "writing")
CORRECT = "correct"  # the name of the model without a bug in the file
SETTINGS = Settings(n_heads=4, projection=True)


@dataclass(frozen=True, slots=True)
class Losses:
    """Held-out losses of one model in nats per character, after each of some steps."""

    steps: tuple[int, ...]
    whole: tuple[float, ...]  # windows read whole
    writing: tuple[float, ...]  # one character at a time

    @property
    def last(self) -> "Trained":
        """The losses after the last step."""
        return Trained(self.whole[-1], self.writing[-1])


@dataclass(frozen=True, slots=True)
class Trained:
    """The held-out losses after the last step."""

    whole: float
    writing: float


class CharModelWithBug(CharModel):
    """A CharModel with one bug in its attention; with None, it computes what CharModel does."""

    def __init__(self, settings: Settings, vocab_size: int, bug: str | None) -> None:
        super().__init__(settings, vocab_size)
        self.bug = bug

    def forward(self, ids: Tensor) -> Tensor:
        """Logits `[B, T, V]` of ids `[B, T]`."""
        logits: Tensor = self.W_U(attention_with_bug(self.attn, self._embed(ids), self.bug).out)
        return logits


def train_with_bug(
    bug: str | None, corpus: Corpus, settings: Settings = SETTINGS
) -> Iterator[tuple[int, float, float]]:
    """Yields (step, held-out loss read whole, loss as it writes) after each of `report_steps`.

    The same initial weights and batches as `char_model.train` with these settings.
    """
    model = CharModelWithBug(settings, len(corpus.vocabulary), bug)
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=settings.learning_rate, fused=True)
    generator = torch.Generator().manual_seed(settings.seed)
    for start, stop in pairwise([0, *settings.report_steps]):
        with one_thread():
            for batch in batches(corpus.train, settings, stop - start, generator):
                train_step(model, optimizer, batch)
            whole = validation_loss(model, corpus.validation, settings.context)
            writing = writing_loss(model, corpus.validation, settings.context)
        yield stop, whole, writing


@torch.no_grad()
def writing_loss(model: CharModel, ids: Tensor, context: int) -> float:
    """The mean loss on the windows of `validation_loss`, one character at a time.

    The character after position t is predicted from a pass over positions 0 to t alone.
    """
    windows = validation_windows(ids, context)
    total = 0.0
    for length in range(1, context + 1):
        for batch in torch.split(windows, 256):
            logits = model(batch[:, :length])[:, -1]
            total += F.cross_entropy(logits, batch[:, length], reduction="sum").item()
    return total / (len(windows) * context)


@cache
def stored_losses() -> dict[str, Losses]:
    """The stored losses of every bug and of CORRECT. Raises SourceError if the file is missing."""
    try:
        with STORED.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except OSError as error:
        raise SourceError(
            f"{STORED.name} is missing from {STORED.parent.name}/. Restore it, or run "
            "python scripts/train_bugs.py."
        ) from error
    return {bug: _losses([row for row in rows if row["bug"] == bug]) for bug in (CORRECT, *BUGS)}


def _losses(rows: list[dict[str, str]]) -> Losses:
    whole, writing = (tuple(float(row[name]) for row in rows) for name in HEADER[2:])
    return Losses(tuple(int(row["step"]) for row in rows), whole, writing)

"""A model of characters with one attention layer: small enough to be trained while one looks on.

    logits = MultiHead(embedding[ids] + position) W_U + b      MultiHead: Vaswani et al. 2017, 3.2.2

There is no residual stream, no norm and no MLP, so all that a position knows of others comes
through its heads. Models that differ in the number of heads have the same number of parameters.
Losses are cross-entropies in nats a character; guessing evenly among V characters costs ln V.
"""

import ctypes
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from mha_viz.attention import MultiHeadAttention, head_width
from mha_viz.errors import ShapeError, TextError

HELD_OUT = 0.1  # the last part of a text, which no training step sees
MIN_CHARACTERS = 1_000
MAX_VOCABULARY = 4_096  # distinct characters; a step's time grows with them
VALIDATION_WINDOWS = 6_400  # the same ones whenever a text is looked at
REPORTS = 50  # of a training, where that is not too often or too seldom
STRIDES = (50, 250)  # the fewest and the most steps from one report to the next


@dataclass(frozen=True, slots=True)
class Settings:
    """What decides a training, but for the text. Raises ShapeError for what cannot be trained."""

    n_heads: int = 1
    width: int = 32
    context: int = 8
    batch: int = 32
    learning_rate: float = 1e-3
    steps: int = 5_000
    seed: int = 0
    projection: bool = False  # W_O is learnt; else the heads are only put side by side

    def __post_init__(self) -> None:
        head_width(self.width, self.n_heads)
        for name in ("context", "batch", "steps"):
            if getattr(self, name) < 1:
                raise ShapeError(f"{name} = {getattr(self, name)}; give a number of at least 1.")
        if not 0 < self.learning_rate < 1:
            raise ShapeError(
                f"learning_rate = {self.learning_rate}; give a number between 0 and 1, for "
                "example 0.001."
            )
        if not 0 <= self.seed < 2**63:
            raise ShapeError(f"seed = {self.seed}; give a whole number from 0 to 2^63 - 1.")

    @property
    def reports(self) -> list[int]:
        """The steps after which a training reports: 0, then evenly, then the last."""
        stride = min(max(self.steps // REPORTS, STRIDES[0]), STRIDES[1])
        return [*range(0, self.steps, stride), self.steps]


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """A text as ids: its characters in order of their code points, and its two parts."""

    vocabulary: str
    train: Tensor  # [n]
    validation: Tensor  # [n]
    sample: str  # a few held-out characters, for looking at patterns


@dataclass(frozen=True, slots=True, eq=False)
class Progress:
    """How far a training has come."""

    step: int
    train_loss: float  # the mean over the steps since the last report; NaN at step 0
    validation_loss: float
    pattern: NDArray[np.float32]  # [H, T, T] of the sample


class CharModel(nn.Module):
    """Predicts the next character from at most `context` ones; its weights follow the seed."""

    def __init__(self, settings: Settings, vocab_size: int) -> None:
        super().__init__()
        width = settings.width
        self.embedding = nn.Embedding(vocab_size, width)
        self.position = nn.Embedding(settings.context, width)
        self.attn = MultiHeadAttention(width, settings.n_heads, bias=False)
        self.W_U = nn.Linear(width, vocab_size)
        if not settings.projection:
            self.attn.W_O.requires_grad_(False)
        self._draw(torch.Generator().manual_seed(settings.seed))

    def forward(self, ids: Tensor) -> Tensor:
        """Logits `[B, T, V]` of ids `[B, T]`."""
        logits: Tensor = self.W_U(self.attn(self._embed(ids)))
        return logits

    @torch.no_grad()
    def pattern(self, ids: Tensor) -> NDArray[np.float32]:
        """The pattern of each head, `[H, T, T]`, for ids `[T]`."""
        found: NDArray[np.float32] = self.attn.explicit(self._embed(ids[None])).pattern[0].numpy()
        return found

    @property
    def n_parameters(self) -> int:
        """How many numbers are learnt."""
        return sum(p.numel() for p in self.parameters() if p.requires_grad)

    def _embed(self, ids: Tensor) -> Tensor:
        x: Tensor = self.embedding(ids) + self.position.weight[: ids.shape[1]]
        return x

    @torch.no_grad()
    def _draw(self, generator: torch.Generator) -> None:
        """PyTorch's usual start, but from a generator of its own: other threads draw too."""
        for part in self.modules():
            if isinstance(part, nn.Embedding):
                part.weight.normal_(generator=generator)
            elif isinstance(part, nn.Linear):
                bound = part.in_features**-0.5
                for parameter in part.parameters():
                    parameter.uniform_(-bound, bound, generator=generator)
        if not self.attn.W_O.weight.requires_grad:
            nn.init.eye_(self.attn.W_O.weight)


def vocabulary_of(text: str, context: int = 8) -> str:
    """The characters of a text, each once, in order of their code points.

    Raises TextError where the text is too short or has too many different ones.
    """
    least = max(MIN_CHARACTERS, math.ceil((context + 1) / HELD_OUT))
    if len(text) < least:
        raise TextError(
            f"The text has {len(text):,} characters; training needs at least {least:,}, of which "
            "the last tenth is held out. Give a longer text."
        )
    vocabulary = "".join(sorted(set(text)))
    if len(vocabulary) > MAX_VOCABULARY:
        raise TextError(
            f"The text has {len(vocabulary):,} different characters; at most {MAX_VOCABULARY:,} "
            "can be trained on. Give a text in a script of fewer characters."
        )
    return vocabulary


def read_corpus(text: str, context: int = 8) -> Corpus:
    """The text as a `Corpus`. Raises TextError as `vocabulary_of` does."""
    vocabulary = vocabulary_of(text, context)
    ids = encode(text, vocabulary)
    split = len(text) - int(len(text) * HELD_OUT)
    return Corpus(vocabulary, ids[:split], ids[split:], _sample(text[split:], context))


def encode(text: str, vocabulary: str) -> Tensor:
    """The place of each character in the (sorted) vocabulary, `[n]`. Raises TextError."""
    known, codes = _code_points(vocabulary), _code_points(text)
    ids = np.searchsorted(known, codes)
    wrong = known.take(ids, mode="clip") != codes
    if wrong.any():
        raise TextError(
            f"{text[int(wrong.argmax())]!r} is not among the {len(vocabulary)} characters of this "
            "vocabulary. Give a text of those alone."
        )
    return torch.from_numpy(ids)


def train(settings: Settings, text: str | Corpus) -> Iterator[Progress]:
    """Trains a model, and says at each of `settings.reports` how far it is.

    Nothing goes on between two reports unless the next one is asked for. The same settings and text
    give the same losses. Raises TextError as `read_corpus` does.
    """
    corpus = read_corpus(text, settings.context) if isinstance(text, str) else text
    model = CharModel(settings, len(corpus.vocabulary))
    learnt = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(learnt, lr=settings.learning_rate, fused=True)
    generator = torch.Generator().manual_seed(settings.seed)
    sample = encode(corpus.sample, corpus.vocabulary)
    for begin, end in pairwise([0, *settings.reports]):
        with one_thread():
            drawn = batches(corpus.train, settings, end - begin, generator)
            losses = [train_step(model, optimizer, batch) for batch in drawn]
            loss = validation_loss(model, corpus.validation, settings.context)
            pattern = model.pattern(sample)
        yield Progress(end, float(np.mean(losses)) if losses else float("nan"), loss, pattern)


def side_by_side(
    settings: Sequence[Settings], text: str | Corpus
) -> Iterator[tuple[int, Progress]]:
    """Trainings of as many steps, and of one context, in turns: which one reports, and what."""
    corpus = text if isinstance(text, Corpus) else read_corpus(text, settings[0].context)
    trainings = [train(s, corpus) for s in settings]
    for _ in settings[0].reports:
        for which, training in enumerate(trainings):
            yield which, next(training)


def batches(ids: Tensor, settings: Settings, n: int, generator: torch.Generator) -> Tensor:
    """`n` batches of windows at random places, `[n, B, T + 1]`: a context, one step further on."""
    windows = ids.unfold(0, settings.context + 1, 1)
    return windows[torch.randint(len(windows), (n, settings.batch), generator=generator)]


def train_step(model: CharModel, optimizer: torch.optim.Optimizer, batch: Tensor) -> float:
    """One step on windows `[B, T + 1]`; returns their loss before it."""
    loss = _loss(model, batch)
    torch.autograd.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


@torch.no_grad()
def validation_loss(model: CharModel, ids: Tensor, context: int) -> float:
    """The mean loss on VALIDATION_WINDOWS windows of the ids, the same at every call."""
    windows = ids.unfold(0, context + 1, 1)
    if len(windows) > VALIDATION_WINDOWS:
        generator = torch.Generator().manual_seed(0)
        windows = windows[torch.randint(len(windows), (VALIDATION_WINDOWS,), generator=generator)]
    # In parts, so that logits of thousands of characters take no gigabyte.
    parts = [_loss(model, part).item() * len(part) for part in torch.split(windows, 256)]
    return sum(parts) / len(windows)


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch uses one thread for what the calling thread computes inside; others are left alone.

    An operation of a few microseconds takes longer on several threads, since each waits for the
    other; on a busy machine a hundred times longer. `torch.set_num_threads` would slow down
    everybody's matrix products, whereas OpenMP keeps the number for each thread. Where torch has
    another way to share work, nothing is changed.
    """
    openmp = _openmp()
    before = torch.get_num_threads()
    if openmp is None or before == 1:
        yield
        return
    openmp.omp_set_num_threads(1)
    try:
        yield
    finally:
        openmp.omp_set_num_threads(before)


@cache
def _openmp() -> ctypes.CDLL | None:
    """The OpenMP library that came with torch, which is loaded already."""
    folder = Path(torch.__file__).parent / "lib"
    names = ("libgomp*.so*", "libiomp5*.so*", "libomp.dylib", "libiomp5md.dll")
    found = next((path for name in names for path in sorted(folder.glob(name))), None)
    return ctypes.CDLL(str(found)) if found else None


def _loss(model: CharModel, windows: Tensor) -> Tensor:
    logits = model(windows[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())


def _sample(text: str, context: int) -> str:
    """The first characters that start a word and stay in its line, or else the very first."""
    found = re.search(rf"(?<=\s)\w.{{{context - 1}}}", text)
    return found.group() if found else text[:context]


def _code_points(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)

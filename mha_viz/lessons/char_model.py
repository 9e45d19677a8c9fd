"""A character-level model with one attention layer, small enough to train in seconds.

    logits = MultiHead(embedding[ids] + position) W_U + b      MultiHead: Vaswani et al. 2017, 3.2.2

It has no residual stream, no norm and no MLP, so a position learns about other positions only
through its heads. The number of heads does not change the number of parameters. Losses are
cross-entropies in nats per character; uniform guessing among V characters costs ln V.
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

VALIDATION_SHARE = 0.1  # the last part of a text, held out from training
MIN_CHARACTERS = 1_000
MAX_VOCABULARY = 4_096  # distinct characters; the time of a step grows with them
VALIDATION_WINDOWS = 6_400  # the same ones at every call
TARGET_REPORTS = 50  # per training, within the bounds of REPORT_EVERY
REPORT_EVERY = (50, 250)  # the fewest and the most steps between two reports


@dataclass(frozen=True, slots=True)
class Settings:
    """All that determines a training run besides the text. Raises ShapeError if invalid."""

    n_heads: int = 1
    width: int = 32
    context: int = 8
    batch: int = 32
    learning_rate: float = 1e-3
    steps: int = 5_000
    seed: int = 0
    projection: bool = False  # whether W_O is learnt; if not, the heads are only concatenated

    def __post_init__(self) -> None:
        head_width(self.width, self.n_heads)
        for name in ("context", "batch", "steps"):
            if getattr(self, name) < 1:
                raise ShapeError(f"{name} = {getattr(self, name)}; it must be at least 1.")
        if not 0 < self.learning_rate < 1:
            raise ShapeError(
                f"learning_rate = {self.learning_rate}; it must be between 0 and 1, for example "
                "0.001."
            )
        if not 0 <= self.seed < 2**63:
            raise ShapeError(f"seed = {self.seed}; it must be from 0 to 2^63 - 1.")

    @property
    def report_steps(self) -> list[int]:
        """The steps after which a run reports: 0, then at equal intervals, then the last."""
        fewest, most = REPORT_EVERY
        stride = min(max(self.steps // TARGET_REPORTS, fewest), most)
        return [*range(0, self.steps, stride), self.steps]


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """A text as character ids, split for training and validation."""

    vocabulary: str  # the distinct characters, sorted by code point
    train: Tensor  # [n]
    validation: Tensor  # [n]
    sample: str  # `context` held-out characters, on which patterns are drawn


@dataclass(frozen=True, slots=True, eq=False)
class Progress:
    """A report of a training run: its losses and patterns after a step."""

    step: int
    train_loss: float  # the mean over the steps since the last report; NaN at step 0
    validation_loss: float
    pattern: NDArray[np.float32]  # [H, T, T] of the sample


class CharModel(nn.Module):
    """Predicts the next character from up to `context` characters; seeded initial weights."""

    def __init__(self, settings: Settings, vocab_size: int) -> None:
        super().__init__()
        width = settings.width
        self.embedding = nn.Embedding(vocab_size, width)
        self.position = nn.Embedding(settings.context, width)
        self.attn = MultiHeadAttention(width, settings.n_heads, bias=False)
        self.W_U = nn.Linear(width, vocab_size)
        if not settings.projection:
            self.attn.W_O.requires_grad_(False)
        self._initialise(torch.Generator().manual_seed(settings.seed))

    def forward(self, ids: Tensor) -> Tensor:
        """Logits `[B, T, V]` of ids `[B, T]`."""
        logits: Tensor = self.W_U(self.attn(self._embed(ids)))
        return logits

    @torch.no_grad()
    def pattern(self, ids: Tensor) -> NDArray[np.float32]:
        """The pattern of each head, `[H, T, T]`, for ids `[T]`."""
        record = self.attn.explicit(self._embed(ids[None]))
        pattern: NDArray[np.float32] = record.pattern[0].numpy()
        return pattern

    @property
    def n_parameters(self) -> int:
        """The number of trainable parameters."""
        return sum(p.numel() for p in self.parameters() if p.requires_grad)

    def _embed(self, ids: Tensor) -> Tensor:
        x: Tensor = self.embedding(ids) + self.position.weight[: ids.shape[1]]
        return x

    @torch.no_grad()
    def _initialise(self, generator: torch.Generator) -> None:
        """PyTorch's default initialisation, but not from the generator that all threads share."""
        for module in self.modules():
            if isinstance(module, nn.Embedding):
                module.weight.normal_(generator=generator)
            elif isinstance(module, nn.Linear):
                bound = module.in_features**-0.5
                for parameter in module.parameters():
                    parameter.uniform_(-bound, bound, generator=generator)
        if not self.attn.W_O.weight.requires_grad:
            nn.init.eye_(self.attn.W_O.weight)


def vocabulary_of(text: str, context: int = 8) -> str:
    """The distinct characters of a text, sorted by code point.

    Raises TextError if the text is too short or has too many different characters.
    """
    fewest = max(MIN_CHARACTERS, math.ceil((context + 1) / VALIDATION_SHARE))
    if len(text) < fewest:
        raise TextError(
            f"The text has {len(text):,} characters; training needs at least {fewest:,}, of which "
            "the last tenth is held out. Use a longer text."
        )
    vocabulary = "".join(sorted(set(text)))
    if len(vocabulary) > MAX_VOCABULARY:
        raise TextError(
            f"The text has {len(vocabulary):,} different characters; training allows at most "
            f"{MAX_VOCABULARY:,}. Use a text in a script with fewer characters."
        )
    return vocabulary


def read_corpus(text: str, context: int = 8) -> Corpus:
    """The text as a `Corpus`. Raises TextError as `vocabulary_of` does."""
    vocabulary = vocabulary_of(text, context)
    ids = encode(text, vocabulary)
    split = len(text) - int(len(text) * VALIDATION_SHARE)
    return Corpus(vocabulary, ids[:split], ids[split:], _sample(text[split:], context))


def encode(text: str, vocabulary: str) -> Tensor:
    """The index of each character in the sorted vocabulary, `[n]`.

    Raises TextError for a character that is not in it.
    """
    known, codes = _code_points(vocabulary), _code_points(text)
    ids = np.searchsorted(known, codes)
    unknown = known.take(ids, mode="clip") != codes
    if unknown.any():
        raise TextError(
            f"{text[int(unknown.argmax())]!r} is not among the {len(vocabulary)} characters of "
            "this vocabulary. Use a text of these characters only."
        )
    return torch.from_numpy(ids)


def train(settings: Settings, text: str | Corpus) -> Iterator[Progress]:
    """Trains a model and yields a report after each of `settings.report_steps`.

    The steps up to a report run only when that report is requested. The same settings and text
    give the same losses. Raises TextError as `read_corpus` does.
    """
    corpus = read_corpus(text, settings.context) if isinstance(text, str) else text
    model = CharModel(settings, len(corpus.vocabulary))
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=settings.learning_rate, fused=True)
    generator = torch.Generator().manual_seed(settings.seed)
    sample = encode(corpus.sample, corpus.vocabulary)
    for start, stop in pairwise([0, *settings.report_steps]):
        with one_thread():
            windows = batches(corpus.train, settings, stop - start, generator)
            losses = [train_step(model, optimizer, batch) for batch in windows]
            loss = validation_loss(model, corpus.validation, settings.context)
            pattern = model.pattern(sample)
        yield Progress(stop, float(np.mean(losses)) if losses else float("nan"), loss, pattern)


def side_by_side(
    settings: Sequence[Settings], text: str | Corpus
) -> Iterator[tuple[int, Progress]]:
    """Interleaves several training runs and yields (index, Progress).

    All settings need the same number of steps and the same context.
    """
    corpus = text if isinstance(text, Corpus) else read_corpus(text, settings[0].context)
    trainings = [train(s, corpus) for s in settings]
    for _ in settings[0].report_steps:
        for index, training in enumerate(trainings):
            yield index, next(training)


def batches(ids: Tensor, settings: Settings, n: int, generator: torch.Generator) -> Tensor:
    """`n` batches of windows at random positions, `[n, B, T + 1]`: a context and the next id."""
    windows = ids.unfold(0, settings.context + 1, 1)
    return windows[torch.randint(len(windows), (n, settings.batch), generator=generator)]


def train_step(model: CharModel, optimizer: torch.optim.Optimizer, batch: Tensor) -> float:
    """Takes one step on windows `[B, T + 1]`; returns their loss before the step."""
    loss = _loss(model, batch)
    torch.autograd.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


@torch.no_grad()
def validation_loss(model: CharModel, ids: Tensor, context: int) -> float:
    """The mean loss on the windows of `validation_windows`."""
    windows = validation_windows(ids, context)
    # In batches: with thousands of characters, the logits of all windows would take gigabytes.
    sums = [_loss(model, batch).item() * len(batch) for batch in torch.split(windows, 256)]
    return sum(sums) / len(windows)


def validation_windows(ids: Tensor, context: int) -> Tensor:
    """At most VALIDATION_WINDOWS windows of the ids, `[n, T + 1]`, the same ones at every call."""
    windows = ids.unfold(0, context + 1, 1)
    if len(windows) <= VALIDATION_WINDOWS:
        return windows
    generator = torch.Generator().manual_seed(0)
    return windows[torch.randint(len(windows), (VALIDATION_WINDOWS,), generator=generator)]


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside the block, torch computes with one thread; other calling threads are not affected.

    Operations of a few microseconds are slower on several threads, because the threads wait for
    each other: up to a hundred times slower on a busy machine. `torch.set_num_threads` would slow
    down the matrix products of all users, whereas OpenMP has a setting per calling thread. If torch
    does not use OpenMP, nothing changes.
    """
    openmp = _openmp()
    n_threads = torch.get_num_threads()
    if openmp is None or n_threads == 1:
        yield
        return
    openmp.omp_set_num_threads(1)
    try:
        yield
    finally:
        openmp.omp_set_num_threads(n_threads)


@cache
def _openmp() -> ctypes.CDLL | None:
    """The OpenMP library that came with torch and is already loaded."""
    folder = Path(torch.__file__).parent / "lib"
    patterns = ("libgomp*.so*", "libiomp5*.so*", "libomp.dylib", "libiomp5md.dll")
    library = next((path for pattern in patterns for path in sorted(folder.glob(pattern))), None)
    return ctypes.CDLL(str(library)) if library else None


def _loss(model: CharModel, windows: Tensor) -> Tensor:
    logits = model(windows[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())


def _sample(text: str, context: int) -> str:
    """The first `context` characters that start with a word and contain no line break.

    If there are none, the first characters of the text.
    """
    match = re.search(rf"(?<=\s)\w.{{{context - 1}}}", text)
    return match.group() if match else text[:context]


def _code_points(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)

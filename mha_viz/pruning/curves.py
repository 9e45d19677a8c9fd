"""Pruning curves: the loss against the number of heads removed, on held-out text."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mha_viz.errors import HeadNotFound, ShapeError
from mha_viz.head import Head
from mha_viz.heads.interval import RESAMPLES
from mha_viz.model import Model
from mha_viz.pruning.ablation import Scores
from mha_viz.pruning.inputs import Text, one_or_many, token_ids
from mha_viz.pruning.passes import Pass, Replacement
from mha_viz.pruning.replacements import Method, replacement_for
from mha_viz.pruning.tasks import SEGMENT, repeated_tokens


@dataclass(frozen=True, slots=True)
class Point:
    """The model without `n_removed` heads, of which `removed` are new since the previous point."""

    n_removed: int
    removed: tuple[Head, ...]
    loss: float  # mean over all tokens that have a loss, in nats per token
    agreement: float  # share of positions whose most likely next token is the full model's
    repetition_loss: float = math.nan  # on repeated random tokens; NaN if not measured
    loss_by_text: tuple[float, ...] = ()  # the sum of the losses of each text, in nats
    n_by_text: tuple[int, ...] = ()  # how many tokens of each text have a loss


@dataclass(frozen=True, slots=True)
class Band:
    """Several curves at one number of heads removed: the lowest loss, the mean, the highest."""

    n_removed: int
    low: float
    mean: float
    high: float


def curve(
    model: Model,
    texts: Text | Iterable[Text],
    order: Iterable[Head],
    *,
    method: Method | Replacement = "zero",
    every: int = 1,
    repetition_seeds: Iterable[int] = (),
) -> Iterator[Point]:
    """A point for the full model, and one after every `every` heads of the order.

    At the last point all heads of the order are removed. With `repetition_seeds`, each point also
    has the loss on random tokens written twice, as `tasks.induction_loss` measures it: an ability
    can be lost long before the mean loss on a text shows it. The texts should be held out: not
    those that the order was computed from. The order is read step by step, so it may be computed
    as it is read. Removed heads are ablated by `method`.

    Raises HeadNotFound for a head that is unknown or listed twice, TextError as
    `token_ids` does, ShapeError for `every` below 1 and for a short replacement.
    """
    if every < 1:
        raise ShapeError(f"every = {every}; expected at least 1 head between two points.")
    given = one_or_many(texts)
    segment = min(SEGMENT, model.config.n_positions // 2)
    repeated = [repeated_tokens(model, segment=segment, seed=seed) for seed in repetition_seeds]
    replacement = replacement_for(
        model, method, max(token_ids(model, text).shape[1] for text in (*given, *repeated))
    )
    passes = [Pass.of(model, text, replacement=replacement) for text in (*given, *repeated)]
    full = [one.best_tokens() for one in passes[: len(given)]]
    removed: list[Head] = []
    yield _point(passes, full, removed, 0)
    heads = iter(order)
    while new := list(islice(heads, every)):
        for head in new:
            model.config.check_head(*head)
            if head in removed:
                raise HeadNotFound(f"{Head(head[0], head[1]).label} is in the order twice.")
            removed.append(head)
        passes = [one.without(removed, replacement) for one in passes]
        yield _point(passes, full, removed, len(new))


def _point(passes: list[Pass], full: list[Tensor], removed: list[Head], n_new: int) -> Point:
    """The point of passes over the texts, `full` of them, and then over repeated tokens."""
    texts, repeated = passes[: len(full)], passes[len(full) :]
    losses = [one.losses().astype(np.float64) for one in texts]
    same = torch.cat([one.best_tokens() == best for one, best in zip(texts, full, strict=True)])
    second = [one.losses()[one.ids.shape[1] // 2 :] for one in repeated]
    return Point(
        n_removed=len(removed),
        removed=tuple(removed[len(removed) - n_new :]),
        loss=float(np.concatenate(losses).mean()),
        agreement=float(same.cpu().double().mean()),
        repetition_loss=float(np.mean(second, dtype=np.float64)) if second else math.nan,
        loss_by_text=tuple(float(of_text.sum()) for of_text in losses),
        n_by_text=tuple(map(len, losses)),
    )


def heads_within(points: Iterable[Point], tolerance: float = 0.01) -> int:
    """How many heads were removed before the loss first exceeded the full model's by this share.

    A tolerance of 0.01 is 1%. Raises ShapeError unless the first point is that of the full model.
    """
    points = _with_full_model(points)
    return int(_n_within(points, np.array([[one.loss for one in points]]), tolerance)[0])


def heads_within_interval(
    points: Iterable[Point], tolerance: float = 0.01
) -> tuple[int, int] | None:
    """A 95% interval of `heads_within` over texts like these; None for fewer than three texts.

    Percentiles over resampled texts, each of which keeps its tokens together (Efron and Tibshirani
    1993, section 13.3). Raises ShapeError as `heads_within` does.
    """
    points = _with_full_model(points)
    sums = np.array([one.loss_by_text for one in points])
    n_texts = sums.shape[1]
    if n_texts < 3:
        return None
    share = np.full(n_texts, 1 / n_texts)
    counts = np.random.default_rng(0).multinomial(n_texts, share, size=RESAMPLES)
    losses = (counts @ sums.T) / (counts @ np.array(points[0].n_by_text))[:, None]
    found = _n_within(points, losses, tolerance)
    low, high = np.quantile(found, [0.025, 0.975], method="nearest")
    return int(low), int(high)


def _with_full_model(points: Iterable[Point]) -> list[Point]:
    points = list(points)
    if not points or points[0].n_removed:
        raise ShapeError("The first point is missing: a curve starts with the full model.")
    return points


def _n_within(points: list[Point], losses: Scores, tolerance: float) -> NDArray[np.int64]:
    """`[n]`: heads removed before losses `[n, points]` exceed the first one by this fraction."""
    over = ~(losses <= losses[:, :1] * (1 + tolerance))
    first = np.where(over.any(axis=1), over.argmax(axis=1), len(points))
    n: NDArray[np.int64] = np.array([one.n_removed for one in points])[np.maximum(first, 1) - 1]
    return n


def band(curves: Sequence[Sequence[Point]]) -> list[Band]:
    """The range of several curves, such as random orders, as far as all of them reach.

    Raises ShapeError for no curve, or for curves with points at different numbers of heads.
    """
    if not curves:
        raise ShapeError("There is no curve. Give at least one.")
    bands = []
    for points in zip(*curves, strict=False):
        if len({point.n_removed for point in points}) > 1:
            raise ShapeError("The curves have points at different numbers of heads removed.")
        losses = [point.loss for point in points]
        bands.append(Band(points[0].n_removed, min(losses), float(np.mean(losses)), max(losses)))
    return bands

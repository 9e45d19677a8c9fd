"""Pruning curves: the loss against the number of heads removed, on held-out text."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from torch import Tensor

from mha_viz.errors import HeadNotFound, ShapeError
from mha_viz.head import Head
from mha_viz.model import Model
from mha_viz.pruning.inputs import Text, one_or_many, token_ids
from mha_viz.pruning.passes import Pass, Replacement
from mha_viz.pruning.replacements import Method, replacement_for


@dataclass(frozen=True, slots=True)
class Point:
    """The model without `n_removed` heads, of which `removed` are new since the previous point."""

    n_removed: int
    removed: tuple[Head, ...]
    loss: float  # mean over all tokens that have a loss, in nats per token
    agreement: float  # share of positions whose most likely next token is the full model's


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
) -> Iterator[Point]:
    """A point for the full model, and one after every `every` heads of the order.

    At the last point all heads of the order are removed. The texts should be held out: not those
    that the order was computed from. The order is read step by step, so it may be computed as it
    is read. Removed heads are ablated by `method`.

    Raises HeadNotFound for a head that is unknown or listed twice, TextError as
    `token_ids` does, ShapeError for `every` below 1 and for a short replacement.
    """
    if every < 1:
        raise ShapeError(f"every = {every}; expected at least 1 head between two points.")
    given = one_or_many(texts)
    replacement = replacement_for(
        model, method, max(token_ids(model, text).shape[1] for text in given)
    )
    passes = [Pass.of(model, text, replacement=replacement) for text in given]
    full = [one.best_tokens() for one in passes]
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
    losses = np.concatenate([one.losses() for one in passes])
    same = torch.cat([one.best_tokens() == best for one, best in zip(passes, full, strict=True)])
    return Point(
        n_removed=len(removed),
        removed=tuple(removed[len(removed) - n_new :]),
        loss=float(losses.mean(dtype=np.float64)),
        agreement=float(same.cpu().double().mean()),
    )


def heads_within(points: Iterable[Point], tolerance: float = 0.01) -> int:
    """How many heads were removed before the loss first exceeded the full model's by this share.

    A tolerance of 0.01 is 1%. Raises ShapeError unless the first point is that of the full model.
    """
    points = list(points)
    if not points or points[0].n_removed:
        raise ShapeError("The first point is missing: a curve starts with the full model.")
    limit = points[0].loss * (1 + tolerance)
    n = 0
    for point in points:
        if not point.loss <= limit:
            break
        n = point.n_removed
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

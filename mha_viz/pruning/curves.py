"""Pruning curves: the loss against the number of heads gone, on text that chose none of them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from torch import Tensor

from mha_viz.errors import HeadNotFound, ShapeError
from mha_viz.head import Head
from mha_viz.model import Model
from mha_viz.pruning.inputs import Text, check_head, one_or_many, token_ids
from mha_viz.pruning.passes import Pass, Replacement
from mha_viz.pruning.replacements import Method, replacement_for


@dataclass(frozen=True, slots=True)
class Point:
    """The model after `n_removed` heads, of which `removed` went since the point before."""

    n_removed: int
    removed: tuple[Head, ...]
    loss: float  # mean over all tokens that have a loss, in nats
    agreement: float  # share of positions where the likeliest next token is that of the whole model


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
    """A point for the whole model, and one whenever `every` more heads of the order are gone.

    The last point has the whole order removed. The texts should not be those that chose the order.
    An order may be computed as it is read: it is asked for a head when that head is to go.

    Raises HeadNotFound for a head that is not in the model or went before, TextError as
    `token_ids` does, ShapeError for `every` below 1 and for a replacement that is short.
    """
    if every < 1:
        raise ShapeError(f"every = {every}; a point is drawn after 1 head or more.")
    given = one_or_many(texts)
    replacement = replacement_for(
        model, method, max(token_ids(model, text).shape[1] for text in given)
    )
    passes = [Pass.of(model, text, replacement=replacement) for text in given]
    whole = [one.best_tokens() for one in passes]
    gone: list[Head] = []
    yield _point(passes, whole, gone, 0)
    heads = iter(order)
    while fresh := list(islice(heads, every)):
        for head in fresh:
            check_head(model.config, *head)
            if head in gone:
                raise HeadNotFound(f"{Head(head[0], head[1]).label} stands in the order twice.")
            gone.append(head)
        passes = [one.without(gone, replacement) for one in passes]
        yield _point(passes, whole, gone, len(fresh))


def _point(passes: list[Pass], whole: list[Tensor], gone: list[Head], n_fresh: int) -> Point:
    losses = np.concatenate([one.losses() for one in passes])
    same = torch.cat([one.best_tokens() == best for one, best in zip(passes, whole, strict=True)])
    return Point(
        n_removed=len(gone),
        removed=tuple(gone[len(gone) - n_fresh :]),
        loss=float(losses.mean(dtype=np.float64)),
        agreement=float(same.cpu().double().mean()),
    )


def heads_within(points: Iterable[Point], tolerance: float = 0.01) -> int:
    """How many heads went before the loss first exceeded the whole model's by this share.

    0.01 is 1 %. The first point must be that of the whole model. Raises ShapeError without points.
    """
    found = list(points)
    if not found or found[0].n_removed:
        raise ShapeError("A curve starts with the whole model: its first point is missing.")
    limit = found[0].loss * (1 + tolerance)
    n = 0
    for point in found:
        if not point.loss <= limit:
            break
        n = point.n_removed
    return n


def band(curves: Sequence[Sequence[Point]]) -> list[Band]:
    """The range of several curves, such as random orders, as far as all of them reach.

    Raises ShapeError for no curve, or curves with points at different numbers of heads.
    """
    if not curves:
        raise ShapeError("There is no curve to draw a band around.")
    found = []
    for points in zip(*curves, strict=False):
        if len({point.n_removed for point in points}) > 1:
            raise ShapeError("The curves have their points at different numbers of heads.")
        losses = [point.loss for point in points]
        found.append(Band(points[0].n_removed, min(losses), float(np.mean(losses)), max(losses)))
    return found

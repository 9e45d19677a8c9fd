"""A measure over several texts: its mean with a 95% interval. Also, how well two rankings agree."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mha_viz.errors import ShapeError
from mha_viz.heads.interval import t_quantile as t_quantile
from mha_viz.pruning.ablation import Scores
from mha_viz.pruning.inputs import Text


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """The mean of a measure over `n` texts, and half the width of its 95% interval.

    The interval is Student's t with n - 1 degrees of freedom, for texts that do not depend on each
    other. It is NaN for a single text.
    """

    mean: Scores
    half_width: Scores
    n: int

    @property
    def low(self) -> Scores:
        """The lower end of the interval."""
        return self.mean - self.half_width

    @property
    def high(self) -> Scores:
        """The upper end of the interval."""
        return self.mean + self.half_width


def over_texts(measure: Callable[[Text], Scores], texts: Iterable[Text]) -> Iterator[Estimate]:
    """An estimate after each text, over all texts so far. Stop when the interval is small enough.

    `measure` is for example `lambda text: ablate_each_head(model, text)`.
    """
    scores: list[Scores] = []
    for text in texts:
        scores.append(measure(text))
        yield estimate(scores)


def estimate(
    scores: Sequence[Scores],
    *,
    weights: Sequence[float] | None = None,
    texts: Sequence[int] | None = None,
) -> Estimate:
    """The mean of these arrays, and its interval over texts.

    `weights` are the weights of the arrays, such as their numbers of tokens; `texts` says which
    text each is from, since chunks of one text depend on each other: a text is one measurement.
    By default, each array is a separate text, and all have equal weight. With unequal weights, the
    variance is that of a ratio estimator (Cochran 1977, Sampling Techniques, section 6.3).
    """
    values = np.stack(scores)
    weight = np.ones(len(values)) if weights is None else np.asarray(weights, dtype=np.float64)
    names = np.arange(len(values)) if texts is None else np.asarray(texts)
    member = (names == np.unique(names)[:, None]) * weight  # [n, arrays]
    n, total = len(member), weight.sum()
    mean = np.tensordot(weight, values, 1) / total
    if n < 2:
        return Estimate(mean, np.full_like(mean, np.nan), n)
    deviations = np.tensordot(member, values - mean, 1) / total
    variance = n / (n - 1) * (deviations**2).sum(axis=0)
    return Estimate(mean, t_quantile(n - 1) * np.sqrt(variance), n)


def stretches(by_token: Scores, n: int = 8) -> tuple[list[Scores], list[int]]:
    """The means `[L, H]` over `n` stretches of a text, from `[L, H, tokens]`, and their lengths.

    For an interval within one text: neighbouring tokens are correlated, and long stretches are less
    so (the method of batch means). There are fewer stretches if one would have fewer than two
    tokens.
    """
    parts = np.array_split(by_token, max(1, min(n, by_token.shape[-1] // 2)), axis=-1)
    return [part.mean(-1) for part in parts], [part.shape[-1] for part in parts]


def rank_correlation(a: Scores, b: Scores) -> float:
    """Spearman's rho: Pearson's correlation of the ranks, where equal values share a mean rank.

    Pairs with a NaN do not count. NaN for fewer than two pairs, or where one side is constant.
    Raises ShapeError for arrays of different shapes.
    """
    if a.shape != b.shape:
        raise ShapeError(
            f"The scores have shapes {list(a.shape)} and {list(b.shape)}; they must be equal."
        )
    both = np.isfinite(a) & np.isfinite(b)
    x, y = (ranks(side[both]) for side in (a, b))
    x, y = x - x.mean() if len(x) else x, y - y.mean() if len(y) else y
    norm = float(np.sqrt((x**2).sum() * (y**2).sum()))
    return float((x * y).sum()) / norm if norm else float("nan")


def ranks(values: Scores) -> Scores:
    """Ranks from 0, `[n]`; equal values share the mean of their ranks."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    mean: Scores = (last - 1 + last - counts) / 2
    return mean[group]

"""Names of heads: what each of them does often enough to be called after it.

A head has a name where the whole 95% interval of a measure lies above a threshold. The thresholds
are ours; papers establish the role of a head by intervening on it, not from patterns alone. A name
describes where the head looks on average, not on every text.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mha_viz.head import Head

MOST = 2  # names of one head
NO_NAME = "no clear role"
NO_MEASURE = "no clear role: no measure lies above its threshold with its whole 95% interval."


@dataclass(frozen=True, slots=True)
class Kind:
    """A name and what earns it: a measure, and the threshold that its interval must exceed.

    `short` is for small pictures, and `does` says where such a head looks.
    """

    name: str
    short: str
    does: str
    measure: str
    threshold: float


KINDS = (
    Kind("induction", "induction", "what followed this token before", "induction", 0.3),
    Kind("duplicate", "duplicate", "an earlier copy of this token", "duplicate_token", 0.3),
    Kind("previous token", "previous", "one token back", "previous_token", 0.3),
    Kind("nearby", "nearby", "close by, at varying distances", "syntactic_by_offset", 0.3),
    Kind("itself", "itself", "itself", "self", 0.5),
    Kind("sink", "sink", "the first token", "first_token", 0.5),
    Kind("spread evenly", "even", "everywhere, about equally", "entropy", 0.9),
)  # in the order in which a head is named


@dataclass(frozen=True, slots=True)
class Name:
    """A name of a head with the measured value and its 95% interval."""

    kind: Kind
    value: float
    low: float
    high: float

    @property
    def evidence(self) -> str:
        """The measured value, its interval and the threshold, as a sentence."""
        return (
            f"{self.kind.name}, because it looks at {self.kind.does}: {self.value:.2f} "
            f"(95% interval {self.low:.2f} to {self.high:.2f}; threshold {self.kind.threshold:g})."
        )


Names = dict[Head, tuple[Name, ...]]  # of every head; empty for a head without a clear role


def names(rows: Iterable[Mapping[Any, Any]]) -> Names:
    """The names of every head, at most two each.

    `rows` are those of a table as `heads.measure_texts` makes it (`frame.to_dict("records")`), over
    at least two texts and two seeds: without an interval there is no name. Pruned heads have none.
    """
    return {Head(int(row["layer"]), int(row["head"])): _of(row) for row in rows}


def short_label(of_a_head: tuple[Name, ...]) -> str:
    """The first name, as short as a thumbnail is wide; a dash where there is none."""
    return of_a_head[0].kind.short if of_a_head else "–"


def label(of_a_head: tuple[Name, ...]) -> str:
    """The names as one label, such as “induction · sink”."""
    return " · ".join(name.kind.name for name in of_a_head) or NO_NAME


def _of(row: Mapping[Any, Any]) -> tuple[Name, ...]:
    measured = (
        Name(kind, *(float(row[f"{kind.measure}{end}"]) for end in ("", "_low", "_high")))
        for kind in KINDS
    )
    return tuple(name for name in measured if name.low > name.kind.threshold)[:MOST]

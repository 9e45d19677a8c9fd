"""Published roles of heads in GPT-2 small, and whether our measures agree with them.

Indices belong to one set of weights: other sizes, distilled and fine-tuned models do not inherit a
role. `check` compares a role with one of our measures, by a threshold that is ours, not the
paper's. The papers established the roles by intervening on heads, not from patterns alone.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mha_viz.errors import ShapeError
from mha_viz.head import Head

if TYPE_CHECKING:
    import pandas as pd

    from mha_viz.model import Description
    from mha_viz.network import NetworkConfig

IOI = "Wang et al. 2023, Interpretability in the Wild (arXiv 2211.00593), section 3"
GPT2_SMALL_NAMES = ("gpt2", "openai-community/gpt2")
LOGIT_DIFFERENCE = "logit_difference"  # a column; see ioi_direct_effects


@dataclass(frozen=True, slots=True)
class Role:
    """A role of one head, and the measure that can confirm it; None if none of ours can.

    The column `measure` should be at least `threshold`, or at most `threshold` if it is negative.
    `because` describes the role and, if it is not checked, says why.
    """

    layer: int
    head: int
    name: str
    because: str
    measure: str | None = None
    threshold: float = math.nan
    source: str = IOI


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of `check`: `confirmed` is None if the role was not measured.

    `low` and `high` are the ends of the interval of `value`; NaN if there is none.
    """

    role: Role
    confirmed: bool | None
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan


def roles_for(description: "Description", config: "NetworkConfig") -> dict[tuple[int, int], Role]:
    """The published roles by (layer, head); empty unless the model is GPT-2 small as published.

    The model is recognised by its name on the Hugging Face Hub and by its sizes.
    """
    sizes = (config.n_layers, config.n_heads, config.d_model, config.vocab_size)
    complete = config.n_kv_heads in (None, 12) and not any(config.pruned_heads)
    named = description.source == "hub" and description.name in GPT2_SMALL_NAMES
    return dict(ROLES) if named and complete and sizes == (12, 12, 768, 50257) else {}


def check(role: Role, frame: "pd.DataFrame") -> Verdict:
    """Whether head profiles, as `measure` returns them, confirm the role.

    They do if the value reaches the threshold and, if there is an interval, all of it does too. The
    answer is None if the column is missing or its value is NaN. Raises ShapeError for a table
    without this head.
    """
    row = frame[(frame["layer"] == role.layer) & (frame["head"] == role.head)]
    if len(row) != 1:
        raise ShapeError(
            f"The table has {len(row)} rows for {Head(role.layer, role.head).label}; expected one. "
            "Give the profiles of the model that has this role."
        )
    if role.measure is None or role.measure not in frame.columns:
        return Verdict(role, None)
    value, low, high = (
        float(row[column].iloc[0]) if column in frame.columns else math.nan
        for column in (role.measure, f"{role.measure}_low", f"{role.measure}_high")
    )
    if math.isnan(value):
        return Verdict(role, None)
    sign = math.copysign(1.0, role.threshold)
    nearest = low if sign > 0 else high
    worst = value if math.isnan(nearest) else nearest
    return Verdict(role, sign * worst >= sign * role.threshold, value, low, high)


def _roles() -> dict[tuple[int, int], Role]:
    mover = "It copies the correct name to the last position"
    groups: list[tuple[str, str, str | None, float, list[tuple[int, int]]]] = [
        (
            "name mover",
            f"{mover}: its direct effect favours the correct name over the repeated one.",
            LOGIT_DIFFERENCE,
            0.1,
            [(9, 9), (10, 0), (9, 6)],
        ),
        (
            "negative name mover",
            "It works against the name movers: its direct effect lowers the correct name.",
            LOGIT_DIFFERENCE,
            -0.1,
            [(10, 7), (11, 10)],
        ),
        (
            "backup name mover",
            f"{mover} when the name movers are ablated. That shows only after ablating them, so it "
            "is not checked here.",
            None,
            math.nan,
            [(10, 10), (10, 6), (10, 2), (10, 1), (11, 2), (9, 7), (9, 0), (11, 9)],
        ),
        (
            "S-inhibition",
            "It keeps name movers from looking at the repeated name, by changing their queries. "
            "That shows only in an intervention on the queries, so it is not checked here.",
            None,
            math.nan,
            [(7, 3), (7, 9), (8, 6), (8, 10)],
        ),
        (
            "induction",
            "It looks at the token that followed the previous copy of this token.",
            "induction",
            0.3,
            [(5, 5), (5, 8), (5, 9), (6, 9)],
        ),
        (
            "duplicate token",
            "It looks at the previous copy of this token.",
            "duplicate_token",
            0.3,
            [(0, 1), (0, 10), (3, 0)],
        ),
        (
            "previous token",
            "It looks at the token before this one.",
            "previous_token",
            0.3,
            [(2, 2), (4, 11)],
        ),
    ]
    return {
        at: Role(*at, name, because, column, threshold)
        for name, because, column, threshold, heads in groups
        for at in heads
    }


ROLES: dict[tuple[int, int], Role] = _roles()

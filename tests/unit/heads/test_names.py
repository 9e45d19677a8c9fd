"""Names of heads follow from the intervals of their measures."""

import math

import pandas as pd
import pytest

from mha_viz import heads
from mha_viz.analysis.reference_texts import reference_texts
from mha_viz.head import Head
from mha_viz.heads.names import KINDS, NO_NAME, label, names
from mha_viz.model import Model


def profile(**measured: tuple[float, float, float]) -> pd.DataFrame:
    """The profile of L2 H1: value, low and high of some measures; the others are 0 ± 0."""
    row: dict[str, float] = {"layer": 2, "head": 1}
    for kind in KINDS:
        value, low, high = measured.get(kind.measure, (0.0, 0.0, 0.0))
        row |= {
            kind.measure: value,
            f"{kind.measure}_low": low,
            f"{kind.measure}_high": high,
        }
    return pd.DataFrame([row])


def named(frame: pd.DataFrame) -> str:
    return label(names(frame.to_dict("records"))[Head(2, 1)])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_whole_interval_lies_above_the_threshold(kind) -> None:
    limit = kind.threshold
    assert named(profile(**{kind.measure: (limit + 0.1, limit + 0.01, limit + 0.2)})) == kind.name
    assert named(profile(**{kind.measure: (limit + 0.1, limit, limit + 0.2)})) == NO_NAME
    assert named(profile(**{kind.measure: (limit + 0.1, math.nan, math.nan)})) == NO_NAME


def test_a_head_has_at_most_two_names_in_the_order_of_the_kinds() -> None:
    high = (0.95, 0.94, 0.96)
    frame = profile(first_token=high, entropy=high, duplicate_token=high)
    assert named(frame) == "duplicate · sink"


def test_a_pruned_head_has_no_name() -> None:
    nothing = (math.nan, math.nan, math.nan)
    frame = profile(**{kind.measure: nothing for kind in KINDS})
    assert names(frame.to_dict("records")) == {Head(2, 1): ()}


def test_the_bundled_heads_have_the_names_that_their_patterns_show(bundled: Model) -> None:
    *_, measured = heads.measure_texts(bundled, reference_texts()[:4], seeds=3)
    found = {
        head.label: label(of_head)
        for head, of_head in names(measured.frame.to_dict("records")).items()
    }
    assert len(found) == 24
    expected = {
        "L0 H1": "previous token",
        "L2 H5": "previous token",
        "L3 H0": "induction",
        "L3 H3": "induction",
        "L3 H4": "induction · sink",
        "L1 H2": "spread evenly",
        "L3 H5": NO_NAME,
    }
    assert {head: found[head] for head in expected} == expected

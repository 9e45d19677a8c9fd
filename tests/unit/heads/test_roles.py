"""Published roles of GPT-2 small, compared with measurements."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from mha_viz.errors import ShapeError
from mha_viz.gpt2 import GPT2Config
from mha_viz.heads.roles import IOI, LOGIT_DIFFERENCE, ROLES, check, roles_for
from mha_viz.model import Description, Model

GPT2_SMALL = Description("gpt2", "hub", "float32", 124_439_808, "")


def frame_with(**values: float) -> pd.DataFrame:
    layer, head = (axis.ravel() for axis in np.indices((12, 12)))
    return pd.DataFrame({"layer": layer, "head": head, **values})


def test_the_circuit_has_26_heads_in_7_classes() -> None:
    assert len(ROLES) == 26
    assert len({role.name for role in ROLES.values()}) == 7
    assert all((role.layer, role.head) == at for at, role in ROLES.items())
    assert {at for at, role in ROLES.items() if role.name == "induction"} == {
        (5, 5), (5, 8), (5, 9), (6, 9)
    }  # fmt: skip
    assert all(role.source == IOI for role in ROLES.values())


def test_only_gpt2_small_has_roles(bundled: Model) -> None:
    small = GPT2Config()
    assert roles_for(GPT2_SMALL, small) == ROLES
    assert roles_for(replace(GPT2_SMALL, name="openai-community/gpt2"), small) == ROLES
    for name in ("distilgpt2", "gpt2-medium", "someone/gpt2", "./gpt2"):
        assert roles_for(replace(GPT2_SMALL, name=name), small) == {}
    assert roles_for(replace(GPT2_SMALL, source="folder"), small) == {}, "it may be fine-tuned"
    for change in ({"n_layers": 6}, {"d_model": 1024}, {"n_kv_heads": 4}):
        assert roles_for(GPT2_SMALL, replace(small, **change)) == {}
    pruned = replace(small, pruned_heads=((3,), *((),) * 11))
    assert roles_for(GPT2_SMALL, pruned) == {}
    assert roles_for(bundled.description, bundled.config) == {}


def test_a_role_is_confirmed_only_by_the_full_interval() -> None:
    role = ROLES[5, 5]
    sure = check(role, frame_with(induction=0.93, induction_low=0.9, induction_high=0.96))
    assert (sure.confirmed, sure.value, sure.low, sure.high) == (True, 0.93, 0.9, 0.96)
    unsure = check(role, frame_with(induction=0.4, induction_low=0.1, induction_high=0.7))
    assert unsure.confirmed is False
    assert check(role, frame_with(induction=0.4)).confirmed is True, "one measurement"
    alone = frame_with(induction=0.2, induction_low=np.nan, induction_high=np.nan)
    assert check(role, alone).confirmed is False


def test_a_negative_role_wants_a_negative_number() -> None:
    role = ROLES[10, 7]
    for mean, expected in [(-0.5, True), (0.5, False), (-0.05, False)]:
        frame = frame_with(**{
            LOGIT_DIFFERENCE: mean,
            f"{LOGIT_DIFFERENCE}_low": mean - 0.02,
            f"{LOGIT_DIFFERENCE}_high": mean + 0.02,
        })  # fmt: skip
        assert check(role, frame).confirmed is expected
    wide = {f"{LOGIT_DIFFERENCE}_low": -1.0, f"{LOGIT_DIFFERENCE}_high": 0.0}
    assert check(role, frame_with(**{LOGIT_DIFFERENCE: -0.5}, **wide)).confirmed is False


def test_what_was_not_measured_is_neither_confirmed_nor_denied(bundled: Model) -> None:
    assert check(ROLES[7, 3], frame_with(induction=0.9)).confirmed is None
    assert check(ROLES[9, 9], frame_with(induction=0.9)).confirmed is None
    assert check(ROLES[5, 5], frame_with(induction=np.nan)).confirmed is None
    with pytest.raises(ShapeError, match="0 rows for L5 H5"):
        check(ROLES[5, 5], frame_with(induction=0.9).head(10))

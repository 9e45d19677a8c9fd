"""The Heads and Compare pages as scripts: their numbers are those of the package."""

import time
from pathlib import Path

import numpy as np
import pytest
from script import ROOT, finished, html, opened, said
from streamlit.testing.v1 import AppTest

from mha_viz import compare, heads
from mha_viz.heads.rollout import rollout
from mha_viz.model import Model
from mha_viz.session.samples import DEFAULT


def page(name: str, **link: str) -> AppTest:
    test = finished(opened(name.removesuffix(".py"), **link))
    assert not test.exception
    return test


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_the_passport_of_a_head_is_what_is_measured(bundled: Model) -> None:
    test = page("heads.py", at="L3H4")
    frame = heads.measure(bundled, DEFAULT)
    row = frame[(frame["layer"] == 3) & (frame["head"] == 4)].iloc[0]
    shown = {r["measure"]: r["value"] for _, r in test.dataframe[0].value.iterrows()}
    assert float(shown["Induction"]) == pytest.approx(row["induction"], abs=1e-4)
    assert float(shown["First token (sink)"]) == pytest.approx(row["first_token"], abs=1e-4)
    assert len(test.dataframe[1].value) == 24
    assert "Heads like this one" in html(test)
    assert "Published roles" not in html(test)  # they belong to GPT-2 small


def test_a_filter_leaves_the_heads_that_reach_it() -> None:
    test = page("heads.py", measure="induction", least_measure="0.8")
    assert set(test.dataframe[1].value["head"]) == {"L3 H0", "L3 H3", "L3 H4"}


def test_rollout_is_drawn_with_its_limits(bundled: Model) -> None:
    test = page("heads.py", numbers_of="Over layers", aggregate="rollout")
    last = rollout(bundled.trace(DEFAULT))[-1]
    assert f"(0) {last[0]:.2f}" in html(test)
    assert "drifts to position" in " ".join(m.value for m in test.markdown)


def test_several_texts_are_measured_one_by_one(bundled: Model) -> None:
    test = page("heads.py", numbers_of="Several texts", measure="self")
    test.text_area(key="several").set_value("The king.\nOnce upon a time").run()
    end = time.monotonic() + 60
    while any(b.label == "Stop" for b in test.button) and time.monotonic() < end:
        time.sleep(0.3)
        test.run()
    *_, batch = heads.measure_texts(bundled, ["The king.", "Once upon a time"])
    top = batch.frame["self"].max()
    assert float(test.dataframe[0].value["mean"][0]) == pytest.approx(top, abs=1e-6)
    assert "mean over 2 texts" in html(test)


def test_two_texts_are_aligned_and_compared(bundled: Model) -> None:
    other = DEFAULT.replace("king", "queen")
    test = page("compare.py", other_text=other, at="L3H4")
    change = compare.change(bundled.trace(DEFAULT), bundled.trace(other))
    best = np.unravel_index(np.nanargmax(change.distance), change.distance.shape)
    label = f"L{best[0]} H{best[1]} · {change.distance[best]:.2f}"
    assert label in [b.label for b in test.button]
    assert "<s>·king</s>" in html(test)
    assert "<u>·queen</u>" in html(test)


def test_a_capsule_of_a_comparison_names_the_other_side() -> None:
    assert page("compare.py", other_text="The cat sat.").session_state["noted"] == {
        "Compared with the text": "The cat sat."
    }


def test_without_heads_the_layers_below_stay_as_they_are(bundled: Model) -> None:
    test = page("compare.py", against="without heads", off="L2H1")
    assert "without 1 head" in html(test)
    gate = np.ones((4, 6), dtype=np.float32)
    gate[2, 1] = 0
    trace = bundled.trace(DEFAULT)
    change = compare.change(trace, bundled.trace_ids(trace.token_ids, head_gate=gate))
    assert np.nanmax(change.distance[:3]) == 0
    top = np.nanmax(change.distance)
    assert f"colour from 0 to {top:.2f}" in html(test)


def test_texts_without_a_token_in_common_are_told() -> None:
    test = page("compare.py", other_text="zzz")
    assert "nothing to compare" in said(test)
    test = page("compare.py", other_text="")
    assert "Type a second text" in said(test)


def test_a_model_of_other_sizes_cannot_be_compared(tmp_path: Path, tiny: Model) -> None:
    test = page("compare.py", against="another model", other_model=tiny.description.name)
    assert "heads can only be compared one by one" in said(test).replace("\\", "")

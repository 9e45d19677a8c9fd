"""Names of heads are measured once, for all users, and never in front of a user's own work."""

import threading

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from support.patience import PATIENCE, until

from mha_viz import heads
from mha_viz.analysis.reference_texts import reference_texts
from mha_viz.app.work import head_names, jobs
from mha_viz.app.work.jobs import Job, Queue
from mha_viz.app.work.progress import ResultSlot
from mha_viz.heads.measures import ON_RANDOM_TOKENS
from mha_viz.heads.names import label
from mha_viz.model import Model


def test_the_stored_measures_are_those_of_the_bundled_weights(bundled: Model) -> None:
    """Those on random tokens in full; of the others, one on two of the texts."""
    weights_hash, rows = head_names.stored(head_names.BUNDLED)
    assert weights_hash == bundled.description.weights_hash
    *_, few = heads.measure_texts(bundled, reference_texts()[:2], seeds=head_names.SEEDS)
    assert list(rows[0]) == list(few.frame.columns)
    for name in ON_RANDOM_TOKENS:
        stored = [row[name] for row in rows]
        np.testing.assert_allclose(stored, few.frame[name], atol=1e-4, err_msg=name)
    first_token = [row["first_token"] for row in rows]
    assert np.corrcoef(first_token, few.frame["first_token"])[0, 1] > 0.98


def test_seventeen_heads_of_the_bundled_model_have_a_name(bundled: Model) -> None:
    names = head_names.of(bundled)
    assert names is not None
    assert sum(bool(of_head) for of_head in names.values()) == 17
    assert label(names[3, 4]) == "induction · sink"


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head_names, "PAUSE", 0.0)
    monkeypatch.setattr(head_names, "YIELD", 0.01)
    monkeypatch.setattr(jobs, "background", Queue())
    monkeypatch.setattr(jobs, "foreground", Queue())


@pytest.mark.usefixtures("unhurried")
def test_measuring_waits_while_a_users_own_work_is_running(
    tiny: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, end = threading.Event(), threading.Event()
    monkeypatch.setattr(
        head_names.heads, "measure_texts", lambda *_, **__: iter([_Measured(begun)])
    )
    own = Job(lambda _: iter([end.wait(PATIENCE)]), total=1)
    jobs.foreground.submit(own)
    slot: ResultSlot[head_names.Rows] = ResultSlot()
    job = Job(lambda report: iter([head_names._measure(tiny, slot, report)]), total=1)
    Queue().submit(job)
    assert not begun.wait(0.2)
    end.set()
    assert job.over.wait(PATIENCE)
    assert slot.result == ["a row"]


@pytest.mark.usefixtures("unhurried")
def test_two_users_of_a_model_measure_it_once(tiny: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[None] = []

    def measured(*_: object, **__: object) -> object:
        calls.append(None)
        return iter([_Measured(threading.Event())])

    monkeypatch.setattr(head_names.heads, "measure_texts", measured)
    slot: ResultSlot[head_names.Rows] = ResultSlot()
    queue = Queue(workers=1)
    both = [
        Job(lambda report: iter([head_names._measure(tiny, slot, report)]), total=1) for _ in "ab"
    ]
    for job in both:
        queue.submit(job)
    assert all(job.over.wait(PATIENCE) for job in both)
    assert len(calls) == 1
    assert both[1].results == [["a row"]]


class _Measured:
    """A profile with a frame of one row."""

    def __init__(self, begun: threading.Event) -> None:
        begun.set()
        self.frame = self

    def to_dict(self, _: str) -> list[str]:
        return ["a row"]


@pytest.mark.usefixtures("unhurried")
def test_a_page_gets_the_names_when_they_are_measured(checkpoint, gpt2, monkeypatch) -> None:
    folder = str(checkpoint(gpt2(n_layer=2, n_head=4, n_embd=32)))
    monkeypatch.setattr(head_names, "SEEDS", 2)
    monkeypatch.setattr(head_names, "reference_texts", lambda: reference_texts()[:2])

    def page(folder: str) -> None:
        import streamlit as st

        from mha_viz.app.work import head_names, models

        model = models.model(folder)
        assert model is not None
        head_names.measure(model)
        st.session_state["names"] = head_names.of(model)

    test = AppTest.from_function(page, args=(folder,), default_timeout=PATIENCE).run()

    def known() -> bool:
        return test.run().session_state["names"] is not None

    until(known)
    assert len(test.session_state["names"]) == 8
    assert not test.exception

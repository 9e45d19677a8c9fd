"""Long work on a page: results as they come, one lane at a time, and slots shared by all users."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from support.patience import PATIENCE, until
from support.script import button, said

from mha_viz.app.work import jobs, progress
from mha_viz.app.work.progress import ResultSlots


@pytest.fixture(autouse=True)
def _idle_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "background", jobs.Queue())
    monkeypatch.setattr(jobs, "foreground", jobs.Queue())
    monkeypatch.setattr(progress, "QUICK", PATIENCE)


@pytest.fixture
def let_go(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Work that is given this event goes on until it is set, and no page waits for it."""
    monkeypatch.setattr(progress, "QUICK", 0.0)
    event = threading.Event()
    yield event
    event.set()


def growing() -> None:
    """A page whose work yields 0, 1, 2 …, once it is let go."""
    import streamlit as st

    from mha_viz.app.work.progress import Reporter, results

    def work(report: Reporter):  # type: ignore[no-untyped-def]
        while let_go is not None and not let_go.wait(0.01):
            report(0.5)
        yield from range(3)

    let_go = st.session_state.get("let_go")
    name = st.session_state.get("name", "first")
    cost = st.session_state.get("cost", "")
    found, over = results(name, work, total=3, what="numbers", cost=cost, lane="numbers")
    st.session_state["found"], st.session_state["over"] = found, over


def opened(script: Any = growing, **state: Any) -> AppTest:
    test = AppTest.from_function(script, default_timeout=PATIENCE)
    for name, value in state.items():
        test.session_state[name] = value
    return test.run()


def labels(test: AppTest) -> list[str]:
    return [one.label for one in test.button]


def test_quick_results_are_shown_without_a_progress_row() -> None:
    test = opened()
    assert (test.session_state["found"], test.session_state["over"]) == ([0, 1, 2], True)
    assert labels(test) == []


def test_long_work_shows_a_row_can_be_stopped_and_started_again(let_go: threading.Event) -> None:
    test = opened(let_go=let_go)
    assert (test.session_state["found"], test.session_state["over"]) == ([], False)
    assert labels(test) == ["Stop"]
    assert "0 of 3 numbers" in test.get("progress")[0].proto.text
    test = button(test, "Stop").click().run()  # the work would never end by itself
    assert "Stopped after 0 of 3 numbers." in [one.value for one in test.caption]
    let_go.set()
    test = button(test, "Start again").click().run()
    until(lambda: test.session_state["job first"].state == "done")
    test.run()
    assert test.session_state["found"] == [0, 1, 2]


def test_new_work_in_a_lane_stops_what_still_runs_there_and_keeps_what_is_done(
    let_go: threading.Event,
) -> None:
    test = opened(let_go=let_go, name="slow")
    slow = test.session_state["job slow"]
    test.session_state["let_go"], test.session_state["name"] = None, "quick"
    test.run()
    assert slow.state == "stopped"
    quick = test.session_state["job quick"]
    until(lambda: quick.state == "done")
    test.session_state["name"] = "another"
    test.run()
    test.session_state["name"] = "quick"
    test.run()
    assert test.session_state["job quick"] is quick


def test_work_that_costs_much_waits_for_a_click() -> None:
    test = opened(cost="takes a minute")
    assert labels(test) == ["Measure"]
    assert "takes a minute" in [one.value for one in test.caption]
    assert button(test, "Measure").click().run().session_state["found"] == [0, 1, 2]


def test_a_failure_is_shown_with_a_button_to_retry() -> None:
    def failing() -> None:
        from mha_viz.app.work.progress import Reporter, results
        from mha_viz.errors import TextError

        def work(report: Reporter):  # type: ignore[no-untyped-def]
            yield 1
            raise TextError("The text is too short.")

        results("failing", work, total=2, what="numbers")

    test = opened(failing)
    assert "The text is too short." in said(test)
    assert labels(test) == ["Start again"]


def test_a_slot_holds_one_result_for_all_users() -> None:
    def waiting() -> None:
        import streamlit as st

        from mha_viz.app.work.progress import Reporter, wait_for

        slot, calls = st.session_state["slot"], st.session_state["calls"]

        def work(report: Reporter) -> int:
            calls.append(1)
            return 42

        st.session_state["result"] = wait_for(slot, "Counting", work, lane="count")

    slots, calls = ResultSlots[int](2), []
    for _ in range(2):
        test = opened(waiting, slot=slots("a"), calls=calls)
        assert test.session_state["result"] == 42
    assert calls == [1]


def test_a_key_has_one_slot_until_others_take_it() -> None:
    slots = ResultSlots[int](2)
    first = slots("a", 1)
    assert slots("a", 1) is first
    assert slots("a", 2) is not first
    slots("b", 1)
    assert slots("a", 1) is not first

"""The Pruning page as a script: what is off is in the link, and the numbers are the lab's."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from support.script import ROOT, button, component, figures, finished, html, opened, said

from mha_viz import checkpoints, pruning
from mha_viz.app.samples import DEFAULT
from mha_viz.app.work import jobs
from mha_viz.checkpoints import load
from mha_viz.model import Model

page = partial(opened, "pruning")


def board(test: AppTest) -> dict:
    return component(test, "board")


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_a_link_switches_heads_off_and_the_numbers_are_the_labs(bundled: Model) -> None:
    test = page(off="L3H4-L0H1")
    assert not test.exception
    assert said(test) == ""
    assert board(test)["off"] == ["L0H1", "L3H4"]
    whole = pruning.Pass.of(bundled, DEFAULT)
    now = whole.without([(0, 1), (3, 4)])
    assert "2 of 24 off" in html(test)
    assert f"<b>{now.loss:.3f}</b> nats ({now.loss - whole.loss:+.3f})" in html(test)
    assert test.query_params["off"] == "L3H4-L0H1"


def test_with_nothing_off_nothing_changes() -> None:
    test = page()
    assert "0 of 24 off" in html(test)
    assert html(test).count("(+0.000)") == 2
    assert "KL 0.000 nats at the end, 0.000 on average" in html(test)


def test_the_curves_say_a_word_on_a_link_that_asks_for_what_is_not_there() -> None:
    bad = page(lab="Curves", curve_texts="1", curve_every="12", orders="alphabetic", budget="900")
    assert "The link's value orders = alphabetic is not available" in said(bad)
    assert "The link's value budget = 900 is not available" in said(bad)
    good = page(lab="Curves", curve_texts="1", curve_every="12", orders="gradient", budget="2")
    assert said(good) == ""  # though the box holds 2.0


def test_names_of_heads_may_be_typed_as_they_are_read() -> None:
    assert board(page(off="l3h4 and L0 H1"))["off"] == ["L0H1", "L3H4"]


def test_a_capsule_names_what_was_removed_how_and_what_it_was_measured_on() -> None:
    test = page(off="L3H4", way="mean", lab="By hand")
    told = test.session_state["recorded_settings"]
    assert told["Heads off"] == "L3 H4"
    assert told["A removed head gives"] == "mean"
    assert str(told["Reference text"]).startswith("reference text, SHA-256 ")


def test_a_head_that_is_not_there_is_named_and_left_out() -> None:
    test = page(off="L9H1-L1H1-nonsense")
    assert "has no L9 H1" in said(test)
    assert board(test)["off"] == ["L1H1"]


def test_undo_and_redo_go_through_what_was_off() -> None:
    test = page(at="L1H2")
    button(test, "All but L1H2").click().run()
    assert len(board(test)["off"]) == 23
    button(test, "Undo").click().run()
    assert board(test)["off"] == []
    button(test, "Redo").click().run()
    assert len(board(test)["off"]) == 23
    button(test, "All on").click().run()
    assert board(test)["off"] == []


@pytest.mark.parametrize("way", pruning.METHODS)
def test_every_way_to_remove_a_head_is_run_and_told(way: str, bundled: Model) -> None:
    test = page(off="L3H4", way=way)
    assert not test.exception
    assert said(test) == ""
    assert "1 of 24 off" in html(test)


def test_another_token_is_ranked_and_one_that_is_several_is_said() -> None:
    test = page(off="L3H4", wanted="queen")
    assert "·queen" in html(test)
    test = page(wanted="antidisestablishmentarianism")
    assert "tokens to the model" in said(test)


def test_a_single_token_has_no_loss_and_the_page_says_so() -> None:
    test = page(text="a")
    assert not test.exception
    assert "One token has no loss" in said(test)


def test_the_tasks_are_asked_whole_and_without() -> None:
    test = page(lab="Tasks", off="L3H4-L3H0", prompts="The king gave the | queen | cat\nbroken")
    assert not test.exception
    assert "Line 2 is not" in said(test)
    tables = [frame.value for frame in test.dataframe]
    whole, now, guess = tables[0]["loss"]
    assert whole < 0.5 < now < guess
    assert list(tables[-1]["right"]) == [" queen"]


def test_importance_finds_what_the_sweep_finds_and_switches_off_the_least(bundled: Model) -> None:
    test = finished(page(lab="Importance", least="2"))
    assert not test.exception
    exact = pruning.ablate_each_head(bundled, DEFAULT)
    order = pruning.removal_order(exact)
    frame = test.dataframe[0].value
    best = order[-1]
    assert frame["head"][0] == f"L{best[0]} H{best[1]}"
    assert frame["score"][0] == pytest.approx(exact[best], abs=1e-5)
    assert "rank correlation" in html(test)
    button(test, "Off: the 2 least missed").click().run()
    assert board(test)["off"] == [f"L{i}H{h}" for i, h in sorted(order[:2])]


def test_curves_end_without_heads_and_say_how_many_can_go() -> None:
    link = {"lab": "Curves", "curve_texts": "1", "curve_every": "8", "orders": "exact"}
    test = finished(page(**link))
    assert not test.exception
    charts = figures(test)
    curve = charts[-1]["data"][0]
    assert curve["name"] == "exact"
    assert curve["x"] == [0, 8, 16, 24]
    assert "heads gone within 1.0%" in test.dataframe[-1].value.columns


@pytest.mark.parametrize(
    "name",
    ["attention", "head", "next_token", "heads", "compare", "pruning", "shapes", "many_heads",
     "variants", "training"],
)  # fmt: skip
@pytest.mark.parametrize("gone", ["some", "all"])
def test_a_model_without_heads_opens_on_every_page(
    name: str, gone: str, tiny: Model, tmp_path: Path
) -> None:
    cut = [(0, 1), (1, 0)] if gone == "some" else [(i, h) for i in range(2) for h in range(4)]
    checkpoints.save(pruning.pruned_model(tiny, cut), tmp_path / "few")
    test = opened(name, model=str(tmp_path / "few"), text="the cat sat on the mat")
    assert not test.exception
    assert "nan" not in html(test)
    broken = "Unexpected error" in said(test)
    assert not broken, said(test)
    if gone == "all":
        assert "Every head was taken out" in said(test)


def saved_as(folder: Path, name: str = "Without them") -> AppTest:
    test = page(lab="Take out", off="L3H4")
    test.text_input(key="prune_folder").set_value(str(folder)).run()
    return finished(button(test, name).click().run())


def test_a_pruned_model_is_saved_where_one_says_and_opens(tmp_path: Path) -> None:
    for name, n_heads in (("Without them", 23), ("With zeros", 24)):
        folder = tmp_path / name
        test = saved_as(folder, name)
        assert f"Saved in {folder}" in test.success[0].value
        network = load(folder, device="cpu").config
        assert sum(len(network.kept_heads(layer)) for layer in range(4)) == n_heads
    assert "Saved in" in test.run().success[0].value


def test_what_is_there_is_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert "is there already and not empty" in said(saved_as(tmp_path))
    assert "is a file" in said(saved_as(tmp_path / "mine.txt"))
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert "Name a folder" in said(saved_as(Path(" ")))


def test_a_stopped_or_broken_writing_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(error: Exception | None) -> Callable[..., None]:
        def save(model: Model, folder: Path) -> None:
            folder.mkdir()
            (folder / "model.safetensors").write_bytes(b"half of it")
            if error is not None:
                raise error
            for job in list(jobs.foreground._running):
                jobs.foreground.stop(job)

        return save

    monkeypatch.setattr(checkpoints, "save", half(OSError("No space left on device")))
    assert "Not saved: No space left" in said(saved_as(tmp_path / "full"))
    monkeypatch.setattr(checkpoints, "save", half(None))
    test = saved_as(tmp_path / "stopped")
    assert "Stopped: Writing without them." in [one.value for one in test.caption]
    time.sleep(0.3)
    assert list(tmp_path.iterdir()) == []


def test_only_one_of_a_visitors_computations_runs_in_a_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started, start = [], jobs.start

    def watched(name: str, job: jobs.Job, to: jobs.Queue | None = None) -> None:  # type: ignore[type-arg]
        if to is None:  # work that the page does not wait for
            started.append(job)
        start(name, job, to)

    monkeypatch.setattr(jobs, "start", watched)
    test = page(lab="Curves", curve_texts="1", curve_every="1", orders="greedy")
    for n in (2, 3, 4):
        test.number_input(key="curve_texts").set_value(n).run()
    assert len(started) == 4
    assert sum(job.active for job in started) <= 1
    jobs.background.stop(started[-1])


def test_by_hand_and_the_sweep_agree_whatever_stands_in(bundled: Model) -> None:
    ids = bundled.encode(DEFAULT)[0]
    for way in ("mean", "position-wise mean", "resample"):
        test = page(off="L3H4", way=way)
        fill = pruning.make_replacement(bundled, way, len(ids))  # type: ignore[arg-type]
        cost = pruning.ablate_each_head(bundled, ids, method=fill)[3, 4]
        assert f"({cost:+.3f})".replace("-", "−") in html(test)

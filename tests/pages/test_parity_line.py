"""The line that compares a page with transformers: on every page, green, red, or why not."""

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from support.mistakes import (
    no_mask_in_patterns,
    no_mask_in_the_network,
    wrong_scale,
    wrong_split,
)
from support.patience import PATIENCE, until
from support.script import button, lines, opened, texts_with_help

from mha_viz.app.widgets import parity_line
from mha_viz.app.work import models, progress
from mha_viz.app.work.progress import ResultSlots
from mha_viz.checkpoints import names
from mha_viz.checkpoints.parity import Largest, Parity
from mha_viz.errors import CheckpointError

PAGES = [
    "attention", "head", "next_token", "heads", "compare", "pruning", "shapes", "many_heads",
    "variants",
]  # fmt: skip
GOOD = Parity(
    17, "cpu", Largest(1.5e-6, 1e-4), Largest(2e-7, 1e-4), Largest(1e-7, 1e-5), Largest(0.0, 0.0)
)


@pytest.fixture(autouse=True)
def _compares(_no_comparison: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parity_line, "AT_ONCE", 1e11)
    monkeypatch.setattr(parity_line, "_found", ResultSlots[Parity](32))
    monkeypatch.setattr(progress, "QUICK", PATIENCE)


def line(test: AppTest) -> str:
    """The line, as HTML."""
    assert not test.exception
    (found,) = found_lines(test)
    return found


def found_lines(test: AppTest) -> list[str]:
    return [one for one in lines(test) if 'class="caption parity' in one]


@pytest.mark.parametrize("page", PAGES)
def test_every_page_that_shows_the_model_has_the_line(
    page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parity_line, "check", lambda model, trace, on_progress: GOOD)
    assert "Matches transformers in eager mode (T = 17, cpu)" in line(opened(page))


def test_the_training_page_shows_other_models_and_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parity_line, "check", lambda model, trace, on_progress: GOOD)
    assert not found_lines(opened("training"))


def test_the_bundled_model_is_compared_at_once_and_green() -> None:
    found = line(opened("attention", text="The fox saw the hen."))
    assert 'class="caption parity good"' in found
    assert "(T = 6, cpu): logits differ by at most " in found


# --- red ------------------------------------------------------------------------------------------


def forgotten_transpose(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(names.BLOCK, "attn.W_O", ("attn.c_proj", False))


@pytest.mark.parametrize(
    ("mistake", "reason"),
    [
        (wrong_scale, "the pattern of L"),
        (no_mask_in_patterns, "on a later token"),
        (no_mask_in_the_network, "logits differ by"),
        (wrong_split, "the pattern of L"),
        (forgotten_transpose, "logits differ by"),
    ],
)
def test_any_failure_turns_it_red_with_the_reason(
    mistake: Callable[[pytest.MonkeyPatch], None], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    models._bundled.clear()  # so that it is loaded with the mistake
    try:
        mistake(monkeypatch)
        found = line(opened("attention", text=f"A text for {mistake.__name__}."))
    finally:
        models._bundled.clear()
    assert 'class="caption parity bad"' in found
    assert "Does not match transformers in eager mode" in found
    assert reason in found
    assert "Do not trust the numbers on this page." in found


# --- when it is not there yet ---------------------------------------------------------------------


def test_a_page_does_not_wait_for_it_and_leaves_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    let_go = threading.Event()

    def slow(*_: Any, on_progress: Callable[[float], None]) -> Parity:
        on_progress(0.25)
        let_go.wait(PATIENCE)
        return GOOD

    monkeypatch.setattr(parity_line, "check", slow)
    monkeypatch.setattr(progress, "QUICK", 0.1)
    test = opened("attention", text="A text that takes a while.")
    assert "waiting" in line(test)
    assert "Comparing with transformers… 25%" in line(test)
    let_go.set()
    until(lambda: "good" in line(test.run()))


def test_long_computations_are_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parity_line, "AT_ONCE", 0)
    monkeypatch.setattr(parity_line, "check", lambda model, trace, on_progress: GOOD)
    test = opened("attention", text="A text that is not compared at once.")
    assert not found_lines(test)
    test = button(test, "Compare these numbers with transformers").click().run()
    assert "good" in line(test)


def test_a_model_that_is_too_large_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parity_line, "MAX_PARAMETERS", 1e6)
    found = line(opened("attention", text="A text for a large model."))
    assert "a second copy of 0.0 billion parameters may not fit" in found
    assert "mha-viz check" in found


def test_a_failed_comparison_says_why_and_can_be_retried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: Any, on_progress: Callable[[float], None]) -> Parity:
        raise CheckpointError("The files of <x> have changed.")

    monkeypatch.setattr(parity_line, "check", refuse)
    test = opened("attention", text="A text whose model has changed.")
    assert "Not compared with transformers. The files of &lt;x&gt; have changed." in line(test)
    monkeypatch.setattr(parity_line, "check", lambda model, trace, on_progress: GOOD)
    assert "good" in line(button(test, "Compare again").click().run())


def test_the_result_is_shared_by_all_pages_and_users(monkeypatch: pytest.MonkeyPatch) -> None:
    n = []
    monkeypatch.setattr(parity_line, "check", lambda *_, on_progress: n.append(1) or GOOD)
    for page in ("attention", "head", "attention"):
        line(opened(page, text="A text that many look at."))
    assert len(n) == 1


def test_the_help_says_what_is_covered() -> None:
    test = opened("compare", text="The hen saw the fox.")
    (help,) = [help for text, help in texts_with_help(test) if "caption parity" in text]
    assert "does not cover another text, another model or ablated heads" in help
    assert "transformers read the checkpoint's files itself." in help.replace("\\", "")


def test_what_transformers_could_not_read_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    other = replace(GOOD, unread="no <x> in them", unread_tokens="It was read as it is.")
    monkeypatch.setattr(parity_line, "check", lambda model, trace, on_progress: other)
    test = opened("attention", text="A text of files that only this app reads.")
    found = line(test)
    assert "good" in found
    assert "transformers could not read these files: no &lt;x&gt; in them. Compared with" in found
    assert "tokenizer, read in the same way as here. It was read as it is." in found
    (help,) = [help for text, help in texts_with_help(test) if "caption parity" in text]
    assert "could not read these files" in help


def test_tokens_that_were_not_compared_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    other = replace(GOOD, tokens_skipped="There is no tokenizer.")
    monkeypatch.setattr(parity_line, "check", lambda model, trace, on_progress: other)
    found = line(opened("attention", text="A text of a model without a tokenizer."))
    assert "The token ids were not compared: There is no tokenizer.</div>" in found

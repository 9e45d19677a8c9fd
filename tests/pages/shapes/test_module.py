"""The module part of the Shapes page as a script: code, expressions and lines that are tried."""

import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from support.script import ROOT, finished, html, opened, said

from mha_viz.app.pages.shapes.module import MAX_TOKENS, _selects, power_of_ten
from mha_viz.app.pages.shapes.picture import NAMES as OF_THE_JOURNEY
from mha_viz.app.work import models
from mha_viz.checkpoints import save
from mha_viz.head import Head
from mha_viz.lessons.implementations import IMPLEMENTATIONS, Implementation
from mha_viz.lessons.module_run import NAMES, STEPS
from mha_viz.model import Model
from mha_viz.pruning.surgery import prune

TEXT = "The king gave the princess a golden ring"
FORMS = [form.title for form in IMPLEMENTATIONS]


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def page(**link: str) -> AppTest:
    test = finished(opened("shapes", shapes="The module", **{"text": TEXT, "at": "L3H2", **link}))
    assert not test.exception
    return test


def words(test: AppTest) -> str:
    found = " ".join([html(test), *(text.value for text in (*test.markdown, *test.caption))])
    return re.sub(r"<[^>]+>", "", found)


def framed(test: AppTest) -> str:
    """The code in the frame."""
    marked = re.findall(r"<mark>(.*?)</mark>", html(test))
    return re.sub(r"<[^>]+>", "", "".join(marked)).replace("&quot;", '"').replace("&gt;", ">")


def tried(test: AppTest, line: str) -> str:
    """What the page says to a line."""
    (field,) = [box for box in test.text_input if box.key.startswith("line ")]
    field.set_value(line)
    next(button for button in test.button if button.label == "Run").click().run()
    assert not test.exception
    return html(test).partition('role="status"')[2].partition('class="answer"')[2].partition(
        'class="answer"'
    )[0]  # fmt: skip


def test_the_steps_are_those_of_the_walkthrough() -> None:
    assert list(NAMES) == OF_THE_JOURNEY


@pytest.mark.parametrize("step", NAMES)
def test_a_step_of_the_link_frames_its_expression(step: str) -> None:
    test = page(step=step)
    expression = IMPLEMENTATIONS[0].expressions[step]
    assert framed(test).replace(" ", "") == expression.replace(" ", "")
    assert next(one for one in STEPS if one.name == step).why in words(test)


def test_buttons_go_to_the_next_and_the_previous_expression() -> None:
    test = page(step="view")
    test.button(key="next_step").click().run()
    assert test.session_state["step"] == "transpose"
    assert framed(test).endswith(".transpose(1, 2)")
    test.button(key="previous_step").click().run()
    assert test.session_state["step"] == "view"
    assert page(step=NAMES[0]).button(key="previous_step").disabled
    assert page(step=NAMES[-1]).button(key="next_step").disabled


def options(test: AppTest) -> dict[int, str]:
    """The step that a line of the code selects, by its number."""
    rows = re.findall(r'data-option="([^"]+)"[^>]*><i>(\d+)</i>', html(test))
    return {int(number): unescape(option) for option, number in rows}


@pytest.mark.parametrize("form", IMPLEMENTATIONS, ids=FORMS)
def test_every_step_can_be_selected_by_a_line_of_the_form(form: Implementation) -> None:
    found: set[str] = set()
    for at in STEPS:
        for line, step in _selects(form, at).items():
            begin, end = form.code.statement(form.code.span(form.expressions[step])[0])
            assert begin <= line <= end
            found.add(step)
    assert found == {step for step, expression in form.expressions.items() if expression}


def test_a_line_with_two_steps_selects_the_other_one() -> None:
    fused = IMPLEMENTATIONS[0]
    line = fused.code.span(fused.expressions["view"])[0]
    by_step = {step: options(page(step=step))[line] for step in ("scores", "view", "transpose")}
    assert by_step == {"scores": "view", "view": "transpose", "transpose": "view"}


def test_it_plays_from_the_step_and_again_from_the_first() -> None:
    test = page(step="view")
    test.button(key="play_steps").click().run()
    assert test.session_state["step"] == "transpose"
    assert test.button(key="play_steps").help == "Pause"
    test.button(key="play_steps").click().run()
    assert test.session_state["step"] == "transpose"
    assert test.button(key="play_steps").help == "Play"
    test = page(step=NAMES[-1])
    test.button(key="play_steps").click().run()
    assert test.session_state["step"] == NAMES[0]
    test.button(key="next_step").click().run()
    assert test.button(key="play_steps").help == "Play", "who steps wants to look"


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_shown_whole_with_shapes_and_its_difference(form: str) -> None:
    test = page(form=form)
    assert said(test) == ""
    shown = words(test)
    found = next(one for one in IMPLEMENTATIONS if one.title == form)
    assert found.sentence in shown
    difference = re.search(r"in layer 3 by at most (\d)·10⁻(.)", shown)
    assert difference, shown
    assert difference[2] in "⁵⁶⁷⁸"
    for line in found.code.text.splitlines():
        assert line.strip() in shown.replace("&#x27;", "'").replace("&quot;", '"').replace(
            "&gt;", ">"
        )
    assert "[1, 8, 192]" in shown or "[1, 6, 8, 32]" in shown


def test_a_step_that_a_form_does_not_have_is_explained() -> None:
    test = page(form="ModuleList", step="view")
    assert framed(test) == ""
    assert IMPLEMENTATIONS[2].missing["view"] in words(test)
    assert "Why not a Python list" in words(test)


def test_an_expression_is_shown_call_by_call_with_strides() -> None:
    shown = words(page(step="transpose"))
    for part in ("t = q", "(4608, 576, 1)", "(4608, 576, 32, 1)", "(4608, 32, 576, 1)"):
        assert part in shown
    assert "Nothing is copied." in shown
    assert "Copied: 6 KiB." in words(page(step="merge"))
    assert "New numbers" in words(page(step="scores"))
    assert "copy  [1, 8, 192]" in words(page(step="merge"))


def test_a_line_is_answered_and_the_last_three_are_kept() -> None:
    test = page(step="transpose")
    assert "torch: view size is not compatible" in tried(test, "q.view(1, 6, 8, 32)")
    assert "no: 1,472 of 1,536 numbers differ" in tried(test, "q.reshape(1, 6, 8, 32)")
    assert "yes, to the last digit" in tried(test, "q.view(1, 8, 6, 32).transpose(1, 2)")
    assert html(test).count('class="answer"') == 3
    tried(test, "q.shape")
    answers = html(test)
    assert answers.count('class="answer"') == 3
    assert "q.view(1, 6, 8, 32)</code>" not in answers


def test_a_hostile_line_is_refused_and_shown_as_text() -> None:
    test = page(step="view")
    answer = tried(test, "q.__class__ if '<script>' else k")
    assert "cannot hold a condition" in answer
    assert "<script" not in answer
    assert "There is no os here" in tried(test, "os")


def test_a_long_text_is_cut_and_the_page_says_so() -> None:
    test = page(text="the king " * MAX_TOKENS)
    assert f"first {MAX_TOKENS} of" in said(test)
    assert f"[1, {MAX_TOKENS}, 192]" in words(test)


def test_numbers_are_written_as_powers_of_ten() -> None:
    assert power_of_ten(5.2e-7) == "5·10⁻⁷"
    assert power_of_ten(-3.4e38, 1) == "−3.4·10³⁸"
    assert power_of_ten(0.0) == "0"


def test_a_layer_with_pruned_heads_runs_in_every_form(
    bundled: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pruned = replace(bundled, network=prune(bundled, [Head(3, 0), Head(3, 4)]))
    save(pruned, tmp_path / "pruned")
    monkeypatch.setitem(models.TITLES, str(tmp_path / "pruned"), "Pruned")
    test = page(model=str(tmp_path / "pruned"), step="output")
    assert "2 heads of this layer are pruned; here their weights are 0." in words(test)
    assert "differs from the app’s own module in layer 3 by" in words(test)
    assert ">yes, " in tried(test, "z @ W_O.T + b_O")

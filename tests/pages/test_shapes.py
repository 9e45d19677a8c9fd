"""The Shapes page as a script: steps, layouts and bugs, and what they say of their tensors."""

import re
from html import escape

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from support.script import ROOT, finished, html, lines, opened, said

from mha_viz.app.pages.shapes import picture, walk
from mha_viz.app.pages.shapes.walkthrough import SOURCES
from mha_viz.figures.journey.layer import Focus, Layer
from mha_viz.lessons.bugs import BUGS
from mha_viz.lessons.layout import layouts
from mha_viz.lessons.walkthrough import LESSONS, Lesson, code_line, random_layer
from mha_viz.lessons.walkthrough import walk as walked
from mha_viz.model import Model


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def page(part: str, **link: str) -> AppTest:
    test = finished(opened("shapes", shapes=part, **link))
    assert not test.exception
    return test


def words(test: AppTest) -> str:
    return " ".join([html(test), *(text.value for text in test.markdown)])


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)
def test_a_step_of_a_link_is_explained(lesson: Lesson) -> None:
    test = page("Walkthrough", step=lesson.name, numbers="true")
    assert test.session_state["step"] == lesson.name
    assert lesson.sentence in words(test)
    assert code_line(lesson)[1] in [code.value for code in test.code]
    assert f"{lesson.title}: values" in html(test)


def test_the_page_opens_on_the_transpose() -> None:
    assert page("Walkthrough").session_state["step"] == "transpose"


def test_the_walkthrough_of_random_input_has_the_sizes_of_the_link(bundled: Model) -> None:
    link = {"tensors": SOURCES[1], "size_B": "2", "size_T": "5", "size_C": "24", "size_H": "4"}
    assert "[2, 5, 24]" in html(page("Walkthrough", step="x", **link))
    assert "[2, 4, 5, 6]" in html(page("Walkthrough", **link)), "B, H, T, d_h"


def test_a_long_text_says_which_tokens_are_drawn() -> None:
    test = page("Walkthrough", text=" ".join(["one two three four five"] * 20))
    assert "The picture shows the first 60 of 100 tokens" in said(test)


def test_what_is_clicked_is_followed_everywhere() -> None:
    layer = a_layer()
    focus = Focus(2, 1, 0, 0)
    state: dict[str, object] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(picture.st, "session_state", state)
        picture._select({"point": {"image": "qkv", "row": 3, "column": 13}}, layer, focus, 1)
        assert (state["token"], state["at"], state["element"]) == (3, "L1H5", 1)
        assert state["second"] == "H1", "the head that was followed stays in full colours"
        picture._select({"head": 1}, layer, focus, 1)
        assert state["second"] == "none"
        picture._select({"step": 7, "token": 99}, layer, focus, 1)
        assert state["step"] == "softmax"
        assert state["token"] == 3, "no such token"


def a_layer() -> Layer:
    """A layer of four heads, of which the third is head 5 of its model."""
    attention, x = random_layer(24, 4, 1, 5)
    return walk.layer_of(walked(attention, x), attention, x, (0, 1, 5, 7), (), 60)


def test_heads_that_do_not_divide_the_width_are_refused_and_others_offered() -> None:
    link = {"tensors": SOURCES[1], "size_C": "24", "size_H": "5"}
    test = page("Walkthrough", **link)
    assert "24" in said(test)
    (fitting,) = [button for button in test.button if button.label == "H = 4, d_h = 6"]
    fitting.click().run()
    assert said(test) == ""
    assert test.number_input(key="size_H").value == 4


def test_the_address_of_an_element_is_that_of_the_layout() -> None:
    layout = next(one for one in layouts(4, 3, 4) if one.title == "Transpose")
    sizes = {"cells_T": "4", "cells_H": "3", "cells_d_h": "4"}
    cell = {"cell_head": "2", "cell_position": "1", "cell_number": "3"}
    test = page("Memory layout", layout="Transpose", **sizes, **cell)
    assert f"= {layout.cells[2, 1, 3]}: the sum" in words(test)
    assert str(list(layout.strides)) in words(test)


@pytest.mark.parametrize("bug", list(BUGS))
def test_a_bug_is_shown_with_its_line_and_its_divergence(bug: str) -> None:
    test = page("Bugs", mistake=bug, bugs_on="this text")
    shown = html(test)
    assert f"<code>{escape(BUGS[bug].correct)}</code>" in shown
    assert f"<code>{escape(BUGS[bug].wrong or '# missing')}</code>" in shown
    assert "KL divergence from" in shown
    nats = shown.partition("KL divergence from")[2].partition(": ")[2].split(" nats")[0]
    assert np.isfinite(float(nats))


def test_bugs_open_on_one_whose_harm_is_seen_in_the_loss_over_the_reference_text() -> None:
    test = page("Bugs")
    assert test.selectbox(key="mistake").value == "no transpose"
    losses = test.session_state["pictures"]["bug_list"].data.arrays
    by_name = dict(zip(losses["bug"].tolist(), losses["loss read whole"].tolist(), strict=True))
    assert by_name["no transpose"] > by_name["none"] + 1
    assert not np.isnan(losses["loss one token at a time"]).any()
    assert "Looks like success: no mask" in html(test)
    assert by_name["no mask"] < by_name["none"]


def test_the_four_checks_say_what_each_would_find() -> None:
    answers = {
        "no transpose": ["no", "no", "yes", "yes"],
        "k, v, q order": ["no", "no", "yes", "no"],
        "no mask": ["no", "no", "no", "yes"],
    }
    for bug, expected in answers.items():
        (checks,) = [line for line in lines(page("Bugs", mistake=bug)) if 'class="checks"' in line]
        assert re.findall(r'<b class="\w+">(\w+)</b>', checks) == expected, bug


def test_one_token_has_no_loss_and_no_bug_changes_it_by_reading_ahead() -> None:
    test = page("Bugs", mistake="no mask", bugs_on="this text", text="a")
    assert "at least two tokens" in said(test)
    assert "computes the same numbers" in said(test)
    assert "the loss</span>" not in html(test)


def test_the_gradient_is_shown_where_the_scale_is_missing() -> None:
    for bug in ("no scale", "no mask"):
        pictures = page("Bugs", mistake=bug, bugs_on="this text").session_state["pictures"]
        assert ("softmax_gradient" in pictures) == (bug == "no scale")

"""The sentences of the Bugs part follow from the numbers: both outcomes of each."""

import math

import numpy as np
import pytest

from mha_viz.app.pages.shapes.bug_figures import D_HEADS, softmax_gradients
from mha_viz.app.pages.shapes.bug_runs import Comparison, Losses, measured, texts_of
from mha_viz.app.pages.shapes.bug_words import (
    HARMLESS,
    after_training,
    checks,
    given_to_head,
    given_to_row,
    gradient_sentence,
    largest_weights,
    looks_like_success,
)
from mha_viz.figures.bug_list import BugLoss
from mha_viz.lessons.bug_effects import loss_whole, row_of_merge, rows_of_head
from mha_viz.lessons.bug_training import CORRECT, SETTINGS, Trained, stored_losses
from mha_viz.lessons.bugs import BUGS
from mha_viz.model import Model

WITHOUT_MASK = Trained(0.272, 8.245)


def losses(right: float = 4.0, **whole: float) -> Losses:
    bugs = [BugLoss(bug, whole.get(bug.replace(" ", "_"), 5.0), 6.0) for bug in BUGS]
    return Losses("this text", 10, right, tuple(bugs), 5)


def test_a_leak_that_lowers_the_loss_is_named_with_both_losses() -> None:
    title, text = looks_like_success(losses(no_mask=2.5), WITHOUT_MASK)
    assert title == "Looks like success: no mask"
    assert "falls to 2.500" in text
    assert "the loss is 6.000" in text
    title, _ = looks_like_success(losses(no_mask=2.5, no_transpose=2.0), WITHOUT_MASK)
    assert title.endswith("no transpose")


def test_a_bug_that_does_not_read_ahead_is_no_leak_even_if_the_loss_falls() -> None:
    title, text = looks_like_success(losses(no_scale=3.0), WITHOUT_MASK)
    assert "after training" in title
    assert "does not fall (4.000 → 5.000)" in text
    assert "0.272" in text
    assert "8.245" in text


def test_a_loss_that_is_not_measured_is_not_stated() -> None:
    unknown = Losses("this text", 10, 4.0, (BugLoss("no mask", 2.0, math.nan),), 0)
    assert "not measured yet" in looks_like_success(unknown, WITHOUT_MASK)[1]


@pytest.mark.parametrize("name", ["tiny", "bundled"])
def test_the_callout_agrees_with_the_measured_losses(
    name: str, request: pytest.FixtureRequest
) -> None:
    model: Model = request.getfixturevalue(name)
    for text in ("A king had a golden ring and a small cat.", "so it is that the mat sat"):
        texts = texts_of(model, "this text", model.input_ids(text))
        right = loss_whole(model.network, texts, None)
        found = Losses("this text", 1, right, measured(model, texts, 5), 5)
        title, said = looks_like_success(found, WITHOUT_MASK)
        if "after training" in title:
            assert found.of("no mask").whole > right - 0.011
        else:
            bug = found.of(title.removeprefix("Looks like success: "))
            assert bug.whole < right
            assert f"{bug.whole:.3f}" in said
            assert f"{bug.writing:.3f}" in said


@pytest.mark.parametrize("bug", BUGS)
def test_the_sentence_about_training_says_what_the_stored_curves_show(bug: str) -> None:
    curves = stored_losses()
    right, wrong = curves[CORRECT].last, curves[bug].last
    said = after_training(bug, right, wrong, SETTINGS.width // SETTINGS.n_heads, 4.134)
    assert f"{wrong.whole:.3f}" in said
    if BUGS[bug].reads_ahead:
        assert "cannot write" in said
        assert f"{wrong.writing:.3f}" in said
        assert ("more than before training" in said) == (wrong.writing > 4.134)
    else:
        assert said.startswith("No harm here")
        assert HARMLESS[bug].split("{")[0] in said


def test_a_bug_that_harms_without_reading_ahead_is_said_to() -> None:
    said = after_training("no W_O", Trained(2.0, 2.0), Trained(2.5, 2.5), 8, 4.1)
    assert said == (
        "It does not read ahead. Its loss is 0.500 nats higher than without the bug: 2.500 instead "
        "of 2.000."
    )
    assert "looks better" not in after_training("no mask", Trained(2, 2), Trained(2.1, 9), 8, 4.1)


def comparison(moved: float, shapes: tuple[str, str] = ("[1]", "[1]")) -> Comparison:
    pattern = np.array([[[1, 0], [0.25, 0.75]]], dtype=np.float32)
    return Comparison(pattern, pattern, (), (), 0.5, 0.1, 0.1, shapes, (0.0, moved))


def test_each_check_finds_what_it_is_for() -> None:
    worse, better = losses(4.0), losses(6.0)
    found = {
        "worse": [seen for *_, seen in checks("no mask", worse, comparison(0.0))],
        "better": [seen for *_, seen in checks("no mask", better, comparison(0.5))],
        "shape": [seen for *_, seen in checks("no mask", None, comparison(0.5, ("[1]", "[2]")))],
    }
    assert found["worse"] == [False, False, True, False]
    assert found["better"] == [False, False, False, True]
    assert found["shape"] == [False, True, True]
    assert checks("no W_O", worse, "does not fit") == [("an error", "does not fit", True)]


def test_the_largest_weights_leave_out_the_first_row() -> None:
    right = np.array([[1, 0], [0.25, 0.75]], dtype=np.float32)
    wrong = np.array([[1, 0], [0.1, 0.9]], dtype=np.float32)
    said = largest_weights("L0 H0", right, wrong)
    assert said == "The mean largest weight of a row of L0 H0 is 0.90 instead of 0.75."
    assert largest_weights("L0 H0", right[:1, :1], wrong[:1, :1]) == ""


def test_what_a_head_and_a_row_are_given_is_counted() -> None:
    said = given_to_head("L3 H0", 17, 6, rows_of_head(17, 6, 0, "no transpose"))
    assert "pieces for 6 of the 6 heads, from 3 of the tokens" in said
    said = given_to_row("The", 6, row_of_merge(17, 6, 0, "no transpose back"))
    assert "pieces of 1 head from 6 tokens, including tokens after it" in said


def test_the_gradient_sentence_has_the_shares_at_both_ends() -> None:
    said = gradient_sentence(D_HEADS, *softmax_gradients())
    shares = [int(part.split("%")[0].split()[-1]) for part in said.split("is ")[1:] if "%" in part]
    assert len(shares) == 2
    assert shares[0] > 60 > 40 > shares[1]

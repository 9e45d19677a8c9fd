"""What the Bugs part computes: how many tokens, in which order, and runs that cannot be made."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from mha_viz.app.pages.shapes.bug_runs import (
    FEWEST,
    READING_AHEAD,
    SOURCES,
    measured,
    ranked,
    run_both,
    texts_of,
)
from mha_viz.errors import ShapeError
from mha_viz.head import Head
from mha_viz.lessons.bug_effects import LENGTH, loss_whole, loss_writing
from mha_viz.lessons.bugs import BUGS
from mha_viz.model import Model
from mha_viz.pruning import prune

REFERENCE, OWN = SOURCES


def test_a_large_model_reads_fewer_pieces_of_the_reference_text(tiny: Model) -> None:
    sizes = [
        len(
            texts_of(
                replace(tiny, description=replace(tiny.description, n_parameters=n)), REFERENCE, []
            )
        )
        for n in (10**4, 5 * 10**6, 10**9)
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == FEWEST < sizes[1] < sizes[0]


def test_the_users_text_is_read_in_pieces_and_one_token_has_no_loss(tiny: Model) -> None:
    assert texts_of(tiny, OWN, list(range(LENGTH + 5))) == [
        list(range(LENGTH)),
        list(range(LENGTH, LENGTH + 5)),
    ]
    assert texts_of(tiny, OWN, [7]) == []


def test_the_largest_loss_comes_first_and_one_without_a_loss_last() -> None:
    whole = {None: 1.0} | {bug: float(i) for i, bug in enumerate(BUGS)} | {"no W_O": math.nan}
    bugs = ranked(whole, READING_AHEAD, [9.0])
    losses = [bug.whole for bug in bugs[:-1]]
    assert losses == sorted(losses, reverse=True)
    assert bugs[-1].name == "no W_O"
    by_name = {bug.name: bug for bug in bugs}
    first, *others = READING_AHEAD
    assert by_name[first].writing == 9.0
    assert all(math.isnan(by_name[bug].writing) for bug in others)
    assert by_name["no scale"].writing == by_name["no scale"].whole


def test_measured_has_the_losses_of_the_lessons(tiny: Model) -> None:
    texts = [[5, 17, 201, 5, 17, 44, 8], [1, 2, 3]]
    for bug in measured(tiny, texts, len(READING_AHEAD)):
        assert bug.whole == loss_whole(tiny.network, texts, bug.name)
        expected = loss_writing(tiny.network, texts, bug.name)
        assert bug.writing == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("bug", BUGS)
@pytest.mark.parametrize("T", [1, 7])
def test_a_comparison_holds_what_the_page_says(tiny: Model, bug: str, T: int) -> None:
    ids = torch.tensor([[5, 17, 201, 5, 17, 44, 8][:T]])
    found = run_both(tiny.network, ids, bug, 1)
    with torch.inference_mode():
        p = tiny.network(ids)[0, -1].softmax(-1)
    (expected, before), *_ = found.right_top
    assert expected == int(p.argmax())
    assert before == pytest.approx(float(p.max()), abs=1e-5)
    assert found.shapes[0] == found.shapes[1]
    assert found.moved[0] == pytest.approx(0, abs=1e-4)
    assert (found.moved[1] > 1e-3) == (BUGS[bug].reads_ahead and T > 1)
    assert len(found.wrong_top) == 3
    if found.same:
        assert T == 1
        np.testing.assert_array_equal(found.correct_patterns, found.patterns)


def test_one_head_needs_no_transpose(gpt2, checkpoint) -> None:  # type: ignore[no-untyped-def]
    from mha_viz.checkpoints import load

    model = load(checkpoint(gpt2(n_head=1)), device="cpu")
    ids = torch.tensor([[5, 17, 201, 5]])
    for bug in ("no transpose", "no transpose back", "root of C"):
        assert run_both(model.network, ids, bug, 0).same


def test_a_model_that_cannot_run_with_the_bug_says_why(tiny: Model) -> None:
    pruned = prune(tiny.network, [Head(0, 1)])
    with pytest.raises(ShapeError, match=r"attn_out has shape \[1, 3, 24\]"):
        run_both(pruned, torch.tensor([[5, 17, 201]]), "no W_O", 0)

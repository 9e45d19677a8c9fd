"""Texts, gates and heads that do not fit are rejected with their sizes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from support.pruning import IDS, OTHER_IDS

from mha_viz import pruning
from mha_viz.errors import HeadNotFound, ShapeError, TextError
from mha_viz.model import Model
from mha_viz.pruning import (
    Pass,
    ablate_each_head,
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("t", "The text has 1 token. The loss measures how well each next token is predicted"),
        ([5], "The text has 1 token"),
        ([], "The text has no tokens"),
        ("", "The text is empty"),
        ([1] * 65, "There are 65 token ids; .* reads from 1 to 64 at once. Shorten the text"),
        ([0, 300], "from 0 to 300; .* ids 0 to 299"),
        ([-1, 5], "from -1 to 5"),
        ([0.5, 1.5], "is neither a text nor a list of token ids"),
        (None, "None is neither a text nor a list"),
    ],
)
def test_a_text_that_has_no_loss_is_rejected(tiny: Model, text: Any, words: str):
    for job in (ablate_each_head, pruning.losses, Pass.of):
        with pytest.raises(TextError, match=words):
            job(tiny, text)


def test_an_input_that_does_not_fit_is_rejected_with_its_shape(tiny: Model):
    jobs: list[tuple[Callable[[], Any], type[Exception], str]] = [
        (lambda: Pass.of(tiny, IDS, gate=torch.ones(4)), ShapeError, r"\[4\]; .* \[2, 4\]"),
        (lambda: ablate_each_head(tiny, IDS, first=24), ShapeError, "positions 1 to 23"),
        (lambda: ablate_each_head(tiny, IDS, method="median"), ShapeError, "'median'; .* zero"),
        (
            lambda: Pass.of(tiny, IDS).without(
                [(0, 0)], pruning.make_replacement(tiny, "resample", 8, [IDS])
            ),
            ShapeError,
            "has 8 positions and the text has 24",
        ),
        (lambda: pruning.make_replacement(tiny, "mean", 65), ShapeError, "length = 65; .* 2 to 64"),
        (
            lambda: pruning.make_replacement(tiny, "mean", 24, [IDS[:9]]),
            TextError,
            "9 tokens. .* of 24 tokens it needs",
        ),
        (lambda: pruning.make_replacement(tiny, "mean", 24, []), TextError, "There is no text"),
        (lambda: Pass.of(tiny, IDS).without([(2, 0)]), HeadNotFound, "L2 H0 is not in this model"),
        (lambda: Pass.of(tiny, IDS).without([(0, -1)]), HeadNotFound, "heads 0 to 3"),
        (
            lambda: pruning.next_tokens(Pass.of(tiny, IDS), Pass.of(tiny, OTHER_IDS)),
            ShapeError,
            "Compare passes of one network over one text",
        ),
        (
            lambda: pruning.next_tokens(Pass.of(tiny, IDS), Pass.of(tiny, IDS), also=[300]),
            TextError,
            "There is no token id 300",
        ),
        (lambda: pruning.chunks(tiny, ["t", [3]], 8), TextError, "None of the texts"),
    ]
    for job, kind, words in jobs:
        with pytest.raises(kind, match=words):
            job()


def test_long_texts_are_cut_into_chunks_that_all_have_a_loss(tiny: Model):
    assert pruning.chunks(tiny, [IDS, OTHER_IDS[:17]], 8) == [
        IDS[:8], IDS[8:16], IDS[16:], OTHER_IDS[:8], OTHER_IDS[8:16],
    ]  # fmt: skip
    for alone in (IDS, [IDS], np.array(IDS), [np.array(IDS)], torch.tensor([IDS])):
        assert pruning.chunks(tiny, alone, 64) == [IDS]

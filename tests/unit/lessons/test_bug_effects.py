"""What a bug does: losses are those of plain runs, reading ahead is found, pieces are real."""

import math

import pytest
import torch
from torch.nn import functional as F

from mha_viz.attention import MultiHeadAttention
from mha_viz.errors import ShapeError
from mha_viz.head import Head
from mha_viz.lessons.bug_effects import (
    change_before_the_last,
    loss_or_nan,
    loss_whole,
    loss_writing,
    pieces,
    row_of_merge,
    rows_of_head,
    softmax_gradient,
)
from mha_viz.lessons.bugs import BUGS, attention_with_bug, run_with_bug
from mha_viz.model import Model
from mha_viz.pruning import prune

TEXTS = ("the cat sat on the mat and the dog ran", "a small old town where many people sing", "so")
EVERY = [None, *BUGS]


def read(model: Model) -> list[list[int]]:
    return pieces([model.input_ids(text) for text in TEXTS], 7)


def test_pieces_hold_every_token_but_a_single_one_at_the_end() -> None:
    assert pieces([range(5), range(1), range(4)], 2) == [[0, 1], [2, 3], [0, 1], [2, 3]]


@pytest.mark.parametrize("bug", EVERY)
def test_the_losses_are_those_of_plain_runs_whole_and_on_every_prefix(tiny: Model, bug: str | None):
    texts = read(tiny)
    whole, writing = [], []
    for piece in texts:
        ids = torch.tensor([piece])
        logits = run_with_bug(tiny.network, ids[:, :-1], bug, 0).logits
        whole += F.cross_entropy(logits, ids[0, 1:], reduction="none").tolist()
        for end in range(1, len(piece)):
            last = run_with_bug(tiny.network, ids[:, :end], bug, 0).logits[-1]
            writing.append(float(F.cross_entropy(last, ids[0, end])))
    shares: list[float] = []
    assert loss_whole(tiny.network, texts, bug) == pytest.approx(sum(whole) / len(whole), abs=1e-4)
    found = loss_writing(tiny.network, texts, bug, on_progress=shares.append)
    assert found == pytest.approx(sum(writing) / len(writing), abs=1e-4)
    assert shares == sorted(shares)
    assert shares[-1] == 1


@pytest.mark.parametrize("bug", EVERY)
def test_a_bug_that_reads_ahead_is_found_by_the_last_token_and_by_both_losses(
    tiny: Model, bundled: Model, bug: str | None
):
    ahead = bug is not None and BUGS[bug].reads_ahead
    for model in (tiny, bundled):
        for text in TEXTS[:2]:
            ids = torch.tensor([model.input_ids(text)])
            moved = change_before_the_last(model.network, ids, bug)
            assert moved > 1e-2 if ahead else moved == pytest.approx(0, abs=1e-4)
        texts = read(model)
        whole, writing = (loss(model.network, texts, bug) for loss in (loss_whole, loss_writing))
        assert (abs(whole - writing) > 1e-3) == ahead
    assert change_before_the_last(tiny.network, torch.tensor([[5]]), bug) == 0


def test_a_network_that_cannot_run_with_a_bug_has_no_loss(tiny: Model):
    pruned = prune(tiny.network, [Head(1, 2)])
    texts = read(tiny)
    with pytest.raises(ShapeError, match="attn_out"):
        loss_whole(pruned, texts, "no W_O")
    assert math.isnan(loss_or_nan(pruned, texts, "no W_O"))
    others = [bug for bug in EVERY if bug != "no W_O"]
    assert all(math.isfinite(loss_or_nan(pruned, texts, bug)) for bug in others)


def test_a_layer_without_heads_runs_with_every_bug_that_keeps_w_o(tiny: Model):
    pruned = prune(tiny.network, [Head(0, head) for head in range(4)])
    for bug in EVERY:
        assert math.isfinite(loss_or_nan(pruned, read(tiny), bug)) == (bug != "no W_O")


@pytest.mark.parametrize(("T", "H"), [(1, 4), (5, 4), (17, 6), (8, 1)])
@pytest.mark.parametrize("bug", [None, "no transpose", "no transpose back"])
def test_pieces_say_which_numbers_of_the_tensors_a_head_and_a_row_hold(T: int, H: int, bug: str):
    d_h = 3
    torch.manual_seed(0)
    attention = MultiHeadAttention(H * d_h, H)
    x = torch.randn(1, T, H * d_h)
    with torch.inference_mode():
        right = attention_with_bug(attention, x, None)
        steps = attention_with_bug(attention, x, bug)
    for head in range(H):
        found = rows_of_head(T, H, head, bug)
        for row, piece in enumerate(found):
            made = right.q[0, piece.head, piece.token]
            torch.testing.assert_close(steps.q[0, head, row], made, atol=0, rtol=0)
    for row in range(T):
        joined = [steps.z[0, head, token] for token, head in row_of_merge(T, H, row, bug)]
        torch.testing.assert_close(steps.merged[0, row], torch.cat(joined), atol=0, rtol=0)


@pytest.mark.parametrize("scale", [1.0, 8**-0.5])
def test_the_gradient_of_the_softmax_is_autograds(scale: float):
    generator = torch.Generator().manual_seed(8)
    q, k = (torch.randn(n, 8, generator=generator) for n in (5, 6))
    jacobians = [
        torch.autograd.functional.jacobian(lambda s: s.softmax(-1), row) for row in q @ k.T * scale
    ]
    expected = float(torch.stack(jacobians).abs().sum((1, 2)).mean())
    assert softmax_gradient(8, scale, keys=6, queries=5) == pytest.approx(expected, abs=1e-5)


def test_without_the_scale_the_gradient_vanishes_as_heads_get_wider():
    scaled, bare = (
        [softmax_gradient(d_h, d_h**power) for d_h in (8, 32, 64, 128)] for power in (-0.5, 0)
    )
    assert bare == sorted(bare, reverse=True)
    assert max(scaled) - min(scaled) < 0.05
    assert bare[-1] < 0.4 * scaled[-1]

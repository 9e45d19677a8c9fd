"""Memory layouts: where each number lies, what copies, and that a number keeps its name."""

from itertools import product

import numpy as np
import pytest
import torch
from support.models import some_ids

from mha_viz.errors import ShapeError
from mha_viz.lessons import layout as memory_layout
from mha_viz.lessons.walkthrough import random_layer, walk
from mha_viz.model import Model

SIZES = [(4, 3, 4), (2, 1, 3), (1, 4, 2), (6, 4, 4), (3, 2, 1)]
OF_Q, OF_Z = ["As projected", "View", "Transpose"], ["z", "Transpose back", "Merge"]


@pytest.mark.parametrize("sizes", SIZES)
def test_an_address_is_the_sum_of_indices_times_strides(sizes: tuple[int, int, int]):
    T, H, d_h = sizes
    for layout in memory_layout.layouts(T, H, d_h):
        for h, t, i in product(range(H), range(T), range(d_h)):
            index = {"H": h, "T": t, "d_h": i, "C": h * d_h + i}
            address = sum(index[a] * s for a, s in zip(layout.axes, layout.strides, strict=True))
            assert layout.cells[h, t, i] == address
            # Wherever it lies, it keeps its name.
            assert layout.tape[address] == (t * H + h) * d_h + i


@pytest.mark.parametrize("sizes", SIZES)
def test_q_keeps_one_tape_with_k_and_v_between_and_z_another(sizes: tuple[int, int, int]):
    T, H, d_h = sizes
    C = H * d_h
    found = {layout.title: layout for layout in memory_layout.layouts(T, H, d_h)}
    for title in OF_Q:
        tape = found[title].tape.reshape(T, 3 * C)
        assert (tape[:, :C].ravel() == np.arange(T * C)).all()
        assert (tape[:, C:] == memory_layout.OTHER).all()
    for title in OF_Z[:2]:
        expected = np.arange(T * C).reshape(T, H, d_h).swapaxes(0, 1).ravel()
        assert (found[title].tape == expected).all()
    assert [found[title].name for title in (*OF_Q, *OF_Z)] == ["q"] * 3 + ["z"] * 3


def test_only_the_merge_copies():
    found = {layout.title: layout for layout in memory_layout.layouts(4, 3, 4)}
    assert [title for title, layout in found.items() if layout.copied] == ["Merge"]
    assert [t for t, layout in found.items() if layout.contiguous] == ["z", "Merge"]
    merge = found["Merge"]
    assert merge.before is not None
    assert (merge.before == found["z"].tape).all()
    assert (merge.tape == np.arange(48)).all()
    assert all(layout.before is None for layout in found.values() if not layout.copied)
    for sizes in product((1, 2, 3), repeat=3):
        for layout in memory_layout.layouts(*sizes):
            assert layout.copied == (layout.title == "Merge" and 1 not in sizes)


@pytest.mark.parametrize("sizes", [(8, 6, 6, 32), (5, 4, 2, 8), (3, 4, 1, 8)])
def test_the_strides_of_a_layer_are_those_of_its_walk(sizes: tuple[int, int, int, int]):
    T, H, G, d_h = sizes
    attention, x = random_layer(H * d_h, H, 1, T)
    if G == H:
        steps = {step.lesson.name: step.strides for step in walk(attention, x)}
        for name, strides in memory_layout.strides_of_q(*sizes).items():
            assert steps[name] == list(strides)
    split, view, turned = memory_layout.strides_of_q(*sizes).values()
    step = (H + 2 * G) * d_h
    assert (split[1:], view[1:], turned[1:]) == ((step, 1), (step, d_h, 1), (d_h, step, 1))


def test_the_strides_of_the_bundled_model_are_those_of_its_own_q(bundled: Model):
    config = bundled.config
    q, _, _ = bundled.network.blocks[0].attn.project(
        bundled.network.attention_input(some_ids(7, config.vocab_size), 0)
    )
    strides = memory_layout.strides_of_q(7, config.n_heads, config.n_heads, config.d_head)
    assert q.stride()[1:] == strides["transpose"][1:]


@pytest.mark.parametrize("sizes", [*product((1, 2, 4), repeat=3)])
def test_operations_do_what_they_are_said_to_do(sizes: tuple[int, int, int]):
    for layout in memory_layout.layouts(*sizes):
        turned, view, reshaped, contiguous = memory_layout.operations(*sizes, layout.title)
        assert turned.shared, "transpose never copies"
        assert bool(view.error) != view.shared, "view shares the tape or is refused"
        assert reshaped.shared == view.shared, "reshape copies exactly where view is refused"
        assert not reshaped.error
        assert contiguous.shared == layout.contiguous, "contiguous copies what is not in order"
        assert contiguous.shape == layout.shape
        assert torch.empty(contiguous.shape).stride() == contiguous.strides or 1 in sizes


def test_torch_rejects_a_view_of_a_transposed_tensor_unless_nothing_would_move():
    view, by_contiguous, reshaped = memory_layout.merges(4, 3, 4)
    assert "view size is not compatible" in view.error == memory_layout.view_error(4, 3, 4)
    assert memory_layout.view_error(1, 3, 4) == memory_layout.view_error(4, 1, 4) == ""
    assert by_contiguous.shape == reshaped.shape == (4, 12)
    assert not by_contiguous.shared
    assert not reshaped.shared


@pytest.mark.parametrize("sizes", [(0, 1, 1), (1, 5, 1)])
def test_sizes_that_cannot_be_drawn_are_rejected(sizes: tuple[int, int, int]):
    with pytest.raises(ShapeError, match="at most T 6, H 4, d_h 4"):
        memory_layout.layouts(*sizes)

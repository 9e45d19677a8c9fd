"""The walkthrough of one layer: its last tensor is the output, and its memory layout is true."""

import numpy as np
import pytest
import torch

from mha_viz.errors import ShapeError
from mha_viz.lessons import layout as memory_layout
from mha_viz.lessons import walkthrough
from mha_viz.lessons.grouped_query import grouped
from mha_viz.model import Model


def steps(B: int = 2, T: int = 5, C: int = 24, H: int = 4) -> dict[str, walkthrough.Step]:
    attention, x = walkthrough.random_layer(C, H, B, T)
    return {step.lesson.name: step for step in walkthrough.walk(attention, x)}


@pytest.mark.parametrize("sizes", [(1, 1, 4, 1), (2, 5, 24, 4), (3, 7, 30, 5)])
def test_the_last_step_is_what_the_layer_gives(sizes: tuple[int, ...]):
    B, T, C, H = sizes
    attention, x = walkthrough.random_layer(C, H, B, T)
    record = attention.explicit(x)
    found = {step.lesson.name: step.tensor for step in walkthrough.walk(attention, x)}
    expected_tensors = {
        "transpose": record.q,
        "scale": record.scores,
        "softmax": record.pattern,
        "weighted sum": record.z,
        "output": record.out,
    }
    for name, expected in expected_tensors.items():
        torch.testing.assert_close(found[name], expected, atol=1e-6, rtol=0)


def test_the_walkthrough_of_a_model_is_what_the_model_computes(bundled: Model):
    trace = bundled.trace("The king gave the princess a golden ring.")
    x = bundled.network.attention_input(torch.tensor([trace.token_ids]), 2)
    found = {s.lesson.name: s for s in walkthrough.walk(bundled.network.blocks[2].attn, x)}
    np.testing.assert_allclose(found["transpose"].tensor[0].numpy(), trace.q[2], atol=1e-5)
    np.testing.assert_allclose(found["softmax"].tensor[0].numpy(), trace.patterns(2), atol=1e-5)


def test_each_shape_has_the_axes_it_is_named_by():
    sizes = {"B": 2, "T": 5, "C": 24, "3C": 72, "H": 4, "d_h": 6}
    for step in steps().values():
        assert step.shape == [sizes[axis] for axis in step.lesson.axes]


def test_only_computed_steps_and_the_merge_write_new_memory():
    copied = [name for name, step in steps().items() if step.copied]
    computed = {"project", "scores", "scale", "mask", "softmax", "weighted sum", "output"}
    assert set(copied) == {"input", *computed, "merge"}


def test_the_transpose_swaps_two_strides_and_moves_nothing():
    found = steps()
    view, turned = found["view"], found["transpose"]
    assert view.strides == [360, 72, 6, 1]
    assert turned.strides == [360, 6, 72, 1]
    assert view.tensor.data_ptr() == turned.tensor.data_ptr()
    assert not turned.tensor.is_contiguous()


def test_flops_count_a_multiply_add_twice():
    found = steps()
    assert found["project"].flops == 2 * 2 * 5 * 24 * 72
    assert found["scores"].flops == found["weighted sum"].flops == 2 * 2 * 4 * 5 * 5 * 6
    assert found["output"].flops == 2 * 2 * 5 * 24 * 24
    assert found["view"].flops == found["transpose"].flops == found["merge"].flops == 0


def test_every_lesson_shows_a_line_that_is_there():
    source = (walkthrough.source.__file__ or "").replace(".pyc", ".py")
    with open(source, encoding="utf-8") as file:
        lines = file.read().splitlines()
    for lesson in walkthrough.LESSONS:
        number, line = walkthrough.code_line(lesson.code)
        assert lines[number - 1].strip() == line
    with pytest.raises(LookupError):
        walkthrough.code_line("no such line")


def test_shared_keys_and_values_belong_to_the_first_of_their_heads():
    attention, x = walkthrough.random_layer(24, 4, 1, 3)
    few = grouped(attention, 2)
    project = walkthrough.walk(few, x)[1]
    assert project.shape == [1, 3, (4 + 2 + 2) * 6]
    assert walkthrough.owners(few, project, range(4)) == (0, 1, 2, 3, 0, 2, 0, 2)
    assert walkthrough.owners(few, walkthrough.walk(few, x)[0], range(4)) == ()


# --- memory layout --------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(4, 3, 4), (2, 1, 3), (1, 4, 2), (6, 4, 4)])
def test_an_address_is_the_sum_of_indices_times_strides(sizes: tuple[int, int, int]):
    T, H, d_h = sizes
    for layout in memory_layout.layouts(T, H, d_h):
        for h in range(H):
            for t in range(T):
                for i in range(d_h):
                    index = {"H": h, "T": t, "d_h": i, "C": h * d_h + i}
                    address = sum(
                        index[a] * s for a, s in zip(layout.axes, layout.strides, strict=True)
                    )
                    assert layout.cells[h, t, i] == address
                    # Wherever it is stored, it is the element projected to (t, h, i).
                    assert layout.storage[address] == (t * H + h) * d_h + i


def test_what_copies_and_what_does_not():
    found = {layout.title: layout for layout in memory_layout.layouts(4, 3, 4)}
    assert [t for t, layout in found.items() if layout.copied] == ["Contiguous", "Merge"]
    assert [t for t, layout in found.items() if not layout.contiguous] == ["Transpose"]
    assert (found["Merge"].storage == np.arange(48)).all()
    assert not (found["Contiguous"].storage == np.arange(48)).all()


def test_torch_rejects_a_view_of_a_transposed_tensor_unless_nothing_would_move():
    assert "view size is not compatible" in memory_layout.view_error(4, 3, 4)
    assert memory_layout.view_error(1, 3, 4) == memory_layout.view_error(4, 1, 4) == ""


@pytest.mark.parametrize("sizes", [(0, 1, 1), (1, 5, 1)])
def test_sizes_that_cannot_be_drawn_are_rejected(sizes: tuple[int, int, int]):
    with pytest.raises(ShapeError, match="at most T 6, H 4, d_h 4"):
        memory_layout.layouts(*sizes)

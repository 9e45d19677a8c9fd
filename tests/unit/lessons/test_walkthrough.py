"""The walkthrough of one layer: its last tensor is the output, and its strides are torch's."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from mha_viz.lessons import walkthrough
from mha_viz.lessons.grouped_query import grouped
from mha_viz.model import Model


def steps(B: int = 2, T: int = 5, C: int = 24, H: int = 4) -> dict[str, walkthrough.Step]:
    attention, x = walkthrough.random_layer(C, H, B, T)
    return {step.lesson.name: step for step in walkthrough.walk(attention, x)}


@pytest.mark.parametrize("sizes", [(1, 1, 4, 1), (2, 5, 24, 4), (3, 7, 30, 5)])
def test_the_last_step_is_the_output_of_the_layer(sizes: tuple[int, ...]):
    B, T, C, H = sizes
    attention, x = walkthrough.random_layer(C, H, B, T)
    record = attention.explicit(x)
    found = {step.lesson.name: step.tensor for step in walkthrough.walk(attention, x)}
    expected_tensors = {
        "transpose": record.q,
        "scores": record.scores,
        "softmax": record.pattern,
        "z": record.z,
        "output": record.out,
        "+ x": x + record.out,
    }
    for name, expected in expected_tensors.items():
        torch.testing.assert_close(found[name], expected, atol=1e-6, rtol=0)


def test_the_walkthrough_of_a_model_is_what_the_model_computes(bundled: Model):
    trace = bundled.trace("The king gave the princess a golden ring.")
    ids = torch.tensor([trace.token_ids])
    resid, x = walkthrough.layer_input(bundled.network, ids, 2)
    torch.testing.assert_close(x, bundled.network.attention_input(ids, 2))
    block = bundled.network.blocks[2]
    found = {s.lesson.name: s for s in walkthrough.walk(block.attn, x, resid)}
    after = found["+ x"].tensor
    expected = list(bundled.network.residuals(ids))[3]
    torch.testing.assert_close(after + block.mlp_output(resid, after), expected)
    np.testing.assert_allclose(found["transpose"].tensor[0].numpy(), trace.q[2], atol=1e-5)
    np.testing.assert_allclose(found["softmax"].tensor[0].numpy(), trace.patterns(2), atol=1e-5)


def test_each_shape_has_the_axes_it_is_named_by():
    sizes = {"B": 2, "T": 5, "C": 24, "3C": 72, "H": 4, "d_h": 6}
    for step in steps().values():
        assert step.shape == [sizes[axis] for axis in step.lesson.axes]


def test_only_computed_steps_and_the_merge_write_new_memory():
    copied = [name for name, step in steps().items() if step.copied]
    computed = {"q k v", "scores", "mask", "softmax", "z", "output", "+ x"}
    assert set(copied) == {"x", *computed, "merge"}


def test_the_transpose_swaps_two_strides_and_moves_nothing():
    found = steps()
    view, turned = found["view"], found["transpose"]
    assert view.strides == [360, 72, 6, 1]
    assert turned.strides == [360, 6, 72, 1]
    assert view.tensor.data_ptr() == turned.tensor.data_ptr()
    assert not turned.tensor.is_contiguous()


def test_flops_count_a_multiply_add_twice():
    found = steps()
    pairs = 2 * 4 * 5 * 5
    assert found["q k v"].flops == 2 * 2 * 5 * 24 * 72
    assert found["z"].flops == 2 * pairs * 6
    assert found["scores"].flops == 2 * pairs * 6 + pairs, "and one for the scale"
    assert found["+ x"].flops == 2 * 5 * 24
    assert found["output"].flops == 2 * 2 * 5 * 24 * 24
    assert found["view"].flops == found["transpose"].flops == found["merge"].flops == 0


def test_every_lesson_shows_an_existing_line():
    for lesson in walkthrough.LESSONS:
        source = walkthrough.SOURCES[lesson.module].__file__ or ""
        lines = Path(source).read_text(encoding="utf-8").splitlines()
        number, line = walkthrough.code_line(lesson)
        assert lines[number - 1].strip() == line
    with pytest.raises(LookupError):
        walkthrough.code_line(replace(walkthrough.LESSONS[0], code="no such line"))


def test_shared_keys_and_values_belong_to_the_first_of_their_heads():
    attention, x = walkthrough.random_layer(24, 4, 1, 3)
    few = grouped(attention, 2)
    project = walkthrough.walk(few, x)[1]
    assert project.shape == [1, 3, (4 + 2 + 2) * 6]
    assert walkthrough.owners(few, project, range(4)) == (0, 1, 2, 3, 0, 2, 0, 2)
    assert walkthrough.owners(few, walkthrough.walk(few, x)[0], range(4)) == ()

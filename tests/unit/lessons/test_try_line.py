"""A visitor's line for each step: the right ones are accepted, the others told apart."""

import pytest
import torch

from mha_viz.lessons.module_run import STEPS, ModuleRun, Step, run_module
from mha_viz.lessons.try_line import Answer, n_different, try_line
from mha_viz.model import Model

TEXT = "The king gave the princess a golden ring"
EVERY = [pytest.param(step, id=step.name) for step in STEPS]


@pytest.fixture(scope="module")
def run(bundled: Model) -> ModuleRun:
    """Layer 3 of the bundled model on eight tokens."""
    ids = torch.tensor([list(map(int, bundled.trace(TEXT).token_ids))])
    assert ids.shape == (1, 8)
    block = bundled.network.blocks[3]
    with torch.inference_mode():
        resid = list(bundled.network.residuals(ids))[3]
    return run_module(block.attn, block.attention_input(resid), resid)


def answer(run: ModuleRun, name: str, line: str) -> Answer:
    step = next(step for step in STEPS if step.name == name)
    return try_line(line, run.names[name], step.given[0], run.target(name))


@pytest.mark.parametrize("step", EVERY)
def test_each_step_has_a_line_that_equals_the_module(run: ModuleRun, step: Step) -> None:
    found = answer(run, step.name, step.line)
    assert found.error == ""
    assert found.right
    assert found.equal.startswith("yes")


@pytest.mark.parametrize("step", EVERY)
def test_wrong_lines_are_never_taken_for_the_module(run: ModuleRun, step: Step) -> None:
    for line in step.others:
        found = answer(run, step.name, line)
        assert not found.right, line
        assert found.error or found.equal.startswith("no"), line


def test_view_across_memory_is_refused_in_torch_s_words(run: ModuleRun) -> None:
    found = answer(run, "transpose", "q.view(1, 6, 8, 32)")
    assert found.error.startswith("torch: view size is not compatible with input tensor's size")
    assert found.shape == ""


def test_reshape_has_the_right_shape_and_the_wrong_numbers(run: ModuleRun) -> None:
    found = answer(run, "transpose", "q.reshape(1, 6, 8, 32)")
    assert found.shape == "[1, 6, 8, 32]"
    assert found.same_shape
    assert found.strides == "(1536, 256, 32, 1)"
    assert found.memory == "no: a copy of 6 KiB"
    assert found.equal == "no: 1,472 of 1,536 numbers differ"


def test_view_and_transpose_share_memory_and_equal_the_module(run: ModuleRun) -> None:
    found = answer(run, "transpose", "q.view(1, 8, 6, 32).transpose(1, 2)")
    assert found.strides == "(4608, 32, 576, 1)"
    assert found.memory == "yes"
    assert found.equal == "yes, to the last digit"


def test_what_memory_a_tensor_has_is_told_apart(run: ModuleRun) -> None:
    assert answer(run, "+ x", "out").memory == "no: with out"
    assert answer(run, "z", "w @ v").memory == "no: new numbers, 6 KiB"


def test_other_shapes_and_other_things_than_tensors_are_no_answer(run: ModuleRun) -> None:
    assert answer(run, "view", "q").equal == "no: the module's is [1, 8, 6, 32]"
    assert answer(run, "view", "q.shape").shape == "not a tensor, but (1, 8, 192)"
    assert not answer(run, "view", "q.shape").right


def test_rounding_is_not_a_difference() -> None:
    a = torch.tensor([1.0, -torch.inf, torch.nan, 1000.0])
    assert n_different(a, a) == 0
    assert n_different(a + 1e-4, a) == 0
    assert n_different(a + torch.tensor([0.1, 0, 0, 0]), a) == 1
    assert n_different(a == 1, a == 2) == 1

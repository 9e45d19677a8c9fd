"""The module while it runs: each step's expression gives the module's own tensors."""

import pytest
import torch

from mha_viz.lessons import module_run
from mha_viz.lessons.implementations import IMPLEMENTATIONS
from mha_viz.lessons.module_run import NAMES, STEPS, ModuleRun, run_module
from mha_viz.lessons.try_line import same_memory
from mha_viz.lessons.walkthrough import random_layer


@pytest.fixture(scope="module")
def run() -> ModuleRun:
    attention, x = random_layer(24, 4, 1, 5)
    return run_module(attention, x, x + 1)


def test_each_step_gives_the_tensors_of_the_module(run: ModuleRun) -> None:
    attention, x = random_layer(24, 4, 1, 5)
    with torch.inference_mode():
        record = attention.explicit(x)
    wanted = {
        "transpose": record.q,
        "scores": record.scores,
        "softmax": record.pattern,
        "z": record.z,
        "output": record.out,
        "+ x": x + 1 + record.out,
    }
    for step, tensor in wanted.items():
        assert torch.allclose(run.target(step)[0], tensor, atol=1e-6), step


def test_the_steps_are_the_expressions_of_the_fused_form(run: ModuleRun) -> None:
    assert list(IMPLEMENTATIONS[0].expressions) == list(NAMES) == list(run.results)
    assert set(run.shapes.values()) >= {"3 × [1, 4, 5, 6]", "[1, 4, 5, 5]", "[5, 5]"}


def test_nothing_is_copied_from_the_projection_to_the_heads_and_merge_copies(
    run: ModuleRun,
) -> None:
    for step, copied in (("split", False), ("view", False), ("transpose", False), ("merge", True)):
        first, *_, last = run.results[step].operations
        assert same_memory(first.tensors[0], last.tensors[0]) != copied, step


def test_strides_are_those_of_windows_on_the_product(run: ModuleRun) -> None:
    T, C, d_h = 5, 24, 6
    assert run.target("view")[0].stride() == (3 * C * T, 3 * C, d_h, 1)
    assert run.target("transpose")[0].stride() == (3 * C * T, d_h, 3 * C, 1)


def test_a_step_names_only_what_its_line_needs(run: ModuleRun) -> None:
    for step in STEPS:
        assert set(step.given) <= run.names[step.name].keys()
        assert {"B", "T", "C", "H", "d_h"} <= run.names[step.name].keys()
    assert "w" not in run.names["softmax"]
    assert module_run.NAMES[0] == "x"

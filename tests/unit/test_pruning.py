"""The shared model never changes, whatever is removed and however many threads use it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from support.models import everything, fingerprint
from support.pruning import HEADS, IDS, OTHER_IDS, H, L

from mha_viz import pruning
from mha_viz.errors import MhaVizError
from mha_viz.model import Model
from mha_viz.pruning import (
    Pass,
    ablate_each_head,
)


def test_after_an_exception_the_model_is_as_it_was(tiny: Model):
    parts, before = everything(tiny.network), fingerprint(tiny.network)

    def stop(share: float) -> None:
        raise KeyboardInterrupt(f"after {share}")

    jobs: list[Callable[[], Any]] = [
        lambda: ablate_each_head(tiny, IDS, on_progress=stop),
        lambda: pruning.gradient_importance(tiny, IDS, on_progress=stop),
        lambda: pruning.make_replacement(tiny, "mean", 8, [OTHER_IDS], on_progress=stop),
        lambda: next(pruning.order(tiny, [IDS], "greedy", on_progress=stop)),
        lambda: Pass.of(tiny, IDS).without([(9, 9)]),
        lambda: list(pruning.curve(tiny, [IDS], [(0, 0), (0, 9)])),
        lambda: pruning.prune(tiny, [(0, 1), (7, 7)]),
    ]
    for job in jobs:
        with pytest.raises((KeyboardInterrupt, MhaVizError)):
            job()
    ablate_each_head(tiny, IDS), pruning.gradient_importance(tiny, IDS), pruning.prune(tiny, HEADS)
    assert everything(tiny.network) == parts, "no hook, no attribute, no mode, no gradient"
    assert fingerprint(tiny.network) == before
    assert not any(p.requires_grad or p.grad is not None for p in tiny.network.parameters())


def test_threads_with_other_gates_do_not_see_each_other(tiny: Model):
    generator = torch.Generator().manual_seed(2)
    gates = [torch.rand(L, H, generator=generator).round() for _ in range(8)]

    def work(gate: torch.Tensor) -> list[Any]:
        return [
            (Pass.of(tiny, IDS, gate=gate).losses(), pruning.gradient_importance(tiny, IDS))
            for _ in range(10)
        ]

    alone = [work(gate)[0] for gate in gates]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(work, gates))
    for (losses, gradient), runs in zip(alone, together, strict=True):
        for again, also in runs:
            assert np.array_equal(again, losses)
            assert np.array_equal(also, gradient)

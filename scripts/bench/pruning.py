"""The importance of every head of GPT-2 small at T = 64, exact and by the gradient, in CPU time.

Theirs is a loop over all heads, with a hook on the input of c_proj of GPT2LMHeadModel that sets one
head's part to zero, and one forward pass per head. Twelve heads are timed, one per layer, and the
time is multiplied by twelve, since all passes take equally long. Ours is all of
`pruning.ablate_each_head`. The weights are the random ones of `compute`, for both sides.
"""

import functools
import time
from collections.abc import Callable, Iterator
from statistics import median

import torch
from torch.nn import functional as F

from bench.common import NotMeasured, Row, at_least, factor, show, text_of, turns
from bench.compute import both
from mha_viz import pruning
from mha_viz.checkpoints import load
from mha_viz.head import Head

N_TOKENS = 64
MEASURED = [(layer, 5 * layer % 12) for layer in range(12)]
EQUAL = 1e-5  # nats per token
TOGGLE_MS = 150
LOOP = (
    "Each head ablated: CPU time with 1 thread, 64 tokens, against a loop over 144 heads with a "
    "hook on GPT2LMHeadModel (12 heads measured, times 12). Exact: both give the same numbers."
)


def hook_loop() -> list[float]:
    """The loss without each of the measured heads, by transformers."""
    theirs, ours = both()
    ids = torch.tensor([ours.encode(text_of(N_TOKENS))[0]])
    return [_loss_without(theirs, ids, *head) for head in MEASURED]


@torch.inference_mode()
def _loss_without(theirs: torch.nn.Module, ids: torch.Tensor, layer: int, head: int) -> float:
    def zero(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor]:
        z = inputs[0].clone()
        z[..., 64 * head : 64 * (head + 1)] = 0.0
        return (z,)

    hook = theirs.transformer.h[layer].attn.c_proj.register_forward_pre_hook(zero)
    try:
        logits = theirs(ids, use_cache=False).logits[0]
    finally:
        hook.remove()
    return float(F.cross_entropy(logits[:-1], ids[0, 1:]))


@functools.cache
def times(quick: bool) -> dict[str, float]:
    """Median CPU seconds of the loop over all 144 heads, of our sweep, and of the gradient."""
    check_equal()
    _, model = both()
    text = text_of(N_TOKENS)
    sides: dict[str, Callable[[], object]] = {
        "loop": hook_loop,
        "sweep": lambda: pruning.ablate_each_head(model, text),
        "gradient": lambda: pruning.gradient_importance(model, text),
    }
    seconds = turns(sides, 1 if quick else 3)
    return seconds | {"loop": 12 * seconds["loop"]}


def ablation(quick: bool) -> Iterator[Row]:
    """Exact, then estimated, then one head ablated by hand on the bundled model."""
    seconds = times(quick)
    loop, sweep, gradient = (seconds[name] for name in ("loop", "sweep", "gradient"))
    yield at_least("Each head ablated, exact", loop, sweep, 1.6, "s", LOOP)
    note = (
        "Estimated: one forward and one backward pass (gradient_importance), "
        f"{factor(sweep / gradient)} faster than our exact sweep."
    )
    yield at_least("Each head ablated, estimated", loop, gradient, 50, "s", note)
    yield toggle(3 if quick else 15)


def toggle(repeats: int) -> Row:
    """A head of the first layer ablated: losses, next tokens, divergence, change of patterns."""
    model = load("bundled", device="cpu")
    full = pruning.Pass.of(model, text_of(N_TOKENS))
    times_ms = []
    for head in range(repeats + 1):
        begun = time.process_time()
        ablated = full.without([(0, head % model.config.n_heads)])
        ablated.losses()
        pruning.next_tokens(full, ablated)
        pruning.divergence(full, ablated)
        pruning.pattern_change(full, ablated)
        times_ms.append(1e3 * (time.process_time() - begun))
    ours = median(times_ms[1:])
    what, goal = "A head ablated by hand, T = 64", f"at most {TOGGLE_MS} ms"
    note = "Ablated by hand: the bundled model, with all numbers that the page shows."
    return Row(what, "", show(ours, "ms"), "", goal, ours <= TOGGLE_MS, note)


def check_equal() -> None:
    """Raises NotMeasured if the two sides compute different losses."""
    _, model = both()
    text = text_of(N_TOKENS)
    increases = pruning.ablate_each_head(model, text)
    full = pruning.Pass.of(model, text).loss
    for head, loss in zip(MEASURED, hook_loop(), strict=True):
        difference = abs(increases[head] + full - loss)
        if difference > EQUAL:
            raise NotMeasured(
                f"without {Head(head[0], head[1]).label} the losses differ: {difference:.1e}."
            )

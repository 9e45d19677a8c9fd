"""What every head costs, on GPT-2 small at T = 64: exactly, and by the gradient, in CPU time.

Theirs is what people write: a hook on the input of c_proj of GPT2LMHeadModel that sets one head's
part to zero, and a forward pass a head. Twelve heads are measured, one a layer, and count twelve
times: a pass costs the same whatever head is gone. Ours is `pruning.ablate_each_head`, whole. The
weights are the random ones of `compute`, shared by both sides.
"""

import functools
import time
from collections.abc import Callable, Iterator
from statistics import median

import torch
from torch.nn import functional as F

from bench.common import NotMeasured, Row, at_least, show, text_of, turns
from bench.compute import both
from mha_viz import pruning
from mha_viz.checkpoints import load
from mha_viz.head import Head

N_TOKENS = 64
MEASURED = [(layer, 5 * layer % 12) for layer in range(12)]
EQUAL = 1e-5  # nats a token
TOGGLE_MS = 150
LOOP = (
    "Every head removed: CPU time with 1 thread, 64 tokens, against a loop over 144 heads with a "
    "hook on GPT2LMHeadModel (12 heads measured, times 12). Exactly: both give the same numbers."
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
    taken = turns(sides, 1 if quick else 3)
    return taken | {"loop": 12 * taken["loop"]}


def ablation(quick: bool) -> Iterator[Row]:
    """Exact, then estimated, then one toggle by hand on the bundled model."""
    taken = times(quick)
    yield at_least("Every head removed, exactly", taken["loop"], taken["sweep"], 1.6, "s", LOOP)
    yield at_least(
        "Every head removed, estimated", taken["loop"], taken["gradient"], 50, "s",
        "Estimated: one pass there and back (gradient_importance); it takes "
        f"{show(taken['sweep'] / taken['gradient'], '×')} less than our exact sweep, too.",
    )  # fmt: skip
    yield toggle(3 if quick else 15)


def toggle(repeats: int) -> Row:
    """A head of the lowest layer off: losses, next tokens, divergence, change of patterns."""
    model = load("bundled", device="cpu")
    whole = pruning.Pass.of(model, text_of(N_TOKENS))
    found = []
    for head in range(repeats + 1):
        begun = time.process_time()
        one = whole.without([(0, head % model.config.n_heads)])
        one.losses()
        pruning.next_tokens(whole, one)
        pruning.divergence(whole, one)
        pruning.pattern_change(whole, one)
        found.append(1e3 * (time.process_time() - begun))
    ours = median(found[1:])
    return Row(
        "A head switched off by hand, T = 64", "", show(ours, "ms"), "", f"{TOGGLE_MS} ms at most",
        ours <= TOGGLE_MS, "Switched off by hand: the bundled model, with all that the page says.",
    )  # fmt: skip


def check_equal() -> None:
    """Both sides must have removed the same thing, or there is nothing to compare."""
    _, model = both()
    text = text_of(N_TOKENS)
    found = pruning.ablate_each_head(model, text)
    whole = pruning.Pass.of(model, text).loss
    for head, loss in zip(MEASURED, hook_loop(), strict=True):
        difference = abs(found[head] + whole - loss)
        if difference > EQUAL:
            raise NotMeasured(
                f"without {Head(head[0], head[1]).label} the losses differ: {difference:.1e}."
            )

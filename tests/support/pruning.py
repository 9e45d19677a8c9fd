"""The small model, its heads and the texts that the pruning tests share."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from torch.nn import functional as F

from mha_viz import pruning
from mha_viz.model import Description, Model
from support.models import ours_of, some_ids

L, H, D_H = 2, 4, 8


IDS = some_ids(24, 300, 4)[0].tolist()


OTHER_IDS = some_ids(60, 300, 5)[0].tolist()


HEADS = [(layer, head) for layer in range(L) for head in range(H)]


def model_of(theirs: Any, tokenizer: Tokenizer) -> Model:
    return Model(ours_of(theirs), tokenizer, Description("a model", "folder", "float32", 0, ""))


SELECTION = [IDS, OTHER_IDS]
EVALUATION = [OTHER_IDS[20:50], IDS[:9]]


@contextmanager
def hooked(theirs: Any, heads: list[tuple[int, int]], value: Any) -> Iterator[None]:
    """transformers' model with `value(layer, head)` in place of what these heads give c_proj."""
    handles = []
    for layer, block in enumerate(theirs.transformer.h):
        ablated = [head for at, head in heads if at == layer]

        def replace(module: Any, inputs: Any, layer: int = layer, ablated: Any = ablated) -> Any:
            x = inputs[0].clone()
            d_h = x.shape[-1] // theirs.config.n_head
            for head in ablated:
                x[..., head * d_h : (head + 1) * d_h] = value(layer, head)
            return (x,)

        handles.append(block.attn.c_proj.register_forward_pre_hook(replace))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def their_loss(theirs: Any, ids: list[int], heads: Any = (), value: Any = lambda *_: 0.0) -> float:
    with torch.inference_mode(), hooked(theirs, list(heads), value):
        logits = theirs(torch.tensor([ids])).logits[0]
    return float(F.cross_entropy(logits[:-1], torch.tensor(ids[1:])))


def outcome(model: Model, ids: list[int], removed: list) -> tuple[np.ndarray, np.ndarray]:
    """(losses, most likely next tokens) of the network under a gate."""
    gate = pruning.gate_without(model.config, removed)
    logits = model.network(torch.tensor([ids]), head_gate=gate)[0]
    losses = F.cross_entropy(logits[:-1], torch.tensor(ids[1:]), reduction="none")
    return losses.numpy(), logits.argmax(-1).numpy()

"""Heads really gone: their rows of W_Q, W_K, W_V and their columns of W_O are taken out.

With z before W_O at zero a head adds nothing, so a model without it computes the same (Michel et
al. 2019, section 4); b_O stays. The layers may end up with different numbers of heads, or none.
"""

import statistics
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import sha256

import torch
from torch import Tensor

from mha_viz.attention import MultiHeadAttention
from mha_viz.errors import ShapeError
from mha_viz.gpt2 import GPT2, GPT2Config
from mha_viz.head import Head
from mha_viz.model import Model
from mha_viz.pruning.inputs import Text, all_heads, check_head, token_ids
from mha_viz.pruning.replacements import Progress


@dataclass(frozen=True, slots=True)
class Size:
    """What a network holds; a tensor that two parts share counts once."""

    n_heads: int
    n_parameters: int
    n_bytes: int


@torch.no_grad()
def prune(model: Model | GPT2, heads: Iterable[Head]) -> GPT2:
    """The network without these heads; every weight that stays whole is shared, not copied.

    Raises HeadNotFound for a head that is not there, ShapeError where heads share keys and values.
    """
    network = model.network if isinstance(model, Model) else model
    config = pruned_config(network.config, heads)
    with torch.device("meta"):
        new = GPT2(config)
    state = network.state_dict()
    for layer, block in enumerate(network.blocks):
        before, after = network.config.kept_heads(layer), config.kept_heads(layer)
        if after != before:
            places = [before.index(head) for head in after]
            for name, weight in _without(block.attn, places).items():
                state[f"blocks.{layer}.attn.{name}"] = weight
    new.load_state_dict(state, assign=True)
    if network.W_U.weight is network.wte.weight:
        new.W_U.weight = new.wte.weight
    return new.requires_grad_(False).train(network.training)


def pruned_model(model: Model, heads: Iterable[Head]) -> Model:
    """The model on a pruned network, described as such. Raises as `prune` does."""
    network = prune(model, heads)
    there = set(all_heads(network.config))
    gone = [head for head in all_heads(model.config) if head not in there]
    about = replace(
        model.description,
        n_parameters=size(network).n_parameters,
        weights_hash=sha256(f"{model.description.weights_hash} {gone}".encode()).hexdigest(),
        notes=(*model.description.notes, f"{len(gone)} of its heads were taken out here."),
    )
    return replace(model, network=network, description=about)


def pruned_config(config: GPT2Config, heads: Iterable[Head]) -> GPT2Config:
    """The configuration without these heads, besides those that were taken out before.

    Raises as `prune` does.
    """
    if config.n_kv_heads is not None:
        raise ShapeError(
            f"The heads of this model share {config.n_kv_heads} keys and values, so none can be "
            "taken out alone. Take heads out of the model that it was made of."
        )
    gone = [set(range(config.n_heads)) - set(config.kept_heads(i)) for i in range(config.n_layers)]
    for layer, head in heads:
        check_head(config, layer, head)
        gone[layer].add(head)
    removed = tuple(tuple(sorted(some)) for some in gone)
    return replace(config, pruned_heads=removed if any(removed) else ())


def size(network: GPT2) -> Size:
    """Heads, parameters and bytes of a network."""
    weights = list(network.parameters())
    return Size(
        n_heads=len(all_heads(network.config)),
        n_parameters=sum(weight.numel() for weight in weights),
        n_bytes=sum(weight.numel() * weight.element_size() for weight in weights),
    )


@torch.inference_mode()
def forward_seconds(
    models: Iterable[Model],
    text: Text,
    *,
    repeats: int = 5,
    on_progress: Progress | None = None,
) -> list[float]:
    """The median wall time of one forward pass of each model, in seconds; they take turns.

    One round before does not count. `on_progress` is told the share that is done, and may raise to
    stop. Raises TextError as `token_ids` does.
    """
    jobs = [(model.network, token_ids(model, text)) for model in models]
    times: list[list[float]] = [[] for _ in jobs]
    for turn in range(repeats + 1):
        if on_progress is not None:
            on_progress(turn / (repeats + 1))
        for (network, ids), taken in zip(jobs, times, strict=True):
            begun = time.perf_counter()
            network(ids)[0, -1, 0].item()  # the answer is here, not on its way from a device
            if turn:
                taken.append(time.perf_counter() - begun)
    return [statistics.median(taken) for taken in times]


def _without(attn: MultiHeadAttention, places: list[int]) -> dict[str, Tensor]:
    """The state of an attention module with only the heads at these places."""
    H, d_h = attn.n_heads, attn.d_head
    state = attn.state_dict()
    for name in ("W_QKV.weight", "W_QKV.bias"):
        if name in state:
            rows = state[name].unflatten(0, (3, H, d_h))
            state[name] = rows[:, places].flatten(0, 2)
    columns = state["W_O.weight"].unflatten(1, (H, d_h))
    state["W_O.weight"] = columns[:, places].flatten(1, 2)
    return state

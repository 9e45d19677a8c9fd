"""Structural pruning: deletes a head's rows of W_Q, W_K and W_V and its columns of W_O.

A head whose z is zero before W_O adds nothing, so the pruned model computes what zero ablation does
(Michel et al. 2019, section 4); b_O stays. Layers may end up with different numbers of heads, or
with none.
"""

import statistics
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TypeVar

import torch
from torch import Tensor

from mha_viz.attention import MultiHeadAttention
from mha_viz.callbacks import OnProgress
from mha_viz.errors import ShapeError
from mha_viz.head import Head
from mha_viz.model import Model
from mha_viz.network import Network, NetworkConfig
from mha_viz.pruning.inputs import Text, all_heads, token_ids

Config = TypeVar("Config", bound=NetworkConfig)


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a network; a tensor that two modules share counts once."""

    n_heads: int
    n_parameters: int
    n_bytes: int


@torch.no_grad()
def prune(model: Model | Network, heads: Iterable[Head]) -> Network:
    """The network without these heads; all weights that do not change are shared, not copied.

    Raises HeadNotFound for a head that the model does not have, ShapeError if heads share keys and
    values.
    """
    network = model.network if isinstance(model, Model) else model
    config = pruned_config(network.config, heads)
    states = {}
    for layer, block in enumerate(network.blocks):
        before, after = network.config.kept_heads(layer), config.kept_heads(layer)
        if after != before:
            states[layer] = _attention_state(block.attn, [before.index(head) for head in after])
    return network.with_attention(config, states)


def pruned_model(model: Model, heads: Iterable[Head]) -> Model:
    """The model with a pruned network and a description that says so. Raises as `prune` does."""
    network = prune(model, heads)
    kept = set(all_heads(network.config))
    pruned = [head for head in all_heads(model.config) if head not in kept]
    about = replace(
        model.description,
        n_parameters=size(network).n_parameters,
        weights_hash=sha256(f"{model.description.weights_hash} {pruned}".encode()).hexdigest(),
        notes=(*model.description.notes, f"{len(pruned)} of its heads were pruned here."),
    )
    return replace(model, network=network, description=about)


def pruned_config(config: Config, heads: Iterable[Head]) -> Config:
    """The configuration without these heads, in addition to those pruned before.

    Raises as `prune` does.
    """
    if config.n_kv_heads is not None:
        raise ShapeError(
            f"The heads of this model share {config.n_kv_heads} key/value heads, so a head cannot "
            "be pruned alone. Prune the model that it was converted from."
        )
    pruned = [
        set(range(config.n_heads)) - set(config.kept_heads(layer))
        for layer in range(config.n_layers)
    ]
    for layer, head in heads:
        config.check_head(layer, head)
        pruned[layer].add(head)
    by_layer = tuple(tuple(sorted(in_layer)) for in_layer in pruned)
    return replace(config, pruned_heads=by_layer if any(by_layer) else ())


def size(network: Network) -> Size:
    """The heads, parameters and bytes of a network."""
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
    on_progress: OnProgress | None = None,
) -> list[float]:
    """The median wall time of a forward pass of each model, in seconds; the models take turns.

    A warm-up round is not counted. `on_progress` is called with the fraction done; an
    exception that it raises stops the work. Raises TextError as `token_ids` does.
    """
    jobs = [(model.network, token_ids(model, text)) for model in models]
    times: list[list[float]] = [[] for _ in jobs]
    for turn in range(repeats + 1):
        if on_progress is not None:
            on_progress(turn / (repeats + 1))
        for (network, ids), taken in zip(jobs, times, strict=True):
            begun = time.perf_counter()
            network(ids)[0, -1, 0].item()  # waits for the device
            if turn:
                taken.append(time.perf_counter() - begun)
    return [statistics.median(taken) for taken in times]


def _attention_state(attn: MultiHeadAttention, kept: list[int]) -> dict[str, Tensor]:
    """The state dict of an attention module with only these of its heads."""
    H, d_h = attn.n_heads, attn.d_head
    state = attn.state_dict()
    for name in ("W_QKV.weight", "W_QKV.bias"):
        if name in state:
            rows = state[name].unflatten(0, (3, H, d_h))
            state[name] = rows[:, kept].flatten(0, 2)
    columns = state["W_O.weight"].unflatten(1, (H, d_h))
    state["W_O.weight"] = columns[:, kept].flatten(1, 2)
    return state

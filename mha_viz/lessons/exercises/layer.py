"""What the lines of an exercise may name: sizes, tensors and facts about one attention layer."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from mha_viz.attention import MultiHeadAttention
from mha_viz.lessons import walkthrough
from mha_viz.lessons.bugs import BUGS, attention_with_bug
from mha_viz.lessons.char_model import CharModel, Settings
from mha_viz.lessons.counting import attention_flops, attention_parameters, kv_cache_bytes
from mha_viz.lessons.flash import tile_ranges
from mha_viz.lessons.race import registered_parameters
from mha_viz.network import Network

MAX_TOKENS = 64  # scores of all heads are computed, and they grow with the square of T
TILE = 2  # positions of the tiles that are counted: small, so that a short text has several
CHARACTERS = 65  # of the models whose parameters are counted; Tiny Shakespeare has as many


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """A layer with its input x `[B, T, C]`, in a model of L layers and V tokens."""

    attention: MultiHeadAttention = field(repr=False)
    x: Tensor = field(repr=False)
    L: int
    V: int

    @property
    def plain(self) -> bool:
        """Whether it is what exercises describe: G = H, H d_h = C, causal, divided by √d_h."""
        a = self.attention
        usual_scale = math.isclose(a.scale, a.d_head**-0.5)
        whole = a.n_heads == a.n_kv_heads > 0 and a.n_heads * a.d_head == a.d_model
        return a.causal and usual_scale and whole

    @property
    def sizes(self) -> str:
        """Its sizes, for sentences."""
        B, T, C = self.x.shape
        return f"B = {B}, T = {T}, C = {C}, H = {self.attention.n_heads}"

    def names(self, text: str) -> dict[str, Any]:
        """The names that expressions can use, with the facts that occur in `text`."""
        a, (B, T, C) = self.attention, self.x.shape
        H, G, d_h = a.n_heads, a.n_kv_heads, a.d_head
        with torch.inference_mode():
            qkv = a.W_QKV(self.x)
            q, k, v = qkv.split([H * d_h, G * d_h, G * d_h], dim=-1)
            later = torch.ones(T, T, dtype=torch.bool, device=self.x.device).triu(1)
        names: dict[str, Any] = {"B": B, "T": T, "C": C, "H": H, "G": G, "d_h": d_h}
        names |= {"L": self.L, "V": self.V, "x": self.x, "qkv": qkv, "q": q, "k": k, "v": v}
        names |= {"later": later, "W_QKV": a.W_QKV, "W_O": a.W_O}
        names |= {"W_QKV.weight": a.W_QKV.weight, "W_O.weight": a.W_O.weight}
        used = {name: fact for name, fact in FACTS.items() if _occurs(name, text)}
        with torch.inference_mode():
            return names | {name: fact(self) for name, fact in used.items()}


@torch.inference_mode()
def layer_of(network: Network, ids: Tensor, layer: int) -> Layer:
    """A layer of a network on at most MAX_TOKENS of the ids `[1, T]`."""
    x = network.attention_input(ids[:, :MAX_TOKENS], layer)
    attention = network.blocks[layer].attn
    return Layer(attention, x, network.config.n_layers, network.config.vocab_size)


@lru_cache(maxsize=1)
def random_layer() -> Layer:
    """A small layer whose sizes all differ, with random weights and a random input."""
    attention, x = walkthrough.random_layer(36, 4, 2, 5)
    return Layer(attention, x, L=3, V=50)


Fact = Callable[[Layer], Any]


def _facts() -> Mapping[str, Fact]:
    """Every fact by name: tensors of the module and of its bugs, and counts of the package."""
    found: dict[str, Fact] = {}
    for name in ("q", "k", "v", "scores", "pattern", "z", "out"):
        found[f"module.{name}"] = _of_module(name)
    for bug in BUGS:
        key = re.sub(r"\W+", "_", bug)
        for name in ("scores", "pattern", "z", "merged", "out"):
            found[f"bug.{key}.{name}"] = _of_bug(bug, name)
        found[f"ahead.{key}"] = _reads_ahead(bug)
    for name in ("W_Q", "W_O", "biases", "total"):
        found[f"weights.{name}"] = _weights(name)
    for name in ("projection", "scores", "softmax", "weighted_sum", "output", "matmul"):
        found[f"flops.{name}"] = _flops(name)
        found[f"flops.one_head.{name}"] = _flops(name, one_head=True)
    found |= {
        "flops.equal_at": _equal_at,
        "weights.in_list": _in_list,
        "weights.in_module_list": _in_module_list,
        "cache.token": lambda layer: _cached(layer, layer.attention.n_kv_heads, 1),
        "cache.text": lambda layer: _cached(layer, layer.attention.n_kv_heads, layer.x.shape[1]),
        "cache.multi_query": lambda layer: _cached(layer, 1, 1),
        "tiles.causal": lambda layer: len(list(tile_ranges(*[layer.x.shape[1]] * 2, block=TILE))),
        "tiles.size": lambda layer: TILE,
        "train.one_head": lambda layer: _char_model(1).n_parameters,
        "train.four_heads": lambda layer: _char_model(4).n_parameters,
        "train.characters": lambda layer: CHARACTERS,
        "train.width": lambda layer: Settings().width,
        "loss.uniform": _loss_of_equal_logits,
        "loss.ln_V": lambda layer: math.log(layer.V),
    }
    return found


def _of_module(name: str) -> Fact:
    return lambda layer: getattr(layer.attention.explicit(layer.x), name)


def _of_bug(bug: str, name: str) -> Fact:
    return lambda layer: getattr(attention_with_bug(layer.attention, layer.x, bug), name)


def _reads_ahead(bug: str) -> Fact:
    """Whether the first position's output changes when the last position's input does."""

    def fact(layer: Layer) -> bool:
        changed = layer.x.clone()
        changed[:, -1] = -changed[:, -1] + 1
        rows = [attention_with_bug(layer.attention, x, bug).out[:, 0] for x in (layer.x, changed)]
        return bool((rows[0] - rows[1]).abs().max() > 1e-5 * rows[0].abs().max())

    return fact


def _weights(name: str) -> Fact:
    def fact(layer: Layer) -> Any:
        a = layer.attention
        counted = attention_parameters(
            a.d_model, a.n_heads, n_kv_heads=a.n_kv_heads, d_head=a.d_head
        )
        total = counted.total - counted.biases
        return total if name == "total" else getattr(counted, name)

    return fact


def _flops(name: str, *, one_head: bool = False) -> Fact:
    def fact(layer: Layer) -> Any:
        (_, T, C), H = layer.x.shape, 1 if one_head else layer.attention.n_heads
        return getattr(attention_flops(T, C, H), name)

    return fact


def _equal_at(layer: Layer) -> float:
    """The T at which scores and weighted sums cost what the projections cost."""
    one = attention_flops(1, layer.attention.d_model, layer.attention.n_heads)
    return (one.projection + one.output) / (one.scores + one.weighted_sum)


def _in_module_list(layer: Layer) -> int:
    return registered_parameters(layer.attention.d_model, layer.attention.n_heads)[0]


def _in_list(layer: Layer) -> int:
    found, hidden = registered_parameters(layer.attention.d_model, layer.attention.n_heads)
    return found - hidden


def _cached(layer: Layer, n_kv_heads: int, T: int) -> int:
    """The numbers in the key/value cache of all layers."""
    d_h = layer.attention.d_head
    return kv_cache_bytes(layer.L, n_kv_heads, d_h, n_tokens=T, bytes_per_value=1)


def _char_model(n_heads: int) -> CharModel:
    return CharModel(Settings(n_heads=n_heads, projection=True), CHARACTERS)


def _loss_of_equal_logits(layer: Layer) -> float:
    logits, target = torch.zeros(1, layer.V), torch.zeros(1, dtype=torch.long)
    return float(F.cross_entropy(logits, target))


def _occurs(name: str, text: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", text) is not None


FACTS = _facts()
"""The facts by name; `assets/exercises/README.md` lists them."""

"""Counts the parameters, FLOPs and cache bytes of an attention layer, without any tensors.

A FLOP is one addition, multiplication, division, comparison or exponential; a multiply-add is two.
A product of `[n, m]` and `[m, p]` counts as 2 n m p. Scores are counted for every query and key,
masked or not, as explicit attention computes them. Adding a bias is not counted.

Axes: T positions (T_q, T_k), C = d_model, H heads, G key/value heads, d_h the width of a head,
L layers.
"""

from dataclasses import dataclass
from typing import Literal

from mha_viz.errors import ShapeError

Kind = Literal["multi-head", "grouped-query", "multi-query"]

SOFTMAX_FLOPS = 6  # per score: scale, compare, subtract, exponential, add, divide


@dataclass(frozen=True, slots=True)
class Parameters:
    """The numbers of parameters of one attention layer."""

    W_Q: int  # C x H d_h
    W_K: int  # C x G d_h
    W_V: int  # C x G d_h
    W_O: int  # H d_h x C
    biases: int  # of all four matrices; 0 if they have none

    @property
    def total(self) -> int:
        """All parameters: 4 C^2 without biases if H d_h = G d_h = C."""
        return self.W_Q + self.W_K + self.W_V + self.W_O + self.biases


@dataclass(frozen=True, slots=True)
class Flops:
    """The FLOPs of one attention layer, step by step."""

    projection: int  # x to q, k and v
    scores: int  # q @ k^T
    softmax: int  # scale and softmax; unlike the matrix products, it grows with H
    weighted_sum: int  # pattern @ v
    output: int  # merged z to the output, through W_O

    @property
    def linear(self) -> int:
        """The projections and the output: they grow with T."""
        return self.projection + self.output

    @property
    def quadratic(self) -> int:
        """Scores, softmax and weighted sum: they grow with T_q times T_k."""
        return self.scores + self.softmax + self.weighted_sum

    @property
    def matmul(self) -> int:
        """The matrix products alone: the same for every H = G, given T, C and H d_h = C."""
        return self.projection + self.scores + self.weighted_sum + self.output

    @property
    def total(self) -> int:
        """The matrix products, the scale and the softmax."""
        return self.matmul + self.softmax


def attention_parameters(
    d_model: int,
    n_heads: int,
    *,
    n_kv_heads: int | None = None,
    d_head: int | None = None,
    bias: bool = True,
) -> Parameters:
    """The parameters of a layer; by default `n_kv_heads` is n_heads and `d_head` is C / H.

    Raises ShapeError if the heads do not fit the layer.
    """
    G, d_h = _widths(d_model, n_heads, n_kv_heads, d_head)
    q, kv = d_model * n_heads * d_h, d_model * G * d_h
    biases = (n_heads + 2 * G) * d_h + d_model if bias else 0
    return Parameters(W_Q=q, W_K=kv, W_V=kv, W_O=q, biases=biases)


def attention_flops(
    T: int,
    d_model: int,
    n_heads: int,
    *,
    n_kv_heads: int | None = None,
    d_head: int | None = None,
    T_k: int | None = None,
    cached: int = 0,
) -> Flops:
    """The FLOPs of a layer for one sequence of `T` queries.

    The keys are those of the `T` positions and of `cached` positions before them, which are not
    projected again. In cross-attention the keys come from `T_k` other positions instead.

    Raises ShapeError if the heads do not fit the layer or a number of positions is below 0.
    """
    G, d_h = _widths(d_model, n_heads, n_kv_heads, d_head)
    new = T if T_k is None else T_k
    if min(T, new, cached) < 0:
        raise ShapeError(f"T = {T}, T_k = {T_k}, cached = {cached}; none may be below 0.")
    pairs = n_heads * T * (new + cached)
    return Flops(
        projection=2 * d_model * d_h * (T * n_heads + 2 * new * G),
        scores=2 * pairs * d_h,
        softmax=SOFTMAX_FLOPS * pairs,
        weighted_sum=2 * pairs * d_h,
        output=2 * T * n_heads * d_h * d_model,
    )


def crossover(
    d_model: int, n_heads: int, *, n_kv_heads: int | None = None, d_head: int | None = None
) -> float:
    """The T from which on the T^2 terms of a layer outweigh its projections, in FLOPs.

    4 C d_h T (H + G) = (4 d_h + 6) H T^2, so T = 4 C d_h (H + G) / (H (4 d_h + 6)): a little less
    than 2 C for G = H. Raises ShapeError if the heads do not fit the layer.
    """
    one = attention_flops(1, d_model, n_heads, n_kv_heads=n_kv_heads, d_head=d_head)
    return one.linear / one.quadratic


@dataclass(frozen=True, slots=True)
class LayerBytes:
    """The bytes of one layer for one sequence of T positions."""

    weights: int  # all parameters
    activations: int  # x, q, k, v, z and the output
    cache: int  # k and v, kept while a text is generated
    scores: int  # one [H, T, T] matrix in float32; explicit attention holds up to three


def layer_bytes(
    T: int, d_model: int, n_heads: int, *, n_kv_heads: int | None = None, bytes_per_value: int = 4
) -> LayerBytes:
    """What a layer keeps in memory; `bytes_per_value` is that of everything but the scores.

    Raises ShapeError if the heads do not fit the layer.
    """
    G, d_h = _widths(d_model, n_heads, n_kv_heads, None)
    parameters = attention_parameters(d_model, n_heads, n_kv_heads=G).total
    values = 2 * d_model + 2 * (n_heads + G) * d_h  # x and out; q and z, k and v
    return LayerBytes(
        weights=parameters * bytes_per_value,
        activations=T * values * bytes_per_value,
        cache=kv_cache_bytes(1, G, d_h, n_tokens=T, bytes_per_value=bytes_per_value),
        scores=n_heads * T * T * 4,
    )


def kv_cache_bytes(
    n_layers: int, n_kv_heads: int, d_head: int, *, n_tokens: int = 1, bytes_per_value: int = 2
) -> int:
    """Bytes of the keys and values of `n_tokens` positions: 2 L G d_h values per position.

    A value has 2 bytes in float16 and bfloat16 and 4 in float32. Multi-query (Shazeer 2019,
    section 3) and grouped-query attention (Ainslie et al. 2023, section 2.2) shrink the cache,
    because G < H.
    """
    return 2 * n_layers * n_kv_heads * d_head * bytes_per_value * n_tokens


@dataclass(frozen=True, slots=True)
class ModelSize:
    """The published sizes of a model that matter for its attention, and their source."""

    name: str
    n_layers: int
    d_model: int
    n_heads: int
    n_kv_heads: int
    d_head: int
    n_positions: int  # the context it was trained for
    source: str
    window: int | None = None  # the most keys that a query sees, if fewer than the context

    @property
    def kind(self) -> Kind:
        """The kind of attention: multi-head, grouped-query or multi-query."""
        if self.n_kv_heads == self.n_heads:
            return "multi-head"
        return "multi-query" if self.n_kv_heads == 1 else "grouped-query"

    def cache_bytes(
        self, n_tokens: int = 1, *, n_kv_heads: int | None = None, bytes_per_value: int = 2
    ) -> int:
        """Bytes of the cache for a context of `n_tokens`; it never holds more than the window.

        `n_kv_heads` replaces the model's own number of key/value heads.
        """
        G = self.n_kv_heads if n_kv_heads is None else n_kv_heads
        cached = n_tokens if self.window is None else min(n_tokens, self.window)
        return kv_cache_bytes(
            self.n_layers, G, self.d_head, n_tokens=cached, bytes_per_value=bytes_per_value
        )


def gpt2_parameters(size: ModelSize, *, vocab_size: int = 50257) -> int:
    """All parameters of a GPT-2 of that size (Radford et al. 2019), whose MLPs are 4 C wide.

    The unembedding is the token embedding and counts once.
    """
    C = size.d_model
    attention = attention_parameters(
        C, size.n_heads, n_kv_heads=size.n_kv_heads, d_head=size.d_head
    ).total
    mlp = 8 * C**2 + 5 * C
    layer_norm = 2 * C
    block = attention + mlp + 2 * layer_norm
    return (vocab_size + size.n_positions) * C + size.n_layers * block + layer_norm


def _on_hub(repository: str) -> str:
    return f"config.json of {repository} on the Hugging Face Hub"


def _gpt2(name: str, n_layers: int, d_model: int, n_heads: int, repository: str) -> ModelSize:
    d_head, source = d_model // n_heads, _on_hub(repository)
    return ModelSize(name, n_layers, d_model, n_heads, n_heads, d_head, 1024, source)


GPT2_SIZES = (
    _gpt2("distilgpt2", 6, 768, 12, "distilbert/distilgpt2"),
    _gpt2("gpt2", 12, 768, 12, "openai-community/gpt2"),
    _gpt2("gpt2-medium", 24, 1024, 16, "openai-community/gpt2-medium"),
    _gpt2("gpt2-large", 36, 1280, 20, "openai-community/gpt2-large"),
    _gpt2("gpt2-xl", 48, 1600, 25, "openai-community/gpt2-xl"),
)

# Columns: name, L, C, H, G, d_h, context, source.
KNOWN_MODELS = (
    ModelSize("GPT-3 175B", 96, 12288, 96, 96, 128, 2048, "Brown et al. 2020, section 2.1"),
    ModelSize("MPT-7B", 32, 4096, 32, 32, 128, 2048, "model card of mosaicml/mpt-7b"),
    ModelSize("Llama 2 7B", 32, 4096, 32, 32, 128, 4096, _on_hub("meta-llama/Llama-2-7b-hf")),
    ModelSize("Llama 2 70B", 80, 8192, 64, 8, 128, 4096, _on_hub("meta-llama/Llama-2-70b-hf")),
    ModelSize("Llama 3 8B", 32, 4096, 32, 8, 128, 8192, _on_hub("meta-llama/Meta-Llama-3-8B")),
    ModelSize("Mistral 7B", 32, 4096, 32, 8, 128, 8192, "Jiang et al. 2023, table 1", window=4096),
    ModelSize(
        "PaLM 540B", 118, 18432, 48, 1, 256, 2048, "Chowdhery et al. 2022, table 1 and section 5"
    ),
    ModelSize("Falcon 7B", 32, 4544, 71, 1, 64, 2048, "model card of tiiuae/falcon-7b"),
    ModelSize("Gemma 2B", 18, 2048, 8, 1, 256, 8192, "Gemma Team 2024, section 2 and table 1"),
)


def _widths(
    d_model: int, n_heads: int, n_kv_heads: int | None, d_head: int | None
) -> tuple[int, int]:
    """G and d_h with their defaults filled in. Raises ShapeError if the heads do not fit."""
    G = n_heads if n_kv_heads is None else n_kv_heads
    if min(d_model, n_heads, G) < 1 or n_heads % G:
        raise ShapeError(
            f"d_model = {d_model}, n_heads = {n_heads}, n_kv_heads = {G}; each must be at least 1, "
            "and n_heads a multiple of n_kv_heads."
        )
    if d_head is None and d_model % n_heads:
        raise ShapeError(
            f"d_model = {d_model} does not divide into n_heads = {n_heads} heads of equal width; "
            "set d_head, or choose a number of heads that divides d_model."
        )
    d_h = d_model // n_heads if d_head is None else d_head
    if d_h < 1:
        raise ShapeError(f"d_head = {d_h}; a head needs at least one channel.")
    return G, d_h

"""Counts checked against real modules, torch's own counter, and published numbers."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers.models.falcon.configuration_falcon import FalconConfig
from transformers.models.gpt2.configuration_gpt2 import GPT2Config as TheirConfig
from transformers.models.gpt2.modeling_gpt2 import GPT2LMHeadModel
from transformers.models.llama.configuration_llama import LlamaConfig
from transformers.models.mistral.configuration_mistral import MistralConfig

from mha_viz.attention import KVCache, MultiHeadAttention
from mha_viz.errors import ShapeError
from mha_viz.figures.text import format_bytes
from mha_viz.lessons.counting import (
    GPT2_SIZES,
    KNOWN_MODELS,
    SOFTMAX_FLOPS,
    attention_flops,
    attention_parameters,
    crossover,
    gpt2_parameters,
    kv_cache_bytes,
    layer_bytes,
)

SIZES = {size.name: size for size in (*GPT2_SIZES, *KNOWN_MODELS)}
PUBLISHED = {
    "distilgpt2": 81_912_576,
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
}
# (d_model, n_heads, options): plain, grouped, multi-query, and with pruned heads.
LAYERS = [
    (12, 3, {}),
    (24, 6, {"n_kv_heads": 2}),
    (24, 6, {"n_kv_heads": 1}),
    (24, 4, {"d_head": 4}),
    (10, 2, {"d_head": 7, "n_kv_heads": 1}),
]


# --- parameters -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n_heads", [1, 2, 8, 512])
def test_a_layer_has_4_c_squared_weights_however_many_heads(n_heads):
    count = attention_parameters(512, n_heads, bias=False)
    assert count.total == 1_048_576 == 4 * 512**2
    assert count.W_Q == count.W_K == count.W_V == count.W_O == 512**2
    assert attention_parameters(512, n_heads).total == 4 * 512**2 + 4 * 512


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("d_model", "n_heads", "options"), LAYERS)
def test_parameters_are_those_of_the_module(d_model, n_heads, options, bias):
    module = MultiHeadAttention(d_model, n_heads, bias=bias, **options)
    count = attention_parameters(d_model, n_heads, bias=bias, **options)
    assert count.total == sum(p.numel() for p in module.parameters())
    assert module.W_QKV.weight.numel() == count.W_Q + count.W_K + count.W_V
    assert module.W_O.weight.numel() == count.W_O


@pytest.mark.parametrize("size", GPT2_SIZES, ids=lambda size: size.name)
def test_gpt2_sizes_have_the_published_number_of_parameters(size):
    assert gpt2_parameters(size) == PUBLISHED[size.name]
    config = TheirConfig(
        n_layer=size.n_layers,
        n_head=size.n_heads,
        n_embd=size.d_model,
        n_positions=size.n_positions,
    )
    with torch.device("meta"):
        theirs = GPT2LMHeadModel(config)
    assert gpt2_parameters(size) == sum(p.numel() for p in theirs.parameters())


# --- arithmetic -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("d_model", "n_heads", "options"), LAYERS)
@pytest.mark.parametrize("T_k", [None, 9])
def test_products_are_those_that_torch_counts(d_model, n_heads, options, T_k):
    B, T = 2, 7
    module = MultiHeadAttention(d_model, n_heads, causal=False, **options)
    x = torch.randn(B, T, d_model)
    kv = None if T_k is None else torch.randn(B, T_k, d_model)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        module.explicit(x, kv)
    flops = attention_flops(T, d_model, n_heads, T_k=T_k, **options)
    assert B * flops.matmul == counter.get_total_flops()


def test_a_step_with_a_cache_projects_the_new_token_alone():
    T, C, H = 9, 12, 3
    module = MultiHeadAttention(C, H)
    cache = KVCache(1, H, T, C // H, module.W_O.weight.detach())
    x = torch.randn(1, T, C)
    with torch.no_grad():
        module.explicit(x[:, :-1], cache=cache)
        with FlopCounterMode(display=False) as counter:
            module.explicit(x[:, -1:], cache=cache)
    step = attention_flops(1, C, H, cached=T - 1)
    assert step.matmul == counter.get_total_flops()
    assert step.projection == 2 * C * 3 * C
    assert step.scores == 2 * T * C


@pytest.mark.parametrize("n_heads", [2, 8, 64])
def test_many_heads_multiply_as_much_as_one_of_the_same_width(n_heads):
    one, many = attention_flops(128, 512, 1), attention_flops(128, 512, n_heads)
    assert many.matmul == one.matmul
    assert many.softmax == n_heads * one.softmax == n_heads * SOFTMAX_FLOPS * 128 * 128
    assert many.total == many.matmul + many.softmax


def test_sharing_keys_and_values_saves_projections_and_no_scores():
    whole, shared = attention_flops(128, 512, 8), attention_flops(128, 512, 8, n_kv_heads=1)
    assert whole.projection - shared.projection == 2 * 128 * 512 * 2 * 7 * 64
    assert (whole.scores, whole.weighted_sum) == (shared.scores, shared.weighted_sum)
    assert whole.output == shared.output


def test_twice_the_text_means_four_times_the_scores():
    once, twice = attention_flops(128, 512, 8), attention_flops(256, 512, 8)
    assert twice.scores == 4 * once.scores
    assert twice.projection == 2 * once.projection


# --- cache ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
@pytest.mark.parametrize("n_kv_heads", [1, 3])
def test_cache_bytes_are_those_of_a_real_cache(n_kv_heads, dtype):
    n_layers, d_head, n_tokens = 2, 4, 5
    held = 0
    for _ in range(n_layers):
        cache = KVCache(1, n_kv_heads, 8, d_head, torch.empty(0, dtype=dtype))
        k = torch.zeros(1, n_kv_heads, n_tokens, d_head, dtype=dtype)
        cache.append(k, k)
        held += cache.n_bytes
    found = kv_cache_bytes(
        n_layers, n_kv_heads, d_head, n_tokens=n_tokens, bytes_per_value=dtype.itemsize
    )
    assert found == held


@pytest.mark.parametrize(
    ("name", "kibibytes"),
    [
        ("gpt2", 36),
        ("gpt2-xl", 300),
        ("GPT-3 175B", 4608),
        ("MPT-7B", 512),
        ("Llama 2 7B", 512),
        ("Llama 2 70B", 320),
        ("Llama 3 8B", 128),
        ("Mistral 7B", 128),
        ("PaLM 540B", 118),
        ("Falcon 7B", 8),
        ("Gemma 2B", 18),
    ],
)
def test_bytes_of_a_token_at_16_bits(name, kibibytes):
    assert SIZES[name].cache_bytes() == kibibytes * 1024
    assert SIZES[name].cache_bytes(100, bytes_per_value=4) == 200 * kibibytes * 1024


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("distilgpt2", "18 MiB"),
        ("gpt2", "36 MiB"),
        ("gpt2-medium", "96 MiB"),
        ("gpt2-large", "180 MiB"),
        ("gpt2-xl", "300 MiB"),
        ("GPT-3 175B", "9 GiB"),
        ("MPT-7B", "1 GiB"),
        ("Llama 2 7B", "2 GiB"),
        ("Llama 2 70B", "1.25 GiB"),
        ("Llama 3 8B", "1 GiB"),
        ("Mistral 7B", "512 MiB"),  # its window: half of its context
        ("PaLM 540B", "236 MiB"),
        ("Falcon 7B", "16 MiB"),
        ("Gemma 2B", "144 MiB"),
    ],
)
def test_bytes_of_the_full_context_at_16_bits(name, text):
    size = SIZES[name]
    assert format_bytes(size.cache_bytes(size.n_positions)) == text


def test_a_cache_shrinks_by_the_heads_that_share():
    size = SIZES["Llama 2 70B"]
    assert size.cache_bytes(4096, n_kv_heads=64) == 8 * size.cache_bytes(4096)
    assert size.cache_bytes(4096, n_kv_heads=1) * 8 == size.cache_bytes(4096)


def test_a_window_bounds_the_cache():
    mistral = SIZES["Mistral 7B"]
    assert mistral.cache_bytes(8192) == mistral.cache_bytes(4096) == 4096 * mistral.cache_bytes()
    assert mistral.cache_bytes(4095) < mistral.cache_bytes(4096)


# --- tables ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("gpt2", "multi-head"),
        ("Llama 2 7B", "multi-head"),
        ("Llama 2 70B", "grouped-query"),
        ("Falcon 7B", "multi-query"),
    ],
)
def test_kinds_have_their_names(name, kind):
    assert SIZES[name].kind == kind


def test_every_model_names_its_source_and_has_whole_groups():
    assert len(SIZES) == len(GPT2_SIZES) + len(KNOWN_MODELS)
    for size in SIZES.values():
        assert size.source
        assert size.n_heads % size.n_kv_heads == 0
        # Only in PaLM are all heads together narrower than the model.
        assert (size.n_heads * size.d_head == size.d_model) == (size.name != "PaLM 540B")


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("Llama 2 7B", LlamaConfig()),  # the first Llama had the same layers and half the context
        ("Mistral 7B", MistralConfig()),
        ("Falcon 7B", FalconConfig()),
    ],
    ids=["llama", "mistral", "falcon"],
)
def test_known_models_agree_with_the_defaults_of_transformers(name, config):
    """Where transformers takes a 7B model as the default of its family."""
    size = SIZES[name]
    found = (size.n_layers, size.d_model, size.n_heads)
    assert found == (config.num_hidden_layers, config.hidden_size, config.num_attention_heads)
    shared = 1 if getattr(config, "multi_query", False) else config.num_key_value_heads
    assert size.n_kv_heads == shared
    assert size.d_head == config.hidden_size // config.num_attention_heads
    assert size.window == getattr(config, "sliding_window", None)


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "count", [attention_parameters, lambda *a, **o: attention_flops(4, *a, **o)]
)
@pytest.mark.parametrize(
    ("sizes", "options", "words"),
    [
        ((768, 10), {}, "d_model = 768 does not divide into n_heads = 10"),
        ((768, 12), {"n_kv_heads": 5}, "n_heads = 12, n_kv_heads = 5"),
        ((768, 0), {}, "n_heads = 0"),
        ((0, 1), {}, "d_model = 0"),
        ((768, 12), {"d_head": 0}, "d_head = 0"),
    ],
)
def test_heads_that_do_not_fit_are_rejected(count, sizes, options, words):
    with pytest.raises(ShapeError, match=words):
        count(*sizes, **options)


def test_positions_below_zero_are_rejected():
    with pytest.raises(ShapeError, match="cached = -1"):
        attention_flops(1, 12, 3, cached=-1)


# --- the crossover and bytes ----------------------------------------------------------------------


@pytest.mark.parametrize(("C", "H", "G"), [(512, 8, 8), (768, 12, 4), (192, 6, 1), (64, 64, 64)])
def test_from_the_crossover_on_the_quadratic_terms_cost_more(C, H, G):
    at = crossover(C, H, n_kv_heads=G)
    below, above = (attention_flops(T, C, H, n_kv_heads=G) for T in (int(at), int(at) + 1))
    assert below.quadratic <= below.linear
    assert above.quadratic > above.linear
    assert below.linear + below.quadratic == below.total
    d_h = C // H
    assert at == pytest.approx(4 * C * d_h * (H + G) / (H * (4 * d_h + 6)))


def test_the_bytes_are_those_of_the_tensors():
    C, H, G, T = 24, 6, 2, 5
    module = MultiHeadAttention(C, H, n_kv_heads=G)
    x = torch.zeros(1, T, C)
    record = module.explicit(x)
    held = layer_bytes(T, C, H, n_kv_heads=G)
    assert held.weights == sum(p.numel() * p.element_size() for p in module.parameters())
    kept = (x, record.q, record.k, record.v, record.z, record.out)
    assert held.activations == sum(t.numel() * t.element_size() for t in kept)
    assert held.scores == record.scores.numel() * record.scores.element_size()
    cache = KVCache(1, G, T, C // H, x)
    cache.append(record.k, record.v)
    assert held.cache == cache.n_bytes
    half = layer_bytes(T, C, H, n_kv_heads=G, bytes_per_value=2)
    assert (2 * half.weights, 2 * half.cache) == (held.weights, held.cache)
    assert half.scores == held.scores

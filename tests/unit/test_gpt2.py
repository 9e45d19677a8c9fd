"""GPT-2 built from our attention, checked against transformers in eager mode, in float32."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from support.models import everything, fingerprint, ours_of, some_ids, trace_of
from torch import Tensor

from mha_viz.checkpoints.names import adopt, gpt2_state
from mha_viz.errors import CheckpointError, ShapeError
from mha_viz.gpt2 import GPT2, GPT2Config
from mha_viz.network import Run

VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "scores without 1/sqrt(d_h)": {"scale_attn_weights": False, "n_head": 8},
    "scores over the layer": {"scale_attn_by_inverse_layer_idx": True, "n_layer": 3},
    "scores over the layer alone": {
        "scale_attn_by_inverse_layer_idx": True,
        "scale_attn_weights": False,
    },
    "reordered and upcast": {"reorder_and_upcast_attn": True},
    "all three flags": {
        "scale_attn_by_inverse_layer_idx": True,
        "reorder_and_upcast_attn": True,
        "scale_attn_weights": False,
        "n_layer": 3,
    },
    "n_inner": {"n_inner": 56},
    "gelu": {"activation_function": "gelu"},
    "gelu_new": {"activation_function": "gelu_new"},
    "relu": {"activation_function": "relu"},
    "silu": {"activation_function": "silu"},
    "tanh": {"activation_function": "tanh"},
    "epsilon": {"layer_norm_epsilon": 1e-12},
    "128 positions": {"n_positions": 128},
    "2048 positions": {"n_positions": 2048, "n_head": 2},
    "vocabulary of 50304": {"vocab_size": 50304},
    "untied": {"tie_word_embeddings": False},
    "one head": {"n_head": 1},
    "many heads": {"n_head": 16},
    "one layer": {"n_layer": 1},
}


@torch.inference_mode()
def differences(
    theirs: Any, T: int, heads: Iterator[tuple[int, int]], *, last_only: bool = False
) -> tuple[float, float]:
    """The largest difference in the logits (of all positions) and in the patterns of `heads`."""
    ours, ids = ours_of(theirs), some_ids(T, theirs.config.vocab_size)
    expected = theirs(ids, output_attentions=True, logits_to_keep=1 if last_only else 0)
    attentions = [attention[0].numpy() for attention in expected.attentions]
    assert len(attentions) == ours.config.n_layers
    run = ours.run(ids)
    logits = float((run.logits - expected.logits[:, -1]).abs().max())
    if not last_only:
        logits = max(logits, float((ours(ids) - expected.logits).abs().max()))
    trace = trace_of(run, ours.config)
    patterns = max(
        float(np.abs(trace.pattern(layer, head) - attentions[layer][head]).max())
        for layer, head in heads
    )
    return logits, patterns


@pytest.mark.parametrize("length", [1, 2, 64, "all"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_equals_transformers(gpt2: Callable[..., Any], variant: str, length: Any):
    theirs = gpt2(3, **{"n_positions": 80, **VARIANTS[variant]})
    config = theirs.config
    T = config.n_positions if length == "all" else length
    heads = ((layer, head) for layer in range(config.n_layer) for head in range(config.n_head))
    logits, patterns = differences(theirs, T, heads)
    assert logits <= 1e-5
    assert patterns <= 1e-6


def test_the_variants_differ_from_each_other(gpt2: Callable[..., Any]):
    """Otherwise the test above would say nothing about the settings."""
    ids = some_ids(16, 300)
    plain = gpt2(3)(ids).logits
    for variant in ("gelu", "epsilon", "scores without 1/sqrt(d_h)", "scores over the layer"):
        settings = {**VARIANTS[variant], "n_layer": 2, "n_head": 4}
        assert float((gpt2(3, **settings)(ids).logits - plain).abs().max()) > 1e-5, variant


@pytest.fixture(scope="module")
def full_size() -> Any:
    """GPT-2 small with random weights; larger W_Q and W_K, so that its patterns are peaked.

    Three times as large: at four times, transformers' own float32 is 2e-4 off its float64.
    """
    from transformers.models.gpt2.configuration_gpt2 import GPT2Config as TheirConfig
    from transformers.models.gpt2.modeling_gpt2 import GPT2LMHeadModel

    torch.manual_seed(11)
    model = GPT2LMHeadModel(TheirConfig(attn_implementation="eager")).eval().requires_grad_(False)
    for block in model.transformer.h:
        block.attn.c_attn.weight[:, : 2 * 768] *= 3
    return model


@pytest.mark.parametrize("T", [64, 1024])
def test_gpt2_small_equals_transformers(full_size: Any, T: int):
    heads = ((layer, head) for layer in (0, 5, 11) for head in (0, 7, 11))
    logits, patterns = differences(full_size, T, heads, last_only=T > 64)
    assert logits <= 1e-4
    assert patterns <= 1e-5


def test_a_gate_of_zero_is_the_head_without_its_rows_of_c_proj(gpt2: Callable[..., Any]):
    theirs, layer, head = gpt2(5), 1, 2
    ours, ids = ours_of(theirs), some_ids(20, 300)
    d_h = ours.config.d_head
    gate = torch.ones(ours.config.n_layers, ours.config.n_heads)
    gate[layer, head] = 0.0
    theirs = gpt2(5)
    theirs.transformer.h[layer].attn.c_proj.weight[head * d_h : (head + 1) * d_h] = 0.0
    expected = theirs(ids).logits
    with torch.inference_mode():
        torch.testing.assert_close(ours(ids, head_gate=gate), expected, atol=1e-5, rtol=0)
        assert float((ours(ids) - expected).abs().max()) > 1e-2, "the head matters"
    last = ours.run(ids, head_gate=gate).logits
    torch.testing.assert_close(last, expected[:, -1], atol=1e-5, rtol=0)


def test_a_gate_leaves_the_layers_below_as_they_are(gpt2: Callable[..., Any]):
    ours, ids = ours_of(gpt2(5)), some_ids(20, 300)
    gate = torch.ones(2, 4)
    gate[0, 1] = 0.0
    plain, gated = ours.run(ids), ours.run(ids, head_gate=gate)
    assert torch.equal(plain.qkv[:, 0], gated.qkv[:, 0])
    assert not torch.equal(plain.qkv[:, 1], gated.qkv[:, 1])


def test_each_sequence_of_a_batch_has_its_own_gate(gpt2: Callable[..., Any]):
    ours, ids = ours_of(gpt2(5)), torch.cat([some_ids(9, 300, seed) for seed in (1, 2)])
    gate = torch.rand(2, 2, 4, generator=torch.Generator().manual_seed(1))
    both = ours.run(ids, head_gate=gate).logits
    for b in range(2):
        alone = ours.run(ids[b : b + 1], head_gate=gate[:, b]).logits[0]
        torch.testing.assert_close(both[b], alone, atol=1e-5, rtol=0)


def test_the_offset_moves_the_positions(gpt2: Callable[..., Any]):
    theirs, ids = gpt2(5), some_ids(6, 300)
    expected = theirs(ids, position_ids=torch.arange(10, 16)[None]).logits
    torch.testing.assert_close(ours_of(theirs)(ids, offset=10), expected, atol=1e-5, rtol=0)


def test_names_survive_a_round_trip(gpt2: Callable[..., Any]):
    for settings in ({}, {"tie_word_embeddings": False}):
        theirs = gpt2(5, **settings)
        back = gpt2_state(ours_of(theirs))
        state = theirs.state_dict()
        assert ("lm_head.weight" in back) is bool(settings)
        assert all(torch.equal(back[key], state[key]) for key in back)
        assert set(state) - set(back) <= {"lm_head.weight"}


def test_a_model_shares_its_storage_with_what_it_was_made_of(gpt2: Callable[..., Any]):
    state = gpt2(5).state_dict()
    del state["lm_head.weight"]
    ours = adopt(state, GPT2Config(2, 4, 32, 128, 64, 300))
    c_attn = state["transformer.h.0.attn.c_attn.weight"]
    assert ours.blocks[0].attn.W_QKV.weight.data_ptr() == c_attn.data_ptr()
    assert ours.W_U.weight is ours.wte.weight
    assert not any(parameter.requires_grad for parameter in ours.parameters())
    assert not ours.training


# --- one model, many threads ----------------------------------------------------------------------


@pytest.fixture
def one_thread_each() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("one_thread_each")
def test_sixteen_threads_get_the_results_of_a_single_one(gpt2: Callable[..., Any]):
    ours = ours_of(gpt2(5))
    generator = torch.Generator().manual_seed(2)
    jobs = [
        (some_ids(5 + 3 * n, 300, n), torch.rand(2, 4, generator=generator) if n % 3 else None)
        for n in range(16)
    ]
    before, parts = fingerprint(ours), everything(ours)

    def work(job: tuple[Tensor, Tensor | None]) -> list[Run]:
        ids, gate = job
        return [ours.run(ids, head_gate=gate) for _ in range(20)]

    alone = [ours.run(ids, head_gate=gate) for ids, gate in jobs]
    with ThreadPoolExecutor(16) as pool:
        together = list(pool.map(work, jobs))
    for expected, runs in zip(alone, together, strict=True):
        for run in runs:
            assert torch.equal(run.qkv, expected.qkv)
            assert torch.equal(run.logits, expected.logits)
    assert fingerprint(ours) == before
    assert everything(ours) == parts, "no hook, no attribute, no mode has changed"
    assert not any(value for _, key, value in parts if "hooks" in key and key[0] == "_")


def test_a_run_records_no_gradient(gpt2: Callable[..., Any]):
    model = GPT2(GPT2Config(2, 4, 32, 128, 64, 300))  # its parameters do require gradients
    run = model.run(some_ids(4, 300))
    assert not run.logits.requires_grad
    assert not run.qkv.requires_grad
    assert torch.is_grad_enabled()


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ids", "gate", "words"),
    [
        (torch.zeros(1, 65, dtype=torch.long), None, "reach position 64; .* n_positions = 64"),
        (torch.zeros(1, 0, dtype=torch.long), None, r"ids have shape \[1, 0\]"),
        (torch.zeros(3, dtype=torch.long), None, r"ids have shape \[3\]; expected \[B, T\]"),
        (torch.zeros(1, 3, dtype=torch.long), torch.ones(4), r"expected \[L, H\] = \[2, 4\]"),
        (torch.zeros(1, 3, dtype=torch.long), torch.ones(3, 4), r"head_gate has shape \[3, 4\]"),
        (torch.zeros(1, 3, dtype=torch.long), torch.ones(2, 5), r"head_gate has shape \[5\]"),
    ],
)
def test_an_error_shows_the_shapes(ids: Tensor, gate: Tensor | None, words: str):
    model = GPT2(GPT2Config(2, 4, 32, 128, 64, 300))
    for call in (model, model.run):
        with pytest.raises(ShapeError, match=words):
            call(ids, head_gate=gate)


def test_an_unknown_activation_is_named():
    with pytest.raises(CheckpointError, match=r"`mish` is not supported; supported are gelu_new"):
        GPT2(GPT2Config(activation="mish"))


def test_adopt_names_what_is_missing_or_of_another_shape(gpt2: Callable[..., Any]):
    state, config = gpt2(5).state_dict(), GPT2Config(2, 4, 32, 128, 64, 300)
    wrong = {**state, "transformer.h.1.mlp.c_fc.weight": torch.ones(3, 4)}
    with pytest.raises(CheckpointError, match=r"W_in.weight` has shape \[4, 3\]; .* \[128, 32\]"):
        adopt(wrong, config)
    del state["transformer.h.1.attn.c_attn.weight"]
    with pytest.raises(CheckpointError, match=r"no tensor `transformer\.h\.1\.attn\.c_attn\."):
        adopt(state, config)

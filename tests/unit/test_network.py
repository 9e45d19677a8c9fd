"""The steps of a network: GPT-2's against transformers, and another family in its place."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pytest
import torch
from support.models import ours_of, some_ids
from tokenizers import Tokenizer
from torch import Tensor, nn

from mha_viz import pruning
from mha_viz.analysis import logit_attribution, predictions
from mha_viz.analysis.generation import generate
from mha_viz.attention import MultiHeadAttention
from mha_viz.errors import HeadNotFound, ShapeError
from mha_viz.gpt2 import GPT2, GPT2Config
from mha_viz.layers import Embedding, FrozenNorm, check_width
from mha_viz.lessons.bugs import run_with_bug
from mha_viz.lessons.grouped_query import grouped_gpt2
from mha_viz.model import Description, Model
from mha_viz.network import Block, Network, NetworkConfig

L, H, C = 2, 4, 32
T = 20
CLOSE = {"atol": 1e-5, "rtol": 0}


@pytest.fixture(scope="module")
def theirs(gpt2: Callable[..., Any]) -> Any:
    return gpt2(5)


@pytest.fixture(scope="module")
def ours(theirs: Any) -> GPT2:
    return ours_of(theirs)


@pytest.fixture(scope="module")
def ids() -> Tensor:
    return some_ids(T, 300)


# --- GPT-2's steps are transformers' --------------------------------------------------------------


@pytest.fixture(scope="module")
def states(theirs: Any, ids: Tensor) -> dict[str, list[Tensor]]:
    """What goes into and out of the parts of transformers' GPT-2."""
    seen: dict[str, list[Tensor]] = {
        "resid": [], "ln_1": [], "attn": [], "mlp": [], "last": [], "ln_f": []
    }  # fmt: skip
    handles = [
        theirs.transformer.ln_f.register_forward_pre_hook(lambda _, x: seen["last"].append(x[0])),
        theirs.transformer.ln_f.register_forward_hook(lambda _, x, out: seen["ln_f"].append(out)),
    ]
    for block in theirs.transformer.h:
        handles += [
            block.register_forward_pre_hook(lambda _, x: seen["resid"].append(x[0])),
            block.ln_1.register_forward_hook(lambda _, x, out: seen["ln_1"].append(out)),
            block.attn.register_forward_hook(lambda _, x, out: seen["attn"].append(out[0])),
            block.mlp.register_forward_hook(lambda _, x, out: seen["mlp"].append(out)),
        ]
    with torch.inference_mode():
        seen["logits"] = [theirs(ids).logits]
    for handle in handles:
        handle.remove()
    return seen


@torch.inference_mode()
def test_the_residual_stream_is_that_of_transformers(
    ours: GPT2, ids: Tensor, states: dict[str, list[Tensor]]
):
    resids = list(ours.residuals(ids))
    assert len(resids) == L + 1
    for resid, expected in zip(resids, [*states["resid"], *states["last"]], strict=True):
        torch.testing.assert_close(resid, expected, **CLOSE)
    torch.testing.assert_close(ours.embed(ids), states["resid"][0], **CLOSE)
    torch.testing.assert_close(ours.final_norm(resids[-1]), states["ln_f"][0], **CLOSE)
    torch.testing.assert_close(ours.unembed(resids[-1]), states["logits"][0], **CLOSE)
    assert torch.equal(ours.unembed(resids[-1]), ours(ids))


@torch.inference_mode()
def test_the_parts_of_a_block_are_those_of_transformers(
    ours: GPT2, ids: Tensor, states: dict[str, list[Tensor]]
):
    resids = list(ours.residuals(ids))
    for layer, block in enumerate(ours.blocks):
        resid = resids[layer]
        x = block.attention_input(resid)
        torch.testing.assert_close(x, states["ln_1"][layer], **CLOSE)
        assert torch.equal(x, ours.attention_input(ids, layer))
        attn_out = block.attn.merge(block.heads(resid).z)
        torch.testing.assert_close(attn_out, states["attn"][layer], **CLOSE)
        mlp = block.mlp_output(resid, resid + attn_out)
        torch.testing.assert_close(mlp, states["mlp"][layer], **CLOSE)
        assert torch.equal(block.after_attention(resid, attn_out), resids[layer + 1])


@torch.inference_mode()
def test_the_embedding_of_a_later_position_is_that_of_transformers(
    theirs: Any, ours: GPT2, ids: Tensor
):
    expected = theirs.transformer(
        ids, position_ids=torch.arange(7, 7 + T)[None], output_hidden_states=True
    ).hidden_states[0]
    torch.testing.assert_close(ours.embed(ids, 7), expected, **CLOSE)


@torch.inference_mode()
def test_heads_with_a_cache_or_of_the_last_position_equal_the_full_pass(ours: GPT2, ids: Tensor):
    resid, block = ours.embed(ids), ours.blocks[0]
    full = block.heads(resid)
    cache = ours.empty_cache(T)[0]
    block.heads(resid[:, :12], cache=cache)
    rest = block.heads(resid[:, 12:], cache=cache)
    torch.testing.assert_close(rest.z, full.z[:, :, 12:], **CLOSE)
    torch.testing.assert_close(rest.k, full.k, **CLOSE)
    last = block.heads(resid, last_only=True)
    assert last.z.shape == (1, H, 1, C // H)
    torch.testing.assert_close(last.z, full.z[:, :, -1:], **CLOSE)
    assert torch.equal(last.q, full.q)


@torch.inference_mode()
def test_a_residual_stream_of_one_sequence_takes_the_outputs_of_several(ours: GPT2, ids: Tensor):
    resid, block = ours.embed(ids), ours.blocks[0]
    outs = torch.randn(3, T, C, generator=torch.Generator().manual_seed(1))
    together = block.after_attention(resid, outs)
    for out, after in zip(outs, together, strict=True):
        torch.testing.assert_close(block.after_attention(resid, out[None])[0], after, **CLOSE)


@torch.inference_mode()
def test_the_frozen_norm_of_parts_adds_up_to_the_norm_of_their_sum(ours: GPT2):
    parts = torch.randn(5, C, generator=torch.Generator().manual_seed(2))
    resid = parts.sum(0)
    frozen = ours.frozen_final_norm(resid)
    torch.testing.assert_close(frozen(parts).sum(0) + frozen.bias, ours.final_norm(resid), **CLOSE)


def test_with_attention_shares_every_other_weight(ours: GPT2):
    state = {name: tensor + 1 for name, tensor in ours.blocks[1].attn.state_dict().items()}
    new = ours.with_attention(ours.config, {1: state})
    assert torch.equal(new.blocks[1].attn.W_O.weight, ours.blocks[1].attn.W_O.weight + 1)
    assert new.blocks[0].attn.W_O.weight.data_ptr() == ours.blocks[0].attn.W_O.weight.data_ptr()
    assert new.W_U.weight is new.token_embedding.weight, "still tied"
    assert not new.training
    assert not any(parameter.requires_grad for parameter in new.parameters())


# --- what does not fit ----------------------------------------------------------------------------


def test_a_step_rejects_another_shape(ours: GPT2, ids: Tensor):
    wide, resid, block = torch.ones(1, T, C + 1), torch.ones(1, T, C), ours.blocks[0]
    steps: list[tuple[Callable[[], Any], str]] = [
        (lambda: ours.embed(ids[0]), r"ids have shape \[20\]; expected \[B, T\]"),
        (lambda: ours.embed(ids, 50), r"offset 50 reach position 69; .* = 64"),
        (lambda: ours.embed(ids, -1), "offset -1"),
        (lambda: block.attention_input(wide), r"\[1, 20, 33\]; .* C = 32"),
        (lambda: block.heads(wide), "C = 32"),
        (lambda: block.mlp_output(resid, wide), "C = 32"),
        (lambda: block.after_attention(resid, wide), r"\[1, 20, 33\] and resid"),
        (lambda: block.after_attention(resid, resid[:, :3]), "both must be"),
        (
            lambda: block.after_attention(resid.expand(3, -1, -1), resid.expand(2, -1, -1)),
            "both must be",
        ),
        (lambda: ours.final_norm(wide), "C = 32"),
        (lambda: ours.frozen_final_norm(wide[0, 0]), "C = 32"),
        (lambda: ours.unembed(wide), "C = 32"),
        (lambda: ours.unembed(torch.tensor(1.0)), r"shape \[\]"),
        (lambda: ours.attention_input(ids, 2), "layer = 2; .* layers 0 to 1"),
        (lambda: ours.attention_input(ids, -1), "layer = -1"),
        (lambda: next(ours.residuals(ids, offset=60)), "n_positions = 64"),
    ]
    for step, words in steps:
        with pytest.raises(ShapeError, match=words):
            step()


def test_a_configuration_names_a_missing_head():
    config = GPT2Config(2, 4, 32, pruned_heads=((), (3,)))
    config.check_head(1, 2)
    for layer, head, words in ((2, 0, "L2 H0 is not in"), (0, 4, "L0 H4"), (1, 3, "been pruned")):
        with pytest.raises(HeadNotFound, match=words):
            config.check_head(layer, head)


# --- another family in GPT-2's place --------------------------------------------------------------


class RMSNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def scale(self, x: Tensor) -> Tensor:
        return (x.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt()

    def forward(self, x: Tensor) -> Tensor:
        return x / self.scale(x) * self.weight


@dataclass(frozen=True, slots=True)
class OtherConfig(NetworkConfig):
    """As GPT-NeoX or Llama may be: parallel or gated, without biases."""

    parallel: bool = True


class OtherBlock(Block):
    """RMSNorm, a gated MLP, beside the attention or after it."""

    def __init__(self, config: OtherConfig, layer: int) -> None:
        super().__init__()
        self.before_attention, self.before_mlp = RMSNorm(config.d_model), RMSNorm(config.d_model)
        self.attn = MultiHeadAttention(
            config.d_model,
            len(config.kept_heads(layer)),
            n_kv_heads=config.n_kv_heads,
            d_head=config.d_head,
            bias=False,
        )
        self.gate, self.up = (nn.Linear(config.d_model, config.d_mlp, bias=False) for _ in range(2))
        self.down = nn.Linear(config.d_mlp, config.d_model, bias=False)
        self.parallel = config.parallel

    def attention_input(self, resid: Tensor) -> Tensor:
        check_width(resid, self.attn.d_model)
        return cast(Tensor, self.before_attention(resid))

    def mlp_output(self, resid_pre: Tensor, resid_mid: Tensor) -> Tensor:
        x = self.before_mlp(resid_pre if self.parallel else resid_mid)
        return cast(Tensor, self.down(nn.functional.silu(self.gate(x)) * self.up(x)))


class Other(Network):
    """Sinusoidal positions instead of a table, and an untied unembedding."""

    config: OtherConfig

    def __init__(self, config: OtherConfig) -> None:
        super().__init__()
        self.config = config
        self.tokens = Embedding(config.vocab_size, config.d_model)
        blocks = nn.ModuleList(OtherBlock(config, layer) for layer in range(config.n_layers))
        self.blocks = cast("Sequence[Block]", blocks)
        self.norm = RMSNorm(config.d_model)
        self.W_U = nn.Linear(config.d_model, config.vocab_size, bias=False)

    @property
    def token_embedding(self) -> Embedding:
        return self.tokens

    def embed(self, ids: Tensor, offset: int = 0) -> Tensor:
        self.check_ids(ids, offset)
        steps = torch.arange(offset, offset + ids.shape[1])[:, None]
        rates = torch.arange(1, self.config.d_model + 1) / self.config.d_model
        return cast(Tensor, self.tokens(ids) + torch.sin(steps * rates * math.pi))

    def final_norm(self, resid: Tensor) -> Tensor:
        return cast(Tensor, self.norm(resid))

    def frozen_final_norm(self, resid: Tensor) -> FrozenNorm:
        weight = self.norm.weight / self.norm.scale(resid)
        return FrozenNorm(weight, torch.zeros_like(weight), centred=False)


@pytest.fixture(scope="module", params=[True, False], ids=["parallel", "in sequence"])
def other(request: pytest.FixtureRequest, tokenizer: Tokenizer) -> Model:
    """A model of another family, with random weights far from zero."""
    torch.manual_seed(3)
    network = Other(OtherConfig(L, H, C, 64, 64, 300, parallel=request.param)).eval()
    for block in network.blocks:
        block.attn.W_QKV.weight.data *= 3
    return Model(
        network.requires_grad_(False), tokenizer, Description("another", "", "float32", 0, "")
    )


IDS = some_ids(T, 300, 4)[0].tolist()
HEADS = [(layer, head) for layer in range(L) for head in range(H)]


@torch.inference_mode()
def loss_without(model: Model, heads: list[tuple[int, int]]) -> float:
    gate = pruning.gate_without(model.config, heads)
    logits = model.network(torch.tensor([IDS]), head_gate=gate)[0]
    return float(nn.functional.cross_entropy(logits[:-1], torch.tensor(IDS[1:])))


def test_its_trace_has_its_patterns_and_logits(other: Model):
    trace = other.trace_ids(IDS)
    with torch.inference_mode():
        logits = other.network(torch.tensor([IDS]))[0, -1]
        x = other.network.attention_input(torch.tensor([IDS]), 1)
        record = other.network.blocks[1].attn.explicit(x)
    np.testing.assert_allclose(trace.logits, logits, atol=1e-5)
    for head in range(H):
        np.testing.assert_allclose(trace.pattern(1, head), record.pattern[0, head], atol=1e-6)


def test_its_heads_are_ablated_exactly(other: Model):
    effects = pruning.ablate_each_head(other, IDS)
    full = loss_without(other, [])
    assert np.abs(effects).max() > 1e-3, "heads matter"
    for layer, head in HEADS:
        expected = loss_without(other, [(layer, head)]) - full
        assert effects[layer, head] == pytest.approx(expected, abs=1e-5)


def test_its_gradient_is_that_of_the_loss_at_the_gate(other: Model):
    found = pruning.gradient_importance(other, IDS)
    gate = torch.ones(L, H, requires_grad=True)
    logits = other.network(torch.tensor([IDS]), head_gate=gate)[0]
    nn.functional.cross_entropy(logits[:-1], torch.tensor(IDS[1:])).backward()
    assert gate.grad is not None
    np.testing.assert_allclose(found, gate.grad.abs(), atol=1e-5)


@pytest.mark.parametrize("method", ["mean", "position-wise mean", "resample"])
def test_its_heads_have_replacements(other: Model, method: Any):
    replacement = pruning.make_replacement(other, method, T, [some_ids(60, 300, 5)[0].tolist()])
    effects = pruning.ablate_each_head(other, IDS, method=replacement)
    with_all = pruning.Pass.of(other, IDS).without([(1, 2)], replacement).loss
    assert effects[1, 2] == pytest.approx(with_all - pruning.Pass.of(other, IDS).loss, abs=1e-5)


def test_its_heads_are_pruned(other: Model):
    heads = [(0, 1), (1, 0), (1, 3)]
    few = pruning.pruned_model(other, heads)
    assert few.network.blocks[1].attn.n_heads == 2
    loss = pruning.Pass.of(few, IDS).loss
    assert loss == pytest.approx(loss_without(other, heads), abs=1e-5)
    last = list(pruning.curve(other, IDS, heads))[-1]
    assert last.loss == pytest.approx(loss, abs=1e-5)


def test_its_direct_effects_add_up_to_the_logits(other: Model):
    trace = other.trace_ids(IDS)
    effects = logit_attribution.direct_effects(other, trace)
    np.testing.assert_allclose(effects.total, trace.logits, atol=1e-4)
    assert not effects.constant.any()
    assert not effects.attention_bias.any()


def test_its_lens_ends_with_its_prediction_and_it_generates(other: Model):
    last = list(predictions.lens(other, IDS))[-1]
    np.testing.assert_array_equal(
        last.ids, predictions.join(list(predictions.predict(other, IDS, 5))).ids
    )
    made = [step.token for step in predictions.continue_text(other, IDS, 12)]
    assert made == list(generate(other.network, IDS, 12, cached=False))


def test_the_lessons_run_on_it(other: Model):
    run = run_with_bug(other.network, torch.tensor([IDS]), None, 1)
    with torch.inference_mode():
        torch.testing.assert_close(run.logits, other.network(torch.tensor([IDS]))[0], **CLOSE)
        grouped = grouped_gpt2(other.network, 2)
        assert grouped(torch.tensor([IDS])).shape == (1, T, 300)
    assert type(grouped) is Other

"""What heads write, checked against transformers' weights and against known sums."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from support.models import random_gpt2

from mha_viz import pruning
from mha_viz.analysis.logit_attribution import (
    NAMES,
    direct_effects,
    head_effect,
    heads_towards,
    ioi_direct_effects,
    push,
    telling_head,
    value_norms,
)
from mha_viz.app.samples import SAMPLES
from mha_viz.errors import HeadNotFound, ShapeError, TextError
from mha_viz.gpt2 import GPT2
from mha_viz.lessons.grouped_query import grouped_gpt2
from mha_viz.model import Model

TEXT = "the cat sat on the mat and the dog ran"


@pytest.fixture(scope="module")
def theirs() -> Any:
    """The GPT-2 of transformers with the weights of `tiny`."""
    return random_gpt2(7)


@torch.inference_mode()
def seen(theirs: Any, ids: list[int]) -> dict[str, Any]:
    """What transformers adds to the residual stream, and what its last LayerNorm reads."""
    found: dict[str, Any] = {"attn": [], "mlp": [], "z": []}
    hooks = [
        theirs.transformer.ln_f.register_forward_pre_hook(
            lambda _, args: found.update(resid=args[0][0])
        )
    ]
    for block in theirs.transformer.h:
        hooks += [
            block.attn.c_proj.register_forward_pre_hook(
                lambda _, args: found["z"].append(args[0][0])
            ),
            block.mlp.register_forward_hook(lambda _, args, out: found["mlp"].append(out[0])),
        ]
    out = theirs(torch.tensor([ids]), output_hidden_states=True, output_attentions=True)
    for hook in hooks:
        hook.remove()
    return {**found, "logits": out.logits[0], "hidden": out.hidden_states, "A": out.attentions}


# --- value-weighted attention ---------------------------------------------------------------------


@torch.inference_mode()
def test_norms_are_those_of_what_each_position_offers(tiny: Model, theirs: Any) -> None:
    """f(x) = (ln_1(x) W_V + b_V) W_O^h, from the weights as transformers holds them."""
    trace = tiny.trace(TEXT)
    hidden = seen(theirs, trace.token_ids)["hidden"]
    for layer, block in enumerate(theirs.transformer.h):
        x = block.ln_1(hidden[layer][0])
        W, b = block.attn.c_attn.weight, block.attn.c_attn.bias
        for head in range(4):
            columns = slice(64 + 8 * head, 72 + 8 * head)
            v = x @ W[:, columns] + b[columns]
            expected = (v @ block.attn.c_proj.weight[8 * head : 8 * head + 8]).norm(dim=-1)
            found = value_norms(tiny, trace, layer, head)
            np.testing.assert_allclose(found, expected.numpy(), rtol=1e-5, atol=1e-6)


def test_a_sink_weighs_less_by_what_it_offers(bundled: Model) -> None:
    """Weight is not effect: L3 H4 looks mostly at the first token, whose value norm is small."""
    trace = bundled.trace("The old king sat by the fire, and his daughter sang to him of the sea.")
    pattern, norms = trace.pattern(3, 4), value_norms(bundled, trace, 3, 4)
    weighted = pattern * norms[None, :]
    by_weight = pattern[1:, 0].mean()
    by_norm = (weighted[1:, 0] / weighted[1:].sum(axis=1)).mean()
    assert by_weight > 0.8
    assert by_norm < by_weight


# --- direct effects -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tiny", "bundled"])
def test_the_terms_add_up_to_the_logits(request: pytest.FixtureRequest, name: str) -> None:
    model: Model = request.getfixturevalue(name)
    trace = model.trace(TEXT)
    effects = direct_effects(model, trace)
    assert len(effects.tokens) == model.config.vocab_size
    np.testing.assert_allclose(effects.total, trace.logits, rtol=0, atol=1e-4)


@torch.inference_mode()
@pytest.mark.parametrize("position", [0, 4, -1])
def test_every_term_is_that_of_transformers(tiny: Model, theirs: Any, position: int) -> None:
    trace = tiny.trace(TEXT)
    ids, tokens = trace.token_ids, [5, 299, 120]
    record = seen(theirs, ids)
    resid, ln_f = record["resid"][position], theirs.transformer.ln_f
    sigma = (resid.var(unbiased=False) + ln_f.eps).sqrt()
    W_U = theirs.lm_head.weight[tokens]

    def logits(part: torch.Tensor) -> np.ndarray:
        return ((part - part.mean()) / sigma * ln_f.weight @ W_U.T).numpy()

    close = {"rtol": 0, "atol": 1e-5}
    found = direct_effects(tiny, trace, tokens, position=position)
    embedding = theirs.transformer.wte.weight[ids[position]]
    embedding = embedding + theirs.transformer.wpe.weight[position % len(ids)]
    np.testing.assert_allclose(found.embedding, logits(embedding), **close)
    np.testing.assert_allclose(found.constant, (ln_f.bias @ W_U.T).numpy(), **close)
    for layer, block in enumerate(theirs.transformer.h):
        c_proj = block.attn.c_proj
        np.testing.assert_allclose(found.attention_bias[layer], logits(c_proj.bias), **close)
        mlp = record["mlp"][layer][position]
        np.testing.assert_allclose(found.mlps[layer], logits(mlp), **close)
        for head in range(4):
            rows = slice(8 * head, 8 * head + 8)
            out = record["z"][layer][position, rows] @ c_proj.weight[rows]
            np.testing.assert_allclose(found.heads[layer, head], logits(out), **close)
    expected = record["logits"][position, tokens].numpy()
    np.testing.assert_allclose(found.total, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize(("layer", "head", "position"), [(0, 3, -1), (1, 0, 4)])
def test_one_head_alone_is_a_row_of_all(tiny: Model, layer: int, head: int, position: int) -> None:
    trace = tiny.trace(TEXT)
    shares: list[float] = []
    found = head_effect(tiny, trace, layer, head, position=position, on_progress=shares.append)
    expected = direct_effects(tiny, trace, position=position).heads[layer, head]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
    assert shares == [0.5, 1.0]
    with pytest.raises(HeadNotFound, match="L9 H0"):
        head_effect(tiny, trace, 9, 0)


def test_the_effect_of_a_head_can_be_stopped_between_layers(tiny: Model) -> None:
    shares: list[float] = []

    def stop(share: float) -> None:
        shares.append(share)
        raise InterruptedError

    with pytest.raises(InterruptedError):
        head_effect(tiny, tiny.trace(TEXT), 0, 0, on_progress=stop)
    assert shares == [0.5]


def test_heads_that_share_keys_or_were_pruned(tiny: Model) -> None:
    shared = replace(tiny, network=grouped_gpt2(tiny.network, 2))
    trace = shared.trace(TEXT)
    np.testing.assert_allclose(direct_effects(shared, trace).total, trace.logits, rtol=0, atol=1e-4)
    torch.manual_seed(3)
    config = replace(tiny.config, pruned_heads=((1,), ()))
    pruned = replace(tiny, network=GPT2(config).eval().requires_grad_(False))
    trace = pruned.trace(TEXT)
    effects = direct_effects(pruned, trace)
    np.testing.assert_allclose(effects.total, trace.logits, rtol=0, atol=1e-4)
    assert np.isnan(effects.heads[0, 1]).all()
    assert np.isfinite(value_norms(pruned, trace, 0, 2)).all()
    with pytest.raises(HeadNotFound, match="L0 H1 has been pruned"):
        value_norms(pruned, trace, 0, 1)


@torch.inference_mode()
def test_the_head_after_a_gap_writes_through_its_own_rows(tiny: Model) -> None:
    """Head 2 of a layer without head 1 has the second block of W_O's columns."""
    torch.manual_seed(3)
    config = replace(tiny.config, pruned_heads=((1,), ()))
    pruned = replace(tiny, network=GPT2(config).eval().requires_grad_(False))
    trace = pruned.trace(TEXT)
    W_O = pruned.network.blocks[0].attn.W_O.weight[:, 8:16].numpy()
    expected = np.linalg.norm(trace.v[0, 2] @ W_O.T, axis=-1)
    np.testing.assert_allclose(value_norms(pruned, trace, 0, 2), expected, rtol=1e-5)


# --- what does not fit ----------------------------------------------------------------------------


def test_a_trace_of_another_model_is_rejected(tiny: Model, bundled: Model) -> None:
    other = bundled.trace("a cat")
    for use in (direct_effects, lambda model, trace: value_norms(model, trace, 0, 0)):
        with pytest.raises(ShapeError, match="Trace the text with this model"):
            use(tiny, other)


def test_missing_tokens_positions_and_heads(tiny: Model) -> None:
    trace = tiny.trace(TEXT)
    with pytest.raises(TextError, match="range from 3 to 300"):
        direct_effects(tiny, trace, [3, 300])
    with pytest.raises(ShapeError, match="tokens is empty"):
        direct_effects(tiny, trace, [])
    with pytest.raises(ShapeError, match="position = 99"):
        direct_effects(tiny, trace, [1], position=99)
    with pytest.raises(HeadNotFound, match="which has layers 0 to 1 and heads 0 to 3"):
        value_norms(tiny, trace, 2, 0)


# --- indirect objects -----------------------------------------------------------------------------


def test_names_must_be_tokens(tiny: Model) -> None:
    with pytest.raises(TextError, match=r"` \w+` is \d tokens for"):
        ioi_direct_effects(tiny)


def test_a_head_that_writes_the_other_name_has_its_difference(
    bundled: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The differences of the effects on two tokens add up to the difference of their logits."""
    import mha_viz.analysis.logit_attribution as effects

    monkeypatch.setattr(effects, "NAMES", (("John", "Mary"),))
    monkeypatch.setattr(effects, "OPENINGS", ("{a} and {b} met, and {s} gave it to",))
    found = effects.ioi_direct_effects(bundled)
    assert found.shape == (1, 1, 4, 6)
    trace = bundled.trace("Mary and John met, and John gave it to")
    mary, john = (bundled.encode(f" {name}")[0][0] for name in ("Mary", "John"))
    expected = effects.direct_effects(bundled, trace, [mary, john]).heads
    np.testing.assert_allclose(found[0, 0], expected[..., 0] - expected[..., 1], rtol=0, atol=1e-6)
    assert len(NAMES) == len({name for pair in NAMES for name in pair}) / 2


def test_heads_towards_a_token_are_effects_above_the_mean(bundled: Model) -> None:
    trace = bundled.trace("The king gave the ring. The king gave")
    every = direct_effects(bundled, trace, position=4).heads
    found = heads_towards(bundled, trace.token_ids, 300, position=4)
    np.testing.assert_allclose(found, every[..., 300] - every.mean(-1), atol=1e-3)


def test_a_gated_head_raises_nothing(bundled: Model) -> None:
    ids = bundled.trace("The king gave the ring. The king gave").token_ids
    gate = np.ones((4, 6), dtype=np.float32)
    gate[2, 1] = 0
    full = heads_towards(bundled, ids, 300)
    gated = heads_towards(bundled, ids, 300, head_gate=gate)
    assert gated[2, 1] == 0
    ratio = gated[:2] / full[:2]  # below the gate only the scale of the last norm differs
    np.testing.assert_allclose(ratio, ratio[0, 0], rtol=1e-3)
    with pytest.raises(ShapeError, match="positions 0 to"):
        heads_towards(bundled, ids, 300, position=99)


# --- heads that matter ----------------------------------------------------------------------------


@pytest.mark.parametrize("position", [0, 4, -1])
def test_the_push_of_every_head_is_towards_the_most_likely_token(
    bundled: Model, position: int
) -> None:
    trace = bundled.trace(TEXT)
    found = push(bundled, trace, position=position)
    logits = bundled.network(torch.tensor([trace.token_ids]))[0, position]
    p, ids = logits.softmax(-1).topk(3)
    assert found.tokens == tuple(ids.tolist())
    assert found.probabilities == pytest.approx(p.tolist(), abs=1e-5)
    expected = heads_towards(bundled, trace.token_ids, found.tokens[0], position=position)
    np.testing.assert_allclose(found.heads, expected, atol=1e-4)
    assert found.score == pytest.approx(float(logits[ids[0]] - logits.mean()), abs=1e-4)


@pytest.mark.parametrize("text", [TEXT, *SAMPLES.values()])
def test_the_telling_head_has_the_largest_effect_at_the_last_position(
    bundled: Model, text: str
) -> None:
    trace = bundled.trace(text)
    effects = push(bundled, trace).heads
    assert effects[telling_head(bundled, trace)] == effects.max()


def test_a_pruned_head_is_not_the_telling_one(bundled: Model) -> None:
    before = telling_head(bundled, bundled.trace(TEXT))
    pruned = pruning.pruned_model(bundled, [before])
    after = telling_head(pruned, pruned.trace(TEXT))
    assert after != before
    assert np.nanmax(push(pruned, pruned.trace(TEXT)).heads) > 0

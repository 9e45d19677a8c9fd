"""Multi-head attention checked against its definition, against torch, and against itself."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.layers import B, C, H, T, attention, close, random, torch_attention
from support.models import everything
from torch import Tensor, nn
from torch.nn import functional as F

from mha_viz.attention import KVCache, MultiHeadAttention, split_heads
from mha_viz.errors import MhaVizError, ShapeError

# --- what a pattern is --------------------------------------------------------------------------


def test_rows_of_a_pattern_add_up_to_one():
    pattern = attention().explicit(random(B, T, C)).pattern
    close(pattern.sum(-1), torch.ones(B, H, T, dtype=torch.float64), 1e-12)
    assert bool((pattern >= 0).all())


def test_the_future_weighs_exactly_zero():
    pattern = attention().explicit(random(B, T, C)).pattern
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    assert torch.count_nonzero(pattern[:, :, future]) == 0
    assert bool((pattern[:, :, ~future] > 0).all())


def test_without_the_causal_rule_every_key_is_seen():
    pattern = attention(causal=False).explicit(random(B, T, C)).pattern
    assert bool((pattern > 0).all())


@pytest.mark.parametrize("changed", range(1, T))
def test_a_later_token_changes_no_earlier_row(changed):
    module, x = attention(), random(B, T, C)
    other = x.clone()
    other[:, changed] += 3.0
    before, after = module.explicit(x), module.explicit(other)
    assert torch.equal(before.pattern[:, :, :changed], after.pattern[:, :, :changed])
    assert torch.equal(before.out[:, :changed], after.out[:, :changed])
    assert torch.equal(module(x)[:, :changed], module(other)[:, :changed])
    assert not torch.equal(before.out[:, changed], after.out[:, changed])


def test_equal_keys_share_the_weight_evenly():
    pattern = attention().explicit(random(1, 1, C).expand(1, T, C)).pattern
    even = torch.ones(T, T, dtype=torch.float64).tril() / torch.arange(1, T + 1)[:, None]
    close(pattern, even.expand(1, H, T, T), 1e-12)


# --- against other implementations ----------------------------------------------------------------


def test_one_head_is_plain_attention():
    module, x = attention(n_heads=1, causal=False), random(B, T, C)
    q, k, v = (x @ module.W_QKV.weight.T + module.W_QKV.bias).split(C, dim=-1)
    expected = torch.softmax(q @ k.mT / math.sqrt(C), dim=-1) @ v
    close(module.explicit(x).z[:, 0], expected, 1e-12)
    close(module(x), expected @ module.W_O.weight.T + module.W_O.bias, 1e-12)


def test_many_heads_are_single_heads_side_by_side():
    module, x = attention(), random(B, T, C)
    d_h = C // H
    total = module.W_O.bias.expand(B, T, C)
    for h in range(H):
        rows = slice(h * d_h, (h + 1) * d_h)
        q, k, v = (
            x @ W[rows].T + b[rows]
            for W, b in zip(module.W_QKV.weight.split(C), module.W_QKV.bias.split(C), strict=True)
        )
        scores = (q @ k.mT / math.sqrt(d_h)).masked_fill(~torch.ones(T, T).tril().bool(), -math.inf)
        z = scores.softmax(-1) @ v
        close(module.explicit(x).z[:, h], z, 1e-12)
        total = total + z @ module.W_O.weight[:, rows].T
    close(module(x), total, 1e-12)


def test_equals_torch_on_causal_self_attention():
    module, x = attention(), random(B, T, C)
    hidden = torch.ones(T, T, dtype=torch.bool).triu(1)  # torch's True means "may not look"
    out, pattern = torch_attention(module)(x, x, x, attn_mask=hidden, average_attn_weights=False)
    close(module(x), out, 1e-12)
    close(module.explicit(x).pattern, pattern, 1e-12)


def test_equals_torch_on_cross_attention_under_a_mask():
    module, x, kv = attention(causal=False), random(B, T, C), random(B, T + 2, C, seed=2)
    seen = random(B, H, T, T + 2, seed=3) > 0
    seen[..., 0] = True
    hidden = ~seen.flatten(0, 1)  # torch wants [B * H, T_q, T_k]
    out, pattern = torch_attention(module)(x, kv, kv, attn_mask=hidden, average_attn_weights=False)
    close(module(x, kv, mask=seen), out, 1e-12)
    close(module.explicit(x, kv, mask=seen).pattern, pattern, 1e-12)


def test_equals_numpy():
    module, x = attention(), random(B, T, C)
    W, b, W_O, b_O = (p.detach().numpy() for p in module.parameters())
    qkv = (x.numpy() @ W.T + b).reshape(B, T, 3, H, C // H)
    q, k, v = np.einsum("bijhd->jbhid", qkv)
    scores = np.einsum("bhid,bhjd->bhij", q, k) / np.sqrt(C // H)
    scores[..., np.triu(np.ones((T, T), dtype=bool), 1)] = -np.inf
    pattern = np.exp(scores - scores.max(-1, keepdims=True))
    pattern /= pattern.sum(-1, keepdims=True)
    z = np.einsum("bhij,bhjd->bihd", pattern, v).reshape(B, T, C)
    record = module.explicit(x)
    np.testing.assert_allclose(record.pattern.detach().numpy(), pattern, rtol=0, atol=1e-12)
    np.testing.assert_allclose(module(x).detach().numpy(), z @ W_O.T + b_O, rtol=0, atol=1e-12)


# --- two ways, one function -----------------------------------------------------------------------

SIZES = st.integers(1, 4)


@settings(max_examples=150)
@given(
    sizes=st.tuples(SIZES, SIZES, st.integers(1, 5), st.integers(1, 9), st.integers(1, 9)),
    cross=st.booleans(),
    causal=st.booleans(),
    bias=st.booleans(),
    mask_axes=st.sampled_from([None, 2, 3, 4]),
    gate_axes=st.sampled_from([None, 1, 2]),
    double=st.booleans(),
    scale=st.sampled_from([None, 1.0, 0.05]),
)
def test_explicit_attention_equals_the_fused_kernel(
    sizes, cross, causal, bias, mask_axes, gate_axes, double, scale
):
    b, h, d_h, t_q, t_k = sizes
    t_k = t_k if cross else t_q
    module = attention(d_model=h * d_h, n_heads=h, causal=causal, bias=bias, scale=scale)
    x, kv = random(b, t_q, h * d_h), random(b, t_k, h * d_h, seed=2) if cross else None
    mask = None if mask_axes is None else random(*(b, h, t_q, t_k)[:2], t_q, t_k, seed=3) > 0
    if mask_axes in (2, 3):
        mask = mask[0, 0] if mask_axes == 2 else mask[:, 0]
    gate = None if gate_axes is None else random(*(b, h)[2 - gate_axes :], seed=4)
    tolerance = 1e-12
    if not double:
        module, tolerance = module.float(), 1e-5
        x, kv = x.float(), None if kv is None else kv.float()
    record = module.explicit(x, kv, mask=mask, head_gate=gate)
    close(module(x, kv, mask=mask, head_gate=gate), record.out, tolerance)
    assert record.q.shape == record.z.shape == (b, h, t_q, d_h)
    assert record.k.shape == record.v.shape == (b, h, t_k, d_h)
    assert record.scores.shape == record.pattern.shape == (b, h, t_q, t_k)
    assert record.out.shape == x.shape
    sums = record.pattern.sum(-1)
    assert bool(((sums - 1).abs() < 1e-5).logical_or(sums == 0).all())


def test_a_mask_for_all_heads_is_the_same_mask_for_each():
    module, x = attention(), random(B, T, C)
    mask = random(B, T, T, seed=3) > 0
    each = mask[:, None].expand(B, H, T, T)
    assert torch.equal(module(x, mask=mask), module(x, mask=each))
    assert torch.equal(module(x, mask=mask[:1]), module(x, mask=mask[0]))


def test_a_mask_hides_what_it_says():
    mask = random(B, H, T, T, seed=3) > 0
    mask |= torch.eye(T, dtype=torch.bool)
    pattern = attention(causal=False).explicit(random(B, T, C), mask=mask).pattern
    assert torch.count_nonzero(pattern[~mask]) == 0
    assert bool((pattern[mask] > 0).all())


@pytest.mark.parametrize("axes", [2, 3, 4])
def test_a_mask_and_the_causal_rule_both_hold(axes):
    module, x = attention(causal=True), random(B, T, C)
    mask = random(*(B, H)[: axes - 2], T, T, seed=3) > 0
    mask |= torch.eye(T, dtype=torch.bool)
    causal = torch.ones(T, T, dtype=torch.bool).tril()
    free = attention(causal=False)
    close(module(x, mask=mask), free(x, mask=mask & causal), 1e-12)
    pattern = module.explicit(x, mask=mask).pattern
    close(pattern, free.explicit(x, mask=mask & causal).pattern, 1e-12)
    assert torch.count_nonzero(pattern[:, :, ~causal]) == 0


def test_the_causal_rule_counts_both_sides_from_the_start():
    """Query 1 of a cross-attention may look at keys 0 and 1, however many there are."""
    module, x, kv = attention(causal=True), random(B, 3, C), random(B, 5, C, seed=2)
    pattern = module.explicit(x, kv).pattern
    assert torch.equal(pattern[0, 0] > 0, torch.ones(3, 5).tril().bool())
    close(module(x, kv), module(x, kv, mask=torch.ones(3, 5, dtype=torch.bool)), 1e-12)


# --- fewer key/value heads, and pruned heads ---------------------------------------------------


def with_repeated_kv(module: MultiHeadAttention) -> MultiHeadAttention:
    """Multi-head attention whose key and value weights are those of `module`, once per query."""
    H, G, d_h = module.n_heads, module.n_kv_heads, module.d_head
    wide = attention(d_model=module.d_model, n_heads=H, causal=module.causal)
    rows = torch.arange((H + 2 * G) * d_h)
    q, k, v = rows.split([H * d_h, G * d_h, G * d_h])
    owner = [h // (H // G) for h in range(H)]
    k, v = k.view(G, d_h)[owner].flatten(), v.view(G, d_h)[owner].flatten()
    chosen = torch.cat([q, k, v])
    state = module.state_dict()
    state["W_QKV.weight"] = state["W_QKV.weight"][chosen]
    state["W_QKV.bias"] = state["W_QKV.bias"][chosen]
    wide.load_state_dict(state)
    return wide


@pytest.mark.parametrize("n_kv_heads", [1, 2, 3, 6])
@pytest.mark.parametrize("masked", [False, True])
def test_shared_keys_and_values_equal_repeated_ones(n_kv_heads, masked):
    module = attention(d_model=24, n_heads=6, n_kv_heads=n_kv_heads)
    wide, x = with_repeated_kv(module), random(B, T, 24)
    mask = torch.rand(B, 6, T, T, generator=torch.Generator().manual_seed(0)) > 0.3
    options = {"mask": mask} if masked else {}
    expected = wide(x, **options)
    close(module(x, **options), expected, 1e-12)
    record = module.explicit(x, **options)
    close(record.out, expected, 1e-12)
    assert list(record.k.shape) == [B, n_kv_heads, T, 4]
    assert list(record.pattern.shape) == [B, 6, T, T]
    close(module(x, random(B, 3, 24)), wide(x, random(B, 3, 24)), 1e-12)


def test_key_value_heads_that_do_not_fit_name_the_nearest_that_do():
    with pytest.raises(ShapeError, match=r"n_heads = 12 .* n_kv_heads = 5 .* 4 or 6"):
        MultiHeadAttention(24, 12, n_kv_heads=5)
    with pytest.raises(ShapeError, match="n_kv_heads = 0"):
        MultiHeadAttention(24, 12, n_kv_heads=0)


@pytest.mark.parametrize("kept", [[0, 2], [1], []])
def test_a_module_without_some_heads_equals_a_gate_that_closes_them(kept):
    whole, x = attention(), random(B, T, C)
    few = MultiHeadAttention(C, len(kept), d_head=C // H).double()
    rows = torch.arange(3 * C).view(3, H, C // H)[:, kept].flatten()
    few.W_QKV.weight.data = whole.W_QKV.weight.data[rows]
    few.W_QKV.bias.data = whole.W_QKV.bias.data[rows]
    few.W_O.weight.data = whole.W_O.weight.data[:, torch.arange(C).view(H, -1)[kept].flatten()]
    few.W_O.bias.data = whole.W_O.bias.data
    gate = torch.tensor([float(h in kept) for h in range(H)], dtype=torch.float64)
    expected = whole(x, head_gate=gate)
    close(few(x), expected, 1e-12)
    close(few.explicit(x).out, expected, 1e-12)


def test_heads_of_no_width_are_rejected():
    with pytest.raises(ShapeError, match=r"n_heads = 3, d_head = 0; .* at least 1"):
        MultiHeadAttention(C, H, d_head=0)


# --- a cache of keys and values -------------------------------------------------------------------


@pytest.mark.parametrize("n_kv_heads", [1, 3])
@pytest.mark.parametrize("parts", [[1] * T, [3, 2], [2, 1, 2], [T]])
def test_generation_with_a_cache_equals_the_full_text(n_kv_heads, parts):
    module, x = attention(n_kv_heads=n_kv_heads), random(B, T, C)
    like = module.W_O.weight.detach()
    fused, explicit = (KVCache(B, n_kv_heads, T, C // H, like) for _ in range(2))
    whole = module.explicit(x)
    start = 0
    with torch.no_grad():
        for part in x.split(parts, dim=1):
            end = start + part.shape[1]
            close(module(part, cache=fused), whole.out[:, start:end], 1e-12)
            record = module.explicit(part, cache=explicit)
            close(record.out, whole.out[:, start:end], 1e-12)
            close(record.pattern, whole.pattern[:, :, start:end, :end], 1e-12)
            start = end
    assert fused.length == T
    assert fused.n_bytes == 2 * B * n_kv_heads * T * (C // H) * 8


def test_a_full_cache_says_so_and_keeps_what_it_holds():
    cache = KVCache(1, H, 2, C // H, torch.empty(0, dtype=torch.float64))
    module = attention()
    with torch.no_grad():
        module(random(1, 2, C), cache=cache)
        with pytest.raises(ShapeError, match=r"\[1, 3, 2, 4\] that holds 2 positions"):
            module(random(1, 1, C), cache=cache)
        with pytest.raises(ShapeError, match="do not fit a cache"):
            module(random(2, 1, C), cache=cache)
    assert cache.length == cache.size == 2


# --- a query that may look nowhere ----------------------------------------------------------------


@pytest.mark.parametrize("path", ["explicit", "fused"])
def test_a_row_without_keys_gives_zeros_and_never_nan(path):
    module, x = attention(), random(B, T, C).requires_grad_()
    mask = torch.ones(T, T, dtype=torch.bool)
    mask[2] = False
    if path == "explicit":
        record = module.explicit(x, mask=mask)
        out = record.out
        assert torch.count_nonzero(record.pattern[:, :, 2]) == 0
        assert torch.count_nonzero(record.z[:, :, 2]) == 0
        assert bool(torch.isfinite(record.scores).all())
    else:
        out = module(x, mask=mask)
    assert torch.equal(out[:, 2], module.W_O.bias.expand(B, C)), "z is 0, so only the bias is left"
    out.square().sum().backward()
    for gradient in (x.grad, *(p.grad for p in module.parameters())):
        assert bool(torch.isfinite(gradient).all())
    assert torch.count_nonzero(x.grad[:, :2]) > 0


def test_a_mask_that_hides_everything_gives_zeros():
    module, x = attention(bias=False), random(B, T, C)
    nothing = torch.zeros(T, T, dtype=torch.bool)
    assert torch.count_nonzero(module(x, mask=nothing)) == 0
    assert torch.count_nonzero(module.explicit(x, mask=nothing).out) == 0


# --- gates ----------------------------------------------------------------------------------------


def test_a_gate_of_ones_changes_nothing_and_a_zero_removes_the_head():
    module, x = attention(), random(B, T, C)
    assert torch.equal(module(x, head_gate=torch.ones(H)), module(x))
    without = module(x, head_gate=torch.tensor([1.0, 0.0, 1.0]))
    record = module.explicit(x)
    share = record.z[:, 1] @ module.W_O.weight[:, C // H : 2 * C // H].T
    close(without, record.out - share, 1e-12)


def test_each_sequence_can_have_a_gate_of_its_own():
    module, x, gate = attention(), random(B, T, C), random(B, H, seed=4)
    both = module(x, head_gate=gate)
    for b in range(B):
        close(both[b : b + 1], module(x[b : b + 1], head_gate=gate[b]), 1e-12)


# --- gradients and dropout ------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["explicit", "fused"])
def test_gradients_are_those_of_the_function(path):
    module = attention(d_model=4, n_heads=2)
    mask = torch.tensor([[1, 0, 0], [0, 0, 1], [1, 1, 1]], dtype=torch.bool)  # row 1 sees nothing
    names = [name for name, _ in module.named_parameters()]

    def out(x: Tensor, kv: Tensor, gate: Tensor, *weights: Tensor) -> Tensor:
        replaced = dict(zip(names, weights, strict=True))
        options = {"mask": mask, "head_gate": gate}
        if path == "fused":
            return torch.func.functional_call(module, replaced, (x, kv), options)
        wrapped = {f"module.{name}": weight for name, weight in replaced.items()}
        return torch.func.functional_call(Explicit(module), wrapped, (x, kv), options)

    inputs = [random(1, 3, 4), random(1, 3, 4, seed=2), random(2, seed=3)]
    inputs += [p.detach().clone() for p in module.parameters()]
    inputs = [tensor.requires_grad_() for tensor in inputs]
    assert torch.autograd.gradcheck(out, inputs, atol=1e-6, fast_mode=True)


class Explicit(nn.Module):
    """Explicit attention as the forward of a module."""

    def __init__(self, module: MultiHeadAttention) -> None:
        super().__init__()
        self.module = module

    def forward(self, *inputs: Any, **options: Any) -> Tensor:
        return self.module.explicit(*inputs, **options).out


@pytest.mark.parametrize("path", ["explicit", "fused"])
def test_gradients_flow_to_every_parameter(path):
    module, x = attention(), random(B, T, C).requires_grad_()
    out = module(x) if path == "fused" else module.explicit(x).out
    (out * random(B, T, C, seed=5)).sum().backward()
    # The bias of k adds the same to all scores of a row, so the softmax cancels it.
    thirds = dict(zip("qkv", module.W_QKV.bias.grad.split(C), strict=True))
    assert float(thirds["k"].abs().max()) < 1e-12
    gradients = [x.grad, module.W_QKV.weight.grad, thirds["q"], thirds["v"]]
    for gradient in [*gradients, *(p.grad for p in module.W_O.parameters())]:
        assert bool((gradient.abs() > 1e-12).all())


def test_dropout_acts_in_training_only():
    module, x = attention(dropout=0.5), random(B, T, C)
    assert torch.equal(module(x), module(x))
    close(module(x), attention()(x), 1e-12)
    close(module.explicit(x).z, attention().explicit(x).z, 1e-12)
    module.train()
    assert not torch.equal(module(x), module(x))
    torch.manual_seed(3)
    record = module.explicit(x)
    close(record.pattern.sum(-1), torch.ones(B, H, T, dtype=torch.float64), 1e-12)
    torch.manual_seed(3)
    close(record.z, F.dropout(record.pattern, 0.5) @ record.v, 1e-12)


# --- errors that show the shapes ------------------------------------------------------------------

ONES = torch.ones(B, T, C, dtype=torch.float64)
WRONG_CALLS = {
    "x of two axes": ({"x": ONES[0]}, "x has shape [5, 12]; expected [B, T, C] with C = 12"),
    "x of another width": ({"x": ONES[..., :8]}, "x has shape [2, 5, 8]"),
    "kv of another width": ({"kv": ONES[..., :8]}, "kv has shape [2, 5, 8]"),
    "kv of another batch": ({"kv": ONES[:1]}, "x has shape [2, 5, 12] and kv [1, 5, 12]"),
    "mask of numbers": ({"mask": torch.ones(T, T)}, "torch.float32; expected torch.bool"),
    "mask of another size": (
        {"mask": torch.ones(T, T + 1, dtype=torch.bool)},
        "mask has shape [5, 6]; expected [T_q, T_k] = [5, 5], "
        "[B, T_q, T_k] = [2, 5, 5] or [B, H, T_q, T_k] = [2, 3, 5, 5]",
    ),
    "mask of one axis": ({"mask": torch.ones(T, dtype=torch.bool)}, "mask has shape [5]"),
    "mask of another batch": (
        {"mask": torch.ones(3, T, T, dtype=torch.bool)},
        "mask has shape [3, 5, 5]",
    ),
    "mask of other heads": (
        {"mask": torch.ones(B, 2, T, T, dtype=torch.bool)},
        "mask has shape [2, 2, 5, 5]",
    ),
    "gate of other heads": (
        {"head_gate": torch.ones(4)},
        "head_gate has shape [4]; expected [H] = [3] or [B, H] = [2, 3]",
    ),
    "gate of another batch": ({"head_gate": torch.ones(1, H)}, "head_gate has shape [1, 3]"),
}


@pytest.mark.parametrize("path", ["explicit", "fused"])
@pytest.mark.parametrize("case", WRONG_CALLS)
def test_an_error_shows_the_shapes(case, path):
    wrong, message = WRONG_CALLS[case]
    module = attention()
    call = module if path == "fused" else module.explicit
    arguments = {"x": ONES, **wrong}
    with pytest.raises(ShapeError) as caught:
        call(arguments.pop("x"), arguments.pop("kv", None), **arguments)
    assert message in str(caught.value)
    assert isinstance(caught.value, MhaVizError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("d_model", "n_heads", "words"),
    [
        (768, 10, "d_model = 768 is not a multiple of n_heads = 10; .* that fit: 8 or 12"),
        (12, 5, "that fit: 4 or 6"),
        (7, 3, "that fit: 1 or 7"),
        (12, 0, "n_heads = 0"),
        (0, 1, "d_model must be at least 1"),
    ],
)
def test_heads_that_do_not_fit_name_the_nearest_that_do(d_model, n_heads, words):
    with pytest.raises(ShapeError, match=words):
        MultiHeadAttention(d_model, n_heads)


def test_a_dropout_outside_0_to_1_is_rejected():
    with pytest.raises(ShapeError, match=r"dropout = 1\.5"):
        MultiHeadAttention(C, H, dropout=1.5)


# --- what a call leaves behind --------------------------------------------------------------------


def test_a_call_stores_nothing_on_the_module():
    module, x = attention(), random(B, T, C)
    before, weights = everything(module), [p.clone() for p in module.parameters()]
    mask, gate = torch.ones(T, T, dtype=torch.bool), torch.rand(H)
    module(x, x, mask=mask, head_gate=gate)
    module.explicit(x, x, mask=mask, head_gate=gate)
    with pytest.raises(ShapeError):
        module(x, head_gate=torch.ones(7))
    assert everything(module) == before
    assert all(map(torch.equal, module.parameters(), weights))
    assert not list(module.buffers())


def test_heads_are_split_without_a_copy():
    x = random(B, T, C)
    heads = split_heads(x, H, C // H)
    assert heads.data_ptr() == x.data_ptr()
    assert torch.equal(heads[1, 2, 3], x[1, 3, 2 * C // H :])


def test_half_precision_scores_do_not_overflow():
    module = attention(causal=False, bias=False).half()
    record = module.explicit(random(1, T, C).half() * 300)
    largest = float(record.scores.detach().abs().max())
    assert largest > torch.finfo(torch.float16).max
    assert record.pattern.dtype == torch.float32
    assert bool(torch.isfinite(record.scores).all())
    close(record.pattern.sum(-1), torch.ones(1, H, T), 1e-6)
    assert bool(torch.isfinite(record.out).all())

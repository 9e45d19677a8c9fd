"""Every other implementation of multi-head attention equals the fused module and torch's."""

import math

import numpy as np
import pytest
import torch
from support.layers import attention, close, random, torch_attention
from torch import Tensor, nn
from torch.nn import functional as F

from mha_viz.attention import MultiHeadAttention
from mha_viz.errors import ShapeError
from mha_viz.reference import (
    HeadByHead,
    SeparateProjections,
    SingleHead,
    additive_mask,
    head_by_head,
    head_reach,
    multi_head_attention,
    numpy_attention,
    plain_attention,
)

TOLERANCE = 1e-12  # float64
# (B, T, C, H)
SIZES = [(1, 1, 4, 1), (2, 5, 12, 3), (3, 8, 16, 4), (1, 17, 32, 8), (2, 6, 6, 6)]


def seen(*shape: int, seed: int = 3) -> Tensor:
    """A boolean mask that allows about half of the keys."""
    return random(*shape, seed=seed) > 0


# --- one head -------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [None, 0.3])
@pytest.mark.parametrize(("T_q", "T_k", "d_h"), [(1, 1, 1), (5, 5, 4), (3, 7, 16)])
def test_plain_attention_is_torchs(T_q, T_k, d_h, scale):
    q, k, v = random(T_q, d_h), random(T_k, d_h, seed=2), random(T_k, d_h + 1, seed=4)
    expected = F.scaled_dot_product_attention(q[None], k[None], v[None], scale=scale)[0]
    close(plain_attention(q, k, v, scale=scale), expected, TOLERANCE)
    allowed = seen(T_q, T_k)
    allowed[:, 0] = True
    expected = F.scaled_dot_product_attention(
        q[None], k[None], v[None], attn_mask=allowed[None], scale=scale
    )[0]
    close(plain_attention(q, k, v, allowed, scale=scale), expected, TOLERANCE)


def test_the_scale_is_that_of_the_definition():
    """Two keys whose scores differ by ln 3 once scaled: they weigh 3 to 1."""
    d_h = 4
    q = torch.full((1, d_h), math.log(3) / math.sqrt(d_h), dtype=torch.float64)
    k = torch.stack([torch.ones(d_h), torch.zeros(d_h)]).double()
    out = plain_attention(q, k, torch.eye(2, dtype=torch.float64))
    close(out, torch.tensor([[0.75, 0.25]], dtype=torch.float64), TOLERANCE)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("B", "T", "C"), [(1, 1, 4), (2, 5, 12)])
def test_one_head_is_plain_attention(B, T, C, causal):
    fused, x = attention(d_model=C, n_heads=1, causal=causal), random(B, T, C)
    q, k, v = (x @ fused.W_QKV.weight.T + fused.W_QKV.bias).split(C, dim=-1)
    z = plain_attention(q, k, v, torch.ones(T, T).tril().bool() if causal else None)
    close(fused(x), z @ fused.W_O.weight.T + fused.W_O.bias, TOLERANCE)
    mask = torch.ones(B, T, T).tril().bool() if causal else None
    close(multi_head_attention(q, k, v, 1, mask), z, TOLERANCE)
    listed = head_by_head(fused)
    close(listed.heads[0](x), z, TOLERANCE)


# --- a list of heads ------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"bias": False}, {"causal": False}, {"scale": 0.1}])
@pytest.mark.parametrize(("B", "T", "C", "H"), SIZES)
def test_a_list_of_heads_equals_the_fused_module(B, T, C, H, options):
    fused, x = attention(d_model=C, n_heads=H, **options), random(B, T, C)
    listed = head_by_head(fused)
    assert len(listed.heads) == H
    assert sum(p.numel() for p in listed.parameters()) == sum(p.numel() for p in fused.parameters())
    close(listed(x), fused(x), TOLERANCE)
    for h, head in enumerate(listed.heads):
        close(head(x), fused.explicit(x).z[:, h], TOLERANCE)


def test_a_list_of_heads_equals_torchs_module():
    fused, x = attention(), random(2, 5, 12)
    hidden = torch.ones(5, 5, dtype=torch.bool).triu(1)
    expected, _ = torch_attention(fused)(x, x, x, attn_mask=hidden)
    close(head_by_head(fused)(x), expected, TOLERANCE)


@pytest.mark.parametrize(
    "options", [{"n_kv_heads": 1}, {"n_kv_heads": 2}, {"d_head": 3}, {"d_head": 8, "n_kv_heads": 3}]
)
def test_heads_that_share_or_were_pruned_become_a_list_too(options):
    fused, x = attention(d_model=24, n_heads=6, **options), random(2, 5, 24)
    close(head_by_head(fused)(x), fused(x), TOLERANCE)


def test_the_list_has_weights_of_its_own():
    fused, x = attention(), random(2, 5, 12)
    listed = head_by_head(fused)
    before = listed(x).clone()
    with torch.no_grad():
        for parameter in fused.parameters():
            parameter.zero_()
    assert torch.equal(listed(x), before)


@pytest.mark.parametrize("n_heads", [1, 2, 3, 6])
def test_without_a_projection_the_heads_are_concatenated(n_heads):
    torch.manual_seed(0)
    listed, x = HeadByHead(12, n_heads, projection=False).double(), random(2, 5, 12)
    out = listed(x)
    assert list(out.shape) == [2, 5, 12]
    for head, part in zip(listed.heads, out.chunk(n_heads, dim=-1), strict=True):
        assert torch.equal(part, head(x))
    assert not [name for name, _ in listed.named_parameters() if name.startswith("W_O")]


# --- separate projections, and none ---------------------------------------------------------------


@pytest.mark.parametrize(("B", "T", "C", "H"), SIZES)
@pytest.mark.parametrize("causal", [False, True])
def test_separate_projections_equal_the_fused_one(B, T, C, H, causal):
    torch.manual_seed(0)
    separate, x = SeparateProjections(C, C, H, causal=causal).double(), random(B, T, C)
    fused = attention(d_model=C, n_heads=H, bias=False, causal=causal)
    W_QKV = torch.cat([separate.W_Q.weight, separate.W_K.weight, separate.W_V.weight])
    fused.load_state_dict({"W_QKV.weight": W_QKV, "W_O.weight": separate.W_O.weight})
    close(separate(x), fused(x), TOLERANCE)


@pytest.mark.parametrize("n_heads", [1, 2, 3, 6, 9, 18])
def test_the_toy_batch_keeps_its_shape_whatever_the_heads(n_heads):
    torch.manual_seed(0)
    module = SeparateProjections(3, 18, n_heads)
    assert list(module(torch.randn(5, 6, 3)).shape) == [5, 6, 18]
    assert sum(p.numel() for p in module.parameters()) == 3 * 3 * 18 + 18 * 18
    assert not [name for name, _ in module.named_parameters() if "bias" in name]


def test_the_toy_batch_in_two_heads_of_nine_is_two_plain_heads():
    torch.manual_seed(0)
    module, x = SeparateProjections(3, 18, 2).double(), random(5, 6, 3)
    past = torch.ones(6, 6).tril().bool()
    q, k, v = module.W_Q(x), module.W_K(x), module.W_V(x)
    z = [plain_attention(*(p[..., s] for p in (q, k, v)), past) for s in (np.s_[:9], np.s_[9:])]
    assert [list(part.shape) for part in z] == [[5, 6, 9]] * 2
    close(module(x), torch.cat(z, dim=-1) @ module.W_O.weight.T, TOLERANCE)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    ("B", "T_q", "T_k", "d", "H"), [(1, 1, 1, 4, 2), (2, 5, 5, 12, 3), (3, 4, 9, 16, 16)]
)
def test_the_pure_function_is_torchs(B, T_q, T_k, d, H, masked):
    q, k, v = random(B, T_q, d), random(B, T_k, d, seed=2), random(B, T_k, d, seed=4)
    mask = seen(B, T_q, T_k) if masked else None
    if mask is not None:
        mask[..., 0] = True
    heads = (x.unflatten(-1, (H, d // H)).transpose(1, 2) for x in (q, k, v))
    expected = F.scaled_dot_product_attention(
        *heads, attn_mask=None if mask is None else mask[:, None]
    )
    found = multi_head_attention(q, k, v, H, mask)
    assert list(found.shape) == [B, T_q, d]
    close(found, expected.transpose(1, 2).flatten(2), TOLERANCE)


def test_each_sequence_has_a_mask_of_its_own():
    q, k, v, mask = random(3, 4, 6), random(3, 5, 6, seed=2), random(3, 5, 6, seed=4), seen(3, 4, 5)
    whole = multi_head_attention(q, k, v, 2, mask)
    for b in range(3):
        alone = multi_head_attention(q[b : b + 1], k[b : b + 1], v[b : b + 1], 2, mask[b])
        close(whole[b : b + 1], alone, TOLERANCE)
    assert not torch.allclose(whole, multi_head_attention(q, k, v, 2, mask[:1].expand(3, 4, 5)))


def test_a_query_without_a_key_gets_zeros():
    q, k, v = (random(2, 4, 6, seed=seed).requires_grad_() for seed in (1, 2, 4))
    mask = torch.ones(2, 4, 4, dtype=torch.bool)
    mask[1, 2] = False
    out = multi_head_attention(q, k, v, 2, mask)
    assert torch.count_nonzero(out[1, 2]) == 0
    assert torch.count_nonzero(out.sum(-1)) == 7
    out.square().sum().backward()
    assert all(bool(torch.isfinite(x.grad).all()) for x in (q, k, v))


# --- NumPy ----------------------------------------------------------------------------------------


def in_numpy(module: MultiHeadAttention) -> tuple[np.ndarray, ...]:
    """W_QKV, b_QKV, W_O, b_O."""
    return tuple(parameter.detach().numpy() for parameter in module.parameters())


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("B", "T", "C", "H"), SIZES)
def test_numpy_equals_the_fused_module(B, T, C, H, masked):
    fused, x = attention(d_model=C, n_heads=H, causal=False), random(B, T, C)
    allowed = seen(B, H, T, T) if masked else None
    mask = None if allowed is None else additive_mask(allowed.numpy())
    out, pattern = numpy_attention(x.numpy(), *in_numpy(fused), H, mask)
    record = fused.explicit(x, mask=allowed)
    close(torch.from_numpy(pattern), record.pattern, TOLERANCE)
    close(torch.from_numpy(out), record.out, TOLERANCE)
    close(torch.from_numpy(out), fused(x, mask=allowed), TOLERANCE)


def test_numpy_equals_torchs_module():
    fused, x = attention(), random(2, 5, 12)
    past = np.tri(5, dtype=bool)
    out, pattern = numpy_attention(x.numpy(), *in_numpy(fused), 3, additive_mask(past))
    theirs = torch_attention(fused)
    expected = theirs(x, x, x, attn_mask=torch.from_numpy(~past), average_attn_weights=False)
    close(torch.from_numpy(out), expected[0], TOLERANCE)
    close(torch.from_numpy(pattern), expected[1], TOLERANCE)


def test_numpy_without_biases_keeps_the_number_type():
    fused, x = attention(bias=False, causal=False), random(2, 5, 12)
    W_QKV, W_O = in_numpy(fused)
    out, _ = numpy_attention(x.numpy(), W_QKV, None, W_O, None, 3)
    close(torch.from_numpy(out), fused(x), TOLERANCE)
    single = [array.astype(np.float32) for array in (x.numpy(), W_QKV, W_O)]
    out, pattern = numpy_attention(single[0], single[1], None, single[2], None, 3)
    assert out.dtype == pattern.dtype == np.float32


def test_an_additive_mask_holds_nothing_and_minus_infinity():
    mask = additive_mask(np.tri(2, dtype=bool))
    assert mask.tolist() == [[0.0, -np.inf], [0.0, 0.0]]
    fused, x = attention(), random(1, 2, 12)
    nothing = additive_mask(np.zeros((2, 2), dtype=bool))
    out, pattern = numpy_attention(x.numpy(), *in_numpy(fused), 3, nothing)
    assert not pattern.any()
    close(torch.from_numpy(out), fused.W_O.bias.expand(1, 2, 12), TOLERANCE)


# --- what W_O is for ------------------------------------------------------------------------------


@pytest.mark.parametrize(("C", "H"), [(4, 1), (12, 3), (32, 8)])
def test_without_a_projection_each_channel_belongs_to_one_head(C, H):
    module = attention(d_model=C, n_heads=H)
    reach = head_reach(module, with_projection=False)
    assert torch.equal(reach, torch.eye(H).repeat_interleave(C // H, dim=1).double())
    assert bool((head_reach(module) > 0).all()), "with it, every head reaches every channel"


@pytest.mark.parametrize("with_projection", [False, True])
def test_a_head_changes_the_channels_that_it_reaches_and_no_other(with_projection):
    module, x = attention(bias=False), random(2, 5, 12)
    with torch.no_grad():
        if not with_projection:
            module.W_O.weight.copy_(torch.eye(12))
        module.W_O.weight[7, 4:8] = 0  # head 1 no longer writes to channel 7
    reach = head_reach(module) > 0
    for h in range(3):
        closed = torch.ones(3)
        closed[h] = 0
        moved = (module(x) - module(x, head_gate=closed)).abs().amax(dim=(0, 1)) > 1e-9
        assert torch.equal(moved, reach[h])
    assert not reach[1, 7]


def test_reach_bounds_what_a_head_writes():
    """Cauchy-Schwarz: a channel gets no more than the norm of z times the norm of the weights."""
    module, x = attention(bias=False), random(2, 5, 12)
    z = module.explicit(x).z
    written = torch.einsum("bhtd,chd->bhtc", z, module.W_O.weight.view(12, 3, 4)).abs()
    assert bool((written <= z.norm(dim=-1)[..., None] * head_reach(module)[:, None] + 1e-12).all())
    assert not head_reach(module).requires_grad


def test_pruned_heads_reach_nothing():
    pruned = MultiHeadAttention(12, 2, d_head=4)
    assert list(head_reach(pruned).shape) == [2, 12]
    assert list(head_reach(pruned, with_projection=False).shape) == [2, 8]
    emptied = MultiHeadAttention(12, 0, d_head=4)
    assert list(head_reach(emptied).shape) == [0, 12]


# --- errors ---------------------------------------------------------------------------------------

Q = torch.ones(2, 5, 12)
WRONG_INPUTS = {
    "two axes": ((Q[0], Q, Q), "q has shape [5, 12], k [2, 5, 12]"),
    "another batch": ((Q, Q[:1], Q[:1]), "k [1, 5, 12]"),
    "another width": ((Q, Q[..., :6], Q[..., :6]), "k [2, 5, 6]"),
    "keys without values": ((Q, Q, Q[:, :3]), "v [2, 3, 12]; expected [B, T_q, d]"),
}


@pytest.mark.parametrize("case", WRONG_INPUTS)
def test_inputs_that_do_not_fit_show_their_shapes(case):
    inputs, message = WRONG_INPUTS[case]
    with pytest.raises(ShapeError) as caught:
        multi_head_attention(*inputs, 3)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (torch.ones(2, 5, 5), "torch.float32; expected torch.bool"),
        (torch.ones(2, 5, 4, dtype=torch.bool), r"mask has shape \[2, 5, 4\]"),
        (torch.ones(3, 5, 5, dtype=torch.bool), r"mask has shape \[3, 5, 5\]"),
    ],
)
def test_masks_that_do_not_fit_are_rejected(mask, words):
    with pytest.raises(ShapeError, match=words):
        multi_head_attention(Q, Q, Q, 3, mask)


@pytest.mark.parametrize(
    "make",
    [
        lambda: multi_head_attention(Q, Q, Q, 5),
        lambda: HeadByHead(12, 5),
        lambda: SeparateProjections(3, 12, 5),
    ],
)
def test_heads_that_do_not_fit_name_the_nearest_that_do(make):
    with pytest.raises(ShapeError, match=r"n_heads = 5; .* that fit: 4 or 6"):
        make()


def test_a_list_of_no_heads_is_rejected():
    with pytest.raises(ShapeError, match="n_heads = 0, d_head = 4; both must be at least 1"):
        head_by_head(MultiHeadAttention(12, 0, d_head=4))


@pytest.mark.parametrize(
    "module", [SingleHead(12, 4), HeadByHead(12, 3), SeparateProjections(12, 18, 2)], ids=type
)
@pytest.mark.parametrize("x", [Q[0], Q[..., :8]], ids=["two axes", "another width"])
def test_an_input_of_another_shape_is_rejected(module: nn.Module, x: Tensor):
    with pytest.raises(ShapeError, match=r"expected \[B, T, C\] with C = 12"):
        module(x)


@pytest.mark.parametrize("n_heads", [0, 5])
def test_numpy_weights_that_do_not_fit_show_their_shapes(n_heads):
    weights = in_numpy(attention())
    with pytest.raises(ShapeError, match=r"W_QKV \[36, 12\] .* H = n_heads = "):
        numpy_attention(np.ones((2, 5, 12)), *weights, n_heads)
    with pytest.raises(ShapeError, match=r"x has shape \[2, 5, 8\]"):
        numpy_attention(np.ones((2, 5, 8)), *weights, 3)

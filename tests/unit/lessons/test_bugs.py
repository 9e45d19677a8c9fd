"""Bugs in attention: without a bug, the module is correct; each bug breaks what it should."""

import pytest
import torch
from torch import Tensor

from mha_viz.app.samples import SAMPLES
from mha_viz.attention import MultiHeadAttention
from mha_viz.errors import ShapeError
from mha_viz.lessons.bugs import BUGS, attention_with_bug, divergence, run_with_bug
from mha_viz.lessons.walkthrough import random_layer
from mha_viz.model import Model

IDS = torch.tensor([[5, 17, 201, 5, 17, 44, 8]])


def test_without_a_bug_the_run_is_the_network(tiny: Model):
    run = run_with_bug(tiny.network, IDS, None, 1)
    with torch.inference_mode():
        torch.testing.assert_close(run.logits, tiny.network(IDS)[0], atol=1e-5, rtol=0)
    assert list(run.pattern.shape) == [4, 7, 7]


@pytest.mark.parametrize("bug", BUGS)
def test_every_bug_changes_the_prediction(tiny: Model, bug: str):
    correct, wrong = (run_with_bug(tiny.network, IDS, b, 0) for b in (None, bug))
    assert float(divergence(correct.logits, wrong.logits)[-1]) > 1e-3


def test_each_bug_breaks_what_it_says():
    attention, x = random_layer(24, 4, 1, 6)
    record = attention.explicit(x)

    def pattern(bug: str) -> torch.Tensor:
        return attention_with_bug(attention, x, bug).pattern

    future = torch.ones(6, 6).triu(1).bool()
    assert bool((pattern("no mask")[..., future] > 0).all())
    assert bool((pattern("no scale")[..., future] == 0).all())
    unscaled = record.q @ record.k.transpose(-2, -1)
    expected = unscaled.masked_fill(future, -torch.inf).softmax(-1)
    torch.testing.assert_close(pattern("no scale"), expected, atol=1e-6, rtol=0)
    # Without the transpose back only the output is wrong, not the patterns.
    torch.testing.assert_close(pattern("no transpose back"), record.pattern, atol=1e-6, rtol=0)
    out = attention_with_bug(attention, x, "no transpose back").out
    assert not torch.allclose(out, record.out, atol=1e-3)
    swapped = (unscaled.transpose(-2, -1) * attention.scale).masked_fill(future, -torch.inf)
    torch.testing.assert_close(pattern("q and k swapped"), swapped.softmax(-1), atol=1e-6, rtol=0)
    # Without the transpose, head 0 holds all columns of the first positions, not its own columns.
    q = attention.W_QKV(x)[..., :24].reshape(1, 4, 6, 6)
    k = attention.W_QKV(x)[..., 24:48].reshape(1, 4, 6, 6)
    scores = (q @ k.transpose(-2, -1) * attention.scale).masked_fill(future, -torch.inf)
    torch.testing.assert_close(pattern("no transpose"), scores.softmax(-1), atol=1e-6, rtol=0)


@pytest.mark.parametrize("text", SAMPLES)
def test_without_the_scale_the_largest_weights_grow(bundled: Model, text: str):
    """In every head: what the page says of this bug."""
    ids = torch.tensor([bundled.encode(SAMPLES[text])[0]])
    for layer in range(4):
        correct, wrong = (
            run_with_bug(bundled.network, ids, bug, layer).pattern[:, 1:].amax(-1).mean(-1)
            for bug in (None, "no scale")
        )
        assert bool((wrong > correct).all())
        assert float(wrong.mean()) < 0.95, "and still not all weight on one key"


def plain(attention: MultiHeadAttention, x: Tensor, bug: str | None) -> tuple[Tensor, Tensor]:
    """The pattern and the output of one text in plain torch, head by head, with one wrong line."""
    T, C = x.shape[1:]
    H, G, d_h = attention.n_heads, attention.n_kv_heads, attention.d_head
    columns = x[0] @ attention.W_QKV.weight.T + attention.W_QKV.bias
    names = {"k, v, q order": "kvq", "v, k, q order": "vkq"}.get(bug or "", "qkv")
    parts, start = {}, 0
    for name in names:
        n = (H if name == "q" else G) * d_h
        parts[name], start = columns[:, start : start + n], start + n

    def of_head(name: str, head: int) -> Tensor:
        shared = head if name == "q" else head // (H // G)
        if bug == "no transpose":
            return parts[name].flatten()[shared * T * d_h :][: T * d_h].view(T, d_h)
        return parts[name][:, shared * d_h : (shared + 1) * d_h]

    patterns, zs = [], []
    for head in range(H):
        q, k, v = (of_head(name, head) for name in "qkv")
        scores = torch.einsum("id,jd->ij", *((k, q) if bug == "q and k swapped" else (q, k)))
        scores = scores / {"no scale": 1.0, "root of C": C**0.5}.get(bug or "", d_h**0.5)
        weights = torch.zeros(T, T)
        for i in range(T):
            for j in range(T) if bug == "no mask" else range(i + 1):
                over = scores[i] if bug in ("no mask", "mask after softmax") else scores[i, : i + 1]
                over = scores[j:, j] if bug == "softmax over queries" else over
                weights[i, j] = (scores[i, j] - over.logsumexp(0)).exp()
        patterns.append(weights)
        zs.append(weights @ v)
    merged = torch.cat(zs, dim=-1)
    if bug == "no transpose back":
        merged = torch.cat([z.flatten() for z in zs]).view(T, H * d_h)
    out = merged
    if bug != "no W_O":
        out = merged @ attention.W_O.weight.T + attention.W_O.bias
    return torch.stack(patterns), out


@pytest.mark.parametrize("bug", [None, *BUGS])
@pytest.mark.parametrize("n_kv_heads", [4, 2, 1])
@pytest.mark.parametrize("T", [1, 6, 9])
def test_each_bug_is_a_plain_layer_with_that_line_wrong(bug: str | None, n_kv_heads: int, T: int):
    torch.manual_seed(T)
    attention = MultiHeadAttention(24, 4, n_kv_heads=n_kv_heads)
    x = torch.randn(1, T, 24)
    with torch.inference_mode():
        steps = attention_with_bug(attention, x, bug)
        pattern, out = plain(attention, x, bug)
    torch.testing.assert_close(steps.pattern[0], pattern, atol=1e-6, rtol=0)
    torch.testing.assert_close(steps.out[0], out, atol=1e-5, rtol=0)


@pytest.mark.parametrize("bug", BUGS)
def test_the_shapes_are_right_so_none_is_found_by_them(bug: str):
    attention, x = random_layer(24, 4, 1, 6)
    right, wrong = (attention_with_bug(attention, x, each) for each in (None, bug))
    tensor = BUGS[bug].tensor
    assert getattr(right, tensor).shape == getattr(wrong, tensor).shape


def test_what_the_effects_say_of_weights():
    """Too even with the root of C; columns that add up to 1; rows that no longer do."""
    attention, x = random_layer(24, 4, 1, 6)
    right = attention_with_bug(attention, x, None).pattern

    def entropy(pattern: Tensor) -> Tensor:
        return torch.special.entr(pattern).sum(-1)[..., 1:]

    assert bool(
        (entropy(attention_with_bug(attention, x, "root of C").pattern) > entropy(right)).all()
    )
    assert bool(
        (entropy(attention_with_bug(attention, x, "no scale").pattern) < entropy(right)).all()
    )
    columns = attention_with_bug(attention, x, "softmax over queries").pattern.sum(-2)
    torch.testing.assert_close(columns, torch.ones_like(columns), atol=1e-6, rtol=0)
    rows = attention_with_bug(attention, x, "mask after softmax").pattern.sum(-1)
    assert bool((rows[..., :-1] < 1).all())


@pytest.mark.parametrize("text", SAMPLES)
def test_merged_as_it_lies_the_patterns_of_the_first_layer_alone_are_right(
    bundled: Model, tiny: Model, text: str
):
    for model in (bundled, tiny):
        ids = torch.tensor([model.encode(SAMPLES[text])[0][:64]])
        for layer in range(model.config.n_layers):
            right, wrong = (
                run_with_bug(model.network, ids, bug, layer).pattern
                for bug in (None, "no transpose back")
            )
            same = torch.allclose(right, wrong, atol=1e-3)
            assert same == (layer == 0)


def test_an_unknown_bug_is_named():
    attention, x = random_layer(8, 2, 1, 2)
    with pytest.raises(ShapeError, match=r"no bug `typo`.*no scale"):
        attention_with_bug(attention, x, "typo")


def test_divergence_is_that_of_torch():
    a, b = torch.randn(2, 3, 50, generator=torch.Generator().manual_seed(0)).unbind(0)
    expected = torch.nn.functional.kl_div(
        b.log_softmax(-1), a.log_softmax(-1), log_target=True, reduction="none"
    ).sum(-1)
    torch.testing.assert_close(divergence(a, b), expected, atol=1e-6, rtol=0)
    assert float(divergence(a, a).abs().max()) == 0

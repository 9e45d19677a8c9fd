"""A trace is frozen and complete, and its patterns are those that the model computed."""

import tracemalloc
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
import torch

from mha_viz.errors import HeadNotFound, MhaVizError, ShapeError, TextError
from mha_viz.model import Model
from mha_viz.tokens import Token
from mha_viz.trace import Trace, max_pool

TEXT = "The old king sat by the fire, and the old king wept."


def words(model: Model, count: int) -> str:
    """A text of exactly `count` tokens, no two in a row alike: whole words of the vocabulary."""
    pieces = sorted(p[1:] for p in model.tokenizer.get_vocab() if p[0] == "Ġ" and p[1:].isascii())
    known = [piece for piece in pieces if piece.isalpha()]
    text = "".join(f" {known[n % len(known)]}" for n in range(count))
    assert len(model.encode(text)[0]) == count
    return text


def random_trace(T: int, *, seed: int = 0, L: int = 1, H: int = 2, d_h: int = 8) -> Trace:
    generator = np.random.default_rng(seed)
    q, k, v = generator.normal(size=(3, L, H, T, d_h)).astype(np.float32) * 2
    logits = np.zeros(5, dtype=np.float32)
    tokens = tuple(Token(n, b"x", "x", "text") for n in range(T))
    return Trace("a test", "", tokens, q, k, v, logits, (d_h**-0.5,) * L)


def exact_pattern(trace: Trace, layer: int, head: int) -> np.ndarray:
    """The definition, in float64."""
    q, k = (a[layer, head].astype(np.float64) for a in (trace.q, trace.k))
    scores = q @ k.T * trace.scales[layer]
    scores[np.triu(np.ones_like(scores, dtype=bool), 1)] = -np.inf
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True)


def heads(trace: Trace) -> Iterator[tuple[int, int]]:
    return ((layer, head) for layer in range(trace.n_layers) for head in range(trace.n_heads))


# --- patterns -------------------------------------------------------------------------------------


@pytest.mark.parametrize("T", [1, 2, 63, 127, 128, 129, 300])
def test_a_pattern_is_the_softmax_of_the_dot_products(T: int):
    trace = random_trace(T, d_h=16)
    for layer, head in heads(trace):
        pattern = trace.pattern(layer, head)
        assert pattern.shape == (T, T)
        assert pattern.dtype == np.float32
        np.testing.assert_allclose(pattern, exact_pattern(trace, layer, head), rtol=0, atol=1e-6)
        np.testing.assert_allclose(pattern.sum(1), 1, rtol=0, atol=1e-6)
        assert np.count_nonzero(np.triu(pattern, 1)) == 0


def test_patterns_are_those_of_the_module(bundled: Model):
    trace = bundled.trace(TEXT)
    network = bundled.network
    with torch.inference_mode():
        ids = torch.tensor([trace.token_ids])
        resid = network.embed(ids)
        for layer, block in enumerate(network.blocks):
            record = block.attn.explicit(block.attention_input(resid))
            for head in range(trace.n_heads):
                np.testing.assert_allclose(
                    trace.pattern(layer, head), record.pattern[0, head].numpy(), rtol=0, atol=1e-5
                )
            np.testing.assert_allclose(trace.v[layer], record.v[0].numpy(), rtol=0, atol=1e-5)
            resid = block(resid)
        logits = network.unembed(resid[0, -1]).numpy()
    np.testing.assert_allclose(trace.logits, logits, rtol=0, atol=1e-4)


def test_large_scores_do_not_overflow():
    trace = random_trace(20)
    loud = replace(trace, q=trace.q * 1e4)
    pattern = loud.pattern(0, 1)
    assert np.isfinite(pattern).all()
    np.testing.assert_allclose(pattern.sum(1), 1, rtol=0, atol=1e-6)


def test_patterns_of_a_layer_are_all_its_heads(tiny: Model):
    trace = tiny.trace(TEXT)
    found = trace.patterns(1)
    assert found.shape == (4, trace.n_tokens, trace.n_tokens)
    for head in range(4):
        assert np.array_equal(found[head], trace.pattern(1, head))


@pytest.mark.parametrize(("layer", "head"), [(2, 0), (0, 4), (-1, 0), (0, -1), (99, 99)])
def test_a_missing_head_is_named_with_the_valid_range(tiny: Model, layer: int, head: int):
    trace = tiny.trace("a cat")
    with pytest.raises(HeadNotFound) as caught:
        trace.pattern(layer, head)
    assert f"L{layer} H{head} is not in" in str(caught.value)
    assert "which has layers 0 to 1 and heads 0 to 3" in str(caught.value)
    assert isinstance(caught.value, MhaVizError)
    assert isinstance(caught.value, IndexError)


def test_a_missing_layer_is_named(tiny: Model):
    with pytest.raises(HeadNotFound, match="which has layers 0 to 1"):
        tiny.trace("a cat").patterns(2)


# --- a record -------------------------------------------------------------------------------------


def test_shapes_and_names(tiny: Model):
    trace = tiny.trace(TEXT)
    T = trace.n_tokens
    assert trace.q.shape == trace.k.shape == trace.v.shape == (2, 4, T, 8)
    assert trace.logits.shape == (300,)
    assert (trace.n_layers, trace.n_heads) == (2, 4)
    assert len(trace.tokens) == len(trace.token_ids) == len(trace.token_bytes) == T
    assert all(isinstance(i, int) for i in trace.token_ids)
    assert all(isinstance(shown, str) for shown in trace.tokens)
    assert b"".join(trace.token_bytes) == TEXT.encode()
    assert all(a.dtype == np.float32 for a in (trace.q, trace.k, trace.v, trace.logits))


def test_nothing_about_a_trace_can_be_changed(tiny: Model):
    trace = tiny.trace(TEXT)
    for array in (trace.q, trace.k, trace.v, trace.logits):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(FrozenInstanceError):
        trace.text = "other"  # type: ignore[misc]
    pattern = trace.pattern(0, 0)
    pattern[:] = 0  # a copy is the caller's own
    assert trace.pattern(0, 0).any()


def test_the_same_text_gives_the_same_numbers(tiny: Model):
    first, second = tiny.trace(TEXT), tiny.trace(TEXT)
    assert np.array_equal(first.q, second.q)
    assert np.array_equal(first.logits, second.logits)


def test_arrays_that_do_not_fit_together_are_rejected():
    trace = random_trace(5)
    with pytest.raises(ShapeError, match=r"k has shape \[1, 2, 4, 8\]; q has \[1, 2, 5, 8\]"):
        replace(trace, k=trace.k[:, :, :4])
    with pytest.raises(ShapeError, match="4 tokens and 1 scales"):
        replace(trace, details=trace.details[:4])
    with pytest.raises(ShapeError, match="5 tokens and 2 scales"):
        replace(trace, scales=(1.0, 1.0))


def test_half_precision_becomes_float32(tiny: Model):
    import copy

    half = Model(
        copy.deepcopy(tiny.network).to(torch.bfloat16), tiny.tokenizer, tiny.description
    ).trace(TEXT)
    assert half.q.dtype == half.logits.dtype == np.float32
    assert half.pattern(0, 0).dtype == np.float32


# --- texts ----------------------------------------------------------------------------------------


def test_one_token_looks_at_itself(bundled: Model):
    trace = bundled.trace(" the")
    assert trace.n_tokens == 1
    assert trace.left_out == 0
    for layer, head in heads(trace):
        assert trace.pattern(layer, head).tolist() == [[1.0]]
    assert trace.thumbnails().tolist() == np.ones((4, trace.n_heads, 1, 1)).tolist()


def test_an_empty_text_says_what_to_do(bundled: Model):
    with pytest.raises(TextError, match=r"empty\. Type a sentence, or choose a sample"):
        bundled.trace("")


def test_whitespace_alone_is_a_text(bundled: Model):
    assert b"".join(bundled.trace(" \n\t ").token_bytes) == b" \n\t "


def test_equal_tokens_are_separate_rows(bundled: Model):
    trace = bundled.trace("the the the cat the")
    assert trace.tokens.count("·the") == 3
    assert trace.pattern(0, 0).shape == (5, 5)
    assert len(set(map(bytes, trace.q[0, 0]))) == 5, "the same word at five places"


def test_a_special_token_is_one_token(bundled: Model):
    kinds = [token.kind for token in bundled.trace("once<|endoftext|>upon").details]
    assert kinds.count("special") == 1


def test_a_lone_surrogate_is_replaced_and_counted(bundled: Model):
    trace = bundled.trace("bad \ud83d here")
    assert trace.replaced == 1
    assert b"".join(trace.token_bytes) == "bad \ufffd here".encode()


def test_a_huge_text_is_rejected_before_it_is_tokenized(bundled: Model):
    with pytest.raises(TextError, match=r"200,001 characters; the limit is 200,000. Shorten it"):
        bundled.trace("x" * 200_001)


@pytest.mark.parametrize("factor", ["exactly", "one more", "ten times"])
@pytest.mark.parametrize("cut", ["start", "end"])
@pytest.mark.parametrize("name", ["tiny", "bundled"])
def test_a_long_text_is_cut_where_the_caller_says(
    request: pytest.FixtureRequest, name: str, cut: str, factor: str
):
    model: Model = request.getfixturevalue(name)
    limit = model.config.n_positions
    length = {"exactly": limit, "one more": limit + 1, "ten times": 10 * limit}[factor]
    text = words(model, length)
    ids, _ = model.encode(text)
    trace = model.trace(text, cut=cut)  # type: ignore[arg-type]
    assert trace.n_tokens == limit
    assert trace.left_out == length - limit
    assert trace.cut == cut
    assert trace.token_ids == (ids[-limit:] if cut == "start" else ids[:limit])
    assert trace.text == text, "what the user typed is kept"
    assert trace.pattern(0, 0)[-1].sum() == pytest.approx(1, abs=1e-5)


def test_an_unknown_cut_is_rejected(tiny: Model):
    with pytest.raises(TextError, match=r"cut = 'middle'; expected \"start\" or \"end\""):
        tiny.trace("a", cut="middle")  # type: ignore[arg-type]


# --- thumbnails -----------------------------------------------------------------------------------


@pytest.mark.parametrize("T", [1, 2, 63, 64, 65, 200])
@pytest.mark.parametrize("size", [1, 7, 64])
def test_a_thumbnail_is_its_pattern_max_pooled(T: int, size: int):
    trace = random_trace(T, L=2)
    thumbnails = trace.thumbnails(size)
    block = -(-T // size)
    side = len(range(0, T, block))
    assert thumbnails.shape == (2, 2, side, side)
    assert side <= size
    for layer, head in heads(trace):
        pattern = trace.pattern(layer, head)
        for i in range(side):
            for j in range(side):
                cell = pattern[i * block : (i + 1) * block, j * block : (j + 1) * block]
                assert thumbnails[layer, head, i, j] == cell.max()
        # A cell above the diagonal is fully masked; any other holds an unmasked weight.
        assert np.count_nonzero(np.triu(thumbnails[layer, head], 1)) == 0
        assert (np.diagonal(thumbnails[layer, head]) > 0).all()
        assert thumbnails[layer, head].max() == pattern.max()


@pytest.mark.parametrize("size", [7, 64])
def test_thumbnails_relative_to_uniform_pool_the_ratios(size: int):
    trace = random_trace(200, L=2)
    block = -(-200 // size)
    found = trace.thumbnails(size, relative=True)
    for layer, head in heads(trace):
        ratios = trace.pattern(layer, head) * np.arange(1, 201, dtype=np.float32)[:, None]
        np.testing.assert_array_equal(found[layer, head], max_pool(ratios, block))


def test_a_single_weight_survives_the_pooling():
    pattern = np.zeros((200, 200), dtype=np.float32)
    pattern[150, 3] = 0.9
    pooled = max_pool(pattern, 4)
    assert pooled.shape == (50, 50)
    assert pooled[37, 0] == np.float32(0.9)
    assert np.count_nonzero(pooled) == 1


def test_thumbnails_report_their_progress():
    done: list[int] = []
    random_trace(10, L=3).thumbnails(4, on_layer=done.append)
    assert done == [1, 2, 3]


def test_a_size_of_zero_is_rejected():
    with pytest.raises(ShapeError, match="size = 0"):
        random_trace(3).thumbnails(0)


def test_thumbnails_never_hold_all_patterns():
    """12 x 12 x 1024 x 1024 floats would be 604 MB."""
    trace = random_trace(1024, L=2, H=12, d_h=64)
    tracemalloc.start()
    try:
        trace.thumbnails(64)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60e6

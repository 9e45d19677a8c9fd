"""Token ids traced as given, with and without ablated heads; the key of a model in caches."""

from typing import Any

import numpy as np
import pytest
import torch
from support.checkpoints import edit_config
from support.models import random_gpt2
from support.tokenizers import AS_IT_IS, byte_level, lowercase, put

from mha_viz.checkpoints import load
from mha_viz.errors import ShapeError, TextError
from mha_viz.model import Model

TEXT = "the cat sat on the mat"


def test_the_ids_of_a_text_give_its_trace(tiny: Model) -> None:
    by_text = tiny.trace(TEXT)
    by_ids = tiny.trace_ids(by_text.token_ids)
    assert by_ids.text == TEXT
    assert by_ids.details == by_text.details
    for name in ("q", "k", "v", "logits"):
        assert np.array_equal(getattr(by_ids, name), getattr(by_text, name))


def test_ids_without_a_text_of_their_own_are_traced(tiny: Model) -> None:
    ids = (299, 200, 0, 200)
    assert tiny.trace_ids(np.array(ids)).token_ids == list(ids)  # type: ignore[arg-type]
    assert tiny.trace_ids(ids).details[0].kind == "special"


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([], "There are 0 token ids; .* reads from 1 to 64 at once"),
        ([1] * 65, "There are 65 token ids"),
        ([0, 300], "range from 0 to 300; .* has ids 0 to 299"),
        ([-1], "range from -1 to -1"),
        ([0.5], "is not a list of token ids"),
        ("cat", "is not a list of token ids"),
    ],
)
def test_other_ids_are_rejected(tiny: Model, ids: Any, message: str) -> None:
    with pytest.raises(TextError, match=message):
        tiny.trace_ids(ids)


@torch.inference_mode()
def test_a_gate_of_zero_removes_a_head(tiny: Model) -> None:
    """Equal to transformers with the rows of c_proj set to zero."""
    ids = tiny.trace(TEXT).token_ids
    gate = np.ones((2, 4), dtype=np.float32)
    gate[0, 2] = 0
    gate.setflags(write=False)
    theirs = random_gpt2(7)
    theirs.transformer.h[0].attn.c_proj.weight[16:24] = 0
    expected = theirs(torch.tensor([ids])).logits[0, -1].numpy()
    gated = tiny.trace_ids(ids, head_gate=gate)
    np.testing.assert_allclose(gated.logits, expected, rtol=0, atol=1e-5)
    assert np.abs(gated.logits - tiny.trace_ids(ids).logits).max() > 1e-2
    with pytest.raises(ShapeError, match=r"head_gate has shape \[3, 4\]"):
        tiny.trace_ids(ids, head_gate=np.ones((3, 4), dtype=np.float32))


def test_the_key_of_a_model_changes_with_all_that_computes(gpt2, checkpoint):
    """Weights, sizes that leave the weights as they are, the tokenizer, the template."""

    def key(name: str, seed: int = 1, **config: object) -> str:
        folder = checkpoint(gpt2(seed, vocab_size=320), name, words=False)
        edit_config(folder, **config)
        return load(put(folder, lowercase() if name == "lower" else byte_level(), AS_IT_IS)).key

    first = key("first")
    assert key("the same") == first
    others = {
        key("weights", seed=2),
        key("heads", n_head=8),
        key("scale", scale_attn_weights=False),
        key("lower"),
        load(checkpoint(gpt2(1, vocab_size=320), "plain")).with_template().key,
    }
    assert len(others | {first}) == 6

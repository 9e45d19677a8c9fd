"""A tokenizer is read unchanged, or rejected with a reason."""

import json

import pytest
from support.checkpoints import (
    TEXT,
    refused,
)

from mha_viz.checkpoints import hub, load
from mha_viz.errors import SourceError


def test_a_tokenizer_of_vocab_and_merges(gpt2, checkpoint, tokenizer):
    folder = checkpoint(gpt2(1), words=False)
    tokenizer.model.save(str(folder))
    vocabulary = json.loads((folder / "vocab.json").read_text()) | {"<|endoftext|>": 299}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    model = load(folder)
    assert model.trace(TEXT).token_ids == tokenizer.encode(TEXT).ids
    assert [t.kind for t in model.trace("a<|endoftext|>").details] == ["text", "special"]


def test_a_missing_tokenizer_offers_gpt2s_own_where_it_fits(gpt2, checkpoint):
    folder = checkpoint(gpt2(1, vocab_size=50257), words=False)
    message = refused(folder, SourceError)
    assert "has no tokenizer: expected tokenizer.json, or vocab.json and merges.txt" in message
    assert 'tokenizer="gpt2"' in message


def test_a_missing_tokenizer_offers_nothing_where_nothing_fits(gpt2, checkpoint):
    message = refused(checkpoint(gpt2(1), words=False), SourceError)
    assert "has no tokenizer" in message
    assert "300 is not GPT-2's" in message
    assert 'tokenizer="gpt2"' not in message


def test_another_tokenizer_can_be_named(gpt2, checkpoint, tmp_path, tokenizer, monkeypatch):
    folder = checkpoint(gpt2(1), words=False)
    other = tmp_path / "words"
    other.mkdir()
    tokenizer.save(str(other / "tokenizer.json"))
    expected = tokenizer.encode(TEXT).ids
    assert load(folder, tokenizer=other).trace(TEXT).token_ids == expected
    monkeypatch.setattr(hub, "fetch_tokenizer", lambda name: {"gpt2": other}[name])
    assert load(folder, tokenizer="gpt2").trace(TEXT).token_ids == expected
    assert "has no tokenizer" in refused(folder, SourceError, tokenizer=tmp_path / "nowhere")


def test_a_vocabulary_with_room_to_spare_is_fine(gpt2, checkpoint):
    assert load(checkpoint(gpt2(1, vocab_size=320))).trace(TEXT).logits.shape == (320,)


def test_a_tokenizer_without_an_end_of_text_is_fine(gpt2, checkpoint, tokenizer):
    """transformers would add one, with an id that the model does not have."""
    folder = checkpoint(gpt2(1, vocab_size=299))
    state = json.loads(tokenizer.to_str())
    state["added_tokens"] = []
    (folder / "tokenizer.json").write_text(json.dumps(state))
    assert load(folder).trace(TEXT).token_ids == tokenizer.encode(TEXT).ids


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\x00", b'{"model": {"type": "BPE"}}'])
def test_a_damaged_tokenizer(gpt2, checkpoint, content):
    folder = checkpoint(gpt2(1))
    (folder / "tokenizer.json").write_bytes(content)
    assert f"The tokenizer of {folder} cannot be read" in refused(folder)

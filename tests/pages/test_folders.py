"""A model of a folder: what the page says about its files, its tokenizer and the text it reads."""

import json
import re
from pathlib import Path
from unittest.mock import patch

import pytest
from streamlit.testing.v1 import AppTest
from support.script import component, figures, opened, said
from support.tokenizers import AS_IT_IS, KINDS, byte_level, lowercase, put, word_piece
from transformers.models.gpt2.modeling_gpt2 import GPT2LMHeadModel

from mha_viz.app.widgets import origins
from mha_viz.app.work import models


@pytest.fixture
def folder(gpt2, checkpoint) -> Path:
    return checkpoint(gpt2(1, vocab_size=320), words=False)


@pytest.fixture(autouse=True)
def _listed(folder, monkeypatch) -> None:
    """The simulated select box takes no option of its own, as the real one does."""
    monkeypatch.setitem(models.TITLES, str(folder), "A folder")


def opened_on(folder: Path, text: str, page: str = "attention", **link: str) -> AppTest:
    test = opened(page, model=str(folder), text=text, **link)
    assert not test.exception
    return test


def labels(test: AppTest) -> list[str]:
    return [token[0] for token in component(test, "strip")["tokens"]]


def about(test: AppTest) -> str:
    return next(text.value for text in test.text if "parameters, d_model" in text.value)


def captions(test: AppTest) -> str:
    return " ".join(caption.value for caption in test.caption).replace("\\", "")


def test_a_text_that_the_tokenizer_changes_is_shown_as_it_was_read(folder):
    put(folder, lowercase(), AS_IT_IS)
    test = opened_on(folder, "The Dog sat.")
    assert "changes the text. The model reads: “the dog sat.”" in said(test)
    assert "changes the text" not in said(opened_on(folder, "the dog sat."))
    long = "The Dog sat. " * 40
    test = opened_on(folder, long)
    assert long.lower() in [code.value for code in test.code]


def test_files_say_what_was_read_and_what_the_template_added(folder):
    put(folder, word_piece(), AS_IT_IS)
    view = opened_on(folder, "The dog", template="true").session_state["view"]
    with patch.object(origins, "_link", return_value=""):
        facts = origins.origin_of_view(view)
    assert facts["Text"] == "The dog"
    assert facts["Read as"] == "the dog"
    assert facts["Template tokens before, after"] == (1, 1)


def test_the_other_text_is_shown_as_it_was_read(folder):
    put(folder, lowercase(), AS_IT_IS)
    test = opened_on(folder, "the dog", "compare", other_text="The Mat")
    assert "changes the other text. The model reads: “the mat”" in said(test)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_tokenizer_has_a_page(folder, kind):
    put(folder, KINDS[kind](), AS_IT_IS)
    test = opened_on(folder, "the dog sat on the mat")
    assert not test.error
    assert "dog" in "".join(labels(test))
    assert all(labels(test))


def test_the_template_is_off_until_it_is_switched_on_and_both_are_reported(folder):
    put(folder, word_piece(), AS_IT_IS)
    test = opened_on(folder, "the dog")
    assert labels(test) == ["the", "dog"]
    assert "adds [CLS], [SEP]; this is off" in captions(test)
    test.toggle(key="template").set_value(True).run()
    assert labels(test) == ["[CLS]", "the", "dog", "[SEP]"]
    assert "adds [CLS], [SEP]." in captions(test)
    assert labels(opened_on(folder, "the dog", template="true")) == labels(test)
    put(folder, byte_level())
    assert not [
        switch for switch in opened_on(folder, "the dog").toggle if switch.key == "template"
    ]


def test_a_new_visit_sees_rewritten_weights_and_an_old_one_keeps_its_own(gpt2, folder):
    put(folder, byte_level())
    old = opened_on(folder, "the dog")
    seen = old.session_state["view"].about.weights_hash
    key = old.session_state["view"].trace_key
    gpt2(2, vocab_size=320).save_pretrained(folder)
    new = opened_on(folder, "the dog")
    assert new.session_state["view"].about.weights_hash != seen
    assert new.session_state["view"].trace_key != key
    for text in ("the dog", "the mat"):
        old.text_area(key="text").set_value(text).run()
        assert not old.exception
        assert old.session_state["view"].about.weights_hash == seen
    assert old.session_state["view"].source == str(folder)


def test_a_folder_that_was_repaired_is_read_in_the_same_visit(folder):
    test = opened_on(folder, "the dog")
    assert "has no tokenizer" in said(test)
    put(folder, byte_level())
    test.text_area(key="text").set_value("the mat").run()
    assert not test.error
    assert test.session_state["view"].source == str(folder)


def test_what_a_file_holds_beside_gpt2_is_reported(folder):
    put(folder, byte_level())
    raw = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(raw | {"auto_map": {"AutoModel": "a.B"}}))
    assert "`auto_map`" in about(opened_on(folder, "the dog"))


def test_a_token_beyond_the_model_is_refused_in_a_sentence(gpt2, checkpoint):
    folder = put(checkpoint(gpt2(1, vocab_size=299), words=False), byte_level())
    test = opened_on(folder, "a<|endoftext|>b")
    assert "`<|endoftext|>` has id 299" in said(test)


def test_ids_without_a_token_are_labelled(gpt2, checkpoint):
    folder = put(checkpoint(gpt2(1, vocab_size=5000), words=False), byte_level())
    test = opened_on(folder, "the dog", "next_token")
    assert re.search(r'"id \d+"', json.dumps(figures(test)))


@pytest.mark.parametrize("n_positions", [1, 2, 3])
def test_a_model_with_hardly_any_positions_says_why_heads_cannot_be_measured(
    gpt2, checkpoint, n_positions
):
    theirs: GPT2LMHeadModel = gpt2(1, n_positions=n_positions)
    folder = put(checkpoint(theirs, words=False), byte_level())
    test = opened_on(folder, "a", "heads")
    assert "need 4 positions or more" in said(test) or "need 2 positions or more" in said(test)
    assert "0 token ids" not in said(test)

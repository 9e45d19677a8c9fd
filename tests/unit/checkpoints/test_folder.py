"""A missing or incomplete folder is rejected with a message that says what to do."""

from pathlib import Path

import pytest
from support.checkpoints import check_equal, refused

from mha_viz import checkpoints
from mha_viz.checkpoints import load, save
from mha_viz.errors import SourceError


@pytest.mark.parametrize("source", ["./nowhere", "~/nowhere/at/all", "~nobody_has_this_name/x"])
def test_a_missing_folder(source):
    assert f"There is no folder {source}" in refused(source, SourceError)


@pytest.mark.parametrize("source", ["./a\0b", "./" + "x" * 300, Path("x" * 300)], ids=repr)
def test_a_path_that_no_system_allows(source):
    assert "Check the path" in refused(source, SourceError)


def test_a_folder_without_weights(gpt2, checkpoint):
    folder = checkpoint(gpt2(1))
    (folder / "model.safetensors").unlink()
    assert "has no weights: expected model.safetensors" in refused(folder, SourceError)


def test_a_single_file_names_what_to_give(gpt2, checkpoint):
    message = refused(checkpoint(gpt2(1)) / "model.safetensors")
    assert "is a single file. Give the folder" in message


@pytest.mark.parametrize(
    ("source", "local"),
    [
        ("gpt2", False),
        ("openai-community/gpt2", False),
        ("bundled", False),
        (".", True),
        ("..", True),
        ("./gpt2", True),
        ("../gpt2", True),
        ("/models/gpt2", True),
        ("~/gpt2", True),
        ("C:\\models\\gpt2", True),
        ("C:/models/gpt2", True),
        ("models\\gpt2", True),
        (".gpt2", False),
    ],
)
def test_what_is_a_path(source, local):
    assert checkpoints.is_local(source) is local


def test_a_model_can_be_saved_where_it_came_from(gpt2, checkpoint):
    theirs = gpt2(1)
    folder = checkpoint(theirs)
    model = load(folder)
    save(model, folder)
    check_equal(model, theirs)
    check_equal(load(folder), theirs)
    assert not list(folder.glob("*.partial"))

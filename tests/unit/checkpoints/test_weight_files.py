"""Which files the weights are read from, if a folder holds several kinds."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from support.checkpoints import check_equal, edit_config, nanogpt, refused
from transformers.models.gpt2.modeling_gpt2 import GPT2LMHeadModel

from mha_viz.checkpoints import load
from mha_viz.checkpoints.folder import fingerprint
from mha_viz.errors import CheckpointError, SourceError

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
PICKLE, PICKLE_INDEX = "pytorch_model.bin", "pytorch_model.bin.index.json"


def write(folder: Path, kind: str, theirs: Any) -> None:
    """Puts the weights into the folder under the names of one kind of file."""
    state = {k: v.clone() for k, v in theirs.transformer.state_dict().items()}
    halves = dict(list(state.items())[:9]), dict(list(state.items())[9:])
    if kind in (SINGLE, "model.fp16.safetensors", "other.safetensors"):
        save_file(state, folder / kind, metadata={"format": "pt"})
    elif kind in (PICKLE, "pytorch_model.fp16.bin"):
        torch.save(state, folder / kind)
    else:
        stem, end = ("model", "safetensors") if kind == INDEX else ("pytorch_model", "bin")
        names = [f"{stem}-0000{n}-of-00002.{end}" for n in (1, 2)]
        for name, half in zip(names, halves, strict=True):
            if kind == INDEX:
                save_file(half, folder / name, metadata={"format": "pt"})
            else:
                torch.save(half, folder / name)
        where = {key: name for name, half in zip(names, halves, strict=True) for key in half}
        (folder / kind).write_text(json.dumps({"metadata": {}, "weight_map": where}))


ORDERS = [
    [SINGLE, INDEX, PICKLE, PICKLE_INDEX],
    [SINGLE, PICKLE],
    [SINGLE, "model.fp16.safetensors"],
    [INDEX, PICKLE],
    [INDEX, "model.fp16.safetensors", PICKLE_INDEX],
    [PICKLE, PICKLE_INDEX],
    [PICKLE, "pytorch_model.fp16.bin"],
    [PICKLE_INDEX, "pytorch_model.fp16.bin"],
]


@pytest.mark.parametrize("kinds", ORDERS, ids=" ".join)
def test_among_several_files_the_one_of_transformers_is_read(gpt2, checkpoint, kinds):
    folder = checkpoint(gpt2(0))
    (folder / SINGLE).unlink()
    for seed, kind in enumerate(kinds, start=1):
        write(folder, kind, gpt2(seed))
    model = load(folder, allow_pickle=True)
    check_equal(model, gpt2(1))
    check_equal(model, GPT2LMHeadModel.from_pretrained(folder, attn_implementation="eager"))
    assert any("as in transformers; not read: " in note for note in model.description.notes)


def test_the_file_that_config_json_names_is_read(gpt2, checkpoint):
    folder = edit_config(checkpoint(gpt2(1)), transformers_weights="other.safetensors")
    assert "lacks other.safetensors" in refused(folder, SourceError)
    write(folder, "other.safetensors", gpt2(2))
    check_equal(load(folder), gpt2(2))
    theirs = GPT2LMHeadModel.from_pretrained(folder, attn_implementation="eager")
    check_equal(load(folder), theirs)
    for bad in ("../x.safetensors", "pytorch_model.bin", 3):
        assert "transformers_weights" in refused(edit_config(folder, transformers_weights=bad))


@pytest.mark.parametrize("name", ["model.fp16.safetensors", "other.safetensors"])
def test_a_variant_alone_is_rejected_by_name(gpt2, checkpoint, name):
    folder = checkpoint(gpt2(1))
    (folder / SINGLE).rename(folder / name)
    message = refused(folder)
    assert name in message
    assert "Rename" in message


def test_a_variant_of_a_pickle_alone_is_rejected_by_name(gpt2, checkpoint):
    folder = checkpoint(gpt2(1))
    (folder / SINGLE).unlink()
    write(folder, "pytorch_model.fp16.bin", gpt2(1))
    assert "pytorch_model.fp16.bin" in refused(folder, allow_pickle=True)


def test_a_tensor_with_two_values_in_two_shards_is_rejected(gpt2, checkpoint):
    folder = checkpoint(gpt2(1))
    (folder / SINGLE).unlink()
    write(folder, INDEX, gpt2(1))
    shards = sorted(folder.glob("model-*.safetensors"))
    key = sorted(load_file(shards[0]))[0]
    other = load_file(shards[1]) | {key: load_file(shards[0])[key] + 1}
    save_file(other, shards[1], metadata={"format": "pt"})
    assert f"`{key}` in several of its files" in refused(folder)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("flax_model.msgpack", "Flax"),
        ("tf_model.h5", "TensorFlow"),
        ("model.ckpt.index", "TensorFlow"),
        ("model.onnx", "ONNX"),
        ("gpt2-q8_0.gguf", "GGUF"),
    ],
)
def test_weights_of_another_framework_are_named(gpt2, checkpoint, name, kind):
    folder = checkpoint(gpt2(1))
    (folder / SINGLE).rename(folder / name)
    message = refused(folder)
    assert f"{name} ({kind})" in message
    assert "save_pretrained" in message


# --- a folder of the Hub's cache ------------------------------------------------------------------


@pytest.fixture
def cache(gpt2, checkpoint, tmp_path) -> Path:
    """The folder of one model in the Hub's cache, with two snapshots."""
    root = tmp_path / "models--some--gpt2"
    for seed, commit in enumerate(("a" * 40, "b" * 40)):
        shutil.copytree(checkpoint(gpt2(seed), commit), root / "snapshots" / commit)
    (root / "refs").mkdir()
    return root


def test_the_current_snapshot_of_a_cache_is_opened(cache, gpt2):
    (cache / "refs" / "main").write_text("b" * 40)
    check_equal(load(cache), gpt2(1))


def test_the_only_snapshot_of_a_cache_is_opened(cache, gpt2):
    shutil.rmtree(cache / "snapshots" / ("b" * 40))
    check_equal(load(cache), gpt2(0))


def test_several_snapshots_are_named(cache):
    message = refused(cache, SourceError)
    assert str(cache / "snapshots" / ("a" * 40)) in message
    assert str(cache / "snapshots" / ("b" * 40)) in message


# --- settings that GPT-2 does not have ------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [{"position_embedding_type": "alibi"}, {"position_embedding_type": "rotary"}, {"alibi": True}],
    ids=str,
)
def test_other_positions_are_rejected_by_name(gpt2, checkpoint, change):
    message = refused(edit_config(checkpoint(gpt2(1)), **change))
    assert "positions" in message
    assert str(next(iter(change.values()))) in message or "alibi" in message


def test_custom_code_is_not_run_and_a_message_says_so(gpt2, checkpoint):
    theirs = gpt2(1)
    code = {"AutoModelForCausalLM": "modeling_mine.MyModel"}
    folder = edit_config(checkpoint(theirs), auto_map=code, position_embedding_type="absolute")
    model = load(folder)
    check_equal(model, theirs)
    assert any("`auto_map`" in note for note in model.description.notes)


def test_a_setting_of_another_model_is_named(gpt2, checkpoint):
    theirs = gpt2(1)
    model = load(edit_config(checkpoint(theirs), attention_window=16, rope_theta=None))
    check_equal(model, theirs)
    notes = " ".join(model.description.notes)
    assert "GPT-2 has no setting `attention_window` (16), so it was not applied." in notes
    assert "rope" not in notes


# --- files that change ----------------------------------------------------------------------------


def test_a_rewritten_file_changes_the_fingerprint(gpt2, checkpoint):
    """Even of the same size and with its old time, as `cp -p` leaves it."""
    folder = checkpoint(gpt2(1))
    seen = {fingerprint(folder)}
    for name in (SINGLE, "tokenizer.json", "config.json"):
        path = folder / name
        times = path.stat().st_atime_ns, path.stat().st_mtime_ns
        path.write_bytes(path.read_bytes())
        os.utime(path, ns=times)
        seen.add(fingerprint(folder))
    assert len(seen) == 4
    (folder / "added_tokens.json").write_text("{}")
    assert fingerprint(folder) not in seen


def test_weights_that_change_while_they_are_read_are_rejected(gpt2, checkpoint, monkeypatch):
    """A mix of old and new weights would be a model that was never trained."""
    from mha_viz.checkpoints import folder as reading

    folder = checkpoint(gpt2(1))
    original = reading.read_state

    def read(*args: Any, **options: Any) -> Any:
        state = original(*args, **options)
        gpt2(2).save_pretrained(folder)
        return state

    monkeypatch.setattr(reading, "read_state", read)
    with pytest.raises((SourceError, CheckpointError), match="changed while it was being read"):
        load(folder)


# --- weights that cannot be computed with ---------------------------------------------------------


@torch.no_grad()
def test_weights_that_overflow_are_named_and_not_a_difference_of_nan(gpt2, checkpoint):
    theirs = gpt2(1)
    theirs.transformer.h[1].mlp.c_fc.weight.mul_(1e30)
    theirs.transformer.h[1].mlp.c_proj.weight.mul_(1e30)
    message = refused(checkpoint(theirs))
    assert "overflow" in message
    assert "nan" not in message.replace("NaN", "")


def test_a_nanogpt_without_a_tokenizer_says_what_to_do_on_a_page_and_in_python(gpt2, tmp_path):
    saved = nanogpt(gpt2(1, vocab_size=50304))
    saved["model_args"]["vocab_size"] = 50304
    torch.save(saved, tmp_path / "ckpt.pt")
    message = refused(tmp_path, SourceError)
    assert f"copy tokenizer.json of `gpt2` from the Hugging Face Hub into {tmp_path}" in message
    assert 'load(..., tokenizer="gpt2")' in message


def test_a_pickle_names_both_ways_to_allow_it(gpt2, checkpoint):
    folder = checkpoint(gpt2(1))
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    message = refused(folder)
    assert "load(..., allow_pickle=True) in Python" in message
    assert "add --allow-pickle to an mha-viz command" in message

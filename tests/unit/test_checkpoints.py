"""Checkpoints of every kind: loaded, saved and, if damaged, rejected with a reason."""

import json
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from support.checkpoints import (
    CUTS,
    TEXT,
    check_equal,
    logits_of,
    nanogpt,
    readable,
    refused,
    theirs_on,
)
from support.pruning import HEADS, IDS
from tokenizers import Tokenizer
from transformers.models.gpt2.modeling_gpt2 import GPT2LMHeadModel
from transformers.models.gpt2.tokenization_gpt2 import GPT2Tokenizer

from mha_viz import checkpoints
from mha_viz.analysis.reference_texts import reference_texts
from mha_viz.assets import ASSETS
from mha_viz.checkpoints import hub, load, parity, save, write_zeroed
from mha_viz.errors import HeadNotFound, MhaVizError, SourceError
from mha_viz.model import Model
from mha_viz.pruning import gate_without, pruned_model, size


def test_a_plain_checkpoint(gpt2, checkpoint):
    theirs = gpt2(1)
    model = load(checkpoint(theirs))
    check_equal(model, theirs)
    about = model.description
    assert about.source == "folder"
    assert about.stored_dtype == "float32"
    assert about.n_parameters == sum(p.numel() for p in theirs.parameters())
    assert re.fullmatch("[0-9a-f]{64}", about.weights_hash)
    assert "tied head" in " ".join(about.notes)


def test_a_folder_may_be_a_string(gpt2, checkpoint, monkeypatch):
    folder = checkpoint(gpt2(1), "mine")
    monkeypatch.chdir(folder.parent)
    for source in ("./mine", str(folder), Path("mine"), "../" + folder.parent.name + "/mine"):
        assert load(source).config.n_layers == 2


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_files_are_computed_in_float32(gpt2, checkpoint, dtype):
    folder = checkpoint(gpt2(1).to(dtype))
    model = load(folder, device="cpu")
    theirs = GPT2LMHeadModel.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    )
    check_equal(model, theirs)
    assert model.network.wte.weight.dtype == torch.float32
    assert model.description.stored_dtype == str(dtype).removeprefix("torch.")


def test_the_hash_does_not_depend_on_how_a_file_is_stored(gpt2, checkpoint):
    theirs = gpt2(1).half().float()
    whole = load(checkpoint(theirs, "whole")).description.weights_hash
    assert load(checkpoint(theirs.half(), "half")).description.weights_hash == whole
    assert load(checkpoint(gpt2(2), "other")).description.weights_hash != whole


def test_a_file_that_changes_later_changes_no_model(gpt2, checkpoint):
    """safetensors maps a file into memory; a model holds a copy of it."""
    theirs = gpt2(1)
    folder = checkpoint(theirs)
    model = load(folder)
    path = folder / "model.safetensors"
    with path.open("r+b") as file:
        file.write(b"\0" * path.stat().st_size)
    check_equal(model, theirs)


def test_a_tokenizer_that_cuts_or_pads_does_neither_here(gpt2, checkpoint, tokenizer):
    folder = checkpoint(gpt2(1))
    other = Tokenizer.from_str(tokenizer.to_str())
    other.enable_truncation(3)
    other.enable_padding(length=40)
    other.save(str(folder / "tokenizer.json"))
    trace = load(folder).trace(TEXT)
    assert b"".join(trace.token_bytes) == TEXT.encode()
    assert trace.left_out == 0


def test_a_name_is_never_looked_for_in_the_working_directory(gpt2, checkpoint, monkeypatch):
    """A folder called gpt2 beside the app is not what "gpt2" means."""
    decoy = checkpoint(gpt2(2), "gpt2")
    fetched = checkpoint(gpt2(1), "cache")
    monkeypatch.chdir(decoy.parent)
    asked: list[str] = []

    def fetch(repo_id: str, **_: Any) -> hub.Fetched:
        asked.append(repo_id)
        return hub.Fetched(fetched, "0" * 40, True)

    monkeypatch.setattr(hub, "fetch", fetch)
    model = load("gpt2")
    assert asked == ["gpt2"]
    check_equal(model, gpt2(1))
    assert model.description.name == "gpt2"
    assert model.description.source == "hub"
    assert load("./gpt2").description.weights_hash != model.description.weights_hash


@pytest.mark.parametrize("settings", [{}, {"tie_word_embeddings": False}, {"n_inner": 40}], ids=str)
def test_what_is_saved_is_read_back_by_both(gpt2, checkpoint, tmp_path, settings):
    original = load(checkpoint(gpt2(1, **settings)))
    save(original, tmp_path / "saved")
    again = load(tmp_path / "saved")
    assert again.description.weights_hash == original.description.weights_hash
    assert again.config == original.config
    first, second = original.trace(TEXT), again.trace(TEXT)
    assert first.token_ids == second.token_ids
    assert np.array_equal(first.logits, second.logits)
    written = json.loads((tmp_path / "saved" / "config.json").read_text())
    assert written["tie_word_embeddings"] == settings.get("tie_word_embeddings", True)
    theirs, report = GPT2LMHeadModel.from_pretrained(
        tmp_path / "saved", attn_implementation="eager", output_loading_info=True
    )
    assert not any(report.values())
    check_equal(again, theirs)


@pytest.mark.parametrize("heads", CUTS, ids=str)
def test_a_pruned_model_is_read_back_as_it_was(tiny: Model, tmp_path: Path, heads: list):
    few = pruned_model(tiny, heads)
    save(few, tmp_path)
    back = load(tmp_path, device="cpu")
    assert back.config == few.config
    assert torch.equal(logits_of(back), logits_of(few))
    assert back.description.n_parameters == size(few.network).n_parameters
    assert f"{len(heads)} of its heads have been pruned (`pruned_heads`)." in back.description.notes
    expected = logits_of(tiny, head_gate=gate_without(tiny.config, heads))
    torch.testing.assert_close(logits_of(back), expected, atol=1e-5, rtol=0)


def test_untied_models_can_be_pruned_and_read_back(
    gpt2: Callable[..., Any], checkpoint: Callable[..., Path], tmp_path: Path
):
    whole = load(checkpoint(gpt2(5, tie_word_embeddings=False)), device="cpu")
    few = pruned_model(whole, CUTS[0])
    save(few, tmp_path / "few")
    assert torch.equal(logits_of(load(tmp_path / "few", device="cpu")), logits_of(few))


@pytest.mark.parametrize("heads", CUTS, ids=str)
def test_transformers_reads_a_zeroed_model_and_computes_the_same(
    tiny: Model, tmp_path: Path, heads: list
):
    write_zeroed(tiny, heads, tmp_path)
    theirs, report = GPT2LMHeadModel.from_pretrained(tmp_path, output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    found = theirs.eval()(torch.tensor([IDS])).logits
    gate = gate_without(tiny.config, heads)
    torch.testing.assert_close(found, logits_of(tiny, head_gate=gate), atol=1e-5, rtol=0)
    few = pruned_model(tiny, heads)
    torch.testing.assert_close(found, logits_of(few), atol=1e-5, rtol=0)
    back = load(tmp_path, device="cpu")
    assert back.config == tiny.config
    torch.testing.assert_close(logits_of(back), found, atol=1e-5, rtol=0)


def test_a_pruned_model_is_zeroed_where_its_heads_were(tiny: Model, tmp_path: Path):
    few = pruned_model(tiny, [(0, 1), (1, 0)])
    write_zeroed(few, [(1, 2), (1, 0)], tmp_path)
    assert "pruned_heads" not in json.loads((tmp_path / "config.json").read_text())
    theirs = GPT2LMHeadModel.from_pretrained(tmp_path).eval()
    gate = gate_without(tiny.config, [(0, 1), (1, 0), (1, 2)])
    found = theirs(torch.tensor([IDS])).logits
    torch.testing.assert_close(found, logits_of(tiny, head_gate=gate), atol=1e-5, rtol=0)
    torch.testing.assert_close(logits_of(load(tmp_path, device="cpu")), found, atol=1e-5, rtol=0)


def test_writing_zeros_changes_nothing_of_the_model(
    gpt2: Callable[..., Any], checkpoint: Callable[..., Path], tmp_path: Path
):
    model = load(checkpoint(gpt2(5)), device="cpu")
    before = {name: t.clone() for name, t in model.network.state_dict().items()}
    write_zeroed(model, HEADS, tmp_path / "zeroed")
    assert all(torch.equal(before[n], t) for n, t in model.network.state_dict().items())
    state = load_file(tmp_path / "zeroed" / "model.safetensors")
    assert torch.equal(state["transformer.h.0.attn.c_proj.weight"], torch.zeros(32, 32))
    assert float(state["transformer.h.0.attn.c_proj.bias"].abs().max()) > 0, "b_O stays"
    with pytest.raises(HeadNotFound, match="L0 H4 is not in"):
        write_zeroed(model, [(0, 4)], tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_the_bundled_model_equals_transformers(bundled):
    """As close to float64 as transformers' own float32; its scores are too large for 1e-6."""
    theirs = GPT2LMHeadModel.from_pretrained(
        checkpoints.BUNDLED, dtype=torch.float32, attn_implementation="eager"
    )
    trace = bundled.trace("Once upon a time there was an old king, and the old king wept.")
    ours = [trace.logits, *map(trace.patterns, range(trace.n_layers))]
    single = flat(theirs_on(bundled, theirs, trace.text))
    double = flat(theirs_on(bundled, theirs.double(), trace.text))
    for number, (a, b, exact) in enumerate(zip(ours, single, double, strict=True)):
        np.testing.assert_allclose(a, b, rtol=0, atol=2e-5 if number == 0 else 5e-6)
        assert np.abs(a - exact).max() <= 2 * np.abs(b - exact).max() + 1e-6


LONG_TEXTS = {
    "reference": "\n".join(reference_texts()),
    "story": (ASSETS / "training.txt").read_text(encoding="utf-8")[:9000],
    "sentence": "The king gave the princess a golden ring, and the fox ran away. " * 100,
}


@pytest.mark.parametrize("text", LONG_TEXTS)
def test_the_bundled_model_equals_transformers_at_its_full_length(bundled, text):
    """At every position and in every head, within what the README promises."""
    trace = bundled.trace(LONG_TEXTS[text])
    found = parity.check(bundled, trace)
    assert found.n_tokens == 1024
    assert found.logits.value <= 1e-4
    assert found.patterns.value <= 2e-5
    past = np.tri(1024, dtype=bool)
    scores = ((trace.q[n] * trace.scales[n]) @ trace.k[n].mT for n in range(trace.n_layers))
    assert 75 < max(float(np.abs(layer[:, past]).max()) for layer in scores) < 105, "about 100"


def flat(found: tuple[np.ndarray, list[np.ndarray]]) -> list[np.ndarray]:
    return [found[0], *found[1]]


def test_the_bundled_model_is_small_and_complete(bundled):
    assert sum(path.stat().st_size for path in checkpoints.BUNDLED.iterdir()) <= 10e6
    config = bundled.config
    assert 4 <= config.n_layers <= 6
    assert config.n_layers * config.n_heads >= 24
    assert config.n_positions == 1024
    assert bundled.description.source == "bundled"
    assert bundled.description.stored_dtype == "float16"


def test_the_bundled_tokenizer_is_the_one_of_transformers(bundled):
    theirs = GPT2Tokenizer.from_pretrained(checkpoints.BUNDLED)
    for text in (TEXT, "I 😀 you\n\n\tnaïve", "once<|endoftext|>upon"):
        assert bundled.encode(text)[0] == theirs(text)["input_ids"]


def test_the_bundled_model_needs_neither_transformers_nor_the_hub():
    code = (
        "import sys; from mha_viz.checkpoints import load; load('bundled').trace('a king');"
        "print([m for m in ('transformers', 'huggingface_hub', 'streamlit') if m in sys.modules])"
    )
    root = Path(checkpoints.__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


WRONG_VALUES = [None, "", "x", -1, 0, 1.5, 10**12, [], [1], {}, {"a": 1}, True, "é" * 500]
DAMAGES = 160


@pytest.fixture(scope="module")
def sound(tmp_path_factory, gpt2, tokenizer) -> Path:
    folder = tmp_path_factory.mktemp("sound") / "model"
    gpt2(1).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def damage(folder: Path, dice: random.Random) -> None:
    """Breaks one file in one of many ways."""
    name = dice.choice(["model.safetensors"] * 3 + ["config.json"] * 3 + ["tokenizer.json"])
    path = folder / name
    whole = path.read_bytes()
    how = dice.choice(["cut", "header", "random", "settings", "drop", "append"])
    if name == "config.json" and how in ("settings", "random", "drop"):
        raw = json.loads(whole)
        raw[dice.choice(sorted(raw))] = dice.choice(WRONG_VALUES)
        path.write_text(json.dumps(raw))
    elif how == "cut":
        path.write_bytes(whole[: dice.randrange(len(whole))])
    elif how == "append":
        path.write_bytes(whole + dice.randbytes(dice.randrange(1, 50)))
    elif how == "random":
        path.write_bytes(dice.randbytes(dice.randrange(2000)))
    elif how == "drop":
        path.unlink()
    else:
        broken = bytearray(whole)
        for _ in range(dice.randrange(1, 9)):
            broken[dice.randrange(min(len(broken), 3000))] = dice.randrange(256)
        path.write_bytes(broken)


@pytest.mark.parametrize("seeds", range(0, DAMAGES, 40))
def test_damage_never_ends_in_anything_but_a_clear_message(sound, tmp_path, seeds):
    refusals = 0
    for seed in range(seeds, seeds + 40):
        folder = tmp_path / str(seed)
        shutil.copytree(sound, folder)
        damage(folder, random.Random(seed))
        try:
            trace = load(folder).trace("the cat")
        except MhaVizError as error:
            refusals += bool(readable(error))
        else:  # the damage hit something that does not matter
            assert np.isfinite(trace.logits).all()
        shutil.rmtree(folder)
    assert refusals > 20


@pytest.mark.parametrize("name", ["pytorch_model.bin", "ckpt.pt"])
def test_damaged_pickles_end_in_a_clear_message(gpt2, tmp_path, name):
    theirs = gpt2(1)
    config = json.dumps(theirs.config.to_dict())
    torch.save(theirs.state_dict() if "bin" in name else nanogpt(theirs), tmp_path / name)
    whole = (tmp_path / name).read_bytes()
    if "bin" in name:
        (tmp_path / "config.json").write_text(config)
    dice = random.Random(5)
    for _ in range(30):
        broken = bytearray(whole)
        for _ in range(dice.randrange(1, 40)):
            broken[dice.randrange(len(broken))] = dice.randrange(256)
        if dice.random() < 0.3:
            broken = broken[: dice.randrange(len(broken))]
        (tmp_path / name).write_bytes(broken)
        message = refused(tmp_path, MhaVizError, allow_pickle=True)
        assert message


def test_the_bundled_model_uses_another_tokenizer_if_given(
    bundled: Model, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    model = load("bundled", tokenizer=tmp_path)
    assert model.description.tokenizer_source == str(tmp_path)
    assert model.tokenizer.get_vocab_size() != bundled.tokenizer.get_vocab_size()
    with pytest.raises(SourceError):
        load("bundled", tokenizer="./nowhere")

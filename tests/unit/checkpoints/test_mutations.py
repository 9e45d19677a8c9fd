"""Any folder and any text: a clear message, or what transformers computes, or a note that says why.

240 folders are changed in one to three ways each, and 2,100 texts are read by seven tokenizers. All
of it is seeded, so each case can be run again by its number.
"""

import json
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from support.checkpoints import readable
from support.models import random_gpt2
from support.tokenizers import AS_IT_IS, KINDS, byte_level, put
from torch import Tensor
from transformers.models.auto.tokenization_auto import AutoTokenizer
from transformers.models.gpt2.modeling_gpt2 import GPT2LMHeadModel

from mha_viz.checkpoints import load
from mha_viz.errors import MhaVizError, TextError
from mha_viz.model import Model

FOLDERS, BATCH = 240, 40
TEXTS = 300  # for each tokenizer
SIZES = {"n_layer": 1, "n_head": 2, "n_embd": 8, "n_positions": 256, "vocab_size": 320}
WEIGHTS, PICKLE = "model.safetensors", "pytorch_model.bin"
SAMPLE = "the Dog  sat <new>"
HEAD, EMBEDDING = "lm_head.weight", "transformer.wte.weight"
Dice = random.Random
Change = Callable[[Path, Dice], None]


# --- ways to change a folder ----------------------------------------------------------------------


def on_tensors(change: Callable[[dict[str, Tensor], Dice], dict[str, Tensor]]) -> Change:
    """A change of the tensors in model.safetensors, if it is there and can be read."""

    def apply(folder: Path, dice: Dice) -> None:
        if (folder / WEIGHTS).exists():
            tensors = {k: v.clone() for k, v in load_file(folder / WEIGHTS).items()}
            save_file(change(tensors, dice), folder / WEIGHTS, metadata={"format": "pt"})

    return apply


def on_config(**choices: list[Any]) -> Change:
    def apply(folder: Path, dice: Dice) -> None:
        raw = json.loads((folder / "config.json").read_text())
        key = dice.choice(sorted(choices))
        (folder / "config.json").write_text(json.dumps(raw | {key: dice.choice(choices[key])}))

    return apply


def wrapped(t: dict[str, Tensor], dice: Dice) -> dict[str, Tensor]:
    wrapper = dice.choice(["module.", "_module.", "model.", "_orig_mod.", "net.gpt.", "a.b.c."])
    bare = dice.random() < 0.5
    return {wrapper + (k.removeprefix("transformer.") if bare else k): v for k, v in t.items()}


def with_other_head(t: dict[str, Tensor], dice: Dice) -> dict[str, Tensor]:
    name = dice.choice(["score", "classifier", "qa_outputs", "v_head.summary", "my_head.0", "cls"])
    return t | {f"{name}.weight": torch.ones(2, 8)}


def tied_otherwise(t: dict[str, Tensor], dice: Dice) -> dict[str, Tensor]:
    if EMBEDDING not in t:
        return t
    how = dice.choice(["lm_head only", "both equal", "both different", "decoder"])
    if how == "lm_head only":
        return {HEAD if k == EMBEDDING else k: v for k, v in t.items()}
    name = "lm_head.decoder.weight" if how == "decoder" else HEAD
    return t | {name: t[EMBEDDING].clone() * (2 if how == "both different" else 1)}


def of_another_dtype(t: dict[str, Tensor], dice: Dice) -> dict[str, Tensor]:
    dtype = dice.choice([torch.float16, torch.bfloat16, torch.float64, torch.int32])
    return {k: v.to(dtype) for k, v in t.items()}


def without_one(t: dict[str, Tensor], dice: Dice) -> dict[str, Tensor]:
    t.pop(dice.choice(sorted(t)))
    return t


def with_masks(t: dict[str, Tensor], dice: Dice) -> dict[str, Tensor]:
    mask = torch.ones(1, 1, 256, 256).tril()
    return t | {"transformer.h.0.attn.bias": mask, "h.0.attn.masked_bias": torch.tensor(-1e4)}


def with_a_bad_number(t: dict[str, Tensor], dice: Dice) -> dict[str, Tensor]:
    key = dice.choice(sorted(t))
    t[key] = t[key].float().clone()
    t[key].view(-1)[0] = dice.choice([torch.nan, torch.inf, 3e38])
    return t


def with_another_file(folder: Path, dice: Dice) -> None:
    """Other weights under a name that may or may not come first."""
    name = dice.choice([PICKLE, "pytorch_model.fp16.bin", "model.fp16.safetensors", "tf_model.h5"])
    other = {k: v * 2 for k, v in random_gpt2(9, **SIZES).transformer.state_dict().items()}
    if name.endswith(".safetensors"):
        save_file({k: v.clone() for k, v in other.items()}, folder / name)
    else:
        torch.save(other, folder / name)


def moved(folder: Path, dice: Dice) -> None:
    """The weights under another name."""
    if (folder / WEIGHTS).exists():
        name = dice.choice(["model.fp16.safetensors", "flax_model.msgpack", "x.gguf", "x.onnx"])
        (folder / WEIGHTS).rename(folder / name)


def pickled(folder: Path, dice: Dice) -> None:
    if (folder / WEIGHTS).exists():
        torch.save(load_file(folder / WEIGHTS), folder / PICKLE)
        (folder / WEIGHTS).unlink()


def sharded(folder: Path, dice: Dice) -> None:
    if not (folder / WEIGHTS).exists():
        return
    keys = sorted(tensors := load_file(folder / WEIGHTS))
    middle = dice.randrange(len(keys))
    where = {}
    for number, part in enumerate((keys[:middle], keys[middle:]), start=1):
        name = f"model-0000{number}-of-00002.safetensors"
        save_file({k: tensors[k].clone() for k in part}, folder / name, metadata={"format": "pt"})
        where |= dict.fromkeys(part, name)
    (folder / f"{WEIGHTS}.index.json").write_text(json.dumps({"metadata": {}, "weight_map": where}))
    if dice.random() < 0.7:
        (folder / WEIGHTS).unlink()


def damaged(folder: Path, dice: Dice) -> None:
    file = folder / dice.choice(sorted(file.name for file in folder.iterdir()))
    content = bytearray(file.read_bytes())
    if dice.random() < 0.4:
        del content[dice.randrange(len(content)) :]
    for _ in range(dice.randrange(6)):
        if content:
            content[dice.randrange(min(3000, len(content)))] = dice.randrange(256)
    file.write_bytes(content)


def other_tokenizer(folder: Path, dice: Dice) -> None:
    settings = dice.choice([None, AS_IT_IS, {"tokenizer_class": "GPT2Tokenizer"}])
    put(folder, KINDS[dice.choice(sorted(KINDS))](), settings)


def vocab_and_merges(folder: Path, dice: Dice) -> None:
    (folder / "tokenizer.json").unlink(missing_ok=True)
    byte_level().model.save(str(folder))


def side_files(folder: Path, dice: Dice) -> None:
    token = {"content": "<new>", "lstrip": dice.random() < 0.5, "rstrip": dice.random() < 0.5}
    name, content = dice.choice(
        [
            ("added_tokens.json", {"<new>": 300, "[PAD]": 301}),
            ("added_tokens.json", {"<new>": 320}),
            ("special_tokens_map.json", {"pad_token": "<new>"}),
            ("special_tokens_map.json", {"bos_token": {**token, "normalized": False}}),
            ("tokenizer_config.json", {"added_tokens_decoder": {"300": token}}),
            ("tokenizer_config.json", {"add_prefix_space": True}),
            ("tokenizer_config.json", {"tokenizer_class": "BertTokenizer"}),
            ("tokenizer_config.json", {"eos_token": "<new>", "model_max_length": 3}),
        ]
    )
    (folder / name).write_text(json.dumps(content))


WRONG = [None, "", "x", -1, 0, 1.5, 10**12, [], [1], {}, {"a": 1}, True]
CHANGES: list[Change] = [
    WRAPPED := on_tensors(wrapped),
    *map(on_tensors, (with_other_head, tied_otherwise, of_another_dtype)),
    *map(on_tensors, (without_one, with_masks, with_a_bad_number)),
    with_another_file,
    moved,
    pickled,
    sharded,
    damaged,
    other_tokenizer,
    vocab_and_merges,
    side_files,
    on_config(**dict.fromkeys(SIZES, WRONG), activation_function=["relu", "gelu", "mish", 3]),
    on_config(
        tie_word_embeddings=[False, True, None],
        scale_attn_by_inverse_layer_idx=[True],
        scale_attn_weights=[False],
        reorder_and_upcast_attn=[True],
        layer_norm_epsilon=[1e-3, 0, "x"],
        transformers_weights=["model.fp16.safetensors", "../x.safetensors", WEIGHTS],
    ),
    on_config(
        auto_map=[{"AutoModel": "a.B"}],
        position_embedding_type=["absolute", "alibi"],
        attention_window=[4],
        tokenizer_class=["BertTokenizer", "GPT2Tokenizer", "NoTokenizer", 3],
        quantization_config=[{"bits": 4}],
        pruned_heads=[{"0": [1]}],
    ),
]


# --- folders --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound") / "model"
    random_gpt2(1, **SIZES).save_pretrained(folder)
    return put(folder, byte_level())


def apply(change: Change, folder: Path, dice: Dice) -> None:
    """Changes the folder, unless an earlier change has left nothing that could be changed."""
    with suppress(Exception):
        change(folder, dice)


def transformers_logits(folder: Path, ids: list[int]) -> np.ndarray | None:
    """transformers' own logits from these files; None if it does not find all weights."""
    try:
        theirs, report = GPT2LMHeadModel.from_pretrained(
            folder, attn_implementation="eager", dtype=torch.float32, output_loading_info=True
        )
    except Exception:  # noqa: BLE001  # whatever it raises, there is nothing to compare with
        return None
    if report["missing_keys"] or report["mismatched_keys"]:
        return None
    with torch.inference_mode():
        found: np.ndarray = theirs.eval()(torch.tensor([ids])).logits[0, -1].numpy()
    return found


def auto_ids(folder: Path, text: str) -> list[int] | None:
    try:
        theirs = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    except Exception:  # noqa: BLE001  # as above
        return None
    ids: list[int] = theirs(text, add_special_tokens=False).input_ids
    return ids


def check(folder: Path, unwrapped: Path) -> str:
    """What became of the folder: "refused", "equal" or "noted".

    `unwrapped` holds the same weights under the names that transformers knows.
    """
    try:
        model = load(folder, device="cpu", allow_pickle=True)
    except MhaVizError as error:
        readable(error)
        return "refused"
    notes = " ".join(model.description.notes)
    try:
        trace = model.trace(SAMPLE)
    except TextError as error:
        readable(error)
        ids = [5, 7, 3]
    else:
        ids, theirs = trace.token_ids, auto_ids(folder, SAMPLE)
        assert ids == theirs or "was read as" in notes, (ids, theirs, notes)
    logits, expected = model.trace_ids(ids).logits, transformers_logits(unwrapped, ids)
    assert expected is not None, "shown, although transformers does not find all weights"
    if np.abs(logits - expected).max() <= 1e-4 * max(1.0, float(np.abs(expected).max())):
        return "equal"
    assert len(model.description.notes) > 1, notes
    return "noted"


@pytest.mark.parametrize("first", range(0, FOLDERS, BATCH))
def test_a_changed_folder_is_refused_or_equal_or_noted(sound, tmp_path, first):
    results = []
    for seed in range(first, first + BATCH):
        folder, unwrapped = tmp_path / f"{seed}", tmp_path / f"{seed} unwrapped"
        shutil.copytree(sound, folder)
        dice = random.Random(seed)
        # The first change goes through all of them; the others are drawn.
        changes = [CHANGES[seed % len(CHANGES)], *dice.choices(CHANGES, k=dice.randrange(3))]
        for change in changes:
            if change is not WRAPPED:
                apply(change, folder, dice)
        shutil.copytree(folder, unwrapped)
        if WRAPPED in changes:
            apply(WRAPPED, folder, dice)
        results.append(check(folder, unwrapped))
        shutil.rmtree(folder)
        shutil.rmtree(unwrapped)
    assert results.count("equal") >= 5
    assert results.count("refused") >= 5


# --- texts ----------------------------------------------------------------------------------------

PARTS = [
    *(
        "the",
        "dog",
        "Dog",
        " sat",
        "  ",
        " ",
        "\n",
        "\t",
        "é",
        "e\u0301",
        "ß",
        "東京",
        "😀",
        "ﬁ",
        "ﷺ",
    ),
    *("##s", "</w>", "▁", "Ġ", "<0x41>", "[UNK]", "[CLS]", "<|endoftext|>", "<new>", "<unk>"),
    *("\u200d", "\u00a0", "\x00", "\ufeff", "\ud83d", "1,000.5", "don't", "...", "x" * 12, "<b>&"),
]


def text_of(dice: Dice) -> str:
    return "".join(dice.choices(PARTS, k=dice.randrange(1, 9)))


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_any_text_has_the_ids_of_transformers_and_what_is_lost_is_reported(sound, tmp_path, kind):
    folder = tmp_path / kind
    shutil.copytree(sound, folder)
    put(folder, KINDS[kind](), AS_IT_IS)
    model, theirs = load(folder, device="cpu"), AutoTokenizer.from_pretrained(folder)
    dice = random.Random(kind)
    for _ in range(TEXTS):
        text = text_of(dice)
        try:
            trace = model.trace(text)
        except TextError as error:
            message = readable(error)
            assert "finds no tokens in this text" in message, text
            continue
        typed = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        assert trace.token_ids == theirs(typed, add_special_tokens=False).input_ids, text
        assert all(trace.tokens)
        check_what_was_read(model, trace.token_bytes, typed, trace.read_as)


def check_what_was_read(model: Model, found: tuple[bytes, ...], typed: str, read_as: str) -> None:
    """Without a word about it, nothing but single blanks between tokens is missing."""
    assert read_as != typed
    joined = b"".join(found).decode("utf-8", "replace")
    if not read_as:
        assert joined in (typed, typed.replace(" ", "")), (joined, typed)
    else:
        assert joined.replace(" ", "") == read_as.replace(" ", ""), (joined, read_as)

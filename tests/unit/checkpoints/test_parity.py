"""A model on a text against transformers, from the checkpoint's files: what passes, what fails."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.checkpoints import edit_config, edit_tensors
from support.mistakes import (
    no_mask_in_patterns,
    no_mask_in_the_network,
    wrong_scale,
    wrong_split,
)
from support.models import random_gpt2
from tokenizers import Tokenizer, normalizers, processors

from mha_viz import pruning, trace
from mha_viz.checkpoints import hub, load, names, parity
from mha_viz.checkpoints.parity import check
from mha_viz.errors import CheckpointError, SourceError
from mha_viz.gpt2 import GPT2
from mha_viz.head import Head
from mha_viz.model import Model

TEXT = "the cat sat on the mat and the dog ran to the other side"


def edited(model: Model, name: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Model:
    """The model with another tensor of that name."""
    network = model.network
    assert isinstance(network, GPT2)
    copy = names.adopt(names.gpt2_state(network), network.config)
    state = copy.state_dict()
    copy.load_state_dict({**state, name: change(state[name])}, assign=True)
    return replace(model, network=copy)


# --- a model that is right ------------------------------------------------------------------------


def test_the_bundled_model_is_within_its_limits_at_its_full_length(bundled: Model) -> None:
    text = "The king gave the princess a golden ring, and the fox ran away. " * 100
    found = check(bundled, bundled.trace(text))
    assert found.problems == ()
    assert found.ok
    assert found.n_tokens == 1024
    assert found.device == "cpu"
    assert 0 < found.logits.value < found.logits.limit
    assert 0 < found.patterns.value < 2e-5  # what the README promises of this model
    assert found.masked.value == 0.0
    assert (found.tokens, found.tokens_skipped) == ("", "")


@pytest.mark.parametrize("cut", ["start", "end"])
def test_a_cut_text_is_compared_as_it_was_cut(tiny: Model, cut: Any) -> None:
    cut_trace = tiny.trace(TEXT * 4, cut=cut)
    assert cut_trace.left_out
    assert check(tiny, cut_trace).problems == ()


@pytest.mark.parametrize("cut", ["start", "end"])
def test_tokens_of_the_tokenizer_s_template_are_compared_too(
    checkpoint: Callable[..., Path], tokenizer: Tokenizer, cut: Any
) -> None:
    folder = checkpoint(random_gpt2(3), words=False)
    with_start = Tokenizer.from_str(tokenizer.to_str())
    end_of_text = with_start.token_to_id("<|endoftext|>")
    with_start.post_processor = processors.TemplateProcessing(
        single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", end_of_text)]
    )
    with_start.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    plain = load(folder, device="cpu")
    for model in (plain, plain.with_template()):
        found = check(model, model.trace(TEXT * 4, cut=cut))
        assert (found.problems, found.tokens_skipped) == ((), "")


def test_progress_goes_from_nothing_to_nearly_all_and_can_stop_it(tiny: Model) -> None:
    seen: list[float] = []
    check(tiny, tiny.trace(TEXT), on_progress=seen.append)
    assert seen == sorted(seen)
    assert seen[0] == 0.0
    assert 0.7 < seen[-1] <= 1.0

    def stop(fraction: float) -> None:
        if fraction > parity.LOADED:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        check(tiny, tiny.trace(TEXT), on_progress=stop)


@pytest.mark.parametrize(
    "changes",
    [
        {"scale_attn_by_inverse_layer_idx": True},
        {"scale_attn_weights": False},
        {"activation_function": "relu", "layer_norm_epsilon": 1e-3},
        {"tie_word_embeddings": False},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_each_variant_is_compared_with_its_own(
    checkpoint: Callable[..., Path], changes: dict[str, Any]
) -> None:
    model = load(checkpoint(random_gpt2(3, **changes)), device="cpu")
    assert check(model, model.trace(TEXT)).problems == ()


def test_pruned_heads_are_skipped_whether_in_the_file_or_in_memory(
    tiny: Model, tmp_path: Path
) -> None:
    from mha_viz.checkpoints import save

    pruned = pruning.pruned_model(tiny, [Head(0, 1), Head(1, 2)])
    assert check(pruned, pruned.trace(TEXT)).problems == ()
    save(pruned, tmp_path / "pruned")
    again = load(tmp_path / "pruned", device="cpu")
    found = check(again, again.trace(TEXT))
    assert found.problems == ()
    assert found.unread == "heads have been pruned (`pruned_heads`)"


def test_a_model_without_any_head_is_compared(tiny: Model) -> None:
    bare = pruning.pruned_model(tiny, pruning.all_heads(tiny.config))
    found = check(bare, bare.trace(TEXT))
    assert found.problems == ()
    assert found.patterns.head is None
    assert found.logits.value > 0


def test_a_file_that_only_this_package_reads_is_compared_too(tiny: Model, tmp_path: Path) -> None:
    theirs = random_gpt2(7, activation_function="gelu")
    linear = ("c_attn.weight", "c_proj.weight", "c_fc.weight")
    state = {
        key: tensor.T.contiguous() if key.endswith(linear) else tensor
        for key, tensor in theirs.state_dict().items()
    }
    sizes = {"n_layer": 2, "n_head": 4, "n_embd": 32, "block_size": 64, "vocab_size": 300}
    torch.save({"model": state, "model_args": sizes}, tmp_path / "ckpt.pt")
    tiny.tokenizer.save(str(tmp_path / "tokenizer.json"))
    model = load(tmp_path / "ckpt.pt", device="cpu")
    found = check(model, model.trace(TEXT))
    assert found.problems == ()
    assert found.unread == "they are nanoGPT's"
    assert "transformers cannot read its tokenizer" in found.tokens_skipped or not found.tokens


# --- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (wrong_scale, "the pattern of L"),
        (no_mask_in_patterns, "on a later token"),
        (no_mask_in_the_network, "logits differ by"),
        (wrong_split, "the pattern of L"),
    ],
)
def test_each_mistake_turns_it_red(
    tiny: Model,
    monkeypatch: pytest.MonkeyPatch,
    mistake: Callable[[pytest.MonkeyPatch], None],
    words: str,
) -> None:
    mistake(monkeypatch)
    found = check(tiny, tiny.trace(TEXT))
    assert not found.ok
    assert words in "; ".join(found.problems)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("blocks.1.attn.W_O.weight", lambda w: w.T.contiguous()),
        ("blocks.0.mlp.W_in.weight", lambda w: w.roll(1, 0)),
        ("blocks.0.attn.W_QKV.weight", lambda w: torch.cat([w[32:64], w[:32], w[64:]])),
        ("ln_f.weight", lambda w: w * torch.nan),
    ],
)
def test_each_wrong_tensor_turns_it_red(
    tiny: Model, name: str, change: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    wrong = edited(tiny, name, change)
    assert not check(wrong, wrong.trace(TEXT)).logits.ok


def test_a_row_that_does_not_sum_to_1_is_named(tiny: Model) -> None:
    class Long(trace.Trace):
        def pattern(self, layer: int, head: int) -> trace.Array:
            found = super().pattern(layer, head)
            return found * np.float32(1.00002 if (layer, head) == (1, 3) else 1.0)

    right = tiny.trace(TEXT)
    wrong = Long(**{name: getattr(right, name) for name in trace.Trace.__dataclass_fields__})
    assert check(tiny, wrong).problems == (
        "the sum of a row of L1 H3 differs from 1 by 2.0e-05 (limit 1e-05)",
    )


def test_other_token_ids_than_the_tokenizer_s_are_named(tiny: Model) -> None:
    right = tiny.trace(TEXT)
    ids = [*right.token_ids[:3], 5, *right.token_ids[4:]]
    found = check(tiny, replace(tiny.trace_ids(ids), text=TEXT))
    assert found.tokens == (
        f"token 3 has id 5 here but {right.token_ids[3]} with transformers' tokenizer"
    )
    assert check(tiny, replace(tiny.trace_ids(ids[:-1]), text=TEXT)).tokens == (
        f"the text has {len(ids) - 1} tokens here but {len(ids)} with transformers' tokenizer"
    )


# --- what cannot be compared ----------------------------------------------------------------------


def test_a_folder_that_is_gone_is_reported(checkpoint: Callable[..., Path]) -> None:
    folder = checkpoint(random_gpt2(3))
    model = load(folder, device="cpu")
    shutil.rmtree(folder)
    with pytest.raises(SourceError, match="was loaded from are gone"):
        check(model, model.trace(TEXT))


def test_a_model_of_the_hub_is_compared_at_the_commit_that_was_loaded(
    tiny: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    folder = Path(tiny.description.name)

    def fetch(name: str) -> hub.Fetched:
        asked.append(name)
        return hub.Fetched(folder, "abc", from_cache=True)

    about = replace(tiny.description, name="owner/name@main", source="hub", revision="abc")
    model = replace(tiny, description=about)
    monkeypatch.setattr(hub, "fetch", fetch)
    monkeypatch.setattr(hub, "is_cached", lambda name: name == "owner/name@abc")
    assert check(model, model.trace(TEXT)).problems == ()
    assert asked == ["owner/name@abc"]
    monkeypatch.setattr(hub, "is_cached", lambda name: False)
    with pytest.raises(SourceError, match="was loaded from are gone"):
        check(model, model.trace(TEXT))


def test_files_that_have_changed_are_reported_and_not_called_a_mistake(
    checkpoint: Callable[..., Path],
) -> None:
    model = load(checkpoint(random_gpt2(3)), device="cpu")
    checkpoint(random_gpt2(4))
    with pytest.raises(CheckpointError, match="have changed since it was loaded"):
        check(model, model.trace(TEXT))


def test_too_little_memory_is_reported(tiny: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes")

    monkeypatch.setattr(parity, "_compare_patterns", full)
    with pytest.raises(CheckpointError, match="not enough memory for the second copy"):
        check(tiny, tiny.trace(TEXT))


def test_patterns_are_compared_layer_by_layer(tiny: Model) -> None:
    asked: list[int] = []
    right = tiny.trace(TEXT)

    class Counted(trace.Trace):
        def pattern(self, layer: int, head: int) -> trace.Array:
            asked.append(layer)
            return super().pattern(layer, head)

    check(tiny, Counted(**{n: getattr(right, n) for n in trace.Trace.__dataclass_fields__}))
    assert asked == sorted(asked)  # each layer once, and in order
    assert len(asked) == 8


def test_the_tokens_of_another_tokenizer_are_not_compared(gpt2, checkpoint):
    """Weights without a tokenizer of their own are compared in all else."""
    other = checkpoint(gpt2(1), "other")
    model = load(checkpoint(gpt2(2), "weights", words=False), tokenizer=other)
    found = check(model, model.trace("the cat sat on the mat"))
    assert found.ok
    assert str(other) in found.tokens_skipped


def test_a_model_that_returns_tuples_is_compared(gpt2, checkpoint):
    folder = edit_config(checkpoint(gpt2(3)), return_dict=False)
    model = load(folder)
    assert check(model, model.trace("the cat sat on the mat")).ok


# --- what was compared ----------------------------------------------------------------------------


def test_files_that_transformers_reads_are_read_by_it(tiny: Model) -> None:
    found = check(tiny, tiny.trace(TEXT))
    assert (found.unread, found.unread_tokens) == ("", "")
    assert found.reference == "transformers read the checkpoint's files itself."
    assert found.token_reference.endswith("those of transformers' AutoTokenizer.")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"tie_word_embeddings": None}, "'tie_word_embeddings' expected bool"),
        ({"layer_types": ["full_attention"]}, "number of `layer_types` (1)"),
        ({"text_config": {"n_layer": 1}}, "has no attribute 'to_dict'"),
    ],
    ids=str,
)
def test_a_configuration_that_transformers_refuses_is_reported(
    checkpoint: Callable[..., Path], changes: dict[str, Any], reason: str
) -> None:
    model = load(edit_config(checkpoint(random_gpt2(3)), **changes), device="cpu")
    (note,) = [n for n in model.description.notes if "transformers cannot read its config" in n]
    assert reason in note
    found = check(model, model.trace(TEXT))
    assert found.ok
    assert reason in found.unread
    assert found.reference.startswith("transformers could not read these files: ")
    assert "GPT-2 holding the weights as this app reads them." in found.reference


def test_names_unknown_to_transformers_are_reported(checkpoint: Callable[..., Path]) -> None:
    folder = edit_tensors(
        checkpoint(random_gpt2(3)), lambda t: {f"module.{k}": v for k, v in t.items()}
    )
    model = load(folder, device="cpu")
    found = check(model, model.trace(TEXT))
    assert found.ok
    assert found.unread.startswith("it does not find `lm_head.weight`, `transformer.h.0.")


def test_a_tokenizer_that_its_auto_class_would_change_is_reported(
    checkpoint: Callable[..., Path], tokenizer: Tokenizer
) -> None:
    folder = checkpoint(random_gpt2(3), words=False)
    lower = Tokenizer.from_str(tokenizer.to_str())
    lower.normalizer = normalizers.Lowercase()
    lower.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "GPT2Tokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    model = load(folder, device="cpu")
    found = check(model, model.trace("The Cat"))
    assert found.ok
    assert "AutoTokenizer would leave out" in found.unread_tokens
    assert "read in the same way as here. Its tokenizer.json" in found.token_reference

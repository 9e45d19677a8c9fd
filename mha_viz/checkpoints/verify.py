"""Checks a checkpoint against transformers, which must compute the same from the same weights."""

import os
import threading
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mha_viz.attention import attention_scores, causal_mask, masked_softmax
from mha_viz.checkpoints.config import ALIASES
from mha_viz.errors import CheckpointError
from mha_viz.gpt2 import GPT2

# The plain import `from transformers import ...` resolves names lazily and races when several
# sessions start at once; the full module path does not.
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
from transformers.models.gpt2.configuration_gpt2 import GPT2Config as TheirConfig
from transformers.models.gpt2.modeling_gpt2 import GPT2LMHeadModel
from transformers.utils import logging

# While transformers builds a model, it replaces functions of torch for the whole process; if two
# threads do that at once, no later model has all of its weights.
_one_at_a_time = threading.Lock()
TOLERANCE = 1e-4  # relative to the largest logit; float32 on a full-size model stays below 1e-5
COMPUTED_WITH = (  # the keys of config.json that affect logits and patterns
    *ALIASES,
    *ALIASES.values(),
    "activation_function",
    "layer_norm_epsilon",
    "n_inner",
    "reorder_and_upcast_attn",
    "scale_attn_by_inverse_layer_idx",
    "scale_attn_weights",
    "vocab_size",
)


def from_files(folder: Path) -> GPT2LMHeadModel:
    """GPT-2 in eager mode and float32, as transformers itself reads it from a folder.

    Raises CheckpointError with the reason, as a phrase, if it cannot, or if it would initialise
    missing weights at random.
    """
    logging.disable_progress_bar()
    try:
        with _one_at_a_time:
            model, report = GPT2LMHeadModel.from_pretrained(
                folder,
                attn_implementation="eager",
                dtype=torch.float32,
                local_files_only=True,
                output_loading_info=True,
            )
    except Exception as error:
        # Its readers raise many types; some are written in Rust.
        raise CheckpointError(_reason(error)) from error
    if lacking := sorted(report["missing_keys"]):
        raise CheckpointError(f"it does not find {_some(lacking)} in them")
    if unlike := sorted(str(key) for key, *_ in report["mismatched_keys"]):
        raise CheckpointError(f"it expects other shapes of {_some(unlike)}")
    return model.eval()


def config_notes(raw: dict[str, Any]) -> list[str]:
    """A note if transformers cannot read this config.json, although we can."""
    try:
        _read_config(raw)
    except CheckpointError as error:
        return [
            f"transformers cannot read its config.json ({error}), so this model is compared with "
            "transformers' GPT-2 of the sizes and weights as read here."
        ]
    return []


def _read_config(raw: dict[str, Any]) -> None:
    """Raises CheckpointError with the reason, as a phrase, if transformers cannot read it."""
    try:
        with _one_at_a_time:
            TheirConfig.from_dict(dict(raw)).get_text_config(decoder=True).to_dict()
    except Exception as error:
        # It is checked by a library with its own hierarchy of exceptions.
        raise CheckpointError(_reason(error)) from error


def build(folder_config: dict[str, Any], tensors: dict[str, Tensor], name: str) -> GPT2LMHeadModel:
    """GPT-2 as transformers computes it, over the same storage as `tensors`, in eager mode.

    Raises CheckpointError if transformers rejects the configuration or a tensor.
    """
    logging.disable_progress_bar()
    try:
        config = TheirConfig(
            **{key: folder_config[key] for key in COMPUTED_WITH if key in folder_config},
            tie_word_embeddings="lm_head.weight" not in tensors,
            bos_token_id=None,
            eos_token_id=None,
        )
        with _one_at_a_time:
            model, report = GPT2LMHeadModel.from_pretrained(
                None,
                config=config,
                state_dict=dict(tensors),
                output_loading_info=True,
                attn_implementation="eager",
                dtype=torch.float32,
            )
    except Exception as error:
        # Its configuration is checked by a library with its own hierarchy of exceptions.
        raise CheckpointError(f"transformers cannot build {name}: {_reason(error)}.") from error
    problems = [key for kind in ("missing_keys", "mismatched_keys") for key in report[kind]]
    if problems:
        raise CheckpointError(
            f"transformers finds tensors of {name} missing or of the wrong shape: "
            f"{_some(problems)}. "
            "Download or save the checkpoint again."
        )
    return model.eval()


@torch.inference_mode()
def compare(ours: GPT2, theirs: GPT2LMHeadModel, name: str) -> None:
    """Raises CheckpointError if our logits or patterns differ from transformers' eager ones."""
    T = min(8, ours.config.n_positions)
    ids = torch.linspace(0, ours.config.vocab_size - 1, T).long()[None]
    expected = theirs(ids, output_attentions=True, return_dict=True)
    run = ours.run(ids)
    scale = max(1.0, float(expected.logits[:, -1].abs().max()))
    differences = [(run.logits - expected.logits[:, -1]).abs().max() / scale]
    for layer, pattern in enumerate(expected.attentions):
        q, k, _ = run.qkv[:, layer]
        scores = attention_scores(q, k, ours.config.scale(layer))
        ours_pattern = masked_softmax(scores, causal_mask(T, T))
        differences.append((ours_pattern - pattern).abs().max())
    if not bool(torch.isfinite(expected.logits).all()):
        raise CheckpointError(
            f"The weights of {name} overflow: transformers' own logits are NaN or infinite on "
            "them. The file is damaged, or its training diverged."
        )
    # torch's max keeps a NaN; Python's drops one that does not come first.
    worst = float(torch.stack(differences).max())
    if not worst <= TOLERANCE:
        raise CheckpointError(
            f"{name} was loaded, but its outputs here differ from transformers' by {worst:.1e}. "
            "It is not shown, because its numbers cannot be trusted."
        )


def _reason(error: Exception) -> str:
    """The last line of an exception's message, as a phrase of at most 200 characters."""
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[-1].split("Error: ")[-1].strip().rstrip(".")[:200]


def _some(keys: list[str]) -> str:
    more = f" and {len(keys) - 3} more" if len(keys) > 3 else ""
    return ", ".join(f"`{key}`" for key in keys[:3]) + more

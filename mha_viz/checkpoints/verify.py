"""Checks a checkpoint against transformers, which must compute the same from the same weights."""

import os
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


def build(folder_config: dict[str, Any], tensors: dict[str, Tensor], name: str) -> GPT2LMHeadModel:
    """GPT-2 as transformers computes it, over the same storage as `tensors`, in eager mode.

    Raises CheckpointError for whatever transformers finds missing, mismatched or unreadable.
    """
    logging.disable_progress_bar()
    try:
        config = TheirConfig(
            **{key: folder_config[key] for key in COMPUTED_WITH if key in folder_config},
            tie_word_embeddings="lm_head.weight" not in tensors,
            bos_token_id=None,
            eos_token_id=None,
        )
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
        text = str(error).strip() or "it gave no reason"
        reason = text.splitlines()[-1].split("Error: ")[-1].strip()
        raise CheckpointError(f"transformers cannot build {name}: {reason}") from error
    problems = [key for kind in ("missing_keys", "mismatched_keys") for key in report[kind]]
    if problems:
        some = ", ".join(f"`{key}`" for key in problems[:3])
        raise CheckpointError(
            f"transformers finds tensors of {name} missing or of the wrong shape: {some}. "
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
    # torch's max keeps a NaN; Python's drops one that does not come first.
    worst = float(torch.stack(differences).max())
    if not worst <= TOLERANCE:
        raise CheckpointError(
            f"{name} was loaded, but its outputs here differ from transformers' by {worst:.1e}. "
            "It is not shown, because its numbers cannot be trusted."
        )

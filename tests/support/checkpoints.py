"""Shared by the tests of checkpoints: comparison with transformers, errors, edited files."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from mha_viz.checkpoints import load
from mha_viz.errors import CheckpointError, MhaVizError
from mha_viz.model import Model
from support.pruning import HEADS, IDS

TEXT = "the dog sat on the other side of the mat"
C_ATTN = "transformer.h.0.attn.c_attn.weight"
CUTS = [[(0, 1), (1, 3), (1, 0)], [(1, h) for h in range(4)], HEADS]
NOT_FOR_PEOPLE = re.compile(r"Traceback|\b[A-Z]\w+(Error|Exception)\b|<class|0x[0-9a-f]{6}|\n")


def theirs_on(model: Model, theirs: Any, text: str = TEXT) -> tuple[np.ndarray, list[np.ndarray]]:
    """Their logits at the last position, and their patterns, one array per layer."""
    ids = torch.tensor([model.encode(text)[0]])
    with torch.inference_mode():
        out = theirs(ids, output_attentions=True)
    return out.logits[0, -1].numpy(), [a[0].numpy() for a in out.attentions]


def check_equal(model: Model, theirs: Any) -> None:
    """Checks that logits are within 1e-5 and patterns within 1e-6 of transformers in eager mode."""
    trace = model.trace(TEXT)
    logits, patterns = theirs_on(model, theirs)
    np.testing.assert_allclose(trace.logits, logits, rtol=0, atol=1e-5)
    assert len(patterns) == trace.n_layers
    for layer, expected in enumerate(patterns):
        np.testing.assert_allclose(trace.patterns(layer), expected, rtol=0, atol=1e-6)


def logits_of(model: Model, **given: Any) -> torch.Tensor:
    return model.network(torch.tensor([IDS]), **given)


def refused(source: str | Path, kind: type[MhaVizError] = CheckpointError, **options: Any) -> str:
    """The message of the error, which must be readable for a user."""
    with pytest.raises(kind) as caught:
        load(source, **options)
    return readable(caught.value)


def readable(error: MhaVizError) -> str:
    message = str(error)
    assert not NOT_FOR_PEOPLE.search(message), message
    assert len(message) < 600
    return message


def edit_config(folder: Path, **changes: Any) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return folder


def edit_tensors(folder: Path, change: Callable[[dict[str, Tensor]], Any]) -> Path:
    """Rewrites the weights; `change` works on the dict of tensors, or returns another one."""
    path = folder / "model.safetensors"
    tensors = {name: tensor.clone() for name, tensor in load_file(path).items()}
    changed = change(tensors)
    save_file(changed if isinstance(changed, dict) else tensors, path)
    return folder


def nanogpt(theirs: Any, *, bias: bool = True, prefix: str = "_orig_mod.") -> dict[str, Any]:
    """What nanoGPT's train.py saves: nn.Linear layout, block_size, its own attention mask."""
    state = {}
    for key, tensor in theirs.state_dict().items():
        linear = re.search(r"(c_attn|c_proj|c_fc)\.weight$", key)
        if bias or not key.endswith(".bias"):
            state[prefix + key] = tensor.T.contiguous() if linear else tensor
    state[f"{prefix}transformer.h.0.attn.bias"] = torch.ones(1, 1, 64, 64)
    sizes = {key: getattr(theirs.config, key) for key in ("n_layer", "n_head", "n_embd")}
    args = sizes | {"block_size": 64, "vocab_size": 300, "bias": bias, "dropout": 0.0}
    return {"model": state, "model_args": args, "optimizer": {}, "iter_num": 7, "config": {}}

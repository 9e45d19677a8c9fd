"""Finds, reads, checks and describes a checkpoint.

    load("bundled")                       the model in assets/, without transformers or a network
    load("gpt2"), load("owner/name")      a model of the Hub, or its copy in the local cache
    load("owner/name@revision")           the same at a branch, a tag or a commit
    load("./folder"), load(Path(...))     a folder, or a .pt file of nanoGPT

A folder is a Path, or a string that starts with `.`, `/` or `~`; other names are never looked for
in the working directory. Every checkpoint is handled the same way: read and checked (`tensors`),
compared with transformers' eager mode (`verify`), loaded into our GPT2 (`names`). The bundled model
is compared by the tests instead, so that its first picture does not wait for transformers.
"""

import hashlib
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import torch
from tokenizers import Tokenizer

from mha_viz import devices
from mha_viz.assets import ASSETS
from mha_viz.callbacks import OnProgress
from mha_viz.checkpoints.folder import expanded, is_local, read_weights, write_folder
from mha_viz.checkpoints.names import adopt, gpt2_state, with_zeros
from mha_viz.checkpoints.tensors import State, weights_hash
from mha_viz.checkpoints.tokenizer import find_tokenizer, vocabulary_notes
from mha_viz.errors import CheckpointError, SourceError
from mha_viz.gpt2 import GPT2
from mha_viz.head import Head
from mha_viz.model import Description, Model

__all__ = ["BUNDLED", "Model", "is_local", "load", "save", "write_zeroed"]

BUNDLED = ASSETS / "bundled"
READ, COMPARED = 0.4, 0.7  # the rough fraction of the loading time at the end of these steps


def load(
    source: str | Path,
    *,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
    tokenizer: str | Path | None = None,
    allow_pickle: bool = False,
    on_progress: OnProgress | None = None,
) -> Model:
    """The model that `source` names, ready and read-only; the module docstring lists the sources.

    `device` and `dtype` default to the best device and float32. `tokenizer` is another source for
    the tokenizer, instead of the checkpoint's own. `allow_pickle` also accepts pytorch_model.bin
    in a local folder, read with torch's `weights_only`. `on_progress` is called with the fraction
    done.

    Raises SourceError, CheckpointError (NotGPT2 for another architecture), DeviceError.
    """
    if not isinstance(source, str | Path):
        raise SourceError(f"{source!r} is not a source. Give the name of a model, or a path.")
    if source == "bundled":
        return _load(
            BUNDLED,
            "bundled",
            "bundled",
            device,
            dtype,
            tokenizer_source=tokenizer,
            trusted=tokenizer is None,
        )
    if isinstance(source, Path) or is_local(source):
        return _load(
            expanded(source),
            str(source),
            "folder",
            device,
            dtype,
            tokenizer_source=tokenizer,
            allow_pickle=allow_pickle,
            on_progress=on_progress,
        )
    from mha_viz.checkpoints import hub

    try:
        fetched = hub.fetch(source)
    except SourceError as error:
        if os.path.isdir(source):
            hint = f"To open the folder of that name, write ./{source}."
            raise SourceError(f"{error} {hint}") from error
        raise
    return _load(
        fetched.folder,
        source,
        "hub",
        device,
        dtype,
        tokenizer_source=tokenizer,
        revision=fetched.revision,
        on_progress=on_progress,
    )


def save(model: Model, folder: str | Path, *, dtype: torch.dtype = torch.float32) -> None:
    """Writes a folder that `load` reads: weights, configuration, tokenizer.

    transformers reads it too, unless heads have been pruned; for that, use `write_zeroed`.
    """
    network = _gpt2(model)
    write_folder(Path(folder), network.config, gpt2_state(network), model.tokenizer, dtype=dtype)


def write_zeroed(
    model: Model,
    heads: Iterable[tuple[int, int]],
    folder: str | Path,
    *,
    dtype: torch.dtype = torch.float32,
) -> None:
    """Writes the model without these heads as a standard GPT-2, which transformers reads.

    Its tensors keep their width: the rows of c_proj that read these heads are zero, and so are all
    weights of heads that had been pruned before. Raises HeadNotFound.
    """
    network = _gpt2(model)
    config, state = network.config, with_zeros(gpt2_state(network), network.config)
    for layer, head in heads:
        Head(layer, head).check(config.n_layers, config.n_heads, model=model.description.name)
        name = f"transformer.h.{layer}.attn.c_proj.weight"
        rows = slice(head * config.d_head, (head + 1) * config.d_head)
        state[name] = state[name].clone()  # it may share its memory with the model
        state[name][rows] = 0.0
    full = replace(config, pruned_heads=())
    write_folder(Path(folder), full, state, model.tokenizer, dtype=dtype)


def _gpt2(model: Model) -> GPT2:
    """The network of a GPT-2. Raises CheckpointError for any other model."""
    if not isinstance(model.network, GPT2):
        raise CheckpointError(
            f"{model.description.name} is not a GPT-2, so it cannot be written in GPT-2's format."
        )
    return model.network


def _load(
    path: Path,
    name: str,
    source: str,
    device: str | torch.device | None,
    dtype: str | torch.dtype | None,
    *,
    tokenizer_source: str | Path | None = None,
    allow_pickle: bool = False,
    trusted: bool = False,
    revision: str = "",
    on_progress: OnProgress | None = None,
) -> Model:
    report = on_progress or (lambda fraction: None)
    config, state, raw = read_weights(
        path, name, allow_pickle=allow_pickle, on_progress=lambda part: report(part * READ)
    )
    network = adopt(state.tensors, config)
    if trusted:
        tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
    else:
        tokenizer, read = find_tokenizer(path, name, config, tokenizer_source)
        state.notes += [*read, *vocabulary_notes(tokenizer, config)]
        _compare(network, state, raw, name, report)
    tokenizer.no_truncation()  # Model.trace truncates and records by how much
    tokenizer.no_padding()
    digest = weights_hash(state.tensors, lambda part: report(COMPARED + part * (1 - COMPARED)))
    words = hashlib.sha256(tokenizer.to_str().encode()).hexdigest()
    n_parameters = sum(p.numel() for p in network.parameters())
    network, message = devices.place(network, device, dtype)
    notes = (*state.notes, message) if message else tuple(state.notes)
    about = Description(
        name, source, state.stored_dtype, n_parameters, digest, notes, revision, words,
        "" if tokenizer_source is None else str(tokenizer_source),
    )  # fmt: skip
    return Model(network, tokenizer, about)


def _compare(
    network: GPT2, state: State, raw: dict[str, object], name: str, report: OnProgress
) -> None:
    """Compares the network with transformers, whose copy has zeros in place of pruned heads."""
    from mha_viz.checkpoints import verify

    config, tensors = network.config, state.tensors
    if config.pruned_heads:
        tensors = with_zeros(tensors, config)
        network = adopt(tensors, replace(config, pruned_heads=()))
    report(READ)
    state.notes += verify.config_notes(raw)
    theirs = verify.build(raw, tensors, name)
    report((READ + COMPARED) / 2)
    verify.compare(network, theirs, name)

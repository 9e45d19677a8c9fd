"""Finds, reads, checks and describes a checkpoint.

    load("bundled")                       the model in assets/, without transformers or a network
    load("gpt2"), load("owner/name")      a model of the hub, from its cache when it is there
    load("./folder"), load(Path(...))     a folder, or a .pt file of nanoGPT

A name is never looked for in the working directory: a folder is a Path, or starts with `.`, `/`
or `~`. All weights take one road: read and checked here (`tensors`), built by transformers and
compared with its eager mode (`verify`), adopted by our own GPT-2 (`names`). The bundled model
skips the second step, since the tests do it; so its first picture waits for no import.
"""

import hashlib
import os
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import torch
from tokenizers import Tokenizer

from mha_viz import devices
from mha_viz.assets import ASSETS
from mha_viz.checkpoints.folder import read_weights, write_folder
from mha_viz.checkpoints.names import adopt, gpt2_state, with_zeros
from mha_viz.checkpoints.tensors import Progress, State
from mha_viz.errors import CheckpointError, SourceError
from mha_viz.gpt2 import GPT2, GPT2Config
from mha_viz.head import Head
from mha_viz.model import Description, Model

__all__ = ["BUNDLED", "Model", "is_local", "load", "save", "write_zeroed"]

BUNDLED = ASSETS / "bundled"
GPT2_VOCABULARY = range(50257, 50305)  # GPT-2's own, and its padding to a multiple of 64
READ, COMPARED = 0.4, 0.7  # shares of the time of loading, about, that are over by then
LOCAL = re.compile(r"^(\.{1,2}$|\.{0,2}[/\\]|~|[A-Za-z]:[/\\]|.*\\)")


def load(
    source: str | Path,
    *,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
    tokenizer: str | Path | None = None,
    allow_pickle: bool = False,
    on_progress: Progress | None = None,
) -> Model:
    """The model that `source` names, ready and read-only; see the module for what may be named.

    `device` and `dtype` default to the best device and float32. `tokenizer` names another source
    for the tokenizer, for weights that came without one. `allow_pickle` lets a local folder be
    read from pytorch_model.bin; what it may contain stays limited to tensors. `on_progress` is
    told the share of the reading that is done, and may raise to stop.

    Raises SourceError, CheckpointError (NotGPT2 for another architecture), DeviceError.
    """
    if not isinstance(source, str | Path):
        raise SourceError(f"{source!r} is neither the name of a model nor a path.")
    if source == "bundled":
        return _load(BUNDLED, "bundled", "bundled", device, dtype, trusted=True)
    if isinstance(source, Path) or is_local(source):
        return _load(
            _path(source),
            str(source),
            "folder",
            device,
            dtype,
            tokenizer=tokenizer,
            allow_pickle=allow_pickle,
            on_progress=on_progress,
        )
    from mha_viz.checkpoints import hub

    try:
        fetched = hub.fetch(source)
    except SourceError as error:
        if os.path.isdir(source):
            hint = f"There is a folder of that name here: ./{source} reads it."
            raise SourceError(f"{error} {hint}") from error
        raise
    return _load(
        fetched.folder, source, "hub", device, dtype, tokenizer=tokenizer, on_progress=on_progress
    )


def is_local(source: str) -> bool:
    """Whether this string is a path, and not a name of the hub."""
    return bool(LOCAL.match(source))


def save(model: Model, folder: str | Path, *, dtype: torch.dtype = torch.float32) -> None:
    """Writes a folder that `load` reads: weights, configuration, tokenizer.

    transformers reads it too, unless heads were taken out: for that there is `write_zeroed`.
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
    """Writes the model without these heads as a plain GPT-2, which transformers reads.

    Its tensors are as wide as before: the rows of c_proj that read a removed head are zero, and
    so is everything of heads that were taken out of the model before. Raises HeadNotFound.
    """
    network = _gpt2(model)
    config, state = network.config, with_zeros(gpt2_state(network), network.config)
    for layer, head in heads:
        Head(layer, head).check(config.n_layers, config.n_heads, model=model.description.name)
        name = f"transformer.h.{layer}.attn.c_proj.weight"
        rows = slice(head * config.d_head, (head + 1) * config.d_head)
        state[name] = state[name].clone()  # what was contiguous already is the model's own
        state[name][rows] = 0.0
    whole = replace(config, pruned_heads=())
    write_folder(Path(folder), whole, state, model.tokenizer, dtype=dtype)


def _gpt2(model: Model) -> GPT2:
    """The network of a model whose format can be written. Raises CheckpointError for another."""
    if not isinstance(model.network, GPT2):
        raise CheckpointError(
            f"{model.description.name} is not a GPT-2, so it cannot be written in GPT-2's format."
        )
    return model.network


def _load(
    place: Path,
    name: str,
    source: str,
    device: str | torch.device | None,
    dtype: str | torch.dtype | None,
    *,
    tokenizer: str | Path | None = None,
    allow_pickle: bool = False,
    trusted: bool = False,
    on_progress: Progress | None = None,
) -> Model:
    told = on_progress or _nobody
    config, state, raw = read_weights(
        place, name, allow_pickle=allow_pickle, on_progress=lambda share: told(share * READ)
    )
    network = adopt(state.tensors, config)
    if trusted:
        words = Tokenizer.from_file(str(place / "tokenizer.json"))
    else:
        from mha_viz.checkpoints import verify

        words = _tokenizer(place, name, config, tokenizer)
        # transformers has no model with heads taken out: it judges the same one with zeros there.
        judged, tensors = network, state.tensors
        if config.pruned_heads:
            tensors = with_zeros(tensors, config)
            judged = adopt(tensors, replace(config, pruned_heads=()))
        told(READ)
        theirs = verify.build(raw, tensors, name)
        told((READ + COMPARED) / 2)
        verify.compare(judged, theirs, name)
    _check_vocabulary(words, config, name)
    words.no_truncation()  # a text is cut by Model.trace, which says by how much
    words.no_padding()
    digest = _hash(state, lambda share: told(COMPARED + share * (1 - COMPARED)))
    n_parameters = sum(p.numel() for p in network.parameters())
    network, word = devices.place(network, device, dtype)
    notes = (*state.notes, word) if word else tuple(state.notes)
    about = Description(name, source, state.stored_dtype, n_parameters, digest, notes)
    return Model(network, words, about)


def _tokenizer(place: Path, name: str, config: GPT2Config, other: str | Path | None) -> Tokenizer:
    from mha_viz.checkpoints import verify

    if other is not None:
        return verify.read_tokenizer(_tokenizer_folder(other), str(other))
    try:
        return verify.read_tokenizer(place if place.is_dir() else place.parent, name)
    except SourceError as error:
        if config.vocab_size not in GPT2_VOCABULARY:
            raise SourceError(
                f"{error} Its vocabulary of {config.vocab_size:,} is not GPT-2's, so no other "
                "tokenizer can stand in. Copy the one it was trained with into the folder."
            ) from error
        raise SourceError(
            f"{error} Its vocabulary of {config.vocab_size:,} fits GPT-2's own tokenizer: "
            'load(..., tokenizer="gpt2") uses that one.'
        ) from error


def _tokenizer_folder(other: str | Path) -> Path:
    if isinstance(other, Path) or is_local(other):
        return _path(other)
    from mha_viz.checkpoints import hub

    return hub.fetch_tokenizer(other)


def _path(source: str | Path) -> Path:
    try:
        return Path(source).expanduser()
    except RuntimeError as error:
        raise SourceError(f"There is no folder {source}: nobody here has that name.") from error


def _check_vocabulary(words: Tokenizer, config: GPT2Config, name: str) -> None:
    ids = words.get_vocab(with_added_tokens=True).values()
    if not ids or max(ids) >= config.vocab_size:
        raise CheckpointError(
            f"The tokenizer of {name} has ids up to {max(ids, default=-1):,}; the model knows "
            f"{config.vocab_size:,} tokens. They do not belong together."
        )
    if type(words.decoder).__name__ != "ByteLevel" and "ByteLevel" not in str(words.decoder):
        raise CheckpointError(
            f"The tokenizer of {name} is not a byte-level BPE, GPT-2's kind, so its tokens cannot "
            "be shown as the bytes of a text."
        )


def _nobody(share: float) -> None:
    """What is told where nobody asked."""


def _hash(state: State, told: Progress) -> str:
    """SHA-256 over the names and float32 values, the same however the file was stored."""
    digest = hashlib.sha256()
    for done, key in enumerate(sorted(state.tensors)):
        told(done / len(state.tensors))
        digest.update(key.encode())
        digest.update(state.tensors[key].contiguous().numpy().data)
    return digest.hexdigest()

"""Compares a model with transformers in eager mode on one text, at its full length.

    found = check(model, model.trace("The cat sat on the mat."))
    found.ok, found.logits.value, found.patterns.value

The reference is transformers' GPT-2 in float32 on the CPU, as its `from_pretrained` reads it from
the checkpoint's own files, without any of our code for scale, mask, split or transpose. Files that
it cannot read, such as nanoGPT's, go through our reader and `verify.build`, and the result says so
(`Parity.unread`). `verify` compares eight tokens when a model is loaded; this compares what is
shown. Patterns are compared layer by layer, so memory holds those of one layer.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mha_viz import devices
from mha_viz.assets import ASSETS
from mha_viz.callbacks import OnProgress
from mha_viz.checkpoints.folder import expanded, read_weights
from mha_viz.checkpoints.names import with_zeros
from mha_viz.checkpoints.tensors import weights_hash
from mha_viz.checkpoints.tokenizer import transformers_tokenizer
from mha_viz.errors import CheckpointError, SourceError
from mha_viz.gpt2 import GPT2
from mha_viz.head import Head
from mha_viz.model import Model
from mha_viz.tokens import clean_text
from mha_viz.trace import Array, Trace

LOGITS = 1e-5  # of the largest logit
PATTERNS = 1e-4  # of a weight; the softmax magnifies the rounding of scores, which can reach 100
ROWS = 1e-5  # of the sum of a row
LOADED = 0.3  # the rough fraction of the time after which the reference is loaded
POSITIONS = 64  # whose logits are in memory at the same time


@dataclass(frozen=True, slots=True)
class Largest:
    """The largest value of one kind, its limit, and the head that has it."""

    value: float
    limit: float
    head: Head | None = None

    @property
    def ok(self) -> bool:
        """Whether it is within the limit; NaN is not."""
        return self.value <= self.limit


@dataclass(frozen=True, slots=True)
class Parity:
    """How much a model differs from transformers' eager mode on one text of `n_tokens` tokens.

    `logits` and `patterns` are the largest differences, over all positions and all heads. `rows` is
    the largest difference of the sum of a pattern's row from 1, `masked` the largest weight on a
    later token. `tokens` says how the token ids differ from the tokenizer's, "" if they do not, and
    `tokens_skipped` why they could not be compared. `device` is the model's. `unread` says why
    transformers could not read the checkpoint's files, "" if it could, and `unread_tokens` why its
    AutoTokenizer does not read this tokenizer as it is.
    """

    n_tokens: int
    device: str
    logits: Largest
    patterns: Largest
    rows: Largest
    masked: Largest
    tokens: str = ""
    tokens_skipped: str = ""
    unread: str = ""
    unread_tokens: str = ""

    @property
    def reference(self) -> str:
        """What the logits and patterns were compared with, in sentences."""
        if not self.unread:
            return "transformers read the checkpoint's files itself."
        return (
            f"transformers could not read these files: {self.unread}. Compared with transformers' "
            "GPT-2 holding the weights as this app reads them."
        )

    @property
    def token_reference(self) -> str:
        """What the token ids were compared with, in sentences; or why they were not."""
        if self.tokens_skipped:
            return f"The token ids were not compared: {self.tokens_skipped.rstrip('.')}."
        compared = "The token ids were compared with those of transformers' "
        if not self.unread_tokens:
            return f"{compared}AutoTokenizer."
        return f"{compared}tokenizer, read in the same way as here. {self.unread_tokens}"

    @property
    def problems(self) -> tuple[str, ...]:
        """One phrase for each value beyond its limit."""
        phrases = {
            "logits differ by {:.1e} (limit {:.1e})": self.logits,
            "the pattern of {head} differs by {:.1e} (limit {:.0e})": self.patterns,
            "the sum of a row of {head} differs from 1 by {:.1e} (limit {:.0e})": self.rows,
            "{head} puts a weight of {:.1e} on a later token": self.masked,
        }
        found = [
            phrase.format(part.value, part.limit, head=part.head and part.head.label)
            for phrase, part in phrases.items()
            if not part.ok
        ]
        return (*found, self.tokens) if self.tokens else tuple(found)

    @property
    def ok(self) -> bool:
        """Whether everything that was compared is within its limit."""
        return not self.problems


def check(model: Model, trace: Trace, *, on_progress: OnProgress | None = None) -> Parity:
    """Compares the model, and its trace of a text, with transformers.

    The trace must be one without ablated heads; pruned heads are skipped, and add nothing in the
    reference. `on_progress` is called with the fraction done; an exception that it raises stops the
    work.

    Raises SourceError if the checkpoint's files are gone; CheckpointError if transformers cannot
    read them, if they have changed since the model was loaded, or if there is not enough memory.
    """
    report = on_progress or (lambda fraction: None)
    report(0.0)
    name, network = model.description.name, model.network
    if not isinstance(network, GPT2):
        raise CheckpointError(
            f"{name} is not a GPT-2, so it cannot be compared with transformers' GPT-2."
        )
    place = _place(model)
    tokens = _tokens(place, trace, model.description.tokenizer_source)
    try:
        theirs, unread = _reference(place, name, network)
        report(LOADED)
        patterns, rows, masked, final = _compare_patterns(network, trace, theirs, report)
        logits = _compare_logits(network, trace, theirs, final)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "not enough memory" not in str(error):
            raise
        raise CheckpointError(
            f"There is not enough memory for the second copy of {name} that the comparison needs. "
            "Compare a smaller model, or a shorter text."
        ) from error
    if not (logits.ok and patterns.ok):
        _check_unchanged(place, model)
    device = network.device.type
    differ, skipped, unread_tokens = tokens
    return Parity(
        trace.n_tokens,
        device,
        logits,
        patterns,
        rows,
        masked,
        tokens=differ,
        tokens_skipped=skipped,
        unread=unread,
        unread_tokens=unread_tokens,
    )


def _place(model: Model) -> Path:
    """Where the checkpoint's files are. Raises SourceError if they are no longer there."""
    about, place = model.description, None
    if about.source == "bundled":
        place = ASSETS / "bundled"
    elif about.source == "folder":
        place = expanded(about.name)
    elif about.source == "hub":
        from mha_viz.checkpoints import hub

        commit = f"{about.name.partition('@')[0]}@{about.revision}"
        place = hub.fetch(commit).folder if hub.is_cached(commit) else None
    if place is None or not place.exists():
        raise SourceError(
            f"The files that {about.name} was loaded from are gone, so there is nothing to compare "
            "it with. Put them back, or load the model again."
        )
    return place


def _reference(place: Path, name: str, network: GPT2) -> tuple[Any, str]:
    """The model of transformers, in which the pruned heads of `network` add nothing.

    Also why transformers could not read the files, "" if it could.
    """
    from mha_viz.checkpoints import verify  # here, because it imports transformers

    unread = ""
    try:
        theirs = verify.from_files(place)
    except CheckpointError as error:  # for a format that it cannot read, such as nanoGPT's
        unread = str(error)
        config, state, raw = read_weights(place, name, allow_pickle=True)
        if config.pruned_heads:
            unread = "heads have been pruned (`pruned_heads`)"
        elif not (place / "config.json").is_file():
            unread = "they are nanoGPT's"
        theirs = verify.build(raw, with_zeros(state.tensors, config), name)
    config = network.config
    for layer, block in enumerate(theirs.transformer.h):
        kept = config.kept_heads(layer)
        by_head = block.attn.c_proj.weight.data.view(config.n_heads, config.d_head, -1)
        by_head[[head not in kept for head in range(config.n_heads)]] = 0.0
    return theirs, unread


@torch.inference_mode()
def _compare_patterns(
    network: GPT2, trace: Trace, theirs: Any, report: OnProgress
) -> tuple[Largest, Largest, Largest, Tensor]:
    """Differences, sums of rows, masked weights, and what transformers' lm_head reads `[T, C]`."""
    n_steps, measures = network.config.n_layers + 1, dict[Head, tuple[float, float, float]]()

    def compare(layer: int) -> Callable[..., None]:
        def hook(_: object, __: object, output: tuple[Tensor, Tensor]) -> None:
            for head in network.config.kept_heads(layer):
                expected = output[1][0, head].numpy()
                measures[Head(layer, head)] = _measure(trace.pattern(layer, head), expected)
            report(LOADED + (1 - LOADED) * (layer + 1) / n_steps)

        return hook

    for layer, block in enumerate(theirs.transformer.h):
        block.attn.register_forward_hook(compare(layer))
    ids = torch.tensor([trace.token_ids])
    final: Tensor = theirs.transformer(ids, use_cache=False, return_dict=True).last_hidden_state[0]
    limits = (_limit(PATTERNS, network), ROWS, 0.0)
    if not measures:  # every head has been pruned
        patterns, rows, masked = (Largest(0.0, limit) for limit in limits)
        return patterns, rows, masked, final
    columns = zip(*measures.values(), strict=True)
    patterns, rows, masked = (
        _largest(list(column), limit, list(measures))
        for column, limit in zip(columns, limits, strict=True)
    )
    return patterns, rows, masked, final


def _measure(pattern: Array, expected: Array) -> tuple[float, float, float]:
    """The largest difference, the farthest sum of a row from 1, the largest masked weight."""
    return (
        float(np.abs(pattern - expected).max()),
        float(np.abs(pattern.sum(axis=1, dtype=np.float64) - 1).max()),
        float(np.abs(np.triu(pattern, 1)).max()),
    )


def _largest(values: list[float], limit: float, heads: list[Head]) -> Largest:
    largest = int(np.argmax(values))  # argmax also finds a NaN
    return Largest(values[largest], limit, heads[largest])


@torch.inference_mode()
def _compare_logits(network: GPT2, trace: Trace, theirs: Any, final: Tensor) -> Largest:
    """The largest difference at any position, and at the last one also from the trace's."""
    *_, resid = network.residuals(torch.tensor([trace.token_ids], device=network.device))
    differences, top = [], 1.0
    for start in range(0, len(final), POSITIONS):
        rows = slice(start, start + POSITIONS)
        expected = theirs.lm_head(final[rows])
        ours = network.unembed(resid[0, rows]).float().cpu()
        differences.append((ours - expected).abs().max())
        top = max(top, float(expected.abs().max()))
    differences.append((torch.tensor(trace.logits) - expected[-1]).abs().max())
    # torch's max keeps a NaN; Python's drops one that does not come first.
    return Largest(float(torch.stack(differences).max()), top * _limit(LOGITS, network))


def _limit(limit: float, network: GPT2) -> float:
    """The limit, or the larger one of a lower precision than float32."""
    lower = network.dtype != torch.float32
    return max(limit, devices.TOLERANCE[network.dtype]) if lower else limit


def _check_unchanged(place: Path, model: Model) -> None:
    """Raises CheckpointError if the files no longer hold the weights of the model."""
    config, state, _ = read_weights(place, model.description.name, allow_pickle=True)
    if config.pruned_heads != model.config.pruned_heads:
        return  # heads were pruned in memory, so the hash is another one
    if weights_hash(state.tensors) != model.description.weights_hash:
        raise CheckpointError(
            f"The files of {model.description.name} have changed since it was loaded. Load it "
            "again before you compare it."
        )


def _tokens(place: Path, trace: Trace, source: str) -> tuple[str, str, str]:
    """How the ids of the trace differ from transformers', why they were not compared, and `unread`.

    Each is "" where there is nothing to say. `source` is where the model's tokenizer comes from, if
    not from its checkpoint.
    """
    if source:
        return "", f"the tokenizer is that of {source}, not the checkpoint's own", ""
    try:
        ids, unread = _their_ids(place if place.is_dir() else place.parent, trace)
    except (CheckpointError, SourceError) as error:
        return "", str(error), ""
    return _difference(ids, trace), "", unread


def _difference(ids: list[int], trace: Trace) -> str:
    """How the ids of the trace differ from these of the whole text; "" if they do not."""
    n_all, n_dropped = trace.n_tokens + trace.left_out, trace.left_out
    first = trace.template[0]  # the text is cut between the tokens of the template
    last = len(ids) - trace.template[1]
    dropped = (
        slice(last - n_dropped, last) if trace.cut == "end" else slice(first, first + n_dropped)
    )
    expected = list(ids)
    del expected[dropped]
    if len(ids) != n_all:
        return f"the text has {n_all:,} tokens here but {len(ids):,} with transformers' tokenizer"
    for i, (ours, theirs) in enumerate(zip(trace.token_ids, expected, strict=True)):
        if ours != theirs:
            return f"token {i} has id {ours} here but {theirs} with transformers' tokenizer"
    return ""


def _their_ids(folder: Path, trace: Trace) -> tuple[list[int], str]:
    """The ids by transformers' tokenizer, and why that is not its AutoTokenizer, "" if it is.

    Raises CheckpointError if it cannot read the files.
    """
    tokenizer, notes = transformers_tokenizer(folder, trace.model)
    try:
        text, template = clean_text(trace.text)[0], any(trace.template)
        ids: list[int] = tokenizer(text, add_special_tokens=template).input_ids
    except Exception as error:
        # Parts of it are written in Rust, and each raises exceptions of its own.
        reason = (str(error).strip() or "it gave no reason").splitlines()[0]
        raise CheckpointError(f"transformers' tokenizer failed on this text: {reason}") from error
    return ids, " ".join(notes)

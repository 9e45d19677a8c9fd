"""A text through GPT-2 small: ours against transformers, in CPU time and peak memory.

Theirs is GPT2LMHeadModel in eager mode with output_attentions and without a key/value cache, the
usual way to get all heads. Ours is Model.trace: tokens, q, k and v of every layer, last logits;
patterns are computed from it on demand. Both share the same seeded random weights; c_attn is four
times as large as usual, so that the patterns are peaked.
"""

import functools
import gc
import multiprocessing
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median

for library in ("OMP", "OPENBLAS", "MKL"):  # before numpy and torch read it
    os.environ[f"{library}_NUM_THREADS"] = "1"

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers.models.gpt2.configuration_gpt2 import GPT2Config as TheirConfig
from transformers.models.gpt2.modeling_gpt2 import GPT2LMHeadModel

from bench.common import TOKENIZER, NotMeasured, Row, at_least, text_of, turns
from mha_viz.checkpoints.names import adopt
from mha_viz.gpt2 import GPT2Config
from mha_viz.model import Description, Model
from mha_viz.trace import Trace

LONG = 1024
GOALS = {64: 1.4, 256: 1.4, LONG: 1.8}
REPEATS = {64: 15, 256: 7, LONG: 5}
QUICK = {64: 5, 256: 3, LONG: 1}
EQUAL = 5e-4  # what rounding explains, in float32 after twelve layers of peaked patterns
HEADS = [(layer, 5 * layer % 12) for layer in range(12)]
CPU = (
    "Every head: CPU time with 1 thread, against GPT2LMHeadModel in eager mode with "
    "output_attentions. Ours is Model.trace, its tokenizer included."
)


@functools.cache
def both() -> tuple[GPT2LMHeadModel, Model]:
    """GPT-2 small in transformers, and ours, which shares its weights in memory."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    theirs = GPT2LMHeadModel(TheirConfig(attn_implementation="eager")).eval().requires_grad_(False)
    for block in theirs.transformer.h:
        block.attn.c_attn.weight.mul_(4)
    network = adopt(theirs.state_dict(), GPT2Config())
    about = Description("random GPT-2 small", "folder", "float32", theirs.num_parameters(), "")
    return theirs, Model(network, Tokenizer.from_file(str(TOKENIZER)), about)


def sides(n_tokens: int) -> tuple[Callable[[], tuple[torch.Tensor, ...]], Callable[[], Trace]]:
    """Both sides for one text: all attentions of transformers, and our trace."""
    theirs, ours = both()
    text = text_of(n_tokens)
    ids = torch.tensor([ours.encode(text)[0]])

    @torch.inference_mode()
    def run_theirs() -> tuple[torch.Tensor, ...]:
        out = theirs(ids, output_attentions=True, use_cache=False)
        return (out.logits, *out.attentions)

    return run_theirs, lambda: ours.trace(text)


@functools.cache
def times(n_tokens: int, quick: bool) -> dict[str, float]:
    """Median CPU seconds of theirs, of ours, and of twelve patterns of a trace."""
    run_theirs, run_ours = sides(n_tokens)
    trace = run_ours()
    return turns(
        {
            "theirs": run_theirs,
            "ours": run_ours,
            "patterns": lambda: [trace.pattern(*head) for head in HEADS],
        },
        (QUICK if quick else REPEATS)[n_tokens],
    )


def forward(quick: bool) -> Iterator[Row]:
    """One row for each length of text."""
    check_equal()
    for n_tokens, goal in GOALS.items():
        seconds = times(n_tokens, quick)
        theirs, ours = 1e3 * seconds["theirs"], 1e3 * seconds["ours"]
        yield at_least(f"Every head reachable, T = {n_tokens}", theirs, ours, goal, "ms", CPU)


def head(quick: bool) -> Iterator[Row]:
    """One more pattern of a traced text: at most 10 ms, and far less than a run of the model."""
    seconds = times(LONG, quick)
    theirs, ours = 1e3 * seconds["theirs"], 1e3 * seconds["patterns"] / len(HEADS)
    note = "Another head: Trace.pattern, mean over 12 heads; CPU time."
    row = at_least(f"Another head, T = {LONG}", theirs, ours, 500, "ms", note)
    yield replace(row, goal=f"{row.goal}, at most 10 ms", met=row.met and ours <= 10)


def memory(quick: bool) -> Iterator[Row]:
    """The peak memory of one run in a process that has already loaded the model."""
    if not Path("/proc/self/clear_refs").exists():
        raise NotMeasured("peak memory is read from /proc, which only Linux has.")
    peaks: dict[str, list[float]] = {"theirs": [], "ours": []}
    for _ in range(1 if quick else 3):
        for side, values in peaks.items():
            with multiprocessing.get_context("spawn").Pool(1) as fresh:
                values.append(fresh.apply(peak, (side,)))
    theirs, ours = median(peaks["theirs"]), median(peaks["ours"])
    note = "Peak memory: what one run adds (VmHWM) while its result is held, in a new process each."
    yield at_least(f"Peak memory, T = {LONG}", theirs, ours, 3.3, "MB", note, better="less memory")


def peak(side: str) -> float:
    """Megabytes at the peak of a run of this side, beyond the loaded model; for a new process."""
    index = ("theirs", "ours").index(side)
    sides(16)[index]()
    run = sides(LONG)[index]
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # resets the peak
    before = resident("VmRSS")
    result = run()
    after = resident("VmHWM")
    del result
    return after - before


def resident(field: str) -> float:
    """A field of this process's status, in megabytes of 10^6 bytes."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith(field))


def check_equal() -> None:
    """Raises NotMeasured if the two sides compute different patterns."""
    run_theirs, run_ours = sides(64)
    trace = run_ours()
    for layer, theirs in enumerate(run_theirs()[1:]):
        distance = float(np.abs(trace.patterns(layer) - theirs[0].numpy()).max())
        if distance > EQUAL:
            raise NotMeasured(f"the patterns of layer {layer} differ by {distance:.1e}.")

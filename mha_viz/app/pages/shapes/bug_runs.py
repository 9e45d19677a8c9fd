"""What the Bugs part of the Shapes page computes: losses over a text, and one run with a bug."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from mha_viz.analysis.reference_texts import evaluation_texts
from mha_viz.app.messages import notice
from mha_viz.app.view import View
from mha_viz.app.work.progress import Reporter, ResultSlots, results, wait_for
from mha_viz.callbacks import OnLayer
from mha_viz.errors import ShapeError
from mha_viz.figures.bug_list import BugLoss
from mha_viz.lessons.bug_effects import (
    LENGTH,
    Piece,
    change_before_the_last,
    loss_or_nan,
    loss_writing,
    pieces,
)
from mha_viz.lessons.bugs import BUGS, attention_with_bug, divergence, run_with_bug
from mha_viz.model import Model
from mha_viz.network import Network
from mha_viz.trace import Array

SOURCES = ["reference text", "this text"]
MAX_TOKENS = 256  # of the user's text
TOP = 3  # next tokens of each run
READING_AHEAD = [name for name, bug in BUGS.items() if bug.reads_ahead]
WORK = 5e11  # multiply-adds; decides how many pieces of the reference text are read
FEWEST = 4  # pieces, whatever the model
SLOW = 3e12  # multiply-adds from which the losses one token at a time wait for a click


@dataclass(frozen=True, slots=True, eq=False)
class Losses:
    """The loss over a text without a bug, and with each, in nats per token."""

    source: str
    n_tokens: int  # that have a loss
    right: float
    bugs: tuple[BugLoss, ...]  # the largest loss first; those that cannot run last
    n_writing: int  # bugs that read ahead with a loss one token at a time, in the order of BUGS

    def of(self, bug: str) -> BugLoss:
        """The losses of a bug."""
        return next(each for each in self.bugs if each.name == bug)


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """One layer's patterns and the next token, without the bug and with it."""

    correct_patterns: Array  # [H, T, T]
    patterns: Array
    right_top: tuple[tuple[int, float], ...]  # the most likely next tokens with their probability
    wrong_top: tuple[tuple[int, float], ...]
    followed: float  # the probability with the bug of the most likely token without it
    last_divergence: float  # KL in nats at the last position
    mean_divergence: float  # over all positions
    shapes: tuple[str, str]  # of the tensor that the line computes, without the bug and with it
    moved: tuple[float, float]  # see change_before_the_last

    @property
    def same(self) -> bool:
        """Whether the bug changes nothing here."""
        return self.mean_divergence == 0 and np.array_equal(self.correct_patterns, self.patterns)


_whole = ResultSlots[tuple[float, ...]](16)
_writing = ResultSlots[float](96)
_comparisons = ResultSlots[Comparison | str](8)


def losses(view: View, source: str) -> Losses | None:
    """The losses over a text as far as they are known; None while there are none."""
    texts = texts_of(view.model, source, view.trace.token_ids)
    if not texts:
        notice(
            "The loss measures how well each next token is predicted, so it needs a text of at "
            "least two tokens. Choose the reference text, or write a longer one."
        )
        return None
    network, where = view.model.network, _text_key(view, source)
    names = (None, *BUGS)

    def read(report: Reporter) -> tuple[float, ...]:
        found = []
        for done, bug in enumerate(names):
            report(done / len(names))
            found.append(loss_or_nan(network, texts, bug))
        return tuple(found)

    whole = wait_for(_whole(where), "Measuring the loss with each bug", read, lane="bug losses")
    if whole is None:
        return None
    known = dict(zip(names, whole, strict=True))
    ahead = [bug for bug in READING_AHEAD if not math.isnan(known[bug])]

    def write(report: Reporter) -> Iterator[float]:
        for bug in ahead:
            slot = _writing(where, bug)
            if slot.result is None:
                slot.result = loss_writing(network, texts, bug, on_progress=report)
            yield slot.result

    found, _ = results(
        f"bugs writing {where}",
        write,
        total=len(ahead),
        what="bugs that read ahead, one token at a time",
        cost=_cost(view.model, texts),
        lane="bug writing",
    )
    n_tokens = sum(len(piece) - 1 for piece in texts)
    return Losses(source, n_tokens, whole[0], ranked(known, ahead, found), len(found))


def ranked(
    whole: Mapping[str | None, float], ahead: Sequence[str], writing: Sequence[float]
) -> tuple[BugLoss, ...]:
    """The bugs with their losses, the largest loss read whole first; NaN last.

    `writing` has the losses one token at a time of the first bugs of `ahead`. A bug that does not
    read ahead has the same loss either way.
    """
    apart = dict(zip(ahead, [*writing, *[math.nan] * len(ahead)], strict=False))
    order = sorted(BUGS, key=lambda bug: (math.isnan(whole[bug]), -whole[bug]))
    return tuple(BugLoss(bug, whole[bug], apart.get(bug, whole[bug])) for bug in order)


def texts_of(model: Model, source: str, token_ids: list[int]) -> list[list[int]]:
    """The pieces that losses are measured on: evenly over the reference text, or the user's.

    Large models read fewer pieces of the reference text, but at least FEWEST.
    """
    if source != SOURCES[0]:
        return pieces([list(token_ids[:MAX_TOKENS])])
    every = pieces([model.input_ids(text) for text in evaluation_texts()])
    each = model.description.n_parameters * (LENGTH * len(BUGS) + _one_at_a_time(LENGTH))
    n = min(len(every), max(FEWEST, int(WORK // each)))
    return [every[i * len(every) // n] for i in range(n)]


def _one_at_a_time(length: int) -> int:
    """How many tokens are run for a piece, with every bug that reads ahead."""
    return len(READING_AHEAD) * length * (length - 1) // 2


def _cost(model: Model, texts: list[list[int]]) -> str:
    n = sum(_one_at_a_time(len(piece)) for piece in texts)
    if n * model.description.n_parameters < SLOW:
        return ""
    return (
        f"One token at a time, the model reads {n:,} tokens: each piece of text once for each of "
        f"its tokens, with {len(READING_AHEAD)} bugs."
    )


def _text_key(view: View, source: str) -> str:
    return f"{view.model.key} {view.trace_key if source != SOURCES[0] else 'reference'}"


def compare(view: View, T: int, bug: str) -> Comparison | str | None:
    """The model without and with the bug on the first T tokens, or the error that it raises."""
    network, layer, L = view.model.network, view.layer, view.trace.n_layers
    ids = torch.tensor([view.trace.token_ids[:T]], device=view.model.device)

    def work(report: Reporter) -> Comparison | str:
        try:
            return run_both(network, ids, bug, layer, lambda done: report(done / (2 * L)))
        except ShapeError as error:
            return str(error)

    slot = _comparisons(view.trace_key, layer, T, bug)
    return wait_for(slot, "Running the model with and without the bug", work, lane="bug")


def run_both(
    network: Network,
    ids: torch.Tensor,
    bug: str,
    layer: int,
    on_layer: OnLayer = lambda done: None,
) -> Comparison:
    """The model without the bug and with it, on ids `[1, T]`. Raises ShapeError."""
    L = network.config.n_layers
    correct = run_with_bug(network, ids, None, layer, on_layer=on_layer)
    wrong = run_with_bug(network, ids, bug, layer, on_layer=lambda done: on_layer(L + done))
    divergences = divergence(correct.logits, wrong.logits)
    p, q = (run.logits[-1].float().softmax(-1) for run in (correct, wrong))
    return Comparison(
        correct_patterns=correct.pattern.float().cpu().numpy(),
        patterns=wrong.pattern.float().cpu().numpy(),
        right_top=_top(p),
        wrong_top=_top(q),
        followed=float(q[p.argmax()]),
        last_divergence=float(divergences[-1]),
        mean_divergence=float(divergences.mean()),
        shapes=_shapes(network, ids, layer, bug),
        moved=(
            change_before_the_last(network, ids, None),
            change_before_the_last(network, ids, bug),
        ),
    )


def _top(probabilities: torch.Tensor) -> tuple[tuple[int, float], ...]:
    top = probabilities.topk(min(TOP, len(probabilities)))
    return tuple(zip(top.indices.tolist(), top.values.tolist(), strict=True))


@torch.inference_mode()
def _shapes(network: Network, ids: torch.Tensor, layer: int, bug: str) -> tuple[str, str]:
    """The shapes of the tensor that the line computes; any input of the layer has them."""
    x = network.embed(ids)
    attention = network.blocks[layer].attn
    right, wrong = (
        list(getattr(attention_with_bug(attention, x, each), BUGS[bug].tensor).shape)
        for each in (None, bug)
    )
    return str(right), str(wrong)


def measured(model: Model, texts: Sequence[Piece], n_writing: int) -> tuple[BugLoss, ...]:
    """The losses of every bug over these pieces, as the page measures them; scripts call it."""
    whole = {bug: loss_or_nan(model.network, texts, bug) for bug in (None, *BUGS)}
    ahead = [bug for bug in READING_AHEAD if not math.isnan(whole[bug])]
    writing = [loss_writing(model.network, texts, bug) for bug in ahead[:n_writing]]
    return ranked(whole, ahead, writing)

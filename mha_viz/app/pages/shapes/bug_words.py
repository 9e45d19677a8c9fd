"""The sentences of the Bugs part, all computed from the numbers beside them."""

import math
from collections.abc import Sequence

from mha_viz.app.pages.shapes.bug_runs import Comparison, Losses
from mha_viz.figures.bug_list import NOTABLE, BugLoss
from mha_viz.lessons.bug_effects import HeadPiece
from mha_viz.lessons.bug_training import Trained
from mha_viz.lessons.bugs import BUGS
from mha_viz.trace import Array

LEAK = 0.1  # nats per character between both ways of reading that show that a model reads ahead
MOVED = 1e-3  # of a logit; less is rounding
CLOSE = 0.03  # nats per character that a run may differ by chance
HARMLESS = {  # why a model trained with the bug need not notice
    "no scale": "The heads are only {d_h} wide, so without the scale scores are only √{d_h} times "
    "as large. With wider heads, the softmax saturates and lets less and less through.",
    "root of C": "W_QKV learns larger numbers instead.",
    "q and k swapped": "Queries and keys are only names: training fills the columns as they are "
    "used.",
    "k, v, q order": "The order of the columns is only a convention: training fills them as they "
    "are used.",
    "v, k, q order": "The order of the columns is only a convention: training fills them as they "
    "are used.",
    "no W_O": "In this model W_U reads the heads right after, and can learn what W_O would do.",
}


def looks_like_success(losses: Losses, without_mask: Trained) -> tuple[str, str]:
    """A title and a text: a bug that reads ahead and lowers the loss, or why none does here.

    `without_mask` holds the losses of the character model that was trained without one.
    """
    lower = [
        bug
        for bug in losses.bugs
        if BUGS[bug.name].reads_ahead and bug.whole < losses.right - NOTABLE
    ]
    if lower:
        bug = min(lower, key=lambda each: each.whole)
        return f"Looks like success: {bug.name}", (
            f"The loss falls to {bug.whole:.3f}: the next token is in the text, and positions can "
            f"now read it. {_writes(bug)} A lower loss can be a leak."
        )
    bug = losses.of("no mask")
    title = "Looks like success: no mask, after training"
    here = ""
    if not math.isnan(bug.whole):
        here = (
            f"Here the loss does not fall ({losses.right:.3f} → {bug.whole:.3f}): this model never "
            "saw later tokens in training. "
        )
    return title, (
        f"{here}A model trained without a mask learns to read the next character from the text: "
        f"its held-out loss is {without_mask.whole:.3f} read whole, and "
        f"{without_mask.writing:.3f} when it has to write."
    )


def _writes(bug: BugLoss) -> str:
    if math.isnan(bug.writing):
        return "When it has to write, the loss is different; that loss is not measured yet."
    return f"When it has to write, the loss is {bug.writing:.3f}."


def _leaks(run: Trained) -> bool:
    return run.writing > run.whole + LEAK


def checks(
    bug: str, measured: Losses | None, compared: Comparison | str
) -> list[tuple[str, str, bool]]:
    """What could find the bug, what it finds, and whether that shows the bug."""
    if isinstance(compared, str):
        return [("an error", compared, True)]
    (right, wrong), (before, after) = compared.shapes, compared.moved
    tensor = BUGS[bug].tensor.replace("merged", "z")
    found = [
        ("an error", "none", False),
        (
            f"the shape of {tensor}",
            f"{right} in both" if right == wrong else f"{right} → {wrong}",
            right != wrong,
        ),
    ]
    if measured is not None:
        loss = measured.of(bug).whole
        words = f"{measured.right:.3f} → {loss:.3f}"
        found.append(("the loss", words, loss > measured.right + NOTABLE))
    return [
        *found,
        (
            "change the last token: earlier rows must not change",
            f"logits move {before:.3f} → {after:.3f}",
            after > before + MOVED,
        ),
    ]


def largest_weights(label: str, correct: Array, wrong: Array) -> str:
    """What the bug does to the largest weights of a head; "" for one token, which has one weight.

    The patterns are `[T, T]`.
    """
    if len(correct) < 2:
        return ""
    before, after = (pattern[1:].max(axis=1).mean() for pattern in (correct, wrong))
    return f"The mean largest weight of a row of {label} is {after:.2f} instead of {before:.2f}."


def after_training(bug: str, right: Trained, wrong: Trained, d_head: int, untrained: float) -> str:
    """What training with the bug from the start does, read off the last losses.

    `untrained` is the loss before the first step.
    """
    if _leaks(wrong):
        than = f"more than before training ({untrained:.3f})"
        worse = f", {than}" if wrong.writing > untrained else ""
        better = wrong.whole < right.whole - CLOSE
        start = (
            f"It looks better than the right one ({wrong.whole:.3f} instead of {right.whole:.3f}) "
            "but cannot write"
            if better
            else f"Read whole, its loss is {wrong.whole:.3f}, but it cannot write"
        )
        return (
            f"{start}: one character at a time its loss is {wrong.writing:.3f}{worse}. In "
            "training, positions could read ahead; when it writes, there is nothing to read."
        )
    change = wrong.whole - right.whole
    if abs(change) < CLOSE:
        why = HARMLESS.get(bug, "").format(d_h=d_head)
        return f"No harm here: {wrong.whole:.3f} instead of {right.whole:.3f}. {why}".strip()
    more = "higher" if change > 0 else "lower"
    return (
        f"It does not read ahead. Its loss is {abs(change):.3f} nats {more} than without the bug: "
        f"{wrong.whole:.3f} instead of {right.whole:.3f}."
    )


def given_to_head(label: str, n_tokens: int, n_heads: int, wrong: Sequence[HeadPiece]) -> str:
    """What the rows of a head hold without the transpose; `wrong` has one piece for each row."""
    tokens, heads = ({piece[i] for piece in wrong} for i in (0, 1))
    return (
        f"{label} should have its own piece of each of the {n_tokens} tokens. It gets pieces for "
        f"{len(heads)} of the {n_heads} heads, from {len(tokens)} of the tokens. A row is no "
        "longer a token, and the mask, which goes by rows, hides the wrong ones."
    )


def given_to_row(token: str, n_heads: int, wrong: Sequence[HeadPiece]) -> str:
    """What the row of the first token holds without the transpose back."""
    tokens, heads = ({piece[i] for piece in wrong} for i in (0, 1))
    return (
        f"The row of “{token}” should join what all {n_heads} heads computed there. It gets pieces "
        f"of {len(heads)} head{'s' * (len(heads) > 1)} from {len(tokens)} tokens, including "
        "tokens after it."
    )


def gradient_sentence(widths: Sequence[int], scaled: Sequence[float], bare: Sequence[float]) -> str:
    """What the scale does to the gradient of the softmax at the least and the largest width."""
    return (
        f"At d_h = {widths[0]} the gradient without the scale is {bare[0] / scaled[0]:.0%} of "
        f"the one with it; at d_h = {widths[-1]} it is {bare[-1] / scaled[-1]:.0%}. A score is "
        "a sum of d_h products, so it grows with √d_h, and a saturated softmax lets "
        "almost no gradient through (Vaswani et al. 2017, section 3.2.1, footnote 4)."
    )

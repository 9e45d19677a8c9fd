"""The Tasks part: what heads are for, asked in numbers, with all of them and without some."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from mha_viz import pruning
from mha_viz.app.messages import notice, problem
from mha_viz.app.view import View
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.choices import text_area
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.widgets.reference_text import Reference
from mha_viz.app.widgets.tables import table
from mha_viz.app.work.progress import Reporter, ResultSlots, wait_for
from mha_viz.errors import MhaVizError, TextError
from mha_viz.pruning import ZERO, Head, Prompt, Replacement, make_replacement

Answer = tuple[Prompt, tuple[float, float] | str]  # before and after, or why there is none
_losses = ResultSlots[tuple[float, float]](8)
_answers = ResultSlots[list[Answer]](8)
SEGMENT = 64
SEEDS = 5
OWN = (
    "The king gave the queen a golden ring. The king gave the queen a golden | ring | crown\n"
    "The boy met the girl at the river, and the boy gave his hand to the | girl | boy"
)
MOST_PROMPTS = 50


def show(view: View, off: tuple[Head, ...], method: pruning.Method, reference: Reference) -> None:
    """A repeated sequence, two names, and a prompt of one's own."""
    induction(view, off, method, reference)
    names(view, off, method, reference)
    own(view, off, method, reference)


def induction(
    view: View, off: tuple[Head, ...], method: pruning.Method, reference: Reference
) -> None:
    """The loss on random tokens that come twice, whole and now."""
    limit = view.model.config.n_positions // 2
    segment = min(SEGMENT, limit)
    caption(
        "Going on as last time",
        f"{segment} random tokens, twice; mean loss on the second copy over {SEEDS} seeds, in "
        "nats a token. Who cannot look back guesses (Olsson et al. 2022).",
    )
    model, gate = view.model, pruning.gate_without(view.model.config, off)

    def work(report: Reporter) -> tuple[float, float]:
        filling = make_replacement(
            model, method, 2 * segment, reference.selection, on_progress=report
        )
        losses: list[float] = []
        for one, filled in ((None, ZERO), (gate, filling)):
            each = []
            for seed in range(SEEDS):
                report((len(losses) * SEEDS + seed) / (2 * SEEDS))
                loss = pruning.induction_loss(
                    model, gate=one, replacement=filled, segment=segment, seeds=[seed]
                )
                each.append(loss)
            losses.append(float(np.mean(each)))
        return losses[0], losses[1]

    slot = _losses(view.about.weights_hash, off, method, reference.key)
    found = wait_for(slot, "Reading random tokens", work, lane="induction")
    if found is None:
        return
    before, after = found
    guess = float(np.log(view.model.config.vocab_size))
    rows = [["whole model", before], [f"{len(off)} heads off", after], ["guessing evenly", guess]]
    table(["", "loss"], rows)


def names(view: View, off: tuple[Head, ...], method: pruning.Method, reference: Reference) -> None:
    """Which of two people is meant, for models whose tokenizer has names of one token."""
    caption(
        "Which of two names",
        "logit of the right name minus that of the wrong one, for sentences like “When Mary and "
        "Tom came home in the evening, Tom gave the letter to”; above 0 is right (Wang et al. "
        "2023).",
    )
    try:
        prompts = pruning.ioi_prompts(view.model)
    except TextError as error:
        notice(str(error))
        return
    _differences(view, off, method, reference, prompts, "names")


def own(view: View, off: tuple[Head, ...], method: pruning.Method, reference: Reference) -> None:
    """The visitor's prompts, one a line."""
    caption(
        "Prompts of your own",
        "one a line: a text | the right next word | a wrong one; logit of right minus wrong.",
    )
    typed = text_area("Prompts", OWN, "prompts", height=100, show_label=False)
    prompts = []
    for number, line in enumerate(typed.splitlines(), start=1):
        parts = [part.strip() for part in line.split("|")]
        if not line.strip():
            continue
        if len(parts) != 3 or not all(parts):
            problem(f"Line {number} is not “text | right | wrong”: {line[:80]}")
            continue
        try:
            for answer in parts[1:]:
                view.model.single_token(f" {answer}")
        except TextError as error:
            problem(f"Line {number}: {error}")
            continue
        if parts[1] == parts[2]:
            problem(f"Line {number}: right and wrong are the same word, {parts[1][:40]}.")
            continue
        prompts.append(Prompt(parts[0], f" {parts[1]}", f" {parts[2]}"))
    if len(prompts) > MOST_PROMPTS:
        notice(f"The first {MOST_PROMPTS} of {len(prompts)} prompts are asked.")
    if prompts:
        _differences(view, off, method, reference, prompts[:MOST_PROMPTS], "prompts")


def _differences(
    view: View,
    off: tuple[Head, ...],
    method: pruning.Method,
    reference: Reference,
    prompts: Sequence[Prompt],
    name: str,
) -> None:
    model, gate = view.model, pruning.gate_without(view.model.config, off)
    asked = tuple(prompts)

    def work(report: Reporter) -> list[Answer]:
        fills: dict[int, Replacement] = {}
        answers: list[Answer] = []
        for done, prompt in enumerate(asked):
            report(done / len(asked))
            try:
                length = len(model.encode(prompt.text)[0])
                if length not in fills:
                    fills[length] = make_replacement(model, method, length, reference.selection)
                before = pruning.logit_differences(model, [prompt])
                after = pruning.logit_differences(
                    model, [prompt], gate=gate, replacement=fills[length]
                )
            except MhaVizError as error:
                answers.append((prompt, str(error)))
            else:
                answers.append((prompt, (float(before[0]), float(after[0]))))
        return answers

    slot = _answers(view.about.weights_hash, off, method, reference.key, asked)
    answers = wait_for(slot, "Asking", work, lane=name)
    found: list[tuple[Prompt, float, float]] = []
    for prompt, answer in answers or []:
        if isinstance(answer, str):
            problem(f"“{prompt.text[:40]}”: {answer}")
        else:
            found.append((prompt, *answer))
    if not found:
        return
    header = ["now", "whole model", "right", "wrong", "prompt"]
    rows: list[list[object]] = [
        [round(after, 3), round(before, 3), p.right, p.wrong, p.text] for p, before, after in found
    ]
    means = [sum(side) / len(found) for side in list(zip(*found, strict=True))[1:]]
    right = [sum(value > 0 for value in side) for side in list(zip(*found, strict=True))[1:]]
    st.markdown(
        f"Mean **{means[0]:.2f}** with all heads, **{means[1]:.2f}** now; right in "
        f"{right[0]} and {right[1]} of {len(found)}."
    )
    table(header, rows)
    download_table(f"{name}.csv", header, rows)

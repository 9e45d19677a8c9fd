"""The Tasks part: small probes of what heads do, with all heads and with some ablated."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mha_viz import pruning
from mha_viz.app.messages import notice, problem
from mha_viz.app.pages.pruning.ablation_type import Ablation
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.choices import text_area
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.widgets.tables import table
from mha_viz.app.work.progress import Reporter, ResultSlots, wait_for
from mha_viz.errors import MhaVizError, TextError
from mha_viz.heads.interval import bounded_interval
from mha_viz.pruning import Prompt, Replacement, draws
from mha_viz.pruning.tasks import TEMPLATES

SEGMENT = 64  # random tokens in one copy
N_SEEDS = 5
N_DRAWS = 3  # of resampled values for each prompt
MAX_PROMPTS = 50
DEFAULT_PROMPTS = (
    "The king gave the queen a golden ring. The king gave the queen a golden | ring | crown\n"
    "The boy met the girl at the river, and the boy gave his hand to the | girl | boy"
)


Losses = tuple[list[float], list[float]]  # with all heads, with some ablated


@dataclass(frozen=True, slots=True)
class Answer:
    """The logit differences of a prompt, or the reason why there are none."""

    prompt: Prompt
    full: float = np.nan
    ablated: float = np.nan
    error: str = ""


_losses = ResultSlots[Losses](8)
_answers = ResultSlots[list[Answer]](8)


def show(view: View, ablation: Ablation) -> None:
    """A repeated random sequence, indirect object identification, and the user's own prompts."""
    _repeated_sequence(view, ablation)
    _indirect_objects(view, ablation)
    _own_prompts(view, ablation)


def _repeated_sequence(view: View, ablation: Ablation) -> None:
    segment = min(SEGMENT, view.model.config.n_positions // 2)
    each = ", each with another draw of the resampled values"
    caption(
        "Repeating a random sequence",
        f"{segment} random tokens, written twice; mean loss on the second copy over {N_SEEDS} "
        f"seeds{each * (ablation.method == 'resample')}, with its 95% interval, in nats per token. "
        "A model that cannot look back can only "
        "guess (Olsson et al. 2022).",
        also="induction head, uniform guessing",
    )
    losses = _repetition_losses(view, ablation, segment)
    if losses is None:
        return
    full, ablated = losses
    uniform = float(np.log(view.model.config.vocab_size))
    n = len(ablation.heads)
    rows = [
        ["full model", *_with_ends(full)],
        [f"{n} head{'s' * (n != 1)} ablated", *_with_ends(ablated)],
        ["uniform guessing (ln V)", uniform, uniform, uniform],
    ]
    table(["", "loss", "low", "high"], rows)


def _with_ends(values: Sequence[float]) -> list[float]:
    """The mean and the ends of its 95% interval."""
    return [float(part[0]) for part in bounded_interval(np.array(values)[:, None])]


def _repetition_losses(view: View, ablation: Ablation, segment: int) -> Losses | None:
    """The losses on the second copy by seed, with all heads and with some ablated."""
    model, gate = view.model, ablation.gate(view)
    method, texts = ablation.method, ablation.reference.selection

    def work(report: Reporter) -> Losses:
        values = draws(model, method, 2 * segment, texts, n=N_SEEDS, on_progress=report)
        full, ablated = [], []
        for seed in range(N_SEEDS):
            report(seed / N_SEEDS)
            full.append(pruning.induction_loss(model, segment=segment, seeds=[seed]))
            report((seed + 0.5) / N_SEEDS)
            loss = pruning.induction_loss(
                model,
                gate=gate,
                replacement=values[seed % len(values)],
                segment=segment,
                seeds=[seed],
            )
            ablated.append(loss)
        return full, ablated

    slot = _losses(view.model.key, ablation.heads, method, ablation.reference.key)
    return wait_for(slot, "Running repeated random tokens", work, lane="repetition")


def _indirect_objects(view: View, ablation: Ablation) -> None:
    """IOI prompts, for models whose tokenizer has single-token names."""
    caption(
        "Indirect object identification (IOI)",
        "Logit of the right name minus that of the wrong name, for sentences like “When Mary and "
        "Tom came home in the evening, Tom gave the letter to”. Above 0 is correct (Wang et al. "
        "2023).",
    )
    try:
        prompts = pruning.ioi_prompts(view.model)
    except TextError as error:
        notice(str(error))
        return
    templates = [i % len(TEMPLATES) for i in range(len(prompts))]
    _logit_differences(view, ablation, prompts, "ioi", groups=templates, units="templates")


def _own_prompts(view: View, ablation: Ablation) -> None:
    caption(
        "Your own prompts",
        "One per line: text | right next word | wrong next word. The result is the logit of the "
        "right word minus that of the wrong word.",
    )
    typed = text_area("Prompts", DEFAULT_PROMPTS, "prompts", height=100, show_label=False)
    prompts = []
    for number, line in enumerate(typed.splitlines(), start=1):
        try:
            if line.strip():
                prompts.append(_parse_prompt(view, line))
        except TextError as error:
            problem(f"Line {number}: {error}")
    if len(prompts) > MAX_PROMPTS:
        notice(f"Using the first {MAX_PROMPTS} of {len(prompts)} prompts.")
    if prompts:
        used = prompts[:MAX_PROMPTS]
        each = range(len(used))
        _logit_differences(view, ablation, used, "prompts", groups=each, units="prompts")


def _parse_prompt(view: View, line: str) -> Prompt:
    """The prompt of a line "text | right | wrong". Raises TextError for any other line."""
    text, *words = (part.strip() for part in line.split("|"))
    if len(words) != 2 or not all((text, *words)):
        raise TextError(f"Expected “text | right word | wrong word”, found: {line[:80]}")
    for word in words:
        view.model.single_token(f" {word}")
    right, wrong = words
    if right == wrong:
        raise TextError(f"The right and the wrong word are the same: {right[:40]}.")
    return Prompt(text, f" {right}", f" {wrong}")


def _logit_differences(
    view: View,
    ablation: Ablation,
    prompts: Sequence[Prompt],
    name: str,
    *,
    groups: Sequence[int],
    units: str,
) -> None:
    """The logit differences of the prompts, their means, and a file of that name.

    Prompts of one group, such as a template, depend on each other and count as one measurement.
    """
    answers = _answer(view, ablation, tuple(prompts), groups, name) or []
    for answer in answers:
        if answer.error:
            problem(f"“{answer.prompt.text[:40]}”: {answer.error}")
    answered = [answer for answer in answers if not answer.error]
    if not answered:
        return
    full, ablated = [a.full for a in answered], [a.ablated for a in answered]
    groups = [group for a, group in zip(answers, groups, strict=True) if not a.error]
    drawn = f", each with {N_DRAWS} draws of the resampled values"
    over = f"{len(set(groups))} {units}{drawn * (ablation.method == 'resample')}"
    explained.paragraph(
        f"Mean logit difference: **{_mean(full, groups)}** with all heads, "
        f"**{_mean(ablated, groups)}** with heads ablated (95% interval over {over}). Correct: "
        f"{_n_positive(full)} and {_n_positive(ablated)} of {len(answered)}."
    )
    header = ["heads ablated", "full model", "right", "wrong", "prompt"]
    rows = [
        [round(a.ablated, 3), round(a.full, 3), a.prompt.right, a.prompt.wrong, a.prompt.text]
        for a in answered
    ]
    table(header, rows)
    download_table(f"{name}.csv", header, rows)


def _mean(differences: Sequence[float], groups: Sequence[int]) -> str:
    """The mean, with half the width of its interval if there are several groups."""
    found = pruning.estimate([np.asarray(value) for value in differences], texts=groups)
    half = f" ± {found.half_width:.2f}" if found.n > 1 else ""
    return f"{found.mean:.2f}{half}"


def _n_positive(differences: Sequence[float]) -> int:
    return sum(difference > 0 for difference in differences)


def _answer(
    view: View,
    ablation: Ablation,
    prompts: tuple[Prompt, ...],
    groups: Sequence[int],
    name: str,
) -> list[Answer] | None:
    """The answers; resampled values are averaged, and each group has draws of its own."""
    model, gate = view.model, ablation.gate(view)
    method, texts = ablation.method, ablation.reference.selection

    def work(report: Reporter) -> list[Answer]:
        replacements: dict[int, list[Replacement]] = {}  # by the length of the prompt
        n_groups, answers = max(groups) + 1, []
        for done, (prompt, group) in enumerate(zip(prompts, groups, strict=True)):
            report(done / len(prompts))
            try:
                length = len(model.input_ids(prompt.text))
                if length not in replacements:
                    n = N_DRAWS * n_groups
                    replacements[length] = draws(model, method, length, texts, n=n)
                values = replacements[length]
                own = [values[i % len(values)] for i in range(group, group + len(values), n_groups)]
                full = pruning.logit_differences(model, [prompt])
                ablated = [
                    pruning.logit_differences(model, [prompt], gate=gate, replacement=value)
                    for value in own
                ]
                answers.append(Answer(prompt, float(full[0]), float(np.mean(ablated))))
            except MhaVizError as error:
                answers.append(Answer(prompt, error=str(error)))
        return answers

    slot = _answers(view.model.key, ablation.heads, method, ablation.reference.key, prompts)
    return wait_for(slot, "Running the prompts", work, lane=name)

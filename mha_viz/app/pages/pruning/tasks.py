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
from mha_viz.pruning import Prompt, Replacement, make_replacement

SEGMENT = 64  # random tokens in one copy
N_SEEDS = 5
MOST_PROMPTS = 50
DEFAULT_PROMPTS = (
    "The king gave the queen a golden ring. The king gave the queen a golden | ring | crown\n"
    "The boy met the girl at the river, and the boy gave his hand to the | girl | boy"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """The logit differences of a prompt, or the reason why there are none."""

    prompt: Prompt
    full: float = np.nan
    ablated: float = np.nan
    error: str = ""


_losses = ResultSlots[tuple[float, float]](8)
_answers = ResultSlots[list[Answer]](8)


def show(view: View, ablation: Ablation) -> None:
    """A repeated random sequence, indirect object identification, and the user's own prompts."""
    _repeated_sequence(view, ablation)
    _indirect_objects(view, ablation)
    _own_prompts(view, ablation)


def _repeated_sequence(view: View, ablation: Ablation) -> None:
    segment = min(SEGMENT, view.model.config.n_positions // 2)
    caption(
        "Repeating a random sequence",
        f"{segment} random tokens, written twice; mean loss on the second copy over {N_SEEDS} "
        "seeds, in nats per token. A model that cannot look back can only guess (Olsson et al. "
        "2022).",
        also="induction head, uniform guessing",
    )
    losses = _repetition_losses(view, ablation, segment)
    if losses is None:
        return
    full, ablated = losses
    uniform = float(np.log(view.model.config.vocab_size))
    n = len(ablation.heads)
    rows = [
        ["full model", full],
        [f"{n} head{'s' * (n != 1)} ablated", ablated],
        ["uniform guessing (ln V)", uniform],
    ]
    table(["", "loss"], rows)


def _repetition_losses(view: View, ablation: Ablation, segment: int) -> tuple[float, float] | None:
    """The loss on the second copy with all heads, and with some ablated."""
    model, gate = view.model, ablation.gate(view)
    method, texts = ablation.method, ablation.reference.selection

    def work(report: Reporter) -> tuple[float, float]:
        replacement = make_replacement(model, method, 2 * segment, texts, on_progress=report)
        full, ablated = [], []
        for seed in range(N_SEEDS):
            report(seed / N_SEEDS)
            full.append(pruning.induction_loss(model, segment=segment, seeds=[seed]))
            report((seed + 0.5) / N_SEEDS)
            loss = pruning.induction_loss(
                model, gate=gate, replacement=replacement, segment=segment, seeds=[seed]
            )
            ablated.append(loss)
        return float(np.mean(full)), float(np.mean(ablated))

    slot = _losses(view.about.weights_hash, ablation.heads, method, ablation.reference.key)
    return wait_for(slot, "Running repeated random tokens", work, lane="repetition")


def _indirect_objects(view: View, ablation: Ablation) -> None:
    """IOI prompts, for models whose tokenizer has names of one token."""
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
    _logit_differences(view, ablation, prompts, "ioi")


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
    if len(prompts) > MOST_PROMPTS:
        notice(f"Using the first {MOST_PROMPTS} of {len(prompts)} prompts.")
    if prompts:
        _logit_differences(view, ablation, prompts[:MOST_PROMPTS], "prompts")


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
    view: View, ablation: Ablation, prompts: Sequence[Prompt], name: str
) -> None:
    """The logit differences of the prompts, their means, and a file of that name."""
    answers = _answer(view, ablation, tuple(prompts), name) or []
    for answer in answers:
        if answer.error:
            problem(f"“{answer.prompt.text[:40]}”: {answer.error}")
    answered = [answer for answer in answers if not answer.error]
    if not answered:
        return
    full, ablated = [a.full for a in answered], [a.ablated for a in answered]
    explained.paragraph(
        f"Mean logit difference: **{np.mean(full):.2f}** with all heads, "
        f"**{np.mean(ablated):.2f}** with heads ablated. Correct: {_n_positive(full)} and "
        f"{_n_positive(ablated)} of {len(answered)}."
    )
    header = ["heads ablated", "full model", "right", "wrong", "prompt"]
    rows = [
        [round(a.ablated, 3), round(a.full, 3), a.prompt.right, a.prompt.wrong, a.prompt.text]
        for a in answered
    ]
    table(header, rows)
    download_table(f"{name}.csv", header, rows)


def _n_positive(differences: Sequence[float]) -> int:
    return sum(difference > 0 for difference in differences)


def _answer(
    view: View, ablation: Ablation, prompts: tuple[Prompt, ...], name: str
) -> list[Answer] | None:
    model, gate = view.model, ablation.gate(view)
    method, texts = ablation.method, ablation.reference.selection

    def work(report: Reporter) -> list[Answer]:
        replacements: dict[int, Replacement] = {}  # by the length of the prompt
        answers = []
        for done, prompt in enumerate(prompts):
            report(done / len(prompts))
            try:
                length = len(model.encode(prompt.text)[0])
                if length not in replacements:
                    replacements[length] = make_replacement(model, method, length, texts)
                full = pruning.logit_differences(model, [prompt])
                ablated = pruning.logit_differences(
                    model, [prompt], gate=gate, replacement=replacements[length]
                )
                answers.append(Answer(prompt, float(full[0]), float(ablated[0])))
            except MhaVizError as error:
                answers.append(Answer(prompt, error=str(error)))
        return answers

    slot = _answers(
        view.about.weights_hash, ablation.heads, method, ablation.reference.key, prompts
    )
    return wait_for(slot, "Running the prompts", work, lane=name)

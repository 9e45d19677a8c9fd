"""What is compared on the Training page, and what has come out so far, as curves and rows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mha_viz.app.pages.training.corpora import Text
from mha_viz.figures.loss_curves import LossCurve
from mha_viz.lessons.char_model import CharModel, Progress, Settings
from mha_viz.trace import Array

Report = tuple[int, Progress]  # the number of a training in `Plan.settings`, and how far it is
CSV_HEADER = ["heads", "W_O", "seed", "step", "training loss", "validation loss"]
WEIGHTS_HEADER = ["model", "head", "query", "from", "key", "to", "weight"]


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What is trained: each model with each of some seeds in a row, on one text."""

    models: tuple[Settings, ...]  # with the first seed
    n_seeds: int
    text: Text
    sample: str = ""  # the characters whose patterns are drawn, once the text was read

    @property
    def settings(self) -> list[Settings]:
        """All trainings: those of the first model, then those of the next."""
        n = range(self.n_seeds)
        return [replace(model, seed=model.seed + seed) for model in self.models for seed in n]

    @property
    def steps(self) -> int:
        """How many each training makes."""
        return self.models[0].steps

    @property
    def n_reports(self) -> int:
        """How many all trainings give."""
        return len(self.settings) * len(self.models[0].report_steps)

    @property
    def versus(self) -> str:
        """The comparison in words."""
        first, n = self.models[0].seed, self.n_seeds
        seeds = f"seed {first}" if n == 1 else f"seeds {first} to {first + n - 1}"
        return f"{' against '.join(map(name, self.models))}, {seeds}"


def name(model: Settings) -> str:
    """What a model is called: "4 heads of 8"."""
    H, d_h = model.n_heads, model.width // model.n_heads
    return f"{H} head{'s' * (H > 1)} of {d_h}{', W_O' * model.projection}"


def curves(plan: Plan, reports: Sequence[Report]) -> list[LossCurve]:
    """The losses of each model so far."""
    steps = plan.models[0].report_steps
    places = {step: i for i, step in enumerate(steps)}
    losses = np.full((2, len(plan.settings), len(steps)), np.nan, dtype=np.float32)
    for which, report in reports:
        losses[:, which, places[report.step]] = report.train_loss, report.validation_loss
    parts = np.split(losses, len(plan.models), axis=1)
    return [
        LossCurve(name(model), np.asarray(steps, dtype=np.float32), *part)
        for model, part in zip(plan.models, parts, strict=True)
    ]


def patterns(plan: Plan, reports: Sequence[Report]) -> tuple[int, list[tuple[str, Array]]]:
    """The newest patterns of each model with the first seed, and the step they are of."""
    last = {which: report for which, report in reports if which % plan.n_seeds == 0}
    found = [(name(plan.models[i // plan.n_seeds]), last[i].pattern) for i in sorted(last)]
    return min(report.step for report in last.values()), found


def table(plan: Plan, found: Sequence[LossCurve]) -> tuple[int, list[list[str]]]:
    """The last step that all have reached; a header, and a row for each model with its losses."""
    several = plan.n_seeds > 1
    rows = [["Model", "Parameters", "Training", "Validation", *["of the seeds"] * several]]
    begun = [(m, c) for m, c in zip(plan.models, found, strict=True) if not math.isnan(c.last[1])]
    step = min((curve.last[0] for _, curve in begun), default=0)
    for model, curve in begun:
        at = int(np.searchsorted(curve.steps, step))
        train, validation = curve.train[:, at].mean(), curve.validation[:, at]
        n_parameters = CharModel(model, plan.text.n_distinct).n_parameters
        rows.append(
            [
                name(model), f"{n_parameters:,}", "" if math.isnan(train) else f"{train:.3f}",
                f"{validation.mean():.3f}",
                *[f"{validation.min():.3f}–{validation.max():.3f}"] * several,
            ]
        )  # fmt: skip
    return step, rows


def csv_rows(plan: Plan, reports: Sequence[Report]) -> list[list[object]]:
    """Every loss of every training, as CSV_HEADER names them."""
    settings = plan.settings
    return [
        [
            (of := settings[which]).n_heads, of.projection, of.seed, report.step,
            "" if math.isnan(report.train_loss) else report.train_loss, report.validation_loss,
        ]
        for which, report in reports
    ]  # fmt: skip


def weight_rows(found: Sequence[tuple[str, Array]], sample: str) -> list[list[object]]:
    """Every weight of some patterns, as WEIGHTS_HEADER names them."""
    return [
        [model, head, q, sample[q], k, sample[k], float(pattern[head, q, k])]
        for model, pattern in found
        for head in range(len(pattern))
        for q in range(len(sample))
        for k in range(q + 1)
    ]

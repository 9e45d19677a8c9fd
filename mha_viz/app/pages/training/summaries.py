"""The results of the training runs so far, as curves, patterns and rows of tables."""

import math
from collections.abc import Sequence
from itertools import islice as islice  # for scripts

import numpy as np

from mha_viz.app.pages.training.plan import Plan, model_name
from mha_viz.export import Drawn, rows_data
from mha_viz.figures.loss_curves import LossCurve
from mha_viz.figures.loss_curves import loss_curves as loss_figure
from mha_viz.figures.pattern_mosaic import pattern_mosaic
from mha_viz.figures.theme import TextSizes, Theme
from mha_viz.lessons.char_model import CharModel, Progress
from mha_viz.lessons.char_model import read_corpus as read_corpus  # scripts call these two
from mha_viz.lessons.char_model import side_by_side as side_by_side
from mha_viz.trace import Array

Report = tuple[int, Progress]  # the index of a training run in `Plan.settings`, and its report
LOSS_HEADER = ["heads", "W_O", "seed", "step", "training loss", "validation loss"]
WEIGHTS_HEADER = ["model", "head", "query", "from", "key", "to", "weight"]


def loss_curves(plan: Plan, reports: Sequence[Report]) -> list[LossCurve]:
    """The losses of each model so far."""
    steps = plan.models[0].report_steps
    columns = {step: i for i, step in enumerate(steps)}
    losses = np.full((2, len(plan.settings), len(steps)), np.nan, dtype=np.float32)
    for index, report in reports:
        losses[:, index, columns[report.step]] = report.train_loss, report.validation_loss
    by_model = np.split(losses, len(plan.models), axis=1)
    return [
        LossCurve(model_name(model), np.asarray(steps, dtype=np.float32), *of_model)
        for model, of_model in zip(plan.models, by_model, strict=True)
    ]


def draw_losses(plan: Plan, reports: Sequence[Report], theme: Theme, sizes: TextSizes) -> Drawn:
    """The loss curves so far, and every loss of every run."""
    curves, uniform = loss_curves(plan, reports), math.log(plan.text.n_distinct)
    figure = loss_figure(curves, uniform, plan.steps, theme, sizes=sizes)
    data = rows_data(LOSS_HEADER, loss_rows(plan, reports))
    return figure, data


def draw_patterns(plan: Plan, reports: Sequence[Report], theme: Theme, sizes: TextSizes) -> Drawn:
    """The newest patterns of each model, and every weight of them."""
    _, by_model = patterns(plan, reports)
    figure = pattern_mosaic(by_model, plan.sample, theme, sizes=sizes)
    data = rows_data(WEIGHTS_HEADER, weight_rows(by_model, plan.sample))
    return figure, data


def patterns(plan: Plan, reports: Sequence[Report]) -> tuple[int, list[tuple[str, Array]]]:
    """The newest patterns of each model with the first seed, and their step."""
    last = {index: report for index, report in reports if index % plan.n_seeds == 0}
    by_model = [
        (model_name(plan.models[index // plan.n_seeds]), last[index].pattern)
        for index in sorted(last)
    ]
    return min(report.step for report in last.values()), by_model


def loss_table(plan: Plan, curves: Sequence[LossCurve]) -> tuple[int, list[list[str]]]:
    """The last step that all models have reached; a header, and the losses there by model."""
    several = plan.n_seeds > 1
    rows = [["Model", "Parameters", "Training", "Validation", *["Range over seeds"] * several]]
    pairs = zip(plan.models, curves, strict=True)
    started = [(model, curve) for model, curve in pairs if not math.isnan(curve.last[1])]
    step = min((curve.last[0] for _, curve in started), default=0)
    for model, curve in started:
        at = int(np.searchsorted(curve.steps, step))
        train, validation = curve.train[:, at].mean(), curve.validation[:, at]
        n_parameters = CharModel(model, plan.text.n_distinct).n_parameters
        row = [model_name(model), f"{n_parameters:,}"]
        row += ["" if math.isnan(train) else f"{train:.3f}", f"{validation.mean():.3f}"]
        row += [f"{validation.min():.3f}–{validation.max():.3f}"] * several
        rows.append(row)
    return step, rows


def loss_rows(plan: Plan, reports: Sequence[Report]) -> list[list[object]]:
    """Every loss of every training run, in the columns of LOSS_HEADER."""
    rows: list[list[object]] = []
    for index, report in reports:
        settings = plan.settings[index]
        train_loss = "" if math.isnan(report.train_loss) else report.train_loss
        losses = [train_loss, report.validation_loss]
        rows.append([settings.n_heads, settings.projection, settings.seed, report.step, *losses])
    return rows


def weight_rows(by_model: Sequence[tuple[str, Array]], sample: str) -> list[list[object]]:
    """Every weight of the patterns, in the columns of WEIGHTS_HEADER."""
    return [
        [model, head, q, sample[q], k, sample[k], float(pattern[head, q, k])]
        for model, pattern in by_model
        for head in range(len(pattern))
        for q in range(len(sample))
        for k in range(q + 1)
    ]

"""What the Training page shows and exports is what was reported."""

import csv
import io
import math

import numpy as np
import pytest

from mha_viz.app.pages.training import summaries, texts
from mha_viz.app.pages.training.plan import Plan
from mha_viz.export import table_csv
from mha_viz.lessons.char_model import Settings, train

TEXT = texts.TrainingText("a text", "so it goes. " * 200, 8)


def test_the_file_of_losses_holds_every_report() -> None:
    plan = Plan((Settings(1, steps=50), Settings(4, steps=50)), 2, TEXT)
    reports = [(i, r) for i, s in enumerate(plan.settings) for r in train(s, TEXT.content)]
    rows = summaries.loss_rows(plan, reports)
    read = list(csv.DictReader(io.StringIO(table_csv(summaries.LOSS_HEADER, rows))))
    assert [(r["heads"], r["seed"], r["step"]) for r in read] == [
        (heads, seed, step) for heads in "14" for seed in "01" for step in ("0", "50")
    ]
    assert float(read[1]["validation loss"]) == reports[1][1].validation_loss
    assert read[0]["training loss"] == ""


def test_the_patterns_are_those_of_the_first_seed() -> None:
    plan = Plan((Settings(1, steps=50), Settings(4, steps=50)), 2, TEXT)
    reports = [(i, r) for i, s in enumerate(plan.settings) for r in train(s, TEXT.content)]
    step, found = summaries.patterns(plan, reports)
    assert step == 50
    rows = summaries.weight_rows(found, "so it go")
    assert len(rows) == (1 + 4) * 36
    assert rows[-1] == ["4 heads × 8", 3, 7, "o", 7, "o", float(found[1][1][3, 7, 7])]
    assert [name for name, _ in found] == ["1 head × 32", "4 heads × 8"]
    for (_, pattern), model in zip(found, plan.models, strict=True):
        *_, last = train(model, TEXT.content)
        np.testing.assert_array_equal(pattern, last.pattern)


def test_each_model_keeps_its_losses_while_others_are_still_missing() -> None:
    plan = Plan((Settings(1, steps=50), Settings(4, steps=50)), 1, TEXT)
    begun = next(train(plan.settings[0], TEXT.content))
    one, four = summaries.loss_curves(plan, [(0, begun)])
    assert one.last == (0, pytest.approx(begun.validation_loss, abs=1e-6))
    assert math.isnan(four.last[1])
    step, (_, *rows) = summaries.loss_table(plan, [one, four])
    assert step == 0
    assert [row[0] for row in rows] == ["1 head × 32"]

"""Training on: the model that is given never changes, and a stopped run continues as it was."""

import io
from pathlib import Path

import pytest
import torch

from mha_viz.analysis.reference_texts import evaluation_texts
from mha_viz.assets import ASSETS
from mha_viz.lessons import recovery
from mha_viz.lessons.grouped_query import grouped_gpt2
from mha_viz.lessons.recovery import (
    MEASURED_AT,
    STEPS,
    Recovery,
    TrainingOn,
    held_out_loss,
    measured,
    read_recoveries,
    story_ids,
    write_recoveries,
)
from mha_viz.model import Model
from mha_viz.pruning import chunks

IDS = torch.randint(0, 300, (500,), generator=torch.Generator().manual_seed(1))


def test_a_step_trains_a_copy_and_lowers_its_loss(tiny: Model) -> None:
    before = {name: w.clone() for name, w in tiny.network.state_dict().items()}
    run = TrainingOn(tiny.network, 1, torch.tensor([1, 2, 3] * 100))
    losses = [run.advance() for _ in range(12)]
    assert losses[-1] < losses[0]
    assert run.network.config.n_kv_heads == 1
    for name, weight in tiny.network.state_dict().items():
        assert torch.equal(weight, before[name])


def test_a_run_that_was_stopped_continues_bit_for_bit(tiny: Model) -> None:
    whole = TrainingOn(tiny.network, 2, IDS)
    for _ in range(4):
        whole.advance()
    first = TrainingOn(tiny.network, 2, IDS)
    first.advance()
    file = io.BytesIO()
    torch.save(first.state(), file)
    file.seek(0)
    second = TrainingOn(tiny.network, 2, IDS)
    second.resume(torch.load(file, weights_only=True))
    for _ in range(3):
        second.advance()
    for name, weight in whole.network.state_dict().items():
        assert torch.equal(weight, second.network.state_dict()[name])


def test_a_run_is_measured_where_it_should_be(tiny: Model) -> None:
    run = TrainingOn(tiny.network, 2, IDS)
    assert list(measured(run, 10)) == [0, 5, 10]
    assert run.step == 10
    assert MEASURED_AT[-1] == STEPS


def test_long_stories_are_encoded_line_by_line(bundled: Model) -> None:
    stories = "The king.\nThe queen.\n" * 3
    ids = story_ids(bundled.encode, stories)
    assert bundled.text_of(ids.tolist()) == stories


def test_a_file_of_losses_is_read_as_it_was_written(tmp_path: Path) -> None:
    runs = [Recovery(2, (5.0, 4.25)), Recovery(1, (6.0,))]
    write_recoveries(tmp_path / "runs.csv", runs, comment="python make.py")
    assert read_recoveries(tmp_path / "runs.csv") == runs
    assert (tmp_path / "runs.csv").read_text().startswith("# python make.py\n")


def test_the_share_won_back_is_that_of_the_cost() -> None:
    assert Recovery(1, (8.0, 6.0, 5.0)).won_back(4.0) == pytest.approx(0.75)


@pytest.mark.parametrize("G", [6, 3, 2, 1])
def test_the_stored_curves_begin_at_the_converted_model(bundled: Model, G: int) -> None:
    (run,) = [run for run in read_recoveries(ASSETS / "grouped.csv") if run.n_kv_heads == G]
    assert len(run.losses) == len(MEASURED_AT)
    held_out = chunks(bundled, evaluation_texts(), bundled.config.n_positions)
    found = held_out_loss(grouped_gpt2(bundled.network, G), held_out)
    assert run.converted == pytest.approx(found, abs=1e-3)
    if G < 6:
        assert run.trained_on < run.converted


def test_the_rate_warms_up_and_then_falls() -> None:
    rates = [recovery._schedule(step) for step in range(STEPS + 1)]
    assert rates[0] < rates[5] < rates[recovery.WARM_UP]
    assert max(rates) <= 1.0
    assert rates[-1] == pytest.approx(0.1)

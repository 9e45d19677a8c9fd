"""Training with a bug: the model of the Training page, and stored losses that it makes again."""

import shutil
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import torch

import mha_viz.lessons.bug_training as bug_training
from mha_viz.assets import ASSETS
from mha_viz.errors import SourceError
from mha_viz.lessons.bug_training import (
    CORRECT,
    SETTINGS,
    STORED,
    CharModelWithBug,
    stored_losses,
    train_with_bug,
    writing_loss,
)
from mha_viz.lessons.bugs import BUGS
from mha_viz.lessons.char_model import CharModel, Corpus, read_corpus, train, validation_windows

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return read_corpus((ASSETS / "training.txt").read_text(encoding="utf-8"))


def test_without_a_bug_it_is_the_model_of_the_training_page(corpus: Corpus):
    settings = replace(SETTINGS, steps=60)
    ids = corpus.validation[:40].view(5, 8)
    theirs, ours = CharModel(settings, 70), CharModelWithBug(settings, 70, None)
    torch.testing.assert_close(ours(ids), theirs(ids), atol=1e-5, rtol=0)
    losses = [report.validation_loss for report in train(settings, corpus)]
    found = list(train_with_bug(None, corpus, settings))
    assert [whole for _, whole, _ in found] == pytest.approx(losses, abs=1e-4)
    assert [step for step, _, _ in found] == settings.report_steps


@pytest.mark.parametrize("bug", [None, "no mask", "no transpose"])
def test_the_loss_as_it_writes_is_that_of_runs_on_prefixes(corpus: Corpus, bug: str | None):
    model = CharModelWithBug(SETTINGS, len(corpus.vocabulary), bug)
    ids = corpus.validation[:30]
    total, n = 0.0, 0
    with torch.no_grad():
        for window in validation_windows(ids, 8):
            for end in range(1, 9):
                logits = model(window[None, :end])[0, -1]
                total, n = total - float(logits.log_softmax(-1)[window[end]]), n + 1
    assert writing_loss(model, ids, 8) == pytest.approx(total / n, abs=1e-5)


@pytest.mark.parametrize("bug", [CORRECT, "mask after softmax", "no transpose", "no W_O"])
def test_the_first_stored_losses_are_made_again(corpus: Corpus, bug: str):
    stored = stored_losses()[bug]
    again = islice(train_with_bug(None if bug == CORRECT else bug, corpus), 2)
    for i, (step, whole, writing) in enumerate(again):
        assert stored.steps[i] == step
        assert stored.whole[i] == pytest.approx(whole, abs=2e-3)
        assert stored.writing[i] == pytest.approx(writing, abs=2e-3)


def test_losses_of_every_bug_are_stored_and_show_which_read_ahead():
    losses = stored_losses()
    right = losses[CORRECT]
    assert list(losses) == [CORRECT, *BUGS]
    for bug, run in losses.items():
        assert list(run.steps) == SETTINGS.report_steps
        ahead = bug != CORRECT and BUGS[bug].reads_ahead
        assert (abs(run.last.whole - run.last.writing) > 0.01) == ahead
        if ahead:
            assert run.last.whole < right.last.whole - 0.5
            assert run.last.writing > right.last.writing + 0.5


def test_the_script_keeps_what_the_file_has(tmp_path: Path):
    out = tmp_path / "bugs.csv"
    shutil.copy(STORED, out)
    command = [sys.executable, str(ROOT / "scripts" / "train_bugs.py"), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == ""
    assert out.read_bytes() == STORED.read_bytes()


def test_a_missing_file_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bug_training, "STORED", ASSETS / "none.csv")
    stored_losses.cache_clear()
    with pytest.raises(SourceError, match=r"none\.csv is missing .*train_bugs"):
        stored_losses()

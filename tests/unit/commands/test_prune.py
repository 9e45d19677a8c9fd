"""`mha-viz prune`: the ranking, the curve and the pruned folder."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.command import Done

from mha_viz import pruning
from mha_viz.checkpoints import load
from mha_viz.head import Head

Command = Callable[..., Done]
TEXT = "the cat sat on the mat and the dog ran.\n\nmany people sing to the small old town."


def test_the_ranking_and_its_curve(command: Command, folder: Path, tmp_path: Path) -> None:
    assert command("prune", folder, TEXT, "--by", "gradient", "-o", "r.json").code == 0
    found = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    model = load(folder, device="cpu")
    first, second = TEXT.split("\n\n")
    scores = pruning.gradient_importance(model, first)
    order = pruning.removal_order(scores)
    layers, heads = found["layer"][1:], found["head"][1:]
    assert [Head(int(i), int(j)) for i, j in zip(layers, heads, strict=True)] == order
    np.testing.assert_allclose(found["importance"][1:], [scores[head] for head in order])
    points = list(pruning.curve(model, second, order))
    np.testing.assert_allclose(found["loss"], [point.loss for point in points], rtol=1e-6)
    assert found["removed"] == list(range(9))
    assert found["layer"][0] is None
    assert found["provenance"]["Importance"] == "gradient"


@pytest.mark.parametrize("zeroed", [False, True])
def test_named_heads_are_pruned_without_a_ranking(
    command: Command, folder: Path, tmp_path: Path, zeroed: bool
) -> None:
    asked = ["--head", "L0H1", "--head", "L1H2", "--folder", "small"]
    done = command("prune", folder, *asked, *(["--zeroed"] if zeroed else []))
    assert (done.code, done.out) == (0, "")
    assert done.err == f"small: {folder} without L0H1, L1H2\n"
    small = load(tmp_path / "small", device="cpu")
    expected = pruning.pruned_model(load(folder, device="cpu"), [Head(0, 1), Head(1, 2)])
    a, b = (model.trace("the cat sat").logits for model in (small, expected))
    np.testing.assert_allclose(a, b, atol=1e-5)
    assert bool(small.config.pruned_heads) is not zeroed


def test_the_least_important_are_pruned(command: Command, folder: Path, tmp_path: Path) -> None:
    options = ["--by", "values", "--remove", "3", "--folder", "small"]
    done = command("prune", folder, TEXT, *options)
    assert (done.code, done.out) == (0, "")
    model = load(folder, device="cpu")
    least = pruning.removal_order(pruning.value_importance(model, TEXT.split("\n\n")[0]))[:3]
    small = load(tmp_path / "small", device="cpu")
    assert sorted(set(pruning.all_heads(model.config)) - set(pruning.all_heads(small.config))) == (
        sorted(least)
    )


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--folder", "small"], 2, "--folder needs --remove or --head"),
        (["--remove", "2"], 2, "--folder needs --remove or --head"),
        (["--remove", "99", "--folder", "small"], 2, "has 8 heads"),
        (["--head", "L9H9", "--folder", "small"], 1, "L9 H9 is not in"),
        (["--head", "nine", "--folder", "small"], 2, "does not name a head"),
        (["--head", "L0H0", "--folder", "a.txt"], 1, "a.txt"),
    ],
)
def test_what_does_not_fit_is_refused(
    command: Command, folder: Path, tmp_path: Path, options: list[str], code: int, words: str
) -> None:
    (tmp_path / "a.txt").write_text("mine")
    done = command("prune", folder, TEXT, "--by", "confidence", *options)
    assert done.code == code
    assert words in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize(
    ("output", "model"), [("r.csv", "r.csv"), ("r.csv", "./r.csv"), ("out/r.csv", "out")]
)
def test_a_ranking_in_the_place_of_the_folder_is_refused_before_any_work(
    command: Command, folder: Path, tmp_path: Path, output: str, model: str
) -> None:
    (tmp_path / "out").mkdir()
    options = ["--by", "confidence", "--remove", "1", "--folder", model, "-o", output, "--force"]
    done = command("prune", folder, TEXT, *options)
    assert done.code == 1
    assert f"{output} is in the place of the model's folder {Path(model)}." in done.err
    assert [path.name for path in tmp_path.rglob("*")] == ["out"]


def test_a_folder_that_cannot_be_written_leaves_no_ranking(
    command: Command, folder: Path, tmp_path: Path
) -> None:
    options = ["--by", "confidence", "--remove", "99", "--folder", "small", "-o", "r.csv"]
    assert command("prune", folder, TEXT, *options).code == 2
    assert not list(tmp_path.iterdir())


def test_a_pruned_model_is_pruned_further(command: Command, folder: Path, tmp_path: Path) -> None:
    options = ["--by", "confidence", "--remove", "1"]
    assert command("prune", folder, TEXT, *options, "--folder", "one").code == 0
    assert command("prune", "./one", TEXT, *options, "--folder", "two", "-o", "r.csv").code == 0
    first, second = (load(tmp_path / name, device="cpu").config for name in ("one", "two"))
    assert (len(pruning.all_heads(first)), len(pruning.all_heads(second))) == (7, 6)
    assert set(pruning.all_heads(second)) < set(pruning.all_heads(first))
    (gone,) = set(pruning.all_heads(load(folder, device="cpu").config)) - set(
        pruning.all_heads(first)
    )
    again = command("prune", "./one", "--head", gone.key, "--folder", "three")
    assert again.code == 1
    assert gone.label in again.err


def test_a_head_that_is_named_twice_is_pruned_once(command: Command, folder: Path) -> None:
    done = command("prune", folder, "--head", "L0H1", "--head", "L0H1", "--folder", "small")
    assert (done.code, done.err) == (0, f"small: {folder} without L0H1\n")


def test_a_model_without_heads_cannot_be_ranked(command: Command, folder: Path) -> None:
    every = [f"--head=L{layer}H{head}" for layer in range(2) for head in range(4)]
    assert command("prune", folder, *every, "--folder", "none").code == 0
    done = command("prune", "./none", TEXT, "--by", "gradient")
    assert (done.code, done.out) == (1, "")
    assert done.err == "mha-viz: ./none has no head that can be ranked. Choose another.\n"


@pytest.mark.parametrize("option", ["--zeroed", "--cut=start"])
def test_an_option_that_would_change_nothing_is_refused(
    command: Command, folder: Path, option: str
) -> None:
    done = command("prune", folder, TEXT, option)
    assert (done.code, done.out) == (2, "")
    assert option.partition("=")[0] in done.err.splitlines()[-1]

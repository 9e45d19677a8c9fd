"""The Pruning page as a script: the link holds the ablated heads, and the numbers are right."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from support.patience import until
from support.script import ROOT, button, component, figures, finished, html, opened, said

from mha_viz import checkpoints, pruning
from mha_viz.analysis.reference_texts import evaluation_texts, selection_texts
from mha_viz.app.samples import DEFAULT
from mha_viz.app.work import jobs
from mha_viz.checkpoints import load
from mha_viz.head import Head
from mha_viz.model import Model

page = partial(opened, "pruning")


def board(test: AppTest) -> dict:
    return component(test, "board")


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_a_link_ablates_heads_and_the_numbers_are_those_of_the_package(bundled: Model) -> None:
    test = page(off="L3H4-L0H1")
    assert not test.exception
    assert said(test) == ""
    assert board(test)["ablated"] == ["L0H1", "L3H4"]
    full = pruning.Pass.of(bundled, DEFAULT)
    ablated = full.without([(0, 1), (3, 4)])
    assert "2 of 24 heads ablated" in html(test)
    assert f"<b>{ablated.loss:.3f}</b> nats ({ablated.loss - full.loss:+.3f}, 95%" in html(test)
    assert test.query_params["off"] == "L3H4-L0H1"


def test_without_ablated_heads_nothing_changes() -> None:
    test = page()
    assert "0 of 24 heads ablated" in html(test)
    assert html(test).count("(+0.000)") == 2
    assert "KL divergence 0.000 nats at the last position, 0.000 on average" in html(test)
    assert "Largest increase" not in html(test)
    assert "Largest increase" in html(page(off="L3H4"))


def test_the_curves_warn_of_link_values_that_are_not_available() -> None:
    bad = page(lab="Curves", curve_texts="1", curve_every="12", orders="alphabetic", budget="900")
    assert "The link's value orders = alphabetic is not available" in said(bad)
    assert "The link's value budget = 900 is not available" in said(bad)
    good = page(lab="Curves", curve_texts="1", curve_every="12", orders="gradient", budget="2")
    assert said(good) == ""  # though the box holds 2.0


def test_heads_may_be_typed_by_their_labels() -> None:
    assert board(page(off="l3h4 and L0 H1"))["ablated"] == ["L0H1", "L3H4"]


def test_an_export_names_the_ablated_heads_the_type_and_the_reference_text() -> None:
    test = page(off="L3H4", way="mean", lab="Ablation")
    settings = test.session_state["recorded_settings"]
    assert settings["Ablated heads"] == "L3 H4"
    assert settings["Ablation type"] == "mean"
    assert str(settings["Reference text"]).startswith("reference text, SHA-256 ")


def test_an_export_of_the_curves_says_what_they_are_measured_on() -> None:
    link = {"lab": "Curves", "curve_texts": "1", "curve_every": "12", "orders": "gradient"}
    test = finished(page(off="L3H4", **link))
    settings = test.session_state["recorded_settings"]
    assert settings["Ablated heads"] == "those removed, in the orders of the figure"
    measured = str(settings["Curves measured on"])
    assert re.fullmatch(
        r"\d held-out chunks? \([\d,]+ tokens\); heads ordered on 1 other text", measured
    )
    alt = test.session_state["pictures"]["curves"].caption
    assert re.search(r"Dashed: the full model's \d\.\d{3}, and 1\.0% above it\.$", alt)


def test_an_unknown_head_is_named_and_ignored() -> None:
    test = page(off="L9H1-L1H1-nonsense")
    assert "has no L9 H1" in said(test)
    assert board(test)["ablated"] == ["L1H1"]


def test_undo_and_redo_go_through_the_ablations() -> None:
    test = page(at="L1H2")
    button(test, "Ablate all but L1 H2").click().run()
    assert len(board(test)["ablated"]) == 23
    button(test, "Undo").click().run()
    assert board(test)["ablated"] == []
    button(test, "Redo").click().run()
    assert len(board(test)["ablated"]) == 23
    button(test, "Restore all").click().run()
    assert board(test)["ablated"] == []


@pytest.mark.parametrize("way", pruning.METHODS)
def test_every_ablation_type_runs(way: str, bundled: Model) -> None:
    test = page(off="L3H4", way=way)
    assert not test.exception
    assert said(test) == ""
    assert "1 of 24 heads ablated" in html(test)


def test_another_token_is_ranked_and_several_tokens_give_a_message() -> None:
    test = page(off="L3H4", wanted="queen")
    assert "·queen" in html(test)
    test = page(wanted="antidisestablishmentarianism")
    assert "The model splits this into" in said(test)


def test_a_single_token_has_no_loss_and_the_page_says_so() -> None:
    test = page(text="a")
    assert not test.exception
    assert "needs at least two tokens" in said(test)


def test_tasks_run_with_all_heads_and_with_ablated_heads() -> None:
    test = page(lab="Tasks", off="L3H4-L3H0", prompts="The king gave the | queen | cat\nbroken")
    assert not test.exception
    assert "Line 2: Expected “text | right word | wrong word”" in said(test)
    tables = [frame.value for frame in test.dataframe]
    full, ablated, uniform = tables[0]["loss"]
    assert full < 0.5 < ablated < uniform
    assert list(tables[-1]["right"]) == [" queen"]


def test_importance_is_that_of_the_package_and_the_least_important_are_ablated(
    bundled: Model,
) -> None:
    test = finished(page(lab="Importance", least="2"))
    assert not test.exception
    exact = pruning.ablate_each_head(bundled, DEFAULT)
    order = pruning.removal_order(exact)
    frame = test.dataframe[0].value
    best = order[-1]
    assert frame["head"][0] == f"L{best[0]} H{best[1]}"
    assert frame["score"][0] == pytest.approx(exact[best], abs=1e-5)
    assert "Rank correlation" in html(test)
    button(test, "Ablate the 2 least important").click().run()
    assert board(test)["ablated"] == [f"L{i}H{h}" for i, h in sorted(order[:2])]


def test_curves_end_without_heads_and_the_table_counts_removable_heads() -> None:
    link = {"lab": "Curves", "curve_texts": "1", "curve_every": "8", "orders": "exact"}
    test = finished(page(**link))
    assert not test.exception
    charts = figures(test)
    curve = charts[-1]["data"][0]
    assert curve["name"] == "exact"
    assert curve["x"] == [0, 8, 16, 24]
    assert "heads removed within 1.0%" in test.dataframe[-1].value.columns


@pytest.mark.parametrize(
    "name",
    ["attention", "head", "next_token", "heads", "compare", "pruning", "shapes", "many_heads",
     "variants", "training"],
)  # fmt: skip
@pytest.mark.parametrize("pruned", ["some", "all"])
def test_a_pruned_model_opens_on_every_page(
    name: str, pruned: str, tiny: Model, tmp_path: Path
) -> None:
    heads = [(0, 1), (1, 0)] if pruned == "some" else [(i, h) for i in range(2) for h in range(4)]
    checkpoints.save(pruning.pruned_model(tiny, heads), tmp_path / "few")
    test = opened(name, model=str(tmp_path / "few"), text="the cat sat on the mat")
    assert not test.exception
    assert "nan" not in html(test)
    broken = "Unexpected error" in said(test)
    assert not broken, said(test)
    if pruned == "all":
        assert "All heads of this model have been pruned" in said(test)


def saved_as(folder: Path, name: str = "Save pruned") -> AppTest:
    test = page(lab="Prune", off="L3H4")
    test.text_input(key="prune_folder").set_value(str(folder)).run()
    return finished(button(test, name).click().run())


def test_a_pruned_model_is_saved_to_the_given_folder_and_opens(tmp_path: Path) -> None:
    for name, n_heads in (("Save pruned", 23), ("Save zeroed", 24)):
        folder = tmp_path / name
        test = saved_as(folder, name)
        assert f"Saved in {folder}" in test.success[0].value
        network = load(folder, device="cpu").config
        assert sum(len(network.kept_heads(layer)) for layer in range(4)) == n_heads
    assert "Saved in" in test.run().success[0].value


def test_existing_files_are_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert "already exists and is not empty" in said(saved_as(tmp_path))
    assert "is a file" in said(saved_as(tmp_path / "mine.txt"))
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert "Enter a folder" in said(saved_as(Path(" ")))


def test_a_stopped_or_failed_save_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(error: Exception | None) -> Callable[..., None]:
        def save(model: Model, folder: Path) -> None:
            folder.mkdir()
            (folder / "model.safetensors").write_bytes(b"half of it")
            if error is not None:
                raise error
            for job in list(jobs.foreground._running):
                jobs.foreground.stop(job)

        return save

    monkeypatch.setattr(checkpoints, "save", half(OSError("No space left on device")))
    assert "Not saved: No space left" in said(saved_as(tmp_path / "full"))
    monkeypatch.setattr(checkpoints, "save", half(None))
    test = saved_as(tmp_path / "stopped")
    assert "Stopped: Writing the pruned model." in [one.value for one in test.caption]
    until(lambda: not jobs.foreground._running)
    assert list(tmp_path.iterdir()) == []


def test_only_one_computation_of_a_user_runs_per_lane(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started, start = [], jobs.start

    def watched(name: str, job: jobs.Job, to: jobs.Queue | None = None) -> None:  # type: ignore[type-arg]
        if to is None:  # work that the page does not wait for
            started.append(job)
        start(name, job, to)

    monkeypatch.setattr(jobs, "start", watched)
    test = page(lab="Curves", curve_texts="1", curve_every="1", orders="greedy")
    for n in (2, 3, 4):
        test.number_input(key="curve_texts").set_value(n).run()
    assert len(started) == 4
    assert sum(job.active for job in started) <= 1
    jobs.background.stop(started[-1])


def test_the_page_and_exact_ablation_agree_for_every_replacement(bundled: Model) -> None:
    ids = bundled.encode(DEFAULT)[0]
    for way in ("mean", "position-wise mean", "resample"):
        test = page(off="L3H4", way=way)
        fill = pruning.make_replacement(bundled, way, len(ids))  # type: ignore[arg-type]
        cost = pruning.ablate_each_head(bundled, ids, method=fill)[3, 4]
        assert f"nats ({cost:+.3f}".replace("-", "−") in html(test)


def test_the_losses_have_intervals_and_say_what_was_read(bundled: Model) -> None:
    """Over passages of the reference text, whose chunks depend on each other, and stretches."""
    test = page(off="L3H4-L0H1")
    firsts = [pruning.chunks(bundled, [text], 256)[0] for text in evaluation_texts()[:4]]
    full = [pruning.losses(bundled, ids) for ids in firsts]
    gate = pruning.gate_without(bundled.config, [Head(3, 4), Head(0, 1)])
    changed = [
        pruning.losses(bundled, ids, gate=gate) - f for ids, f in zip(firsts, full, strict=True)
    ]
    sizes = np.array([len(change) for change in changed])
    mean = np.concatenate(changed).mean()
    sums = np.array([(change - mean).sum() for change in changed])
    half = 3.182446 * np.sqrt(4 / 3 * (sums**2).sum()) / sizes.sum()
    assert f"({mean:+.3f}, 95% interval ±{half:.3f})" in html(test)
    assert f"on 4 passages, {sizes.sum():,} tokens" in html(test)


def test_resampling_tells_how_much_draws_differ(bundled: Model) -> None:
    test = page(off="L0H1", way="resample")
    text = bundled.encode(DEFAULT)[0]
    full = pruning.Pass.of(bundled, text)
    values = pruning.draws(bundled, "resample", len(text))
    losses = [full.without([Head(0, 1)], value).loss for value in values]
    assert len(losses) == 8
    note = " ".join(one.value for one in test.caption)
    assert "one draw of the resampled values. Over 8 draws" in note
    assert f"a mean of {np.mean(losses):.3f} nats" in note
    assert f"from {min(losses):.3f} to {max(losses):.3f}" in note


def test_the_curves_draw_resampled_values_several_times(bundled: Model) -> None:
    link = {"lab": "Curves", "curve_texts": "1", "curve_every": "12", "orders": "gradient"}
    test = finished(page(**link, way="resample"))
    texts = [
        pruning.chunks(bundled, [half()[0]], 512) for half in (selection_texts, evaluation_texts)
    ]
    longest = max(128, *(len(ids) for chunks in texts for ids in chunks))
    values = pruning.draws(bundled, "resample", longest, n=5)
    assert len(values) == 5
    order = list(pruning.order(bundled, texts[0], "gradient", replacement=values[0]))
    losses = [
        [p.loss for p in pruning.curve(bundled, texts[1], order, method=value, every=12)]
        for value in values
    ]
    drawn = figures(test)[-1]["data"]
    curve = next(one for one in drawn if one.get("name") == "gradient")
    np.testing.assert_allclose(curve["y"], np.mean(losses, axis=0), rtol=1e-5)
    assert len(set(np.round([one[1] for one in losses], 6))) == 5
    assert "the mean over up to 5 draws of the resampled values" in html(test)


def test_the_tasks_draw_resampled_values_several_times(bundled: Model) -> None:
    test = page(lab="Tasks", off="L0H1", way="resample")
    gate = pruning.gate_without(bundled.config, [Head(0, 1)])
    values = pruning.draws(bundled, "resample", 128, n=5)
    losses = [
        pruning.induction_loss(bundled, gate=gate, replacement=value, seeds=[seed])
        for seed, value in enumerate(values)
    ]
    table = test.dataframe[0].value
    assert table["loss"][1] == pytest.approx(np.mean(losses), abs=1e-4)
    assert table["low"][1] < table["loss"][1] < table["high"][1]
    text = " ".join(one.value for one in test.markdown)
    assert "5 seeds, each with another draw of the resampled values, with its 95% interval" in text
    prompts = pruning.ioi_prompts(bundled)
    own = pruning.draws(bundled, "resample", len(bundled.encode(prompts[0].text)[0]), n=18)[::6]
    expected = [
        pruning.logit_differences(bundled, prompts[:1], gate=gate, replacement=value)[0]
        for value in own
    ]
    assert len(set(expected)) == 3
    shown = test.dataframe[1].value["heads ablated"][0]
    assert shown == pytest.approx(np.mean(expected), abs=1e-3)
    assert "6 templates, each with 3 draws of the resampled values" in text


def test_the_rank_correlation_compares_sizes_with_sizes(bundled: Model) -> None:
    """The gradient estimates the size of an effect; correlated with the signed effect, it fails."""
    test = finished(page(lab="Importance"))
    exact = pruning.ablate_each_head(bundled, DEFAULT)
    gradient = pruning.gradient_importance(bundled, DEFAULT)
    right = pruning.rank_correlation(np.abs(exact), gradient)
    assert right > 0.8 > 0.5 > pruning.rank_correlation(exact, gradient)
    assert f"Rank correlation (Spearman): {right:.2f}." in html(test)


def test_the_curves_show_the_loss_on_repeated_tokens(bundled: Model) -> None:
    link = {"lab": "Curves", "curve_texts": "1", "curve_every": "12", "orders": "gradient"}
    test = finished(page(**link, curve_what="repeated tokens"))
    curve = figures(test)[-1]["data"][0]
    expected = [
        pruning.induction_loss(bundled, gate=gate, seeds=range(2))
        for gate in (None, np.zeros((4, 6)))
    ]
    assert [curve["y"][0], curve["y"][-1]] == pytest.approx(expected, abs=1e-5)
    table = test.dataframe[-1].value
    assert table["repeated tokens"][0] == pytest.approx(expected[0], abs=2)

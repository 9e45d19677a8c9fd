"""The Compare page as a script: it shows the package's values."""

from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import pytest
from streamlit.testing.v1 import AppTest
from support.script import ROOT, alts, button, figures, finished, html, opened, said

from mha_viz import pruning
from mha_viz.analysis import compare
from mha_viz.analysis.logit_attribution import heads_towards
from mha_viz.analysis.minimal_pair import minimal_pairs, swapped
from mha_viz.app.pages.compare.strips import columns
from mha_viz.app.samples import DEFAULT
from mha_viz.model import Model


def page(**link: str) -> AppTest:
    test = finished(opened("compare", **link))
    assert not test.exception
    return test


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_two_texts_are_aligned_and_compared(bundled: Model) -> None:
    other = DEFAULT.replace("king", "queen")
    test = page(other_text=other, at="L3H4", change_of="all tokens")
    change = compare.change(bundled.trace(DEFAULT), bundled.trace(other))
    best = np.unravel_index(np.nanargmax(change.distance), change.distance.shape)
    label = f"L{best[0]} H{best[1]} · {change.distance[best]:.2f}"
    assert label in [b.label for b in test.button]
    assert "<s>·king</s>" in html(test)
    assert "<u>·queen</u>" in html(test)


def test_the_export_of_a_comparison_names_the_other_side(bundled: Model) -> None:
    assert page(other_text="The cat sat.").session_state["recorded_settings"] == {
        "Compared with the text": "The cat sat.",
        "Its token ids": bundled.trace("The cat sat.").token_ids,
    }


def test_layers_below_an_ablated_head_do_not_change(bundled: Model) -> None:
    test = page(against="ablated heads", off="L2H1", change_of="all tokens")
    assert "1 head ablated" in html(test)
    gate = np.ones((4, 6), dtype=np.float32)
    gate[2, 1] = 0
    trace = bundled.trace(DEFAULT)
    change = compare.change(trace, bundled.trace_ids(trace.token_ids, head_gate=gate))
    assert np.nanmax(change.distance[:3]) == 0
    top = np.nanmax(change.distance)
    assert f"Colour runs from 0 to {top:.2f}" in html(test)


def test_texts_without_a_common_token_get_a_message() -> None:
    test = page(other_text="zzz")
    assert "nothing to compare" in said(test)
    test = page(other_text="")
    assert "Type another text" in said(test)


def test_a_model_of_other_sizes_cannot_be_compared(tmp_path: Path, tiny: Model) -> None:
    test = page(against="another model", other_model=tiny.description.name)
    assert "Only models of equal size can be compared" in said(test).replace("\\", "")


# --- ablated heads --------------------------------------------------------------------------------


def change_of(test: AppTest, layer: int, head: int) -> str:
    """The hover text of one head in the map."""
    (cells,) = figures(test)[0]["data"]
    return next(said for i, h, said in cells["customdata"] if (i, h) == (layer, head))


def test_an_ablated_head_is_blank_in_the_map_and_missing_in_its_data(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    saved: dict[str, list[list[float]]] = {}
    monkeypatch.setattr(
        "mha_viz.app.pages.compare.patterns.download_table",
        lambda name, header, rows: saved.update({name: rows}),
    )
    test = page(against="ablated heads", off="L0H1-L3H0", at="L3H4", change_of="all tokens")
    assert change_of(test, 3, 0) == change_of(test, 0, 1) == "no value"
    assert change_of(test, 3, 4) != "no value"
    assert "Ablated heads are blank" in html(test)
    header, rows = test.session_state["pictures"]["change_map"].data.table()
    exported = {(row[0], row[1]) for row in rows}
    assert header == ["layer", "head", "change"]
    assert len(rows) == 22
    assert not exported & {(0, 1), (3, 0)}
    assert {(row[0], row[1]) for row in saved["change.csv"]} == exported
    assert np.isfinite(saved["change.csv"]).all()
    assert not [b for b in test.button if b.label.startswith(("L3 H0 ·", "L0 H1 ·"))]
    assert "writes nothing" not in said(test)  # the selected head is not ablated
    assert "Ablated heads are" not in html(page())


def test_a_selected_head_that_is_ablated_is_said_to_write_nothing() -> None:
    test = page(against="ablated heads", off="L3H0", at="L3H0")
    assert (
        "L3 H0 is ablated and writes nothing; its pattern only shows where it would look."
        in said(test)
    )
    assert alts(test)[0].startswith("Change of each head, at most 0.000.")  # none is above it
    assert "Pattern of L3 H0: full model, 17 aligned tokens." in alts(test)
    assert "Pattern of L3 H0: 1 head ablated, 17 aligned tokens." in alts(test)


def test_if_all_heads_are_ablated_the_page_says_what_remains() -> None:
    everything = "-".join(f"L{i}H{h}" for i in range(4) for h in range(6))
    test = page(against="ablated heads", off=everything)
    assert "Only the embeddings, the MLPs and the biases still write" in said(test)
    assert not {"change_map", "difference"} & set(test.session_state["pictures"])
    assert table(test, "next")  # predictions can still be compared


# --- the other trace ------------------------------------------------------------------------------


def test_replaced_characters_in_the_other_text_are_reported() -> None:
    messages = said(page(other_text="The king \ufffd and the queen \ufffd."))
    assert "The other text contains U+FFFD 2 times" in messages
    assert "The text contains" not in messages


def test_dropped_tokens_of_the_other_text_are_reported(bundled: Model) -> None:
    other = DEFAULT + " and the old king" * 300
    trace = bundled.trace(other)
    n, out = trace.n_tokens, trace.left_out
    assert out > 0
    messages = said(page(other_text=other))
    assert (
        f"The other text has {n + out:,} tokens, but the context of bundled holds {n:,}. "
        f"Comparing the first {n:,}; the last {out:,} are dropped."
    ) in messages
    assert messages.count("are dropped") == 1  # the first text is short
    assert "are dropped" not in said(page())


def test_tokens_dropped_for_the_other_model_are_reported(tiny: Model) -> None:
    text = "the cat sat on the mat and ran to the other side of a small old town, " * 3
    name, trace = tiny.description.name, tiny.trace(text)
    n, out = trace.n_tokens, trace.left_out
    assert out > 0
    test = page(against="another model", other_model=name, text=text)
    assert f"The text has {n + out} tokens, but the context of {name} holds {n}." in said(test)


def test_a_model_can_be_compared_with_itself() -> None:
    test = page(against="another model", other_model="bundled")
    assert alts(test)[0].startswith("Change of each head, at most 0.000.")
    assert len(figures(test)) == 6


def test_rounding_alone_has_no_colour() -> None:
    """The text, continued: the patterns over its beginning differ by rounding only."""
    difference = figures(page(other_text=f"{DEFAULT} ring and a crown"))[3]
    assert difference["data"][0]["zmax"] == 0.01


def test_on_a_stage_fewer_tokens_are_written_beside_a_pattern() -> None:
    for stage, most in (("false", 18), ("true", 12)):
        pattern = figures(page(stage=stage))[1]
        assert most / 2 < len(pattern["layout"]["xaxis"]["ticktext"]) <= most


# --- one word changed -----------------------------------------------------------------------------


def test_it_opens_on_one_word_of_the_text_whose_change_shows(bundled: Model) -> None:
    test = page()
    trace = bundled.trace(DEFAULT)
    first = minimal_pairs(bundled, trace.token_ids, trace.n_tokens - 1).swaps[0]
    old, new = trace.tokens[first.position], bundled.read([first.token])[0].label
    assert f"“{old[1:]}” became “{new[1:]}”" in html(test)
    changed = bundled.trace_ids(swapped(trace.token_ids, first.position, first.token))
    row = compare.row_change(trace, changed, 16, compare.every_position(trace))
    assert row.max() > 0.5
    assert alts(test)[0].startswith(f"Change of each head, at most {row.max():.3f}.")
    assert "falls from 83% to 5%" in html(test)


def test_another_word_gives_the_next_ones_and_the_link_holds_it() -> None:
    test = page()
    (choice,) = (box for box in test.selectbox if box.key == "swap")
    assert choice.value == choice.options[0]
    test = finished(button(test, "Another word").click().run())
    (choice,) = (box for box in test.selectbox if box.key == "swap")
    assert choice.value == choice.options[1]
    link = dict(test.query_params)["swap"]
    again = page(swap=link if isinstance(link, str) else link[0])
    assert [box.value for box in again.selectbox if box.key == "swap"] == [choice.value]


def test_a_text_without_a_token_to_change_gets_a_message() -> None:
    assert "No token before the selected one can be changed" in said(page(text="a"))
    assert "No token before the selected one can be changed" in said(page(token="0"))


def test_a_link_with_another_text_still_opens_it() -> None:
    test = page(other_text="The queen gave the boy a ring.")
    assert "<u>·queen</u>" in html(test)
    assert "against_kept" in test.session_state
    assert test.session_state["against"] == "another text"


# --- predictions ----------------------------------------------------------------------------------


def table(test: AppTest, key: str) -> list[list]:
    return test.session_state["pictures"][key].data.table()[1]


def test_predictions_of_both_sides_are_those_of_the_model(bundled: Model) -> None:
    other = "The king gave the princess a little"
    traces = [bundled.trace(text) for text in (DEFAULT, other)]
    assert 16 not in compare.align_traces(*traces).a  # so the other text is read to its end
    for name, *shown in table(page(other_text=other), "next"):
        token = bundled.single_token(name.replace("·", " "))
        for trace, p in zip(traces, shown, strict=True):
            logits = trace.logits.astype(float)
            expected = np.exp(logits[token] - np.log(np.exp(logits).sum()))
            assert p == pytest.approx(expected, abs=1e-3)


def test_heads_that_raise_the_prediction_are_shown_before_and_after(bundled: Model) -> None:
    test = page(against="ablated heads", off="L3H3")
    rows = {(row[0], row[1]): row[2:] for row in table(test, "effects")}
    ids = bundled.trace(DEFAULT).token_ids
    effects = heads_towards(bundled, ids, bundled.single_token(" ring"))
    assert rows[3, 3] == [pytest.approx(effects[3, 3], abs=1e-3), 0]
    assert rows[3, 0][0] == pytest.approx(effects[3, 0], abs=1e-3)
    assert "All heads together" in html(test)


def test_losses_and_the_logit_lens_are_in_the_second_tab(bundled: Model) -> None:
    test = page(outcome="Loss and logit lens", against="ablated heads", off="L3H3")
    losses = table(test, "losses")
    expected = pruning.Pass.of(bundled, DEFAULT)
    np.testing.assert_allclose([row[2] for row in losses], expected.losses(), atol=1e-3)
    without = expected.without([pruning.Head(3, 3)]).losses()
    np.testing.assert_allclose([row[3] for row in losses], without, atol=1e-3)
    lens = table(test, "lenses")
    assert [row[0] for row in lens] == ["embedding", *(f"after L{i}" for i in range(4))]
    assert lens[-1][1] == "·ring"


def test_models_of_other_sizes_compare_their_predictions(tiny: Model) -> None:
    test = page(against="another model", other_model=tiny.description.name, text="the cat sat")
    assert "Only models of equal size can be compared" in said(test).replace("\\", "")
    assert table(test, "next")


# --- what opens shows something -------------------------------------------------------------------


@pytest.mark.parametrize("against", ["another model", "ablated heads"])
def test_the_other_ways_open_on_something_that_differs(against: str) -> None:
    test = page(against=against)
    largest = float(alts(test)[0].removeprefix("Change of each head, at most ").split(". ")[0])
    assert largest > 0.2
    assert "writes nothing" not in said(test)


def test_the_heads_offered_for_ablation_can_all_be_restored() -> None:
    test = page(against="ablated heads")
    assert test.session_state["off"]
    test = finished(button(test, "Restore all").click().run())
    assert test.session_state["off"] == ""
    assert "Click heads on the board" in said(test)


def test_colours_of_the_patterns_follow_the_sidebar() -> None:
    root, plain = (figures(page(colour=colour))[1] for colour in ("√ weight", "weight"))
    assert root["data"][0]["z"] != plain["data"][0]["z"]
    assert len(figures(page(sink="true"))[1]["layout"]["shapes"]) == 2


# --- the grid of both texts -----------------------------------------------------------------------


def test_texts_of_unequal_length_leave_gaps() -> None:
    found = columns(4, 3, compare.align([1, 2, 3, 4], [1, 9, 4]))
    assert found == [(0, 0), (1, 1), (2, None), (3, 2)]
    assert columns(1, 3, compare.align([1], [2, 1, 3])) == [(None, 0), (0, 1), (None, 2)]


@pytest.mark.parametrize("against", ["one word changed", "ablated heads"])
def test_scripts_of_losses_and_of_the_lens_make_their_numbers_again(
    against: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(go.Figure, "show", lambda figure: None)
    test = page(against=against, off="L3H3", outcome="Loss and logit lens")
    for key in ("losses", "lenses"):
        picture = test.session_state["pictures"][key]
        made: dict = {}
        exec(compile(picture.script(), key, "exec"), made)
        assert made["figure"].to_json() == picture.figure.to_json()


def test_another_text_begins_with_the_users_own() -> None:
    text = "The cat sat on the mat. The cat"
    test = page(text=text, against="another text")
    (box,) = (area for area in test.text_area if area.key == "other_text")
    assert box.value != text
    assert len(set(box.value.split()) ^ set(text.split())) <= 4  # one word is another


def test_of_a_long_text_the_tokens_up_to_the_selected_one_are_shown() -> None:
    text = "The king gave a ring. " * 50
    test = page(text=text, against="ablated heads", off="L0H1")
    assert "aligned tokens, up to the selected one." in said(test)
    after = test.session_state["pictures"]["pattern after"]
    assert after.data.arrays["pattern"].shape == (256, 256)
    assert len(after.figure.layout.shapes) == 1  # the row of the last token

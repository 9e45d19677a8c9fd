"""The Compare page as a script: what it shows are the package's values."""

from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from support.script import ROOT, alts, figures, finished, html, opened, said

from mha_viz.analysis import compare
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
    test = page(other_text=other, at="L3H4")
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
    test = page(against="ablated heads", off="L2H1")
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
    assert "Type a second text" in said(test)


def test_a_model_of_other_sizes_cannot_be_compared(tmp_path: Path, tiny: Model) -> None:
    test = page(against="another model", other_model=tiny.description.name)
    assert "Only models of equal size can be compared" in said(test).replace("\\", "")


# --- ablated heads --------------------------------------------------------------------------------


def change_of(test: AppTest, layer: int, head: int) -> str:
    """What the map says on hover of one head."""
    (cells,) = figures(test)[0]["data"]
    return next(said for i, h, said in cells["customdata"] if (i, h) == (layer, head))


def test_an_ablated_head_is_blank_in_the_map_and_missing_in_its_data(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    saved: dict[str, list[list[float]]] = {}
    monkeypatch.setattr(
        "mha_viz.app.pages.compare.download_table",
        lambda name, header, rows: saved.update({name: rows}),
    )
    test = page(against="ablated heads", off="L0H1-L3H0", at="L3H4")
    assert change_of(test, 3, 0) == change_of(test, 0, 1) == "no value"
    assert change_of(test, 3, 4) != "no value"
    assert "Ablated heads are blank" in html(test)
    header, rows = test.session_state["pictures"]["change_map"].table()
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
    assert not figures(test)


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
    assert len(figures(test)) == 4


def test_rounding_alone_has_no_colour() -> None:
    """The text, continued: the patterns over its beginning differ by rounding only."""
    *_, difference = figures(page(other_text=f"{DEFAULT} ring and a crown"))
    assert difference["data"][0]["zmax"] == 0.01


def test_on_a_stage_fewer_tokens_are_written_beside_a_pattern() -> None:
    for stage, most in (("false", 16), ("true", 10)):
        pattern = figures(page(stage=stage))[1]
        assert most / 2 < len(pattern["layout"]["xaxis"]["ticktext"]) <= most

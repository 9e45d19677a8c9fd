"""The Heads and Compare pages as scripts: their numbers are those of the package."""

import time
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from support.script import ROOT, alts, figures, finished, html, opened, said

from mha_viz import heads
from mha_viz.analysis import compare, logit_attribution
from mha_viz.app.pages.heads import measures
from mha_viz.app.samples import DEFAULT
from mha_viz.heads.roles import Role
from mha_viz.heads.rollout import rollout
from mha_viz.model import Model


def page(name: str, **link: str) -> AppTest:
    test = finished(opened(name.removesuffix(".py"), **link))
    assert not test.exception
    return test


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_the_passport_of_a_head_is_what_is_measured(bundled: Model) -> None:
    test = page("heads.py", at="L3H4")
    frame = heads.measure(bundled, DEFAULT)
    row = frame[(frame["layer"] == 3) & (frame["head"] == 4)].iloc[0]
    shown = {r["measure"]: r["value"] for _, r in test.dataframe[0].value.iterrows()}
    assert float(shown["Induction"]) == pytest.approx(row["induction"], abs=1e-4)
    assert float(shown["First token (sink)"]) == pytest.approx(row["first_token"], abs=1e-4)
    assert len(test.dataframe[1].value) == 24
    assert "Similar heads" in html(test)
    assert "Published roles" not in html(test)  # they belong to GPT-2 small


def test_roles_are_checked_when_asked_for(bundled: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """With roles given to the bundled model, which has none, and names that it knows."""
    monkeypatch.setattr(logit_attribution, "NAMES", (("John", "Mary"),))
    mover = Role(2, 1, "mover", "It copies.", "logit_difference", -9.0, "a paper")
    inducer = Role(3, 0, "inducer", "It goes on as last time.", "induction", 0.9, "a paper")
    never = Role(0, 2, "other", "Nothing here speaks to it.", None, source="a paper")
    given = {(role.layer, role.head): role for role in (mover, inducer, never)}
    monkeypatch.setattr("mha_viz.app.pages.heads.roles.roles_for", lambda *_: given)

    test = page("heads.py", at="L3H4")
    (before,) = (t.value for t in test.dataframe if "role" in t.value)
    assert "check" not in before
    test = test.button(key="check_roles").click().run()
    assert not test.exception
    assert said(test) == ""
    rows = next(t.value for t in test.dataframe if "role" in t.value).set_index("role")
    assert rows["check"].to_dict() == {
        "mover": "not consistent", "inducer": "consistent", "other": "not measured here",
    }  # fmt: skip
    expected = logit_attribution.ioi_direct_effects(bundled).mean(axis=0)[2, 1]
    assert float(rows["value"]["mover"]) == pytest.approx(expected, abs=1e-3)


def test_a_filter_leaves_the_heads_that_reach_it() -> None:
    test = page("heads.py", measure="induction", least_measure="0.8")
    assert set(test.dataframe[1].value["head"]) == {"L3 H0", "L3 H3", "L3 H4"}


def test_rollout_is_drawn_with_its_limits(bundled: Model) -> None:
    test = page("heads.py", numbers_of="Combined heads", aggregate="rollout")
    last = rollout(bundled.trace(DEFAULT))[-1]
    assert f"(0) {last[0]:.2f}" in html(test)
    assert "drift to position 0" in " ".join(m.value for m in test.markdown)


def test_several_texts_are_measured_one_by_one(bundled: Model) -> None:
    test = page("heads.py", numbers_of="Several texts", measure="self")
    test.text_area(key="several").set_value("The king.\nOnce upon a time").run()
    end = time.monotonic() + 60
    while any(b.label == "Stop" for b in test.button) and time.monotonic() < end:
        time.sleep(0.3)
        test.run()
    *_, batch = heads.measure_texts(bundled, ["The king.", "Once upon a time"])
    top = batch.frame["self"].max()
    assert float(test.dataframe[0].value["mean"][0]) == pytest.approx(top, abs=1e-4)
    assert "Mean over 2 texts" in html(test)


def several(*texts: str, **link: str) -> AppTest:
    return page("heads.py", numbers_of="Several texts", several="\n".join(texts), **link)


def test_one_text_is_no_mean_over_texts(bundled: Model) -> None:
    test = several("The king.", measure="self")
    assert "Mean over 1 text, run" in html(test)
    assert list(test.dataframe[0].value.columns) == ["head", "mean"]  # no interval over one
    assert "tokens" not in said(test)


def test_a_map_and_a_capsule_of_several_texts_are_of_them_alone(bundled: Model) -> None:
    test = several("The king.", "Once upon a time", measure="self")
    *_, batch = heads.measure_texts(bundled, ["The king.", "Once upon a time"])
    header, rows = test.session_state["pictures"]["head_numbers"].table()
    assert list(header) == ["layer", "head", "self"]
    np.testing.assert_allclose([row[2] for row in rows], batch.frame["self"], atol=1e-6)
    assert "Mean over 2 texts. Rows: layers. Columns: heads. Colour runs from 0 to 1." in html(test)
    test.session_state["export"] = True
    text, facts = test.run().session_state["recorded_source"]
    assert text == "The king.\nOnce upon a time"
    assert facts["Token ids of each"] == [
        bundled.encode(one)[0] for one in ("The king.", "Once upon a time")
    ]
    assert bundled.description.weights_hash in facts["Weights"]
    assert "random tokens written twice" in html(
        several("The king.", "Once upon", measure="induction")
    )


def test_texts_that_say_nothing_are_counted() -> None:
    text = html(several("x", "The king and the queen", "The cat", measure="previous_token"))
    assert "Mean over 3 texts (no value for 1 of them)" in text


def test_texts_beyond_what_the_model_reads_are_counted(bundled: Model) -> None:
    fits, long = "a" + " a" * 1023, "a" + " a" * 1024
    assert [bundled.trace(text).left_out for text in (fits, long)] == [0, 1]
    test = several("The king.", fits, long, long)
    assert "2 of 4 texts had more than 1,024 tokens. Only the first 1,024 were used." in said(test)


@pytest.mark.parametrize("content", [b"", b" \n\n\t", b"\xef\xbb\xbf\n"])
def test_a_file_without_text_leaves_what_is_typed(content: bytes) -> None:
    test = several("The king.", "Once upon a time")
    test.file_uploader(key="several_file").upload("empty.txt", content, "text/plain")
    test = finished(test.run())
    assert "empty.txt contains no text. Using the texts typed above." in said(test)
    assert "Type one text per line" not in said(test)
    assert "Mean over 2 texts" in html(test)


def test_a_file_with_text_takes_the_place_of_what_is_typed() -> None:
    test = several("The king.", "Once upon a time")
    test.file_uploader(key="several_file").upload("one.txt", b"The king.\n\n", "text/plain")
    assert "Mean over 1 text, run" in html(finished(test.run()))


# --- texts that say little ------------------------------------------------------------------------

TOO_SHORT = "Measures on the text need at least two tokens"


def nothing_is_empty(test: AppTest) -> bool:
    """No table has a cell without a value, no map only blank cells."""
    tables = all(frame.value[frame.value.columns[:2]].notna().all(axis=None)
                 and not frame.value.isna().all().any() for frame in test.dataframe)  # fmt: skip
    return tables and all(any(bar["text"]) for figure in figures(test) for bar in figure["data"])


@pytest.mark.parametrize("text", ["a", "<|endoftext|>"])
def test_one_token_is_told_and_nothing_empty_is_drawn(text: str) -> None:
    for measure, drawn in (("induction", 1), ("entropy", 0)):
        test = page("heads.py", text=text, measure=measure)
        assert said(test).count(TOO_SHORT) == 1
        assert len(figures(test)) == drawn
        assert nothing_is_empty(test)
        assert "Similar heads" not in html(test)
        rows = list(test.dataframe[0].value["measure"])
        assert rows == ["Duplicate token", "Induction", "Prefix matching"]
        assert list(test.dataframe[1].value.columns) == ["head", *rows]
    assert "Minimum: Entropy" not in [field.label for field in test.number_input]


def test_a_special_token_after_the_first_says_nothing_about_a_head() -> None:
    test = page("heads.py", text="a<|endoftext|>", measure="self")
    assert TOO_SHORT in said(test)
    assert nothing_is_empty(test)
    assert "Similar heads" in html(test)  # two patterns of two tokens can be compared


def test_a_measure_for_which_no_token_counts_is_named(bundled: Model) -> None:
    """The second of two tokens: the rarest so far is always itself or the first."""
    assert bundled.trace("The king").n_tokens == 2
    test = page("heads.py", text="The king", measure="rare_token")
    assert "no token of the text qualifies: Rarest token." in said(test)
    assert TOO_SHORT not in said(test)
    assert nothing_is_empty(test)
    assert "Rarest token" not in test.dataframe[1].value.columns


def test_a_text_with_something_to_say_gets_no_such_word() -> None:
    assert said(page("heads.py", measure="rare_token")) == ""


def test_several_texts_of_one_token_are_told_too() -> None:
    test = several("a", "a", measure="self")
    assert TOO_SHORT in said(test)
    assert not test.dataframe
    assert len(several("a", "The king", measure="self").dataframe) == 1


def test_no_number_of_a_table_is_a_negative_zero() -> None:
    """Intervals around 0 end a little below it."""
    for link in ({}, {"numbers_of": "Several texts", "measure": "induction"}):
        for frame in page("heads.py", at="L2H0", **link).dataframe:
            cells = [cell for column in frame.value for cell in frame.value[column]]
            numbers = [cell for cell in cells if isinstance(cell, float)]
            assert not any(np.signbit(n) and round(n, 4) == 0 for n in numbers)
            assert "-0.0000" not in cells
    assert measures.rounded(-0.00004) == 0
    assert not np.signbit(measures.rounded(-0.00004))
    assert measures.rounded(-0.00006) == -0.0001
    assert measures.rounded(float("nan")) is None


# --- compare --------------------------------------------------------------------------------------


def test_two_texts_are_aligned_and_compared(bundled: Model) -> None:
    other = DEFAULT.replace("king", "queen")
    test = page("compare.py", other_text=other, at="L3H4")
    change = compare.change(bundled.trace(DEFAULT), bundled.trace(other))
    best = np.unravel_index(np.nanargmax(change.distance), change.distance.shape)
    label = f"L{best[0]} H{best[1]} · {change.distance[best]:.2f}"
    assert label in [b.label for b in test.button]
    assert "<s>·king</s>" in html(test)
    assert "<u>·queen</u>" in html(test)


def test_a_capsule_of_a_comparison_names_the_other_side(bundled: Model) -> None:
    assert page("compare.py", other_text="The cat sat.").session_state["recorded_settings"] == {
        "Compared with the text": "The cat sat.",
        "Its token ids": bundled.trace("The cat sat.").token_ids,
    }


def test_without_heads_the_layers_below_stay_as_they_are(bundled: Model) -> None:
    test = page("compare.py", against="ablated heads", off="L2H1")
    assert "1 head ablated" in html(test)
    gate = np.ones((4, 6), dtype=np.float32)
    gate[2, 1] = 0
    trace = bundled.trace(DEFAULT)
    change = compare.change(trace, bundled.trace_ids(trace.token_ids, head_gate=gate))
    assert np.nanmax(change.distance[:3]) == 0
    top = np.nanmax(change.distance)
    assert f"Colour runs from 0 to {top:.2f}" in html(test)


def test_texts_without_a_token_in_common_are_told() -> None:
    test = page("compare.py", other_text="zzz")
    assert "nothing to compare" in said(test)
    test = page("compare.py", other_text="")
    assert "Type a second text" in said(test)


def test_a_model_of_other_sizes_cannot_be_compared(tmp_path: Path, tiny: Model) -> None:
    test = page("compare.py", against="another model", other_model=tiny.description.name)
    assert "Only models with equal numbers can be compared" in said(test).replace("\\", "")


# --- compare without heads ------------------------------------------------------------------------


def change_of(test: AppTest, layer: int, head: int) -> str:
    """What the map says on hover of one head."""
    (cells,) = figures(test)[0]["data"]
    return next(said for i, h, said in cells["customdata"] if (i, h) == (layer, head))


def test_a_head_that_is_off_is_blank_in_the_map_and_in_its_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    saved: dict[str, list[list[float]]] = {}
    monkeypatch.setattr(
        "mha_viz.app.pages.compare.download_table",
        lambda name, header, rows: saved.update({name: rows}),
    )
    test = page("compare.py", against="ablated heads", off="L0H1-L3H0", at="L3H4")
    assert change_of(test, 3, 0) == change_of(test, 0, 1) == "no value"
    assert change_of(test, 3, 4) != "no value"
    assert "Ablated heads are blank" in html(test)
    header, rows = test.session_state["pictures"]["change_map"].table()
    heads_told = {(row[0], row[1]) for row in rows}
    assert header == ["layer", "head", "change"]
    assert len(rows) == 22
    assert not heads_told & {(0, 1), (3, 0)}
    assert {(row[0], row[1]) for row in saved["change.csv"]} == heads_told
    assert np.isfinite(saved["change.csv"]).all()
    assert not [b for b in test.button if b.label.startswith(("L3 H0 ·", "L0 H1 ·"))]
    assert "writes nothing" not in said(test)  # the chosen one is on
    assert "Ablated heads are" not in html(page("compare.py"))


def test_a_chosen_head_that_is_off_is_told_to_write_nothing() -> None:
    test = page("compare.py", against="ablated heads", off="L3H0", at="L3H0")
    assert (
        "L3 H0 is ablated and writes nothing; its pattern only shows where it would look."
        in said(test)
    )
    assert alts(test)[0].startswith("Change of each head, at most 0.000.")  # none is above it
    assert "Pattern of L3 H0: full model, 17 aligned tokens." in alts(test)
    assert "Pattern of L3 H0: 1 head ablated, 17 aligned tokens." in alts(test)


def test_without_any_head_it_is_told_what_remains() -> None:
    everything = "-".join(f"L{i}H{h}" for i in range(4) for h in range(6))
    test = page("compare.py", against="ablated heads", off=everything)
    assert "Only the embeddings, the MLPs and the biases still write" in said(test)
    assert not figures(test)


# --- the other trace ------------------------------------------------------------------------------


def test_characters_that_stand_for_others_are_told_of_the_other_text() -> None:
    told = said(page("compare.py", other_text="The king \ufffd and the queen \ufffd."))
    assert "The other text contains U+FFFD 2 times" in told
    assert "The text contains" not in told


def test_a_cut_of_the_other_text_is_told(bundled: Model) -> None:
    other = DEFAULT + " and the old king" * 300
    trace = bundled.trace(other)
    n, out = trace.n_tokens, trace.left_out
    assert out > 0
    said_now = said(page("compare.py", other_text=other))
    assert (
        f"The other text has {n + out:,} tokens, but the context of bundled holds {n:,}. "
        f"Comparing the first {n:,}; the last {out:,} are dropped."
    ) in said_now
    assert said_now.count("are dropped") == 1  # the first text is short
    assert "are dropped" not in said(page("compare.py"))


def test_a_cut_for_the_other_model_is_told(tiny: Model) -> None:
    text = "the cat sat on the mat and ran to the other side of a small old town, " * 3
    name, trace = tiny.description.name, tiny.trace(text)
    n, out = trace.n_tokens, trace.left_out
    assert out > 0
    test = page("compare.py", against="another model", other_model=name, text=text)
    assert f"The text has {n + out} tokens, but the context of {name} holds {n}." in said(test)


def test_a_model_can_be_compared_with_itself() -> None:
    test = page("compare.py", against="another model", other_model="bundled")
    assert alts(test)[0].startswith("Change of each head, at most 0.000.")
    assert len(figures(test)) == 4


def test_rounding_alone_has_no_colour() -> None:
    """A text that goes on: the patterns over its beginning differ by what rounding does."""
    *_, difference = figures(page("compare.py", other_text=f"{DEFAULT} ring and a crown"))
    assert difference["data"][0]["zmax"] == 0.01


def test_on_a_stage_fewer_tokens_are_written_beside_a_pattern() -> None:
    for stage, most in (("false", 16), ("true", 10)):
        pattern = figures(page("compare.py", stage=stage))[1]
        assert most / 2 < len(pattern["layout"]["xaxis"]["ticktext"]) <= most

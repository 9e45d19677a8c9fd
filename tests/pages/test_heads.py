"""The Heads page as a script: it shows the package's values."""

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from support.script import ROOT, figures, finished, html, opened, said

from mha_viz import heads
from mha_viz.analysis import logit_attribution
from mha_viz.app.pages.heads import measures
from mha_viz.app.samples import DEFAULT
from mha_viz.heads.roles import Role
from mha_viz.heads.rollout import rollout
from mha_viz.model import Model


def page(**link: str) -> AppTest:
    test = finished(opened("heads", **link))
    assert not test.exception
    return test


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_a_head_profile_is_what_heads_measure_returns(bundled: Model) -> None:
    test = page(at="L3H4")
    frame = heads.measure(bundled, DEFAULT)
    row = frame[(frame["layer"] == 3) & (frame["head"] == 4)].iloc[0]
    shown = {r["measure"]: r["value"] for _, r in test.dataframe[0].value.iterrows()}
    assert float(shown["Induction"]) == pytest.approx(row["induction"], abs=1e-4)
    assert float(shown["First token (sink)"]) == pytest.approx(row["first_token"], abs=1e-4)
    assert len(test.dataframe[1].value) == 24
    assert "Similar heads" in html(test)
    assert "Published roles" not in html(test)  # they belong to GPT-2 small


def test_roles_are_checked_after_a_click(bundled: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """With roles given to the bundled model, which has none, and names that it knows."""
    monkeypatch.setattr(logit_attribution, "NAMES", (("John", "Mary"),))
    mover = Role(2, 1, "mover", "It copies.", "logit_difference", -9.0, "a paper")
    inducer = Role(3, 0, "inducer", "It completes repetitions.", "induction", 0.9, "a paper")
    unmeasured = Role(0, 2, "other", "Nothing here measures it.", None, source="a paper")
    given = {(role.layer, role.head): role for role in (mover, inducer, unmeasured)}
    monkeypatch.setattr("mha_viz.app.pages.heads.roles.roles_for", lambda *_: given)

    test = page(at="L3H4")
    (before,) = (t.value for t in test.dataframe if "role" in t.value)
    assert "check" not in before
    test = test.button(key="check_roles").click().run()
    assert not test.exception
    assert said(test) == ""
    rows = next(t.value for t in test.dataframe if "role" in t.value).set_index("role")
    assert rows["check"].to_dict() == {
        "mover": "not consistent", "inducer": "consistent", "other": "not measured here",
    }  # fmt: skip
    expected = logit_attribution.ioi_direct_effects(bundled).mean(axis=(0, 1))[2, 1]
    assert float(rows["value"]["mover"]) == pytest.approx(expected, abs=1e-3)


def test_a_minimum_leaves_the_heads_that_reach_it() -> None:
    test = page(measure="Induction", least_measure="0.8")
    assert set(test.dataframe[1].value["head"]) == {"L3 H0", "L3 H3", "L3 H4"}


def test_rollout_is_drawn_with_its_limits(bundled: Model) -> None:
    test = page(numbers_of="Combined heads", aggregate="rollout")
    last = rollout(bundled.trace(DEFAULT))[-1]
    assert f"(0) {last[0]:.2f}" in html(test)
    assert "position 0 tends to grow" in " ".join(m.value for m in test.markdown)


def test_several_texts_are_measured_one_by_one(bundled: Model) -> None:
    test = page(numbers_of="Several texts", measure="Itself")
    test.text_area(key="several").set_value("The king.\nOnce upon a time").run()
    test = finished(test)
    *_, batch = heads.measure_texts(bundled, ["The king.", "Once upon a time"])
    top = batch.frame["self"].max()
    assert float(test.dataframe[0].value["mean"][0]) == pytest.approx(top, abs=1e-4)
    assert "Mean over 2 texts" in html(test)


def several(*texts: str, **link: str) -> AppTest:
    return page(numbers_of="Several texts", several="\n".join(texts), **link)


def test_one_text_has_no_interval(bundled: Model) -> None:
    test = several("The king.", measure="Itself")
    assert "Mean over 1 text, run" in html(test)
    assert list(test.dataframe[0].value.columns) == ["head", "mean"]  # no interval over one
    assert "tokens" not in said(test)


def test_map_and_export_of_several_texts_are_of_those_texts_alone(bundled: Model) -> None:
    test = several("The king.", "Once upon a time", measure="Itself")
    *_, batch = heads.measure_texts(bundled, ["The king.", "Once upon a time"])
    header, rows = test.session_state["pictures"]["head_numbers"].data.table()
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
        several("The king.", "Once upon", measure="Induction")
    )


def test_texts_without_a_value_are_counted() -> None:
    text = html(several("x", "The king and the queen", "The cat", measure="Previous token"))
    assert "Mean over 3 texts (no value for 1 of them)" in text


def test_truncated_texts_are_counted(bundled: Model) -> None:
    fits, long = "a" + " a" * 1023, "a" + " a" * 1024
    assert [bundled.trace(text).left_out for text in (fits, long)] == [0, 1]
    test = several("The king.", fits, long, long)
    assert "2 of 4 texts had more than 1,024 tokens. Only the first 1,024 were used." in said(test)


@pytest.mark.parametrize("content", [b"", b" \n\n\t", b"\xef\xbb\xbf\n"])
def test_a_file_without_text_is_ignored_with_a_message(content: bytes) -> None:
    test = several("The king.", "Once upon a time")
    test.file_uploader(key="several_file").upload("empty.txt", content, "text/plain")
    test = finished(test.run())
    assert "empty.txt contains no text. Using the texts typed above." in said(test)
    assert "Type one text per line" not in said(test)
    assert "Mean over 2 texts" in html(test)


def test_a_file_with_text_replaces_the_typed_texts() -> None:
    test = several("The king.", "Once upon a time")
    test.file_uploader(key="several_file").upload("one.txt", b"The king.\n\n", "text/plain")
    assert "Mean over 1 text, run" in html(finished(test.run()))


# --- texts that are too short ---------------------------------------------------------------------

TOO_SHORT = "Measures on the text need at least one token after the first"


def nothing_is_empty(test: AppTest) -> bool:
    """No table has a cell without a value, no map only blank cells."""
    tables = all(frame.value[frame.value.columns[:2]].notna().all(axis=None)
                 and not frame.value.isna().all().any() for frame in test.dataframe)  # fmt: skip
    return tables and all(any(bar["text"]) for figure in figures(test) for bar in figure["data"])


@pytest.mark.parametrize("text", ["a", "<|endoftext|>"])
def test_one_token_gets_a_message_and_nothing_empty_is_drawn(text: str) -> None:
    for measure, drawn in (("Induction", 1), ("Entropy", 0)):
        test = page(text=text, measure=measure)
        assert said(test).count(TOO_SHORT) == 1
        assert len(figures(test)) == drawn
        assert nothing_is_empty(test)
        assert "Similar heads" not in html(test)
        rows = list(test.dataframe[0].value["measure"])
        assert rows == ["Duplicate token", "Induction", "Prefix matching"]
        assert list(test.dataframe[1].value.columns) == ["head", *rows]
    assert "Minimum: Entropy" not in [field.label for field in test.number_input]


def test_a_special_token_after_the_first_is_not_measured() -> None:
    test = page(text="a<|endoftext|>", measure="Itself")
    assert TOO_SHORT in said(test)
    assert nothing_is_empty(test)
    assert "Similar heads" not in html(test)  # the only query after the first is special


def test_a_measure_for_which_no_token_qualifies_is_named(bundled: Model) -> None:
    """The second of two tokens: the rarest so far is always itself or the first."""
    assert bundled.trace("The king").n_tokens == 2
    test = page(text="The king", measure="Rarest token")
    assert "no token of the text qualifies: Rarest token." in said(test)
    assert TOO_SHORT not in said(test)
    assert nothing_is_empty(test)
    assert "Rarest token" not in test.dataframe[1].value.columns


def test_an_ordinary_text_gets_no_message() -> None:
    assert said(page(measure="Rarest token")) == ""


def test_several_texts_of_one_token_get_a_message_too() -> None:
    test = several("a", "a", measure="Itself")
    assert TOO_SHORT in said(test)
    assert not test.dataframe
    assert len(several("a", "The king", measure="Itself").dataframe) == 1


def test_no_value_in_a_table_is_negative_zero() -> None:
    """Intervals around 0 end a little below it."""
    for link in ({}, {"numbers_of": "Several texts", "measure": "Induction"}):
        for frame in page(at="L2H0", **link).dataframe:
            cells = [cell for column in frame.value for cell in frame.value[column]]
            numbers = [cell for cell in cells if isinstance(cell, float)]
            assert not any(np.signbit(n) and round(n, 4) == 0 for n in numbers)
            assert "-0.0000" not in cells
    assert measures.rounded(-0.00004) == 0
    assert not np.signbit(measures.rounded(-0.00004))
    assert measures.rounded(-0.00006) == -0.0001
    assert measures.rounded(float("nan")) is None

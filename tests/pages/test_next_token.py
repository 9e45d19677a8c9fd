"""The Next token page as a script: it shows the model's predictions."""

import base64
import math
import re
from collections.abc import Callable

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from support.exported import rows_of
from support.script import ROOT, alts, button, figures, finished, html, opened, said

from mha_viz.analysis.generation import Sampling
from mha_viz.analysis.predictions import (
    attention_row,
    continue_text,
    join,
    lens,
    predict,
    score_continuation,
)
from mha_viz.app.samples import DEFAULT
from mha_viz.model import Model

LONG = "The king gave the princess a golden ring. " * 30


def page(**link: str) -> AppTest:
    return finished(opened("next_token", **link))


def texts(chart: dict) -> list[list[str]]:
    """The texts in the rows of a token grid, from the top."""
    written = next(trace for trace in chart["data"] if trace.get("mode") == "text")
    rows: dict[int, dict[int, str]] = {}
    for x, y, text in zip(written["x"], written["y"], written["text"], strict=True):
        rows.setdefault(y, {})[x] = text
    return [[row[x] for x in sorted(row)] for _, row in sorted(rows.items())]


def values(array: dict) -> np.ndarray:
    """A typed array as a figure sends it."""
    return np.frombuffer(base64.b64decode(array["bdata"]), dtype=array["dtype"])


def name(model: Model, token: int) -> str:
    return model.read([int(token)])[0].label


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("part", ["Every position", "Logit lens", "Generate"])
def test_every_tab_opens_from_a_link_without_a_message(part: str) -> None:
    test = page(expects=part)
    assert not test.exception
    assert said(test) == ""
    assert " ".join(alts(test)), "each chart is told in words"


def test_an_unknown_tab_in_a_link_gets_a_warning() -> None:
    assert "expects = Nowhere" in said(page(expects="Nowhere"))


@pytest.mark.parametrize("position", range(17))
def test_the_sentence_under_the_lens_says_where_the_final_choice_is_on_top(
    bundled: Model, position: int
) -> None:
    ids = bundled.trace(DEFAULT).token_ids
    layers = list(lens(bundled, ids, range(position, position + 1), 1))
    says = [int(layer.ids[0, 0]) == int(layers[-1].ids[0, 0]) for layer in layers]
    told = re.sub("<[^>]*>", "", html(page(expects="Logit lens", token=str(position))))
    earlier = ["at the embedding", *(f"after L{i}" for i in range(len(says) - 1))]
    if not any(says[:-1]):
        assert "No earlier layer ranks it first." in told
    elif says[-2]:
        held = next(i for i in range(len(says)) if all(says[i:]))
        assert f"The lens ranks it first {earlier[held]} and in every later row." in told
    else:
        did = ", ".join(name for name, said in zip(earlier, says[:-1], strict=False) if said)
        assert f"The lens also ranks it first {did}, but not {earlier[len(says) - 2]}." in told


# --- every position -------------------------------------------------------------------------------


def test_every_position_shows_the_prediction_and_the_actual_next_token(bundled: Model) -> None:
    ids = bundled.trace(DEFAULT).token_ids
    found = join(list(predict(bundled, ids)))
    test = page(likeliest="3")
    rows = texts(figures(test)[-1])
    assert len(rows) == 3 + 4
    for rank in range(3):
        wanted = [name(bundled, token) for token in found.ids[:, rank]]
        assert [w == t or "…" in t for w, t in zip(wanted, rows[rank], strict=True)] == [True] * 17
    assert rows[3][-1] == "?"
    assert rows[4] == [*(f"{rank:,}" for rank in found.ranks[:-1]), ""]
    assert rows[6][:-1] == [f"{loss:.2f}" for loss in found.losses[:-1]]
    loss = float(np.nanmean(found.losses))
    assert f"<b>{loss:.3f}</b> nats per token over 16 tokens" in html(test)
    assert f"perplexity <b>{math.exp(loss):,.1f}</b>" in html(test)


def test_the_actual_next_tokens_are_outlined(bundled: Model) -> None:
    ids = bundled.trace(DEFAULT).token_ids
    found = join(list(predict(bundled, ids)))
    chart = figures(page(likeliest="10"))[-1]
    outlines = next(trace for trace in chart["data"] if trace.get("mode") == "lines")
    x, y = (values(outlines[axis])[::6] for axis in "xy")  # four corners, the first again, a gap
    outlined = {(round(left + 0.47), round(top + 0.47)) for left, top in zip(x, y, strict=True)}
    ranked = {(i, rank - 1) for i, rank in enumerate(found.ranks.tolist()) if 1 <= rank <= 10}
    assert outlined == ranked


def test_a_long_text_is_drawn_around_the_selected_token_and_says_so(bundled: Model) -> None:
    n = bundled.trace(LONG).n_tokens
    test = page(text=LONG, token="100")
    assert not test.exception
    assert f"Showing positions 91 to 108 of {n}." in html(test)
    button(test, "Earlier").click()
    assert "Showing positions 73 to 90" in html(finished(test.run()))
    assert test.query_params["token"] == "82"
    test.slider(key="position").set_value(n - 1)
    assert f"Showing positions {n - 18} to {n - 1}" in html(finished(test.run()))


def test_a_click_goes_to_the_most_surprising_token(bundled: Model) -> None:
    found = join(list(predict(bundled, bundled.trace(LONG).token_ids)))
    worst = int(np.nanargmax(found.losses))
    test = page(text=LONG)
    there = next(b for b in test.button if f"({worst + 1})" in b.label)
    there.click()
    test.run()
    assert test.query_params["token"] == str(worst)


def test_a_single_token_has_no_loss_and_the_page_says_so() -> None:
    test = page(text="a")
    assert not test.exception
    assert "no loss" in said(test)


# --- logit lens -----------------------------------------------------------------------------------


def test_the_lens_names_the_top_token_of_each_layer(bundled: Model) -> None:
    ids = bundled.trace(DEFAULT).token_ids
    layers = list(lens(bundled, ids))
    test = page(expects="Logit lens")
    rows = texts(figures(test)[-1])
    assert len(rows) == 5 + 1
    for row, layer in zip(rows, layers, strict=False):
        wanted = name(bundled, layer.ids[-1, 0])
        assert row[-1] in (wanted, f"<b>{wanted}</b>")
    assert rows[4][-1] == "<b>·ring</b>", "bold is what the model ends with"
    assert "At <b>·golden</b> (16), the model's top token is <b>·ring</b>" in html(test)
    assert f"after L3 ·ring {layers[-1].probabilities[-1, 0]:.2f}" in " ".join(alts(test))


@pytest.mark.parametrize("colour", ["top token", "final choice", "actual next token"])
def test_the_colour_of_the_lens_is_the_probability_that_it_names(
    colour: str, bundled: Model
) -> None:
    layers = list(lens(bundled, bundled.trace(DEFAULT).token_ids))
    wanted = {
        "top token": np.stack([layer.probabilities[:, 0] for layer in layers]),
        "final choice": np.stack([layer.p_final for layer in layers]),
        "actual next token": np.stack([layer.p_actual for layer in layers]),
    }[colour]
    chart = figures(page(expects="Logit lens", lens_colour=colour))[-1]
    cells = next(trace for trace in chart["data"] if trace["type"] == "heatmap")
    drawn = values(cells["z"]).reshape(wanted.shape)
    np.testing.assert_allclose(drawn, np.sqrt(wanted), atol=1e-6)
    lines = cells["hovertext"][4][16].split("<br>")
    assert len(lines) == 1 + 5
    assert lines[0] == "after L3, at ·golden (16)"


# --- go on ----------------------------------------------------------------------------------------


def test_the_steps_are_those_of_the_model(bundled: Model) -> None:
    ids = bundled.trace(DEFAULT).token_ids
    link = {"temperature": "0.9", "top_k": "12", "top_p": "0.9", "draw": "3", "n_more": "6"}
    made = list(continue_text(bundled, ids, 6, sampling=Sampling(0.9, 12, 0.9, 3)))
    test = page(expects="Generate", go_on="sample", went="4", **link)
    assert not test.exception
    assert said(test) == ""
    step = made[3]
    summary = next(m.value for m in test.markdown if m.value.startswith("Position"))
    words = summary.replace("\\", "")
    assert f"Position 20: **{name(bundled, step.token)}**" in words
    assert f"top-p, {step.n_possible} candidate" in words
    assert "This step computed 1 token and read 19 from the cache." in words
    chart = figures(test)[-1]
    assert [bars["name"] for bars in chart["data"]] == ["model", "sampled from"]
    for bars, values in zip(chart["data"], (step.p_model, step.p_sampling), strict=True):
        np.testing.assert_allclose(bars["x"], values, atol=1e-6)
    assert chart["layout"]["shapes"][0]["y0"] == pytest.approx(
        step.ids.tolist().index(step.token) - 0.47
    )


def test_a_top_p_of_1_leaves_the_whole_vocabulary() -> None:
    link = {"temperature": "1", "top_k": "0", "top_p": "1", "n_more": "1"}
    test = page(expects="Generate", go_on="sample", **link)
    summary = next(m.value for m in test.markdown if m.value.startswith("Position"))
    assert "top-p, 4,096 candidates remained" in summary.replace("\\", "")


def test_the_attention_of_a_step_is_that_of_the_selected_head(bundled: Model) -> None:
    ids = bundled.trace(DEFAULT).token_ids
    step = next(continue_text(bundled, ids, 1))
    weights = attention_row(bundled, step, 2, 5)
    test = page(expects="Generate", at="L2H5", went="1")
    assert "<b>Where L2 H5 looked</b>" in html(test)
    best = int(weights.argmax())
    assert f"It looks most at <b>{name(bundled, ids[best])} ({best}) {weights[best]:.2f}" in html(
        test
    )
    assert html(test).count('title="position') == 24 + 17, "24 new tokens; 17 that were looked at"


def test_the_same_link_is_the_same_text_and_another_seed_is_another() -> None:
    def text(seed: str) -> str:
        test = page(expects="Generate", go_on="sample", draw=seed, n_more="12")
        button(test, "Use as text").click()
        return finished(test.run()).text_area(key="text").value

    assert text("1") == text("1") != text("2")
    assert text("1").startswith(DEFAULT)


def test_a_continuation_of_ones_own_is_scored_token_by_token(bundled: Model) -> None:
    ids = bundled.trace(DEFAULT).token_ids
    given, _ = bundled.encode(" ring and a crown.")
    made = list(score_continuation(bundled, ids, given))
    test = page(expects="Generate", go_on="your own", own=" ring and a crown.")
    assert not test.exception
    assert said(test) == ""
    loss = sum(step.loss for step in made)
    assert f"<b>{len(given)}</b> tokens" in html(test)
    assert f"loss <b>{loss / len(given):.3f}</b> nats" in html(test)
    power = math.floor(-loss / math.log(10))
    assert f"{math.exp(-loss) / 10**power:.2f} × 10⁻⁶" in html(test)
    assert power == -6
    test = page(expects="Generate", go_on="your own", own="crown")
    assert "continues the last word" in " ".join(c.value for c in test.caption)


def test_the_continuation_becomes_the_text_of_every_page() -> None:
    test = page(expects="Generate", go_on="your own", own=" ring, <b>said</b> $he$ & 😀.")
    assert not test.exception
    button(test, "Use as text").click()
    test = finished(test.run())
    assert test.text_area(key="text").value == f"{DEFAULT} ring, <b>said</b> $he$ & 😀."
    assert not test.exception


def test_a_full_context_is_reported(bundled: Model) -> None:
    text = "king " * 1020
    n = bundled.trace(text).n_tokens
    assert n < 1024
    room = 1024 - n
    test = page(expects="Generate", text=text, n_more="24")
    assert f"only {room} of 24 new tokens fit" in said(test)
    assert f"<b>{room}</b> tokens" in html(test)
    test = page(expects="Generate", text="king " * 1100)
    assert "fills all 1,024 positions" in said(test)
    assert not test.exception


def test_unavailable_values_in_a_link_get_a_warning() -> None:
    test = page(expects="Generate", go_on="sample", temperature="99", top_k="-3")
    assert "temperature = 99" in said(test)
    assert "top_k = -3" in said(test)
    assert said(page(expects="Generate", go_on="sample", temperature="0.80", draw="7")) == ""


def test_tokens_of_a_long_text_that_are_not_drawn_are_reported() -> None:
    test = page(expects="Generate", text=LONG)
    assert "are not drawn." in html(test)
    assert html(test).count('title="position') == 24 + 72


# --- the numbers --------------------------------------------------------------------------------


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[], str]]:
    """The contents of a page's download buttons, by file name."""
    found: dict[str, Callable[[], str]] = {}

    def button(
        label: str, data: Callable[[], str], name: str, *rest: object, **how: object
    ) -> None:
        found[name] = data

    monkeypatch.setattr("streamlit.download_button", button)
    return found


def test_the_downloads_hold_the_values_of_the_model(
    files: dict[str, Callable[[], str]], bundled: Model
) -> None:
    ids = bundled.trace(DEFAULT).token_ids
    found = join(list(predict(bundled, ids)))
    page()
    rows = rows_of(files["next_tokens.csv"]())
    assert [float(row["loss"]) for row in rows[:-1]] == pytest.approx(found.losses[:-1], abs=1e-6)
    assert [float(row["p 10"]) for row in rows] == pytest.approx(found.probabilities[:, 9])
    page(expects="Logit lens")
    rows = rows_of(files["logit_lens.csv"]())
    layers = list(lens(bundled, ids))
    assert [float(r["p 1"]) for r in rows if r["layer"] == "after L2"] == pytest.approx(
        layers[3].probabilities[:, 0]
    )
    assert len(rows) == 5 * 17
    page(expects="Generate", n_more="5", at="L1H3")
    made = list(continue_text(bundled, ids, 5))
    rows = rows_of(files["continuation.csv"]())
    assert [int(r["id"]) for r in rows if r["taken"] == "1"] == [step.token for step in made]
    row = list(map(float, list(rows_of(files["attention_L1H3.csv"]())[4].values())[1:]))
    assert row == pytest.approx(attention_row(bundled, made[4], 1, 3))

"""The Head page as a script: it shows the numbers of the head in the link."""

import base64
import csv
import io
import re
from functools import partial

import numpy as np
import pytest
from support.script import ROOT, alts, button, component, figures, html, opened, said

from mha_viz.analysis import dot_product, logit_attribution
from mha_viz.app.pages.head import cells, lines
from mha_viz.app.samples import DEFAULT
from mha_viz.model import Model

PARTS = ["Why this weight", "Lines", "Values", "Sink"]
page = partial(opened, "head")
AT = "L3H0"  # of the bundled model; on the default text an induction head


def unpacked(packed: str) -> list[tuple[int, int, float]]:
    numbers = np.frombuffer(base64.b64decode(packed), dtype="<u2").reshape(3, -1)
    return [(int(i), int(j), (float(w) + 0.5) / 64000) for i, j, w in numbers.T]


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


# --- all parts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("text", [DEFAULT, "a", "<b>&amp; $x$ *a* [b](http://c.d) né\t\n"])
def test_every_tab_shows_every_text_from_a_link(part: str, text: str) -> None:
    test = page(look=part, text=text)
    assert not test.exception
    assert not test.error
    assert all(alts(test))
    assert "<b>&amp; $x$" not in html(test)


def test_an_unknown_tab_in_a_link_gets_a_warning() -> None:
    test = page(look="Nonsense")
    assert "The link's value look = Nonsense" in said(test)
    assert len(figures(test)) == 5


@pytest.mark.parametrize("part", PARTS)
def test_a_valid_link_gets_no_warning(part: str) -> None:
    test = page(
        look=part, key="3", token="9", elements="by magnitude", threshold="0.2", most="2",
        direction="horizontal", sink_as="log scale", beside=["L0H1", "L1H2"],
    )  # fmt: skip
    assert not test.exception
    assert said(test) == ""


@pytest.mark.parametrize("part", PARTS)
def test_a_pruned_head_is_reported(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from mha_viz.app.pages import head as parts

    monkeypatch.setattr(parts, "kept_heads", lambda *_: [1, 2])
    test = page(look=part, at="L0H0")
    assert not test.exception
    assert "L0 H0 has been pruned from this model" in said(test)


# --- why this weight ------------------------------------------------------------------------------


def test_score_and_weight_are_those_of_the_pair_in_the_link(bundled: Model) -> None:
    trace = bundled.trace(DEFAULT)
    test = page(token="14", key="5", at=AT)
    found = dot_product.dot_product(trace, 3, 0, 14, 5)
    row = dot_product.softmax_row(trace, 3, 0, 14)
    assert f"score {found.score:.3f}, weight <b>{row.weights[5]:.4f}</b>, rank 1 of 15" in (
        html(test).replace("−", "-")
    )
    drawn = figures(test)
    assert len(drawn) == 5
    latex = " ".join(str(block.value) for block in test.get("latex"))
    assert f"{found.total:.3f}" in latex
    assert f"{row.weights[5]:.4f}" in latex
    assert test.number_input(key="key").value == 5


def test_without_a_key_the_strongest_is_shown(bundled: Model) -> None:
    trace = bundled.trace(DEFAULT)
    test = page(at=AT)
    last = trace.n_tokens - 1
    best = int(trace.pattern(3, 0)[last].argmax())
    assert component(test, "cells")["query"] == last
    assert component(test, "cells")["key"] == best
    assert test.number_input(key="key").value is None


def test_a_key_after_the_query_is_shown_as_masked(bundled: Model) -> None:
    test = page(token="3", key="9", at=AT)
    assert "masked, weight <b>0</b>" in html(test)
    score = dot_product.softmax_row(bundled.trace(DEFAULT), 3, 0, 3).scores[9]
    assert f"{score:.3f} → −∞".replace("-", "−") in str(
        [figure["layout"].get("annotations") for figure in figures(test)]
    )


def test_by_magnitude_the_largest_product_comes_first(bundled: Model) -> None:
    found = dot_product.dot_product(bundled.trace(DEFAULT), 3, 0, 16, 7)
    test = page(key="7", at=AT, elements="by magnitude")
    labels = figures(test)[0]["layout"]["xaxis"]["ticktext"]
    assert labels[0] == str(int(np.abs(found.products).argmax()))
    largest = found.products[found.order(by_size=True)[:5]].sum()
    assert f"the 5 products of largest magnitude add up to {largest:.2f} of {found.total:.2f}" in (
        html(test).replace("−", "-")
    )


def test_a_typed_query_is_the_selected_token_of_every_page() -> None:
    test = page(at=AT)
    seen = component(test, "strip")["ack"]
    test.number_input(key="query").set_value(4).run()
    assert component(test, "strip")["ack"] > seen  # else the strip would keep its own token
    assert component(test, "strip")["token"] == 4
    assert component(test, "cells")["query"] == 4
    assert test.query_params["token"] == "4"


def test_a_key_of_another_text_is_forgotten() -> None:
    test = page(key="12", at=AT)
    assert component(test, "cells")["key"] == 12
    test.text_area(key="text").set_value("Once upon a time").run()
    assert not test.exception
    assert test.number_input(key="key").value is None


def test_a_key_survives_a_visit_to_another_tab() -> None:
    test = page(key="12", at=AT)
    test.segmented_control(key="look").set_value("Lines").run()
    test.segmented_control(key="look").set_value("Why this weight").run()
    assert component(test, "cells")["key"] == 12


def test_an_unknown_key_in_a_link_gets_a_warning() -> None:
    assert "The link's value key = 99" in said(page(key="99"))


def test_a_click_on_a_pooled_cell_finds_its_largest_pair() -> None:
    matrix = np.zeros((12, 12), dtype=np.float32)
    matrix[6, 5], matrix[7, 4] = 2.0, -3.0
    matrix[matrix == 0] = np.nan
    assert cells.largest_in_block(matrix, 6, 4, 2) == (7, 4)
    assert cells.largest_in_block(matrix, 0, 0, 2) == (0, 0)  # all of it is blank
    assert cells.largest_in_block(matrix, 6, 5, 1) == (6, 5)


def test_a_long_text_is_pooled_and_the_page_says_how(bundled: Model) -> None:
    text = " king" * 600
    T = bundled.trace(text).n_tokens
    assert T >= 600
    test = page(text=text, at=AT)
    assert not test.exception
    assert any("in a 3 × 3 block" in c.value for c in test.caption)
    assert component(test, "cells")["block"] == 3


def test_a_zoom_is_named_and_can_be_reset() -> None:
    test = page(window="4-9-0-6", at=AT)
    assert any("Showing queries 4 to 8 and keys 0 to 5" in c.value for c in test.caption)
    next(b for b in test.button if b.label == "Reset zoom").click().run()
    assert not any("Showing queries" in c.value for c in test.caption)


# --- lines ----------------------------------------------------------------------------------------


def test_lines_are_the_weights_of_the_named_heads(bundled: Model) -> None:
    trace = bundled.trace(DEFAULT)
    test = page(look="Lines", at=AT, beside=["L0H1", "L1H2"], threshold="0.1", most="2")
    sent = component(test, "lines")
    assert [head["name"] for head in sent["heads"]] == ["L3 H0", "L0 H1", "L1 H2"]
    for head, (layer, number) in zip(sent["heads"], [(3, 0), (0, 1), (1, 2)], strict=True):
        pattern = trace.pattern(layer, number)
        drawn = unpacked(head["lines"])
        for i, j, weight in drawn:
            assert weight == pytest.approx(pattern[i, j], abs=1e-5)
        expected = sum(int((np.sort(row)[::-1][:2] >= 0.1).sum()) for row in pattern)
        assert len(drawn) == expected
    n = sum(len(unpacked(head["lines"])) for head in sent["heads"])
    assert f"{n} lines." in html(test)


def test_all_heads_of_the_layer_are_one_click_away() -> None:
    test = page(look="Lines", at="L2H4")
    next(b for b in test.button if b.label == "Show all heads of layer 2").click().run()
    names = [head["name"] for head in component(test, "lines")["heads"]]
    assert names == ["L2 H4", *[f"L2 H{h}" for h in (0, 1, 2, 3, 5)]]


def test_a_threshold_that_no_weight_reaches_breaks_nothing() -> None:
    test = page(look="Lines", at="L0H0", threshold="1.0", text="one two three")
    sent = component(test, "lines")
    assert len(unpacked(sent["heads"][0]["lines"])) <= 1  # the first token looks at itself alone
    assert not test.exception


def test_too_many_lines_are_capped_with_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINES", 10)
    test = page(look="Lines", at=AT, threshold="0.0", most="8")
    sent = component(test, "lines")
    assert sum(len(unpacked(head["lines"])) for head in sent["heads"]) == 10
    assert re.search(r"\d+ weights qualify. Showing the 10 largest, down to 0\.\d\d", said(test))


def test_at_rest_only_the_strongest_lines_are_drawn_and_the_page_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lines, "MAX_AT_REST", 12)
    test = page(look="Lines", at=AT, beside=["L0H1"])
    heads = component(test, "lines")["heads"]
    assert sum(head["at_rest"] for head in heads) == 12
    shown = [w for head in heads for *_, w in unpacked(head["lines"])[: head["at_rest"]]]
    hidden = [w for head in heads for *_, w in unpacked(head["lines"])[head["at_rest"] :]]
    assert min(shown) >= max(hidden)
    assert "of which only the 12 strongest are drawn until you highlight a token" in html(test)


def test_the_table_has_the_weights_of_the_lines(bundled: Model) -> None:
    pattern = bundled.trace(DEFAULT).pattern(3, 0)
    frame = page(look="Lines", at=AT).dataframe[0].value
    best = pattern[1:].max()
    assert frame["weight"][0] == pytest.approx(best, abs=1e-6)
    assert frame["weight"].is_monotonic_decreasing
    for _, line in frame.iterrows():
        assert line["weight"] == pytest.approx(pattern[line["from"], line["to"]], abs=1e-6)


def test_the_payload_grows_with_the_text_and_not_with_its_square() -> None:
    sizes = []
    for n in (100, 400):
        test = page(look="Lines", at=AT, text=" king" * n, threshold="0.0", most="8")
        sizes.append(sum(len(head["lines"]) for head in component(test, "lines")["heads"]))
    assert sizes[1] < 4.5 * sizes[0]


def test_the_token_of_the_link_is_highlighted_on_its_side() -> None:
    assert component(page(look="Lines"), "lines")["pinned"] is None
    sent = component(page(look="Lines", token="5", side="key"), "lines")
    assert sent["pinned"] == {"at": 5, "side": "key"}


# --- values ---------------------------------------------------------------------------------------


def test_value_weighted_attention_is_weight_times_norm(bundled: Model) -> None:
    trace = bundled.trace(DEFAULT)
    norms = logit_attribution.value_norms(bundled, trace, 3, 0)
    weights = trace.pattern(3, 0)
    test = page(look="Values", at=AT, token="16", key="7")
    moved = weights[16, 7] * norms[7]
    assert f"weight {weights[16, 7]:.4f} × norm {norms[7]:.3f} = <b>{moved:.4f}</b>" in html(test)
    share = dot_product.share_of_first(weights * norms)
    assert f"<b>{share:.1%}</b> of ‖α f(x)‖" in html(test)
    assert any(f"the largest is {(weights * norms).max():.3g}" in alt for alt in alts(test))


def test_the_tokens_that_a_head_raises_are_those_of_its_direct_effect(bundled: Model) -> None:
    trace = bundled.trace(DEFAULT)
    found = logit_attribution.direct_effects(bundled, trace, position=9).heads[3, 0]
    best = int(found.argmax())
    label = bundled.read([best])[0].label
    test = page(look="Values", at=AT, token="9")
    raised = next(alt for alt in alts(test) if alt.startswith("Tokens raised most"))
    assert f"{label} {found[best] - found.mean():+.3f}" in raised
    worst = int(found.argmin())
    lowered = next(alt for alt in alts(test) if alt.startswith("Tokens lowered most"))
    assert f"{found[worst] - found.mean():+.3f}" in lowered


def test_long_work_waits_for_a_click(monkeypatch: pytest.MonkeyPatch) -> None:
    from mha_viz.app.work import progress

    monkeypatch.setattr(progress, "MULTIPLY_ADDS", 1.0)
    test = page(look="Values", at=AT)
    assert not any(alt.startswith("Tokens raised") for alt in alts(test))
    next(b for b in test.button if b.label == "Compute").click().run()
    assert any(alt.startswith("Tokens raised") for alt in alts(test))


def test_the_lines_can_be_exported_with_their_data(bundled: Model) -> None:
    test = page(look="Lines", at=AT, beside="L0H1", most="1", threshold="0.2")
    assert "lines" not in test.session_state["pictures"]
    test.toggle(key="export").set_value(True).run()
    assert not test.exception
    picture = test.session_state["pictures"]["lines"]
    assert "Lines of L3 H0, L0 H1: " in picture.caption
    rows = list(csv.DictReader(io.StringIO(picture.csv())))
    found = {(r["head"], int(r["from"]), int(r["to"])): float(r["weight"]) for r in rows}
    trace = bundled.trace(DEFAULT)
    for layer, head in ((3, 0), (0, 1)):
        pattern = trace.pattern(layer, head)
        for query, row in enumerate(pattern):
            key = int(row.argmax())
            told = found.get((f"L{layer} H{head}", query, key), 0.0)
            assert told == pytest.approx(row[key] if row[key] >= 0.2 else 0.0, abs=1e-6)
    assert "For PNG and SVG, use the buttons below the figure." in [c.value for c in test.caption]


# --- the sink -------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["raw", "log scale"])
def test_modes_that_hide_nothing_say_so(way: str, bundled: Model) -> None:
    test = page(look="Sink", at=AT, sink_as=way)
    share = dot_product.share_of_first(bundled.trace(DEFAULT).pattern(3, 0))
    assert "<dt>hidden here</dt><dd>nothing</dd>" in html(test)
    assert f"{share:.1%} of the weight of queries 1 to 16" in html(test)


@pytest.mark.parametrize("way", ["first token hidden", "hidden, renormalised"])
def test_modes_that_hide_the_first_token_say_how_much_it_had(way: str, bundled: Model) -> None:
    pattern = bundled.trace(DEFAULT).pattern(3, 0)
    test = page(look="Sink", at=AT, sink_as=way)
    share = pattern[1:, 0].mean()
    assert f"<dt>hidden here</dt><dd>{share:.1%} of the weight</dd>" in html(test)
    rest = pattern[:, 1:]
    if "renormalised" in way:
        rest = rest[1:] / (1 - pattern[1:, :1])
    assert any(f"is {rest.max():.3g}, from" in alt for alt in alts(test))


def test_value_weighted_attention_has_a_colour_scale_of_its_own(bundled: Model) -> None:
    trace = bundled.trace(DEFAULT)
    moved = trace.pattern(3, 0) * logit_attribution.value_norms(bundled, trace, 3, 0)
    test = page(look="Sink", at=AT, sink_as="value-weighted")
    assert any(f"is {moved.max():.3g}, from" in alt for alt in alts(test))


def test_a_single_token_has_no_sink() -> None:
    test = page(look="Sink", text="a", sink_as="first token hidden")
    assert not test.exception
    assert "The first token is the only one" in said(test)


def test_lines_without_the_first_token_are_the_largest_of_the_others(bundled: Model) -> None:
    test = page(look="Lines", at="L3H4", most="2", threshold="0.01", no_sink="true")
    [sent] = component(test, "lines")["heads"]
    pattern = bundled.trace(DEFAULT).pattern(3, 4)
    for query, key, weight in unpacked(sent["lines"]):
        assert key > 0
        assert weight == pytest.approx(pattern[query, key], abs=1e-4)
        assert weight >= np.sort(pattern[query, 1:])[-2] - 1e-4
    assert "None lead to the first token" in html(test)


def test_the_mean_of_all_heads_has_lines_of_its_own(bundled: Model) -> None:
    test = page(look="Lines", at="L3H4", of="their mean", threshold="0.0", most="8")
    button(test, "Show all heads").click().run()
    [sent] = component(test, "lines")["heads"]
    assert sent["name"] == "mean of 24 heads"
    trace = bundled.trace(DEFAULT)
    mean = np.mean([trace.patterns(layer) for layer in range(4)], axis=(0, 1))
    for query, key, weight in unpacked(sent["lines"]):
        assert weight == pytest.approx(mean[query, key], abs=1e-4)


def test_too_many_heads_to_tell_apart_are_a_message_and_not_an_error() -> None:
    test = page(look="Lines", of="their mean")
    button(test, "Show all heads").click().run()
    test.button_group(key="of").set_value("each head").run()
    assert not test.exception
    assert "24 heads are too many to tell apart" in said(test)
    assert len(component(test, "lines")["heads"]) == 8

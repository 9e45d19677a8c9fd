"""The Attention page: what it draws, and what pointing and clicking do on it."""

import json
from collections.abc import Sequence
from itertools import pairwise

import pytest
from playwright.sync_api import expect
from support.browser import GRID, MAP, ROOT, AttentionTab, Opener

from mha_viz.app.samples import DEFAULT
from mha_viz.model import Model
from mha_viz.tokens import shorten

CASES = {
    case["name"]: case["text"]
    for case in json.loads((ROOT / "tests" / "cases" / "texts.json").read_text(encoding="utf-8"))
    if case["name"] not in ("empty", "full context", "lone surrogate")
}


def test_the_first_page_fits_without_scrolling(visit: Opener) -> None:
    one = visit().open()
    assert one.page.locator(".lead").inner_text().startswith("Attention")
    expect(one.page.locator(GRID).locator("image")).to_have_count(1)
    assert one.page.evaluate(
        "() => { const m = document.querySelector('[data-testid=stMain]');"
        "return m.scrollHeight <= m.clientHeight && m.scrollWidth <= m.clientWidth }"
    )
    assert "Traceback" not in one.page.content()


def test_stage_mode_fits_a_projector(visit: Opener) -> None:
    one = visit(viewport={"width": 1280, "height": 720}).open(stage="true")
    assert one.page.evaluate(
        "() => { const m = document.querySelector('[data-testid=stMain]');"
        "return m.scrollHeight <= m.clientHeight }"
    )
    size = one.page.locator(".caption").first.evaluate(
        "e => parseFloat(getComputedStyle(e).fontSize)"
    )
    assert size >= 14


def test_every_case_is_shown_as_typed(visit: Opener, bundled: Model) -> None:
    one = visit().open(at="L2H5")
    for text in CASES.values():
        one.follow(text=text, at="L2H5")
        assert_shown(one, text, bundled.trace(text).tokens)


def assert_shown(one: AttentionTab, text: str, tokens: Sequence[str]) -> None:
    """The text is in the text area, its tokens in the strip, on the axis and in the tooltip."""
    assert one.chips() == [shorten(token) for token in tokens]
    ticks = one.page.locator(f"{MAP} .ytick text").all_text_contents()
    assert len(ticks) == min(len(tokens), len(ticks))
    assert set(ticks) <= {shorten(token, 12) for token in tokens}
    assert one.page.locator(f"{MAP} a").count() == 0
    typed = one.page.get_by_label("Text", exact=True).input_value()
    assert typed == text.replace("\r\n", "\n")  # a text area shows no carriage return
    if len(tokens) > 256:
        return  # pooled: which pair of tokens a cell names depends on the weights
    last = len(tokens) - 1
    tip = one.page.locator("#mha-viz-tip")
    one.page.mouse.move(0, 0)
    expect(tip).to_be_hidden()
    one.hover(MAP, 0, last)
    expect(tip).to_be_visible()
    expect(tip).to_contain_text(f"({last})")
    assert tokens[last] in tip.inner_text()
    assert tokens[0] in tip.inner_text()


def test_labels_do_not_touch(visit: Opener) -> None:
    """Not even combining marks, which rise above and below a line, on the strip or the axis."""
    one = visit().open(text=CASES["combining"])
    boxes = one.page.locator(".chip").evaluate_all(
        "chips => chips.map(c => { const r = c.getBoundingClientRect();"
        "return [r.left, r.right, r.top, c.scrollHeight > c.clientHeight + 30] })"
    )
    for (_, right, top, tall), (left, _, next_top, _) in pairwise(boxes):
        assert not tall
        assert top != next_top or right <= left + 2.5
    visible = one.page.locator(f"{MAP} .ytick text").evaluate_all(
        "ts => ts.filter(t => t.style.visibility !== 'hidden')"
        ".map(t => t.getBoundingClientRect().y)"
    )
    gaps = [b - a for a, b in pairwise(visible)]
    assert min(gaps) >= 11


def test_a_lone_surrogate_breaks_nothing(visit: Opener) -> None:
    one = visit().open()
    one.page.evaluate(
        """() => { const area = document.querySelector('textarea');
        Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, 'value').set
          .call(area, 'bad \\ud83d here');
        area.dispatchEvent(new Event('input', { bubbles: true })); }"""
    )
    one.page.get_by_label("Text", exact=True).press("Control+Enter")
    expect(one.page.locator(".chip .word").first).to_have_text("b")
    assert "Traceback" not in one.page.content()
    expect(one.page.get_by_text("U+FFFD")).to_be_visible()


def test_a_click_on_a_thumbnail_selects_the_head_and_back_undoes_it(visit: Opener) -> None:
    one = visit().open(at="L0H1")
    one.hover(GRID, 2, 1)
    expect(one.page.locator(f"{GRID} .hovertext")).to_contain_text("L1 H2")
    one.click(GRID, 2, 1)
    expect(one.page.locator(".lead b")).to_have_text("L1 H2")
    one.settle()
    assert "at=L1H2" in one.query()
    one.click(GRID, 5, 2)
    expect(one.page.locator(".lead b")).to_have_text("L2 H5")
    one.click(GRID, 5, 2)
    one.settle()
    expect(one.page.locator(".lead b")).to_have_text("L2 H5")
    one.page.go_back()
    expect(one.page.locator(".lead b")).to_have_text("L1 H2")
    assert one.page.get_by_label("Text", exact=True).input_value() == DEFAULT
    one.settle()
    one.click(GRID, 5, 2)
    expect(one.page.locator(".lead b")).to_have_text("L2 H5")


def test_pointing_at_a_token_does_not_use_the_server(visit: Opener, bundled: Model) -> None:
    one = visit().open(at="L2H5")
    pattern = bundled.trace(DEFAULT).pattern(2, 5)
    sent = one.n_sent
    for query in (3, 9, 14):
        one.page.locator(".chip").nth(query).hover()
        sentence = one.page.locator(".sentence").inner_text()
        best = int(pattern[query].argmax())
        weight = f"{pattern[query, best]:.2f}"
        assert ("1" if weight == "1.00" else weight) in sentence
        assert one.page.locator(".chip.query").count() == 1
    one.hover(MAP, 4, 5)
    expect(one.page.locator("#mha-viz-tip")).to_contain_text(f"{pattern[5, 4]:.3f}")
    assert one.page.locator(".chip.query").get_attribute("data-position") == "5"
    assert one.n_sent == sent


def test_the_heatmap_fits_its_place_after_the_browser_window_changes(visit: Opener) -> None:
    one = visit().open(at="L0H0")
    for width in (1280, 800, 1440):
        one.page.set_viewport_size({"width": width, "height": 800})
        one.settle()
        place, picture = (
            one.page.locator(selector).first.bounding_box()
            for selector in (".st-key-map_box", f"{MAP} .main-svg")
        )
        assert picture == pytest.approx(place, abs=2)


def test_the_colour_scheme_may_change_while_the_page_is_open(visit: Opener) -> None:
    one = visit(color_scheme="light").open()
    first = f"document.querySelector('{MAP}')?.data?.[0].colorscale[0][1]"
    assert one.page.evaluate(first) == "#EFF2FA"
    one.page.emulate_media(color_scheme="dark")
    one.page.wait_for_function(f"{first} === '#23252F'", timeout=15_000)
    one.page.emulate_media(color_scheme="light")
    one.page.wait_for_function(f"{first} === '#EFF2FA'", timeout=15_000)


def test_an_empty_text_keeps_the_picture(visit: Opener) -> None:
    one = visit().open()
    before = one.chips()
    one.type("")
    expect(one.page.get_by_text("Type a sentence")).to_be_visible()
    assert one.chips() == before
    one.page.get_by_role("button", name="Once upon a time").or_(
        one.page.get_by_role("button", name="The cat and the rug")
    ).first.click()
    expect(one.page.get_by_text("Type a sentence")).to_have_count(0)


def test_the_name_of_a_head_follows_the_keys_and_stands_below_its_thumbnail(visit: Opener) -> None:
    one = visit().open(at="L3H3")
    names = one.page.locator(".head-name")
    expect(names.first).to_have_text("induction")
    one.page.keyboard.press("ArrowRight")
    for i in range(names.count()):
        expect(names.nth(i)).to_have_text("induction · sink")
    one.settle()
    expect(names.first).to_have_text("induction · sink")
    badges = one.page.locator(f"{GRID} .mha-viz-marks button")
    expect(badges).to_have_count(24)
    badges.nth(1).click()
    expect(one.page.locator(".lead b")).to_have_text("L0 H1")
    expect(one.page.locator("#mha-viz-tip")).to_contain_text("threshold 0.3")


def test_a_head_that_matters_is_one_click_away(visit: Opener) -> None:
    one = visit().open()
    expect(one.page.locator(".lead b")).to_have_text("L3 H3")
    rows = one.page.locator(".matter .row")
    expect(rows).to_have_count(5)
    expect(rows.nth(0)).to_have_attribute("aria-pressed", "true")
    rows.nth(1).click()
    expect(one.page.locator(".lead b")).to_have_text("L3 H0")
    expect(rows.nth(1)).to_have_attribute("aria-pressed", "true")
    one.settle()
    assert "at=L3H0" in one.query()
    expect(one.page.locator(f"{GRID} .mha-viz-marks")).to_contain_text("+2.3")


def test_the_next_token_stands_after_the_text_while_its_last_token_is_pinned(visit: Opener) -> None:
    one = visit().open()
    expect(one.page.locator(".next")).to_have_text("·ring83%")
    expect(one.page.locator(".expects")).to_contain_text("The model expects ·ring 83%")
    one.page.locator(".chip").nth(3).click()
    expect(one.page.locator(".next")).to_be_hidden()
    expect(one.page.locator(".expects")).to_have_count(0)
    expect(one.page.locator(".matter .title")).not_to_contain_text("·ring")

"""What a visitor sees and does, in a real Chromium against the served app."""

import json
import os
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from support.browser import IDLE, ROOT, chromium, served
from support.hub_server import HubServer

from mha_viz.app.samples import DEFAULT
from mha_viz.model import Model
from mha_viz.tokens import shorten

pytestmark = pytest.mark.browser
if chromium() is None and not os.environ.get("MHA_VIZ_NEED_BROWSER"):
    pytest.skip("no Chromium on this machine (apt install chromium)", allow_module_level=True)

MAP, GRID = ".st-key-head_map .js-plotly-plot", ".st-key-head_grid .js-plotly-plot"
CASES = {
    case["name"]: case["text"]
    for case in json.loads((ROOT / "tests" / "cases" / "texts.json").read_text(encoding="utf-8"))
    if case["name"] not in ("empty", "full context", "lone surrogate")
}
CELL = """([selector, x, y]) => {
  const gd = document.querySelector(selector), r = gd.getBoundingClientRect(), f = gd._fullLayout;
  return [r.x + f.xaxis._offset + f.xaxis.l2p(x), r.y + f.yaxis._offset + f.yaxis.l2p(y)];
}"""


class Visit:
    """One tab, and everything it did that it should not have."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        self.page: Page = context.new_page()
        self.address = address
        self.problems: list[str] = []
        self.frames = 0
        self.page.on("pageerror", lambda error: self.problems.append(f"error {error}"))
        self.page.on("dialog", lambda dialog: self.problems.append(f"dialog {dialog.message}"))
        self.page.on("request", self._request)
        self.page.on("websocket", lambda ws: ws.on("framesent", self._frame))

    def _request(self, request: object) -> None:
        url = request.url  # type: ignore[attr-defined]
        if not url.startswith((self.address, "data:", "blob:")):
            self.problems.append(f"asked {url}")

    def _frame(self, _: object) -> None:
        self.frames += 1

    def open(self, **link: str) -> "Visit":
        self.page.goto(f"{self.address}/?{urlencode(link)}")
        self.settle()
        return self

    def settle(self) -> None:
        self.page.wait_for_selector(f"{MAP} .hm", state="attached", timeout=60_000)
        self.page.wait_for_selector(IDLE, state="attached", timeout=60_000)
        self.page.wait_for_function(
            "s => document.querySelector(s)?._fullLayout?.xaxis", arg=MAP, timeout=30_000
        )
        self.page.wait_for_timeout(150)

    def at(self, selector: str, x: float, y: float) -> tuple[float, float]:
        x, y = self.page.evaluate(CELL, [selector, x, y])
        return x, y

    def hover(self, selector: str, x: float, y: float) -> None:
        px, py = self.at(selector, x, y)
        self.page.mouse.move(px - 2, py - 2)
        self.page.mouse.move(px, py)

    def click(self, selector: str, x: float, y: float) -> None:
        self.hover(selector, x, y)
        self.page.mouse.click(*self.at(selector, x, y))

    def chips(self) -> list[str]:
        return self.page.locator(".chip .word").all_text_contents()

    def query(self) -> str:
        return str(self.page.evaluate("location.search"))

    def type(self, text: str) -> None:
        area = self.page.get_by_label("Text", exact=True)
        area.fill(text)
        area.press("Control+Enter")
        self.page.wait_for_timeout(300)
        self.page.wait_for_selector(IDLE, state="attached")
        self.page.wait_for_timeout(300)


Opener = Callable[..., Visit]


@pytest.fixture
def visit(chrome: Browser, address: str) -> Iterator[Opener]:
    contexts = []

    def begin(*, width: int = 1440, height: int = 900, **options: object) -> Visit:
        context = chrome.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        visits.append(Visit(context, address))
        return visits[-1]

    visits: list[Visit] = []
    yield begin
    for context in contexts:
        context.close()
    assert [problem for one in visits for problem in one.problems] == []


def test_the_first_page_is_whole_without_scrolling(visit: Opener) -> None:
    one = visit().open()
    assert one.page.locator(".lead").inner_text().startswith("Attention")
    expect(one.page.locator(GRID).locator("image")).to_have_count(1)
    assert one.page.evaluate(
        "() => { const m = document.querySelector('[data-testid=stMain]');"
        "return m.scrollHeight <= m.clientHeight && m.scrollWidth <= m.clientWidth }"
    )
    assert "Traceback" not in one.page.content()


def test_stage_mode_fits_a_projector(visit: Opener) -> None:
    one = visit(width=1280, height=720).open(stage="true")
    assert one.page.evaluate(
        "() => { const m = document.querySelector('[data-testid=stMain]');"
        "return m.scrollHeight <= m.clientHeight }"
    )
    size = one.page.locator(".caption").first.evaluate(
        "e => parseFloat(getComputedStyle(e).fontSize)"
    )
    assert size >= 14


@pytest.mark.parametrize("name", CASES)
def test_every_case_is_shown_as_typed(visit: Opener, bundled: Model, name: str) -> None:
    text = CASES[name]
    one = visit().open(text=text, at="L2H5")
    tokens = bundled.trace(text).tokens
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
    one.hover(MAP, 0, last)
    tip = one.page.locator("#mha-viz-tip")
    expect(tip).to_contain_text(f"({last})")
    assert tokens[last] in tip.inner_text()
    assert tokens[0] in tip.inner_text()


def test_labels_do_not_touch(visit: Opener) -> None:
    """Also with marks that would climb over their neighbours, on the strip and on the axis."""
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


def test_a_click_on_a_thumbnail_chooses_the_head_and_back_takes_it_back(visit: Opener) -> None:
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
    one.page.wait_for_timeout(300)
    expect(one.page.locator(".lead b")).to_have_text("L2 H5")
    one.page.go_back()
    expect(one.page.locator(".lead b")).to_have_text("L1 H2")
    assert one.page.get_by_label("Text", exact=True).input_value() == DEFAULT
    one.settle()
    one.click(GRID, 5, 2)
    expect(one.page.locator(".lead b")).to_have_text("L2 H5")


def test_arrow_keys_walk_over_the_heads_without_losing_a_step(visit: Opener) -> None:
    one = visit().open(at="L0H0")
    for key in ["ArrowRight"] * 4 + ["ArrowDown"] * 3 + ["ArrowLeft"]:
        one.page.keyboard.press(key)
    expect(one.page.locator(".lead b")).to_have_text("L3 H3")
    one.page.get_by_label("Text", exact=True).press("ArrowUp")
    one.page.wait_for_timeout(300)
    expect(one.page.locator(".lead b")).to_have_text("L3 H3")


def test_from_head_to_head_there_is_a_picture_at_every_moment(visit: Opener) -> None:
    one = visit().open(at="L0H0")
    one.page.evaluate(f"""() => {{
      window.boxes = [];
      const look = () => {{
        const image = document.querySelector("{MAP} .hm image");
        const {{ x, y, width, height }} = image?.getBoundingClientRect() ?? {{}};
        boxes.push(image ? [x, y, width, height].map(Math.round).join() : "nothing");
        requestAnimationFrame(look);
      }};
      look();
    }}""")
    for head in ("L0 H1", "L0 H2", "L0 H3"):
        one.page.keyboard.press("ArrowRight")
        expect(one.page.locator(".lead b")).to_have_text(head)
        one.settle()
    assert len(set(one.page.evaluate("boxes"))) == 1


def test_the_heatmap_fits_its_place_after_the_window_changes(visit: Opener) -> None:
    one = visit().open(at="L0H0")
    for width in (1280, 800, 1440):
        one.page.set_viewport_size({"width": width, "height": 800})
        one.page.wait_for_timeout(400)
        place, picture = (
            one.page.locator(selector).first.bounding_box()
            for selector in (".st-key-map_box", f"{MAP} .main-svg")
        )
        assert picture == pytest.approx(place, abs=2)


def test_a_zoom_that_leaves_nothing_out_is_taken_back(visit: Opener) -> None:
    one = visit().open(at="L0H0")
    one.page.evaluate(f"Plotly.relayout(document.querySelector('{MAP}'), "
                      "{'xaxis.range[0]': -0.3, 'xaxis.range[1]': 16.3})")  # fmt: skip
    one.page.wait_for_function(
        f"document.querySelector('{MAP}')._fullLayout.xaxis.range.join() === '-0.5,16.5'"
    )
    assert "window" not in one.query()


LAYOUT = f"""() => {{
  const gd = document.querySelector("{MAP}");
  const {{ xaxis, yaxis, margin, coloraxis }} = gd._fullLayout;
  const image = gd.querySelector(".hm image").getBoundingClientRect();
  const bars = [...gd.querySelectorAll(".cbfills, .cbtitle text")].map((node) => {{
    const {{ x, y }} = node.getBoundingClientRect();
    return [x, y];
  }});
  const numbers = [image.x, image.y, image.width, image.height, ...xaxis.range, ...yaxis.range,
    ...bars.flat()];
  return numbers.map(Math.round).join();
}}"""


def test_a_picture_that_changed_is_the_one_that_its_link_opens(visit: Opener) -> None:
    one = visit().open(at="L0H0")
    (x0, y0), (x1, y1) = one.at(MAP, 3.5, 7.5), one.at(MAP, 9.5, 14.5)
    one.page.mouse.move(x0, y0)
    one.page.mouse.down()
    one.page.mouse.move(x1, y1, steps=5)
    one.page.mouse.up()
    expect(one.page.get_by_role("button", name="Reset zoom")).to_be_visible()
    seen = []

    def compare() -> None:
        one.settle()
        one.page.wait_for_timeout(300)
        other = visit().open(**dict(parse_qsl(one.query().removeprefix("?"))))
        other.page.wait_for_timeout(300)
        seen.append(one.page.evaluate(LAYOUT))
        assert seen[-1] == other.page.evaluate(LAYOUT)

    compare()
    one.page.locator("body").press("ArrowRight")
    expect(one.page.locator(".lead b")).to_have_text("L0 H1")
    compare()
    one.page.get_by_role("button", name="Reset zoom").click()
    one.page.wait_for_function("!location.search.includes('window=')")
    compare()
    one.type("Hello")
    compare()
    one.type("The cat sat on the mat and looked at the moon over the sea. " * 6)
    compare()
    assert len(set(seen)) >= 4


def test_back_takes_back_one_press_and_forward_brings_it_again(visit: Opener) -> None:
    one = visit().open(at="L0H0")
    asks = one.page.locator(".chip.query")
    for key, query in ((3, 12), (4, 10)):
        one.click(MAP, key, query)
        one.page.wait_for_function(f"location.search.includes('token={query}')")
        one.settle()
        one.page.mouse.move(5, 5)
    one.page.go_back()
    expect(asks).to_have_attribute("data-position", "12")
    assert "token=12" in one.query()
    one.page.go_back()
    expect(asks).to_have_attribute("data-position", "16")
    assert "token" not in one.query()
    one.page.go_forward()
    one.page.go_forward()
    expect(asks).to_have_attribute("data-position", "10")
    assert "token=10" in one.query()


def test_a_press_makes_one_entry_in_the_history(visit: Opener) -> None:
    one = visit().open(at="L0H0")
    entries = lambda: one.page.evaluate("history.length")  # noqa: E731
    before = entries()

    def made(link: str) -> int:
        one.page.wait_for_function(f"location.href.includes('{link}')")
        one.page.wait_for_selector(IDLE, state="attached")
        one.page.wait_for_timeout(600)
        return entries() - before

    one.click(GRID, 2, 1)
    assert made("at=L1H2") == 1
    assert "token" not in one.query()  # nobody chose one
    one.click(MAP, 3, 12)
    assert made("token=12") == 2
    one.page.get_by_role("link", name="Next token").click()
    assert made("/next_token?at=L1H2&token=12") == 3
    one.type("A dog sat on a log and another dog sat on another log.")
    assert made("text=A") == 4
    one.page.wait_for_function("!location.search.includes('token=')")
    one.page.go_back()
    assert made("/next_token?at=L1H2&token=12") == 4
    expect(one.page.get_by_label("Text", exact=True)).to_have_value(DEFAULT)
    one.page.go_back()
    assert made("/?at=L1H2&token=12") == 4
    expect(one.page.locator(".chip.query")).to_have_attribute("data-position", "12")
    one.page.go_back()
    one.page.wait_for_function("!location.search.includes('token=')")
    expect(one.page.locator(".lead b")).to_have_text("L1 H2")


def test_a_key_that_is_held_is_one_entry_and_so_is_a_choice_in_a_box(visit: Opener) -> None:
    one = visit().open(at="L1H0")
    before = one.page.evaluate("history.length")
    for _ in range(3):  # the second and third are repeats: the key never comes up
        one.page.keyboard.down("ArrowRight")
        one.page.wait_for_timeout(250)
    one.page.keyboard.up("ArrowRight")
    one.page.wait_for_function("location.search.includes('at=L1H3')")
    one.settle()
    assert one.page.evaluate("history.length") == before + 1
    one.page.get_by_text("vs uniform").click()
    one.page.wait_for_function("location.search.includes('colour=vs')")
    one.settle()
    assert one.page.evaluate("history.length") == before + 2
    one.page.go_back()
    one.page.wait_for_function("!location.search.includes('colour')")
    one.page.go_back()
    expect(one.page.locator(".lead b")).to_have_text("L1 H0")


def test_a_double_click_ends_the_zoom_and_pins_nothing(visit: Opener) -> None:
    one = visit().open(at="L0H0", token="16", window="4-17-2-12")
    one.hover(MAP, 5, 9)
    one.page.mouse.dblclick(*one.at(MAP, 5, 9))
    one.page.wait_for_function("!location.search.includes('window=')")
    one.page.wait_for_function(
        f"document.querySelector('{MAP}')?._fullLayout?.xaxis.range.join() === '-0.5,16.5'"
    )
    one.settle()
    assert "token=16" in one.query()
    one.click(MAP, 5, 9)
    one.page.wait_for_function("location.search.includes('token=9')")


def test_a_key_that_is_held_down_ends_at_the_last_head(visit: Opener) -> None:
    one = visit().open(at="L0H0")
    for _ in range(3):
        for key in ["ArrowRight"] * 5 + ["ArrowDown", "ArrowUp"] + ["ArrowLeft"] * 5:
            one.page.keyboard.press(key)
            one.page.wait_for_timeout(33)
        one.page.wait_for_timeout(300)
    one.page.keyboard.press("ArrowDown")
    expect(one.page.locator(".lead b")).to_have_text("L1 H0")
    one.settle()
    assert "at=L1H0" in one.query()
    assert one.page.get_by_role("dialog").count() == 0


def test_pointing_at_a_token_asks_the_server_nothing(visit: Opener, bundled: Model) -> None:
    one = visit().open(at="L2H5")
    pattern = bundled.trace(DEFAULT).pattern(2, 5)
    sent = one.frames
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
    assert one.frames == sent


def test_a_pinned_token_is_in_the_link(visit: Opener) -> None:
    one = visit().open(at="L2H5")
    one.page.locator(".chip").nth(4).click()
    one.page.mouse.move(5, 700)
    one.page.wait_for_function("location.search.includes('token=4')")
    other = visit().open(**dict(re.findall(r"(\w+)=([^&]+)", one.query())))
    assert other.page.locator(".chip.query").get_attribute("data-position") == "4"
    other.page.locator(".chip.query").focus()
    other.page.keyboard.press("ArrowRight")
    assert other.page.locator(".chip.query").get_attribute("data-position") == "5"


def test_a_long_text_is_pooled_and_becomes_exact_when_zoomed(visit: Opener, bundled: Model) -> None:
    text = "The old man went down to the river to look for the boat, and it was gone. " * 40
    one = visit().open(text=text, at="L2H5")
    n = bundled.trace(text).n_tokens
    assert n > 512
    expect(one.page.get_by_text("each cell shows the largest weight in a")).to_be_visible()
    one.page.locator(MAP).scroll_into_view_if_needed()
    start, end = one.at(MAP, 100, 120), one.at(MAP, 160, 180)
    one.page.mouse.move(*start)
    one.page.mouse.down()
    one.page.mouse.move(*end, steps=8)
    one.page.mouse.up()
    one.page.wait_for_function("location.search.includes('window=')")
    one.settle()
    assert one.page.get_by_text("each cell shows the largest weight in a").count() == 0
    shape = one.page.evaluate(f"document.querySelector('{MAP}')._fullData[0].z.length")
    assert 40 < shape < 90
    pattern = bundled.trace(text).pattern(2, 5)
    one.hover(MAP, 130, 150)
    expect(one.page.locator("#mha-viz-tip")).to_contain_text(f"{pattern[150, 130]:.3f}")
    one.page.get_by_role("button", name="Reset zoom").click()
    one.page.wait_for_function("!location.search.includes('window=')")
    expect(one.page.get_by_text("each cell shows the largest weight in a")).to_be_visible()


def test_the_scheme_may_change_while_the_page_is_open(visit: Opener) -> None:
    one = visit(color_scheme="light").open()
    first = f"document.querySelector('{MAP}')?.data?.[0].colorscale[0][1]"
    assert one.page.evaluate(first) == "#EFF2FA"
    one.page.emulate_media(color_scheme="dark")
    one.page.wait_for_function(f"{first} === '#23252F'", timeout=15_000)
    one.page.emulate_media(color_scheme="light")
    one.page.wait_for_function(f"{first} === '#EFF2FA'", timeout=15_000)


def test_a_phone_shows_all_without_scrolling_sideways(visit: Opener) -> None:
    one = visit(width=390, height=844, has_touch=True, is_mobile=True).open(at="L0H0")
    assert one.page.evaluate("document.documentElement.scrollWidth") <= 390
    one.page.locator(GRID).scroll_into_view_if_needed()
    one.page.touchscreen.tap(*one.at(GRID, 5, 2))
    expect(one.page.locator(".lead b")).to_have_text("L2 H5")


def test_a_finger_that_scrolls_chooses_nothing(visit: Opener) -> None:
    one = visit(width=390, height=844, has_touch=True, is_mobile=True).open(at="L0H0")
    one.page.locator(GRID).scroll_into_view_if_needed()
    one.page.touchscreen.tap(*one.at(GRID, 5, 2))
    expect(one.page.locator(".lead b")).to_have_text("L2 H5")
    one.settle()
    one.page.locator(MAP).scroll_into_view_if_needed()
    one.page.wait_for_function(f"!document.querySelector('{MAP}')._fullLayout.dragmode")
    before = one.query()
    x, y = one.at(MAP, 3, 8)
    finger = one.page.context.new_cdp_session(one.page)
    for kind, dy in (("touchStart", 0), ("touchMove", 40), ("touchMove", 90), ("touchEnd", 0)):
        points = [] if kind == "touchEnd" else [{"x": x, "y": y - dy}]
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    one.page.wait_for_timeout(500)
    assert one.query() == before


def test_a_text_too_long_for_a_link_stays_out_of_it(visit: Opener) -> None:
    one = visit().open()
    text = "The old man went down to the river. " * 1000
    one.type(text)
    expect(one.page.get_by_text("too long for a link")).to_be_visible()
    expect(one.page.get_by_text(re.compile("are dropped"))).to_be_visible()
    assert len(one.query()) < 1000
    assert one.page.get_by_label("Text", exact=True).input_value() == text
    one.page.keyboard.press("Escape")
    one.type("short again")
    expect(one.page.get_by_text("too long for a link")).to_have_count(0)
    one.page.wait_for_function("location.search.includes('text=short')")


def test_an_address_in_a_link_is_no_link(visit: Opener) -> None:
    one = visit().open(model="Sign in at https://evil.invalid/login or www.evil.invalid")
    expect(one.page.get_by_text("is not a name on the Hugging Face Hub")).to_be_visible()
    assert one.page.locator("a[href*=evil]").count() == 0


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


def test_two_visitors_do_not_see_each_other(visit: Opener, bundled: Model) -> None:
    one, two = visit().open(), visit().open()
    one.type("a tale of one")
    two.type("quite another story about a fox")
    one.page.keyboard.press("Escape")
    assert one.chips() == list(bundled.trace("a tale of one").tokens)
    assert two.chips() == list(bundled.trace("quite another story about a fox").tokens)


def test_bad_links_and_bad_names_get_a_word_and_a_picture(visit: Opener, tmp_path: Path) -> None:
    one = visit().open(at="L99H1", colour="<b>")
    expect(one.page.get_by_text("The link's value at = L99H1")).to_be_visible()
    two = visit().open(model=f"{tmp_path}/![x](https://example.invalid/p.png)")
    expect(two.page.get_by_text("There is no folder")).to_be_visible()
    assert two.page.locator("img[src*=invalid]").count() == 0


def test_a_model_is_fetched_watched_stopped_and_shown(
    chrome: Browser, tmp_path: Path, gpt2: Callable[..., Any], checkpoint: Callable[..., Path]
) -> None:
    folder = checkpoint(gpt2(n_embd=256, n_layer=3, vocab_size=2000))
    server = HubServer(repos={"some/tiny": folder}, delay=0.03)
    with (
        server.running() as hub,
        served(
            tmp_path / "log", HF_ENDPOINT=hub.url, HF_HUB_CACHE=str(tmp_path / "cache"), HF_TOKEN=""
        ) as address,
    ):
        context = chrome.new_context(viewport={"width": 1440, "height": 900})
        one = Visit(context, address).open(model="some/tiny")
        expect(one.page.get_by_text("not on this machine yet")).to_be_visible()
        assert hub.requests == []
        one.page.get_by_role("button", name="Download").click()
        one.page.get_by_role("button", name="Stop").click()
        one.page.get_by_role("button", name="Try again").click()
        expect(one.page.get_by_text(re.compile("Downloading some/tiny"))).to_be_visible()
        expect(one.page.locator(".lead")).to_contain_text("some/tiny · 3 layers", timeout=60_000)
        assert one.page.get_by_label("Text", exact=True).input_value() == DEFAULT
        assert one.problems == []
        context.close()

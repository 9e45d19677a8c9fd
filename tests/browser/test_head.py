"""The Head page in a real Chromium: cells and rungs that answer, lines that light up at once."""

import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from playwright.sync_api import Browser, expect
from support.browser import Tab, chromium

from mha_viz.model import Model

pytestmark = pytest.mark.browser
if chromium() is None and not os.environ.get("MHA_VIZ_NEED_BROWSER"):
    pytest.skip("no Chromium on this machine (apt install chromium)", allow_module_level=True)

PARTS = ["Why this weight", "Lines", "Values", "Sink"]
EIGHT = ["L0H0", "L0H1", "L0H2", "L1H0", "L2H0", "L2H1", "L2H2"]  # beside L3H0


class Head(Tab):
    """The Head page; its lines are a canvas."""

    drawn = ".js-plotly-plot .main-svg, .lines canvas"

    def look(self, **link: str | list[str]) -> "Head":
        self.open("head", **{"at": "L3H0", **link})
        return self

    def place(self, key: str, x: float, y: float) -> tuple[float, float]:
        """Where the point (x, y) of a chart lies on the page, once it is scrolled to."""
        self.page.locator(f".st-key-{key} .js-plotly-plot").scroll_into_view_if_needed()
        self.page.wait_for_timeout(200)
        left, top = self.page.evaluate(
            """([key, x, y]) => {
              const gd = document.querySelector(`.st-key-${key} .js-plotly-plot`);
              const { xaxis, yaxis } = gd._fullLayout;
              const { left, top } = gd.getBoundingClientRect();
              return [left + xaxis._offset + xaxis.l2p(x), top + yaxis._offset + yaxis.l2p(y)];
            }""",
            [key, x, y],
        )
        return left, top

    def press(self, key: str, x: float, y: float) -> None:
        left, top = self.place(key, x, y)
        self.page.mouse.move(left - 2, top)
        self.page.mouse.move(left, top)
        self.page.wait_for_timeout(100)
        self.page.mouse.click(left, top)

    def token(self, position: int, n_tokens: int, side: float = 0.02) -> None:
        """Points at a token of the vertical lines."""
        box = self.page.locator(".lines .stage").bounding_box()
        assert box
        head = 24
        pitch = (box["height"] - head - 4) / n_tokens
        x = box["x"] + side * box["width"]
        y = box["y"] + head + (position + 0.5) * pitch
        self.page.mouse.move(x, y - 1)
        self.page.mouse.move(x, y)


@pytest.fixture
def tab(chrome: Browser, address: str, request: pytest.FixtureRequest) -> Iterator[Head]:
    options = getattr(request, "param", {"viewport": {"width": 1440, "height": 900}})
    one = Head(chrome, address, **options)
    yield one
    one.context.close()
    assert one.problems == []


PHONE_DARK = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}


@pytest.mark.parametrize("tab", [PHONE_DARK], indirect=True, ids=["phone"])
@pytest.mark.parametrize("part", PARTS)
def test_every_tab_draws_on_a_phone_from_a_link_and_asks_nobody(tab: Head, part: str) -> None:
    tab.look(look=part, token="14", key="5", direction="horizontal", sink_as="log scale")
    assert tab.page.locator(".stException, [data-testid=stAlertContentError]").count() == 0
    assert tab.page.evaluate(
        "() => { const m = document.querySelector('[data-testid=stMain]');"
        "return m.scrollWidth <= m.clientWidth }"
    )
    for chart in tab.page.locator(".stPlotlyChart").all():
        assert chart.get_attribute("aria-label")


def test_a_click_on_a_cell_selects_query_and_key(tab: Head) -> None:
    tab.look(look="Why this weight")
    tab.press("why_weights", 4, 13)
    expect(tab.page.locator(".score")).to_contain_text("·the13 on ·princess4", timeout=10_000)
    expect(tab.page.locator(".token-strip .sentence")).to_contain_text("·the13 looks at")
    assert "token=13" in tab.page.url
    assert "key=4" in tab.page.url
    tab.press("why_scores", 15, 2)  # what the mask hides has a score all the same
    expect(tab.page.locator(".score")).to_contain_text("masked, weight 0", timeout=10_000)


def test_a_click_on_a_bar_selects_its_key_and_the_frame_follows(tab: Head) -> None:
    tab.look(look="Why this weight")
    ring = ".st-key-why_masked .mha-viz-marks > div:last-child"
    expect(tab.page.locator(ring)).to_be_visible(timeout=10_000)
    before = tab.page.locator(ring).bounding_box()
    left, top = tab.place("why_softmax", 1, 1)  # the second bar from above
    tab.page.mouse.move(left + 2, top)
    tab.page.wait_for_timeout(100)
    tab.page.mouse.click(left + 4, top)
    expect(tab.page.locator(".score")).to_contain_text("on The0", timeout=10_000)
    assert "key=0" in tab.page.url
    assert before
    tab.page.wait_for_function(
        "([ring, x]) => document.querySelector(ring)?.getBoundingClientRect().x < x - 20",
        arg=[ring, before["x"]],
        timeout=10_000,
    )


def test_a_tooltip_names_both_tokens(tab: Head) -> None:
    tab.look(look="Sink")
    left, top = tab.place("sink_map", 3, 13)
    tab.page.mouse.move(left - 3, top)
    tab.page.mouse.move(left, top)
    expect(tab.page.locator("#mha-viz-tip")).to_contain_text("from ·the (13)to   ·the (3)")


def test_a_clicked_pair_fills_the_inputs_and_survives_a_reload(tab: Head) -> None:
    tab.look(look="Why this weight", token="16", key="7")
    tab.press("why_masked", 2, 5)
    expect(tab.page.locator(".score")).to_contain_text("·a5 on ·gave2", timeout=10_000)
    tab.page.reload()
    tab.settle()
    expect(tab.page.get_by_role("spinbutton", name="Query i")).to_have_value("5")
    expect(tab.page.get_by_role("spinbutton", name="Key j")).to_have_value("2")


# --- lines ----------------------------------------------------------------------------------------


def test_a_token_under_the_pointer_is_highlighted_without_the_server(tab: Head) -> None:
    frames: list[object] = []
    tab.page.on(
        "websocket", lambda socket: socket.on("framesent", lambda frame: frames.append(frame))
    )
    tab.look(look="Lines", beside=["L0H1"])
    sentence = tab.page.locator(".lines .sentence")
    expect(sentence).to_contain_text("Point at a token")
    tab.page.wait_for_timeout(500)
    assert frames
    frames.clear()
    tab.token(16, 17)
    expect(sentence).to_contain_text("·golden16 looks at")
    expect(sentence).to_contain_text("L3 H0·ring7 0.83")
    expect(sentence).to_contain_text("L0 H1·a15 1.00")
    tab.token(7, 17, side=0.98)
    expect(sentence).to_contain_text("·ring7 is looked at by")
    assert tab.page.evaluate(
        """() => { let found = false;
          for (const host of document.querySelectorAll("[data-testid=stBidiComponentIsolated]")) {
            const canvas = [...(host.shadowRoot?.querySelectorAll(".lines canvas") ?? [])].at(-1);
            if (!canvas) continue;
            const pen = canvas.getContext("2d");
            const { data } = pen.getImageData(0, 0, canvas.width, canvas.height);
            found ||= data.some((value) => value > 0);
          }
          return found; }"""
    )
    assert frames == []


def test_the_keyboard_moves_the_highlight_and_pins_it(tab: Head) -> None:
    tab.look(look="Lines")
    stage = tab.page.locator(".lines .stage")
    sentence = tab.page.locator(".lines .sentence")
    stage.focus()
    tab.page.keyboard.press("Home")
    for _ in range(4):
        tab.page.keyboard.press("ArrowDown")
    expect(sentence).to_contain_text("·princess4 looks at")
    tab.page.keyboard.press("ArrowRight")
    expect(sentence).to_contain_text("·princess4 is looked at by")
    assert tab.page.get_by_label("Head", exact=True).input_value() == "L3H0"
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_url(re.compile("token=4"), timeout=10_000)
    tab.page.wait_for_url(re.compile("side=key"), timeout=10_000)
    tab.page.reload()
    tab.settle()
    expect(sentence).to_contain_text("·princess4 is looked at by")


def test_a_click_pins_a_token_and_another_releases_it(tab: Head) -> None:
    tab.look(look="Lines")
    tab.token(9, 17)
    box = tab.page.locator(".lines .stage").bounding_box()
    assert box
    tab.page.mouse.down()
    tab.page.mouse.up()
    tab.page.wait_for_url(re.compile("token=9"), timeout=10_000)
    tab.page.mouse.move(5, 5)
    expect(tab.page.locator(".lines .sentence")).to_contain_text("\\n9 looks at")
    tab.token(9, 17)
    tab.page.mouse.down()
    tab.page.mouse.up()
    tab.page.mouse.move(5, 5)
    expect(tab.page.locator(".lines .sentence")).to_contain_text("Point at a token")
    tab.page.wait_for_url(re.compile("^((?!token=9).)*$"), timeout=10_000)


def test_one_head_of_several_can_be_shown_alone(tab: Head) -> None:
    tab.look(look="Lines", beside=["L0H1", "L1H2"], token="16")
    sentence = tab.page.locator(".lines .sentence")
    expect(sentence).to_contain_text("L0 H1")
    tab.page.get_by_role("button", name="L1 H2").click()
    expect(sentence).not_to_contain_text("L0 H1")
    expect(sentence).to_contain_text("L1 H2")
    tab.page.get_by_role("button", name="L1 H2").click()
    expect(sentence).to_contain_text("L0 H1")


def long_text(model: Model, n_tokens: int) -> str:
    """A text of exactly that many tokens, of many different words."""
    words = sorted(p[1:] for p in model.tokenizer.get_vocab() if p[0] == "Ġ" and p[1:].isalpha())
    text = "".join(f" {words[i * 7 % len(words)]}" for i in range(n_tokens))
    assert len(model.encode(text)[0]) == n_tokens
    return text


@pytest.mark.parametrize("direction", ["vertical", "horizontal"])
def test_eight_heads_of_256_tokens_say_how_much_is_drawn(
    tab: Head, bundled: Model, direction: str
) -> None:
    tab.look(
        look="Lines", text=long_text(bundled, 256), beside=EIGHT, most="8", threshold="0.0",
        direction=direction,
    )  # fmt: skip
    expect(tab.page.locator(".caption").first).to_contain_text(
        "16,160 lines, of which the 3,000 strongest are drawn"
    )


def test_a_full_context_says_what_is_drawn(tab: Head, bundled: Model) -> None:
    tab.look(
        look="Lines", text=long_text(bundled, 1024), beside=EIGHT, most="8", threshold="0.0"
    )  # fmt: skip
    expect(tab.page.locator(".stAlert")).to_contain_text("Showing the 20,000 largest")
    tab.token(300, 1024)
    expect(tab.page.locator(".lines .sentence")).to_contain_text("looks at")


def test_the_drawing_can_be_saved_with_its_tokens_as_text(tab: Head, tmp_path: Path) -> None:
    tab.look(look="Lines", text="<b>&amp; the king and the king", threshold="0.01")
    for form in ("PNG", "SVG"):
        with tab.page.expect_download() as taken:
            tab.page.locator(".lines .save").get_by_role("button", name=form).click()
        taken.value.save_as(tmp_path / f"lines.{form}")
    assert (tmp_path / "lines.PNG").read_bytes().startswith(b"\x89PNG")
    root = ET.parse(tmp_path / "lines.SVG").getroot()
    words = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "·king" in words
    assert "<" in "".join(word or "" for word in words)
    assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) > 2


def test_one_click_on_a_cell_is_one_step_back(tab: Head) -> None:
    tab.look()
    for key, query in ((3, 12), (2, 14), (9, 9)):
        tab.press("why_scores", key, query)
        tab.page.wait_for_function(f"location.search.includes('token={query}&key={key}')")
        tab.settle()
    seen = []
    for _ in range(3):
        tab.page.go_back()
        tab.page.wait_for_timeout(600)
        tab.settle()
        link = dict(parse_qsl(tab.page.url.partition("?")[2]))
        score = tab.page.locator(".score").first.inner_text()
        seen.append((link.get("token"), link.get("key"), score.split(":")[0]))
    assert [one[:2] for one in seen] == [("14", "2"), ("12", "3"), (None, None)]
    assert "14" in seen[0][2]
    assert "12" in seen[1][2]
    tab.page.go_forward()
    tab.page.wait_for_timeout(600)
    assert "token=12&key=3" in tab.page.url

"""The lines of the Head page: drawn on a canvas, highlighted under the pointer."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect
from support.browser import Pages, Tab

from mha_viz.model import Model

EIGHT = ["L0H0", "L0H1", "L0H2", "L1H0", "L2H0", "L2H1", "L2H2"]  # beside L3H0


class LinesTab(Tab):
    """The lines of the Head page."""

    drawn = ".lines canvas"

    def look(self, **link: str | list[str]) -> None:
        """Opens the lines of L3H0."""
        self.open("head", at="L3H0", look="Lines", **link)

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
def tab(pages: Pages, address: str) -> Iterator[LinesTab]:
    with pages.lend() as page:
        lines = LinesTab(page, address)
        yield lines
        assert lines.end() == []


def test_a_token_under_the_pointer_is_highlighted_without_the_server(tab: LinesTab) -> None:
    tab.look(beside=["L0H1"])
    sentence = tab.page.locator(".lines .sentence")
    expect(sentence).to_contain_text("Point at a token")
    sent = tab.n_sent
    assert sent
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
    assert tab.n_sent == sent


def test_the_keyboard_moves_the_highlight_and_pins_it(tab: LinesTab) -> None:
    tab.look()
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
    tab.page.wait_for_url(re.compile("token=4"))
    tab.page.wait_for_url(re.compile("side=key"))
    tab.page.reload()
    tab.settle()
    expect(sentence).to_contain_text("·princess4 is looked at by")


def test_a_click_pins_a_token_and_another_releases_it(tab: LinesTab) -> None:
    tab.look()
    tab.token(9, 17)
    tab.page.mouse.down()
    tab.page.mouse.up()
    tab.page.wait_for_url(re.compile("token=9"))
    tab.page.mouse.move(5, 5)
    expect(tab.page.locator(".lines .sentence")).to_contain_text("\\n9 looks at")
    tab.token(9, 17)
    tab.page.mouse.down()
    tab.page.mouse.up()
    tab.page.mouse.move(5, 5)
    expect(tab.page.locator(".lines .sentence")).to_contain_text("Point at a token")
    tab.page.wait_for_url(re.compile("^((?!token=9).)*$"))


def test_one_head_of_several_can_be_shown_alone(tab: LinesTab) -> None:
    tab.look(beside=["L0H1", "L1H2"], token="16")
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
    tab: LinesTab, bundled: Model, direction: str
) -> None:
    tab.look(
        text=long_text(bundled, 256),
        beside=EIGHT,
        most="8",
        threshold="0.0",
        direction=direction,
    )
    expect(tab.page.locator(".caption").first).to_contain_text(
        "16,160 lines, of which only the 3,000 strongest are drawn"
    )


def test_a_full_context_says_what_is_drawn(tab: LinesTab, bundled: Model) -> None:
    tab.look(text=long_text(bundled, 1024), beside=EIGHT, most="8", threshold="0.0")
    expect(tab.page.locator(".stAlert")).to_contain_text("Showing the 20,000 largest")
    tab.token(300, 1024)
    expect(tab.page.locator(".lines .sentence")).to_contain_text("looks at")


def test_the_drawing_can_be_saved_with_its_tokens_as_text(tab: LinesTab, tmp_path: Path) -> None:
    tab.look(text="<b>&amp; the king and the king", threshold="0.01")
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

"""A talk in a browser: scenes are drawn ahead, nothing is lost on the way, notes keep step."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import FrameLocator, Page, expect
from support.browser import Pages, Tab, served

TALK = """title = "A talk"
[[scene]]
title = "One token back"
sentence = "First."
link = "attention?at=L0H1"
notes = "say this\\nthen that"
[[scene]]
title = "Guess"
sentence = "Second."
link = "attention?at=L3H3"
ask = ["apple", "ring"]
[[scene]]
title = "Next tokens"
sentence = "Third."
link = "next_token"
[[scene]]
title = "All measures"
sentence = "Fourth."
link = "next_token?expects=Logit+lens"
"""
PRESS = """(key) => {
  document.querySelector(".talk").dispatchEvent(
    new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  const shown = document.querySelector(".talk iframe.shown");
  return Boolean(shown?.contentDocument.querySelector(".main-svg"));
}"""


def play(tab: Tab, file: Path, content: str) -> None:
    """Opens a talk on the Talk page and begins it."""
    file.write_text(content, encoding="utf-8")
    tab.open("talk")
    tab.page.locator("input[type=file]").set_input_files(file)
    expect(tab.page.locator(".lead")).to_contain_text(content.partition('"')[2].partition('"')[0])
    tab.settle()
    tab.page.locator(".play button").click()
    drawn(tab.page, 2)


@pytest.fixture
def playing(tab: Tab, tmp_path: Path) -> Iterator[Page]:
    """A page on which a talk of four scenes has begun."""
    play(tab, tmp_path / "a.talk.toml", TALK)
    yield tab.page
    tab.page.keyboard.press("Escape")
    tab.settle()


def drawn(page: Page, scenes: int) -> None:
    """Waits until so many scenes are drawn."""
    expect(page.locator(".talk iframe[data-ready]")).to_have_count(scenes, timeout=60_000)


def at(page: Page, scene: int) -> None:
    """Waits until a scene is the current one."""
    dot = page.locator(".talk nav button").nth(scene)
    expect(dot).to_have_attribute("aria-current", "step", timeout=60_000)


def shown(page: Page) -> FrameLocator:
    """The page in the frame that is seen."""
    return page.frame_locator(".talk iframe.shown")


def test_the_next_scene_is_on_screen_in_the_moment_of_the_press(playing: Page) -> None:
    expect(playing.locator(".talk .opening")).to_have_text("A talk")
    assert playing.evaluate(PRESS, "PageDown")
    at(playing, 0)
    expect(playing.locator(".talk h1")).to_have_text("One token back")
    expect(playing.locator(".talk iframe.shown")).to_have_count(1)
    drawn(playing, 3)
    assert not playing.evaluate(PRESS, "ArrowRight")  # it asks first
    assert playing.evaluate(PRESS, " ")


def test_the_choices_are_seen_before_the_answer_and_again_on_the_way_back(playing: Page) -> None:
    playing.keyboard.press("2")
    at(playing, 1)
    choices = playing.locator(".talk .choices")
    expect(choices).to_be_visible()
    expect(choices.locator("li")).to_have_text(["apple", "ring"])
    expect(playing.locator(".talk iframe.shown")).to_have_count(0)
    playing.keyboard.press("PageDown")
    expect(choices).to_be_hidden()
    expect(playing.locator(".talk iframe.shown")).to_have_count(1)
    playing.keyboard.press("PageUp")
    expect(choices).to_be_visible()


def test_what_was_changed_in_a_scene_is_there_again_after_the_others(playing: Page) -> None:
    playing.keyboard.press("PageDown")
    playing.keyboard.press("Shift+ArrowRight")
    picture = shown(playing).locator(".caption b.selected-head")
    expect(picture).to_have_text("L0 H2")
    expect(shown(playing).locator(".sending")).to_have_count(0)
    for scene in (1, 2, 3):
        playing.keyboard.press(str(scene + 1))
        at(playing, scene)
    expect(playing.locator(".talk iframe")).to_have_count(2)  # the first scene's frame is gone
    playing.keyboard.press("1")
    at(playing, 0)
    expect(picture).to_have_text("L0 H2")
    playing.keyboard.press("r")
    expect(picture).to_have_text("L0 H1")


def test_keys_work_inside_a_scene_but_not_while_one_types(playing: Page) -> None:
    playing.keyboard.press("PageDown")
    shown(playing).locator(".js-plotly-plot").last.click()
    playing.keyboard.press("PageDown")
    at(playing, 1)
    playing.keyboard.press("PageUp")
    playing.keyboard.press("e")
    explored = playing.frame_locator(".talk iframe.explored")
    explored.locator("textarea").first.click()
    playing.keyboard.type("been")
    expect(explored.locator("textarea").first).to_have_value(re.compile("been"))
    expect(playing.locator(".talk iframe.explored")).to_have_count(1)


def test_exploring_a_scene_shows_every_control_and_leads_back_to_it(playing: Page) -> None:
    playing.keyboard.press("PageDown")
    expect(shown(playing).locator("[data-testid=stSidebar]")).to_be_hidden()
    playing.keyboard.press("e")
    explored = playing.frame_locator(".talk iframe.explored")
    expect(explored.locator("[data-testid=stSidebar]")).to_be_visible(timeout=60_000)
    expect(explored.locator(".lead")).to_contain_text("L0 H1")
    playing.locator(".talk .return").click()
    expect(playing.locator(".talk iframe.explored")).to_have_count(0)
    expect(playing.locator(".talk iframe.shown")).to_have_count(1)
    at(playing, 0)


def test_notes_keep_step_in_a_window_of_their_own(playing: Page) -> None:
    with playing.expect_popup() as opened:
        playing.keyboard.press("n")
    notes = opened.value
    expect(notes.locator("h1")).to_contain_text("A talk")
    playing.keyboard.press("PageDown")
    expect(notes.locator("h1")).to_have_text("1 of 4 One token back")
    expect(notes.locator("main li")).to_have_text(["say this", "then that"])
    expect(notes.locator(".next")).to_contain_text("Guess")
    expect(notes.locator(".state")).to_have_text("ready", timeout=60_000)
    expect(notes.locator("ol .reveal")).to_have_count(1)
    notes.keyboard.press("PageDown")
    at(playing, 1)
    playing.keyboard.press("Escape")
    expect(playing.locator(".talk")).to_have_count(0)
    assert notes.is_closed()


def test_without_a_second_window_notes_are_below_the_scene(playing: Page) -> None:
    playing.evaluate("window.open = () => null")
    playing.keyboard.press("PageDown")
    playing.keyboard.press("n")
    expect(playing.locator(".talk .below")).to_contain_text("then that")
    playing.keyboard.press("n")
    expect(playing.locator(".talk .below")).to_be_hidden()


def test_the_clock_stands_while_it_is_paused(playing: Page) -> None:
    with playing.expect_popup() as opened:
        playing.keyboard.press("n")
    clock, delay = opened.value.locator(".clock"), opened.value.locator(".delay")
    expect(delay).to_have_text("starts with the first press")
    playing.keyboard.press("PageDown")
    expect(clock).not_to_have_text("0:00")
    clock.click()
    expect(delay).to_contain_text("paused")
    held = clock.text_content()
    playing.keyboard.press("PageDown")
    expect(opened.value.locator(".next")).to_contain_text("Next tokens")
    assert clock.text_content() == held
    clock.click()
    expect(delay).not_to_contain_text("paused")


def test_a_change_of_scene_asks_the_server_for_nothing(playing: Page) -> None:
    playing.keyboard.press("2")
    playing.keyboard.press("PageDown")
    drawn(playing, 4)  # every scene of this talk
    asked: list[str] = []
    playing.on("request", lambda request: asked.append(request.url))
    assert playing.evaluate(PRESS, "PageDown")
    at(playing, 2)
    expect(playing.locator(".talk iframe")).to_have_count(3)
    assert asked == []


def test_a_tap_on_the_right_half_leads_on_and_on_the_left_half_back(playing: Page) -> None:
    width = 1440
    playing.mouse.click(0.9 * width, 500)  # beside the title of the talk
    at(playing, 0)
    shown(playing).locator(".js-plotly-plot").last.click()  # a figure keeps its clicks
    playing.mouse.click(0.9 * width, 40)
    at(playing, 1)
    playing.mouse.click(0.1 * width, 500)  # beside the choices
    at(playing, 0)
    page = shown(playing).locator("[data-testid=stMainBlockContainer]")
    page.click(position={"x": 1265, "y": 5})  # a scene is 1280 wide, whatever the window
    at(playing, 1)
    playing.locator(".talk nav button").nth(3).click()
    at(playing, 3)


def test_two_talks_in_two_tabs_do_not_mix(
    playing: Page, pages: Pages, address: str, tmp_path: Path
) -> None:
    with pages.lend(fresh=True) as page:
        other = Tab(page, address)
        play(other, tmp_path / "b.talk.toml", TALK.replace("A talk", "B").replace("First", "Last"))
        with page.expect_popup() as opened:
            page.keyboard.press("n")
        page.keyboard.press("PageDown")
        expect(page.locator(".talk .sentence")).to_have_text("Last.")
        expect(playing.locator(".talk .opening")).to_have_text("A talk")
        with playing.expect_popup():
            playing.keyboard.press("n")
        playing.keyboard.press("2")
        at(playing, 1)
        expect(opened.value.locator("h1")).to_have_text("1 of 4 One token back")
        assert other.end() == []


def test_scenes_that_are_drawn_outlive_the_server(pages: Pages, tmp_path: Path) -> None:
    with pages.lend(fresh=True) as page:
        with served(tmp_path / "log") as address:
            play(Tab(page, address), tmp_path / "a.talk.toml", TALK)
            page.keyboard.press("2")
            drawn(page, 4)
        # The app says that the connection is lost, which the audience does not see.
        lost = page.locator(".stDialog", has_text="Connection error")
        expect(lost).to_have_count(1, timeout=60_000)
        for scene in (2, 3):
            page.keyboard.press(str(scene + 1))
            at(page, scene)
            expect(shown(page).locator(".main-svg").first).to_be_visible()
            inside = shown(page).locator(".stDialog", has_text="Connection error")
            expect(inside).to_have_count(1, timeout=60_000)
            expect(inside).to_be_hidden()
        expect(lost).to_be_hidden()
        page.keyboard.press("1")  # its frame is gone, and so is the server
        expect(page.locator(".talk h1")).to_have_text("One token back", timeout=60_000)
        expect(page.locator(".talk iframe.shown")).to_have_count(0)


def test_leaving_gives_the_page_back(playing: Page) -> None:
    playing.keyboard.press("b")
    expect(playing.locator(".talk .black")).to_be_visible()
    playing.keyboard.press("PageDown")
    expect(playing.locator(".talk .black")).to_be_hidden()
    playing.locator(".talk footer button", has_text="Leave").click()
    expect(playing.locator(".talk")).to_have_count(0)
    expect(playing.locator(".play button")).to_be_enabled()
    assert not playing.evaluate("document.getElementById('root').inert")

"""The path through the Learn pages in a browser: its links, and exercises with the keyboard."""

from urllib.parse import parse_qs

from playwright.sync_api import expect
from support.browser import Tab

from mha_viz.app.widgets.path import STOPS, following

TEXT = "The king gave a golden ring"
ONWARD = ".st-key-onward :is(button, a)"


class LearnTab(Tab):
    """A Learn page; some have no chart to wait for."""

    drawn = ONWARD


def test_the_links_lead_through_all_stops_with_the_same_text_and_head(tab: Tab) -> None:
    tab = LearnTab(tab.page, tab.address)
    tab.open(STOPS[0].page, text=TEXT, at="L2H3")
    stop = following(STOPS[0])
    while stop is not None:
        before = tab.page.locator(".lead .question").inner_text()
        label = tab.page.locator(ONWARD).inner_text()
        tab.page.locator(ONWARD).click()
        question = tab.page.locator(".lead .question")
        expect(question).not_to_have_text(before)
        tab.settle()
        assert label.endswith(question.inner_text().strip())
        assert f"/{stop.page}" in tab.page.url
        link = parse_qs(tab.query().removeprefix("?"))
        assert (link["text"], link["at"]) == ([TEXT], ["L2H3"])
        assert link.get(stop.key, [stop.part])[0] == stop.part
        stop = following(stop)
    assert tab.end() == []


def test_an_exercise_is_answered_with_the_keyboard(tab: Tab) -> None:
    tab = LearnTab(tab.page, tab.address)
    tab.open(STOPS[0].page, text=TEXT)
    options = tab.page.locator(".st-key-exercise [role=radiogroup] input")
    options.nth(0).focus()
    tab.page.keyboard.press("Space")
    expect(tab.page.locator(".st-key-exercise_wrong")).to_have_count(1)
    expect(tab.page.get_by_text("0 of 1 right first time")).to_be_visible()
    for _ in range(2):
        tab.page.keyboard.press("ArrowDown")
        tab.settle()
    expect(tab.page.locator(".st-key-exercise_right")).to_have_count(1)
    expect(tab.page.get_by_text("Right.")).to_be_visible()
    assert tab.end() == []

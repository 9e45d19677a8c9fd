"""The app on a phone: everything fits, and a finger can scroll."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from support.browser import GRID, MAP, Opener, Pages, Tab

PHONE = {"viewport": {"width": 390, "height": 844}}
TOUCH = {**PHONE, "has_touch": True, "is_mobile": True}
PARTS = {
    "head": ("look", ["Why this weight", "Lines", "Values", "Sink"]),
    "shapes": ("shapes", ["Walkthrough", "Memory layout", "The module", "Bugs"]),
    "many_heads": ("many", ["A list of heads", "Output projection", "Cost"]),
    "pruning": ("lab", ["Ablation", "Tasks", "Importance", "Curves", "Prune"]),
}
LINKS = {
    "head": {
        "at": "L3H0",
        "token": "14",
        "key": "5",
        "direction": "horizontal",
        "sink_as": "log scale",
    },
    "pruning": {"curve_texts": "1", "curve_every": "8", "off": "L3H4"},
}


@pytest.fixture
def dark(pages: Pages, address: str) -> Iterator[Tab]:
    with pages.lend(color_scheme="dark", **PHONE) as page:
        tab = Tab(page, address)
        tab.drawn += ", .lines canvas"
        yield tab
        assert tab.end() == []


@pytest.mark.parametrize("path", PARTS)
def test_every_part_fits_a_phone_and_its_charts_have_text_alternatives(
    dark: Tab, path: str
) -> None:
    name, parts = PARTS[path]
    dark.open(path, **{name: parts[0]}, **LINKS.get(path, {}))
    assert_fits(dark)
    for part in parts[1:]:
        dark.follow(**{name: part}, **LINKS.get(path, {}))
        expect(dark.page.get_by_role("radio", name=part, exact=True)).to_be_checked()
        assert_fits(dark)


def assert_fits(dark: Tab) -> None:
    """The part shows no error and is as wide as the screen; screen readers can read its charts."""
    assert dark.page.locator(".stException, [data-testid=stAlertContentError]").count() == 0
    assert dark.page.evaluate(
        "() => { const m = document.querySelector('[data-testid=stMain]');"
        "return m.scrollWidth <= m.clientWidth }"
    )
    for chart in dark.page.locator(".stPlotlyChart").all():
        assert chart.get_attribute("aria-label")


def test_a_phone_shows_all_without_scrolling_sideways(visit: Opener) -> None:
    one = visit(**TOUCH).open(at="L0H0")
    assert one.page.evaluate("document.documentElement.scrollWidth") <= 390
    one.page.touchscreen.tap(*one.point(GRID, 5, 2))
    expect(one.page.locator(".lead b")).to_have_text("L2 H5")


def test_a_finger_that_scrolls_selects_nothing(visit: Opener) -> None:
    one = visit(**TOUCH).open(at="L0H0")
    one.page.touchscreen.tap(*one.point(GRID, 5, 2))
    expect(one.page.locator(".lead b")).to_have_text("L2 H5")
    one.settle()
    one.page.wait_for_function(f"!document.querySelector('{MAP}')._fullLayout.dragmode")
    before = one.query()
    x, y = one.point(MAP, 3, 8)
    finger = one.page.context.new_cdp_session(one.page)
    for kind, dy in (("touchStart", 0), ("touchMove", 40), ("touchMove", 90), ("touchEnd", 0)):
        points = [] if kind == "touchEnd" else [{"x": x, "y": y - dy}]
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    one.page.wait_for_timeout(500)  # longer than a click waits for a second one
    assert one.query() == before

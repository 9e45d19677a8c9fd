"""The line that compares the page with transformers arrives in the place that is kept for it."""

import pytest
from playwright.sync_api import expect
from support.browser import LAPTOP, Tab

LINE = ".st-key-parity"
HEIGHT = "document.querySelector('[data-testid=stMain]').scrollHeight"


@pytest.mark.parametrize(
    "tab", [{}, {"viewport": {"width": 390, "height": 844}}], ids=["laptop", "phone"], indirect=True
)
def test_the_line_arrives_without_moving_the_page(tab: Tab) -> None:
    size = tab.page.viewport_size
    text = f"The fox ran away from a hen that was {size} tall."
    tab.page.goto(f"{tab.address}/?text={text}")
    line = tab.page.locator(f"{LINE} .parity")
    line.wait_for()
    kept = tab.page.locator(LINE).evaluate("line => line.offsetHeight")
    expect(line).to_contain_text("Matches transformers in eager mode")
    tab.settle()
    # What is above it may still have been drawn meanwhile, so its place on the page says nothing.
    assert tab.page.locator(LINE).evaluate("line => line.offsetHeight") == kept
    if size == LAPTOP:
        assert tab.page.evaluate(HEIGHT) == LAPTOP["height"]  # all of it is on the screen

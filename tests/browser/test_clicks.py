"""Every click on a chart is heard, however quick it is."""

from playwright.sync_api import expect
from support.browser import GRID, MAP, AttentionTab, Opener

HELD = (0, 20, 35, 50, 65, 80)  # milliseconds between pressing the button and releasing it


def test_a_click_right_after_a_movement_is_heard(visit: Opener) -> None:
    """Plotly alone loses such a click now and then; see `clicks.js`."""
    one = visit().open(at="L0H0")
    for held in HELD:
        for key, query in ((3, 12), (2, 8), (4, 14)):
            quick_click(one, MAP, key, query, held)
            one.page.wait_for_function(f"location.search.includes('token={query}')")
        for x, head in ((4, "L2 H4"), (1, "L2 H1")):
            quick_click(one, GRID, x, 2, held)
            expect(one.page.locator(".lead b")).to_have_text(head)


def quick_click(one: AttentionTab, figure: str, x: float, y: float, held: int) -> None:
    """Clicks right after a movement across the figure."""
    left, top = one.point(figure, x, y)
    one.page.mouse.move(left - 60, top - 60)
    one.page.mouse.click(left, top, delay=held)

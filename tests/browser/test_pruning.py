"""The Pruning page: heads are ablated on a board."""

from playwright.sync_api import expect
from support.browser import Tab


def test_the_board_ablates_heads_by_pointer_and_by_key(tab: Tab) -> None:
    tab.open("pruning")
    cell = tab.page.locator("[data-head=L1H2]")
    cell.click()
    expect(tab.page.locator(".score")).to_contain_text("1 of 24 heads ablated")
    assert "off=L1H2" in tab.page.url
    tab.page.keyboard.press("ArrowRight")
    tab.page.keyboard.press("Space")
    expect(tab.page.locator(".score")).to_contain_text("2 of 24 heads ablated")
    expect(tab.page.locator("[data-head=L1H3]")).to_have_attribute("aria-pressed", "false")
    tab.page.locator("[data-group='row 0']").click()
    expect(tab.page.locator(".score")).to_contain_text("8 of 24 heads ablated")
    tab.page.locator("[data-head=L1H2]").click()
    expect(tab.page.locator(".score")).to_contain_text("7 of 24 heads ablated")
    tab.page.get_by_role("button", name="Undo").click()
    expect(tab.page.locator(".score")).to_contain_text("8 of 24 heads ablated")
    expect(cell).to_have_attribute("aria-pressed", "false")


def test_quick_clicks_are_all_kept(tab: Tab) -> None:
    tab.open("pruning")
    for head in range(6):
        tab.page.locator(f"[data-head=L2H{head}]").click(delay=10)
    expect(tab.page.locator(".score")).to_contain_text("6 of 24 heads ablated")

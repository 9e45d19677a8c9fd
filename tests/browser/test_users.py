"""Two users of one server do not see each other."""

from playwright.sync_api import expect
from support.browser import Opener, Pages, Tab

from mha_viz.model import Model


def test_two_users_have_their_own_texts(visit: Opener, bundled: Model) -> None:
    one, two = visit().open(), visit().open()
    one.type("a tale of one")
    two.type("quite another story about a fox")
    one.page.keyboard.press("Escape")
    assert one.chips() == list(bundled.trace("a tale of one").tokens)
    assert two.chips() == list(bundled.trace("quite another story about a fox").tokens)


def test_two_users_ablate_their_own_heads(tab: Tab, pages: Pages, address: str) -> None:
    tab.open("pruning", off="L0H0")
    with pages.lend() as page:
        other = Tab(page, address).open("pruning")
        expect(other.page.locator(".score")).to_contain_text("0 of 24 heads ablated")
        other.page.locator("[data-head=L3H3]").click()
        expect(other.page.locator(".score")).to_contain_text("1 of 24 heads ablated")
        assert other.end() == []
    tab.page.reload()
    tab.settle()
    expect(tab.page.locator("[data-head=L3H3]")).to_have_attribute("aria-pressed", "true")
    expect(tab.page.locator(".score")).to_contain_text("1 of 24 heads ablated")

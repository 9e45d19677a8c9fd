"""Back and Forward: a click or a key is one entry in the browser's history."""

from urllib.parse import parse_qsl

from playwright.sync_api import expect
from support.browser import GRID, MAP, Opener, Tab, plot

from mha_viz.app.samples import DEFAULT


def test_back_undoes_one_click_and_forward_repeats_it(visit: Opener) -> None:
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


def test_a_click_makes_one_entry_in_the_history(visit: Opener) -> None:
    one = visit(fresh=True).open(at="L0H0")
    entries = lambda: one.page.evaluate("history.length")  # noqa: E731
    before = entries()

    def made(link: str) -> int:
        one.page.wait_for_function(f"location.href.includes('{link}')")
        one.settle()
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


def test_a_key_that_is_held_is_one_entry_and_so_is_a_choice_in_the_sidebar(visit: Opener) -> None:
    one = visit(fresh=True).open(at="L1H0")
    before = one.page.evaluate("history.length")
    for head in ("L1 H1", "L1 H2", "L1 H3"):  # the key never comes up, so two are repeats
        one.page.keyboard.down("ArrowRight")
        expect(one.page.locator(".lead b")).to_have_text(head)
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


def test_one_click_on_a_cell_is_one_step_back(tab: Tab) -> None:
    tab.open("head", at="L3H0")
    for key, query in ((3, 12), (2, 14), (9, 9)):
        tab.click(plot("why_scores"), key, query)
        tab.page.wait_for_function(f"location.search.includes('token={query}&key={key}')")
        tab.settle()
    seen = []
    for _ in range(3):
        tab.page.go_back()
        tab.settle()
        link = dict(parse_qsl(tab.page.url.partition("?")[2]))
        score = tab.page.locator(".score").first.inner_text()
        seen.append((link.get("token"), link.get("key"), score.split(":")[0]))
    assert [one[:2] for one in seen] == [("14", "2"), ("12", "3"), (None, None)]
    assert "14" in seen[0][2]
    assert "12" in seen[1][2]
    tab.page.go_forward()
    tab.settle()
    assert "token=12&key=3" in tab.page.url

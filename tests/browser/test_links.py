"""Links: what the address bar holds, and what becomes of a link that does not fit."""

import re
from pathlib import Path
from urllib.parse import parse_qsl

from playwright.sync_api import expect
from support.browser import Opener, Tab


def test_a_pinned_token_is_in_the_link(visit: Opener) -> None:
    one = visit().open(at="L2H5")
    one.page.locator(".chip").nth(4).click()
    one.page.mouse.move(5, 700)
    one.page.wait_for_function("location.search.includes('token=4')")
    other = visit().open(**dict(parse_qsl(one.query().removeprefix("?"))))
    assert other.page.locator(".chip.query").get_attribute("data-position") == "4"
    other.page.locator(".chip.query").focus()
    other.page.keyboard.press("ArrowRight")
    assert other.page.locator(".chip.query").get_attribute("data-position") == "5"


def test_a_text_too_long_for_a_link_stays_out_of_it(visit: Opener) -> None:
    one = visit().open()
    text = "The old man went down to the river. " * 1000
    one.type(text)
    expect(one.page.get_by_text("too long for a link")).to_be_visible()
    expect(one.page.get_by_text(re.compile("are dropped"))).to_be_visible()
    assert len(one.query()) < 1000
    assert one.page.get_by_label("Text", exact=True).input_value() == text
    one.page.keyboard.press("Escape")
    one.type("short again")
    expect(one.page.get_by_text("too long for a link")).to_have_count(0)
    one.page.wait_for_function("location.search.includes('text=short')")


def test_another_text_comes_back_and_stays_out_of_the_link_if_it_is_too_long(tab: Tab) -> None:
    tab.open("compare", against="another text")
    area = tab.page.get_by_role("textbox", name="Other text")
    area.fill("The queen gave the princess a silver ring.")
    area.press("Control+Enter")
    tab.page.wait_for_function("location.search.includes('silver')")
    tab.page.get_by_role("link", name="Shapes").click()
    expect(tab.page.locator(".lead [role=heading]")).to_have_text("Shapes")
    tab.page.get_by_role("link", name="Compare").click()
    expect(area).to_have_value("The queen gave the princess a silver ring.")
    area.fill("The king went away. " * 2000)
    area.press("Control+Enter")
    expect(tab.page.get_by_text("This text is too long for a link")).to_be_visible()
    assert len(tab.page.url) < 1000


def test_an_address_in_a_link_cannot_be_clicked(visit: Opener) -> None:
    one = visit().open(model="Sign in at https://evil.invalid/login or www.evil.invalid")
    expect(one.page.get_by_text("is not a name on the Hugging Face Hub")).to_be_visible()
    assert one.page.locator("a[href*=evil]").count() == 0


def test_bad_links_and_bad_names_get_a_message_and_a_picture(visit: Opener, tmp_path: Path) -> None:
    one = visit().open(at="L99H1", colour="<b>")
    expect(one.page.get_by_text("The link's value at = L99H1")).to_be_visible()
    two = visit().open(model=f"{tmp_path}/![x](https://example.invalid/p.png)")
    expect(two.page.get_by_text("There is no folder")).to_be_visible()
    assert two.page.locator("img[src*=invalid]").count() == 0

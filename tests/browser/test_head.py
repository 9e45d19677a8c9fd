"""The Head page: clicks on its maps and bars."""

from playwright.sync_api import expect
from support.browser import Tab, plot


def test_a_click_on_a_cell_selects_query_and_key(tab: Tab) -> None:
    tab.open("head", at="L3H0", look="Why this weight")
    tab.click(plot("why_weights"), 4, 13)
    expect(tab.page.locator(".score")).to_contain_text("·the13 on ·princess4")
    expect(tab.page.locator(".token-strip .sentence")).to_contain_text("·the13 looks at")
    assert "token=13" in tab.page.url
    assert "key=4" in tab.page.url
    tab.click(plot("why_scores"), 15, 2)  # what the mask hides has a score all the same
    expect(tab.page.locator(".score")).to_contain_text("masked, weight 0")


def test_a_click_on_a_bar_selects_its_key_and_the_frame_follows(tab: Tab) -> None:
    tab.open("head", at="L3H0", look="Why this weight")
    ring = ".st-key-why_masked .mha-viz-marks > div:last-child"
    expect(tab.page.locator(ring)).to_be_visible(timeout=10_000)
    before = tab.page.locator(ring).bounding_box()
    left, top = tab.point(plot("why_softmax"), 1, 1)  # the second bar from above
    tab.page.mouse.move(left + 2, top)
    tab.page.mouse.click(left + 4, top)
    expect(tab.page.locator(".score")).to_contain_text("on The0")
    assert "key=0" in tab.page.url
    assert before
    tab.page.wait_for_function(
        "([ring, x]) => document.querySelector(ring)?.getBoundingClientRect().x < x - 20",
        arg=[ring, before["x"]],
    )


def test_a_tooltip_names_both_tokens(tab: Tab) -> None:
    tab.open("head", at="L3H0", look="Sink")
    tab.hover(plot("sink_map"), 3, 13)
    expect(tab.page.locator("#mha-viz-tip")).to_contain_text("from ·the (13)to   ·the (3)")


def test_a_clicked_pair_fills_the_inputs_and_survives_a_reload(tab: Tab) -> None:
    tab.open("head", at="L3H0", look="Why this weight", token="16", key="7")
    tab.click(plot("why_masked"), 2, 5)
    expect(tab.page.locator(".score")).to_contain_text("·a5 on ·gave2")
    tab.page.reload()
    tab.settle()
    expect(tab.page.get_by_role("spinbutton", name="Query i")).to_have_value("5")
    expect(tab.page.get_by_role("spinbutton", name="Key j")).to_have_value("2")

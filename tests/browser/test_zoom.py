"""Zooming into the heatmap, and out of it."""

from urllib.parse import parse_qsl

from playwright.sync_api import expect
from support.browser import MAP, Opener

from mha_viz.model import Model


def test_a_zoom_that_leaves_nothing_out_is_undone(visit: Opener) -> None:
    one = visit().open(at="L0H0")
    one.page.evaluate(
        f"Plotly.relayout(document.querySelector('{MAP}'), "
        "{'xaxis.range[0]': -0.3, 'xaxis.range[1]': 16.3})"
    )
    one.page.wait_for_function(
        f"document.querySelector('{MAP}')._fullLayout.xaxis.range.join() === '-0.5,16.5'"
    )
    assert "window" not in one.query()


LAYOUT = f"""() => {{
  const gd = document.querySelector("{MAP}");
  const {{ xaxis, yaxis, margin, coloraxis }} = gd._fullLayout;
  const image = gd.querySelector(".hm image").getBoundingClientRect();
  const bars = [...gd.querySelectorAll(".cbfills, .cbtitle text")].map((node) => {{
    const {{ x, y }} = node.getBoundingClientRect();
    return [x, y];
  }});
  const numbers = [image.x, image.y, image.width, image.height, ...xaxis.range, ...yaxis.range,
    ...bars.flat()];
  return numbers.map(Math.round).join();
}}"""


def test_a_changed_picture_is_the_one_that_its_link_opens(visit: Opener) -> None:
    one, other = visit().open(at="L0H0"), visit()
    (x0, y0), (x1, y1) = one.point(MAP, 3.5, 7.5), one.point(MAP, 9.5, 14.5)
    one.page.mouse.move(x0, y0)
    one.page.mouse.down()
    one.page.mouse.move(x1, y1, steps=5)
    one.page.mouse.up()
    expect(one.page.get_by_role("button", name="Reset zoom")).to_be_visible()
    seen = []

    def compare() -> None:
        one.settle()
        other.open(**dict(parse_qsl(one.query().removeprefix("?"))))
        seen.append(one.page.evaluate(LAYOUT))
        assert seen[-1] == other.page.evaluate(LAYOUT)

    compare()
    one.page.locator("body").press("ArrowRight")
    expect(one.page.locator(".lead b")).to_have_text("L0 H1")
    compare()
    one.page.get_by_role("button", name="Reset zoom").click()
    one.page.wait_for_function("!location.search.includes('window=')")
    compare()
    one.type("Hello")
    compare()
    one.type("The cat sat on the mat and looked at the moon over the sea. " * 6)
    compare()
    assert len(set(seen)) >= 4


def test_a_double_click_ends_the_zoom_and_pins_nothing(visit: Opener) -> None:
    one = visit().open(at="L0H0", token="16", window="4-17-2-12")
    one.hover(MAP, 5, 9)
    one.page.mouse.dblclick(*one.point(MAP, 5, 9))
    one.page.wait_for_function("!location.search.includes('window=')")
    one.page.wait_for_function(
        f"document.querySelector('{MAP}')._fullLayout.xaxis.range.join() === '-0.5,16.5'"
    )
    one.settle()
    assert "token=16" in one.query()
    one.click(MAP, 5, 9)
    one.page.wait_for_function("location.search.includes('token=9')")


def test_a_long_text_is_pooled_and_becomes_exact_when_zoomed(visit: Opener, bundled: Model) -> None:
    text = "The old man went down to the river to look for the boat, and it was gone. " * 40
    one = visit().open(text=text, at="L2H5")
    n = bundled.trace(text).n_tokens
    assert n > 512
    expect(one.page.get_by_text("each cell shows the largest weight in a")).to_be_visible()
    start, end = one.point(MAP, 100, 120), one.point(MAP, 160, 180)
    one.page.mouse.move(*start)
    one.page.mouse.down()
    one.page.mouse.move(*end, steps=8)
    one.page.mouse.up()
    one.page.wait_for_function("location.search.includes('window=')")
    one.settle()
    assert one.page.get_by_text("each cell shows the largest weight in a").count() == 0
    shape = one.page.evaluate(f"document.querySelector('{MAP}')._fullData[0].z.length")
    assert 40 < shape < 90
    pattern = bundled.trace(text).pattern(2, 5)
    one.hover(MAP, 130, 150)
    expect(one.page.locator("#mha-viz-tip")).to_contain_text(f"{pattern[150, 130]:.3f}")
    one.page.get_by_role("button", name="Reset zoom").click()
    one.page.wait_for_function("!location.search.includes('window=')")
    expect(one.page.get_by_text("each cell shows the largest weight in a")).to_be_visible()

"""What a change draws again, and what it leaves alone."""

import pytest
from playwright.sync_api import expect
from support.browser import MAP, Opener, Tab


def test_from_head_to_head_there_is_a_picture_at_every_moment(visit: Opener) -> None:
    one = visit().open(at="L0H0")
    one.page.evaluate(f"""() => {{
      window.boxes = [];
      const look = () => {{
        const image = document.querySelector("{MAP} .hm image");
        const {{ x, y, width, height }} = image?.getBoundingClientRect() ?? {{}};
        boxes.push(image ? [x, y, width, height].map(Math.round).join() : "nothing");
        requestAnimationFrame(look);
      }};
      look();
    }}""")
    for head in ("L0 H1", "L0 H2", "L0 H3"):
        one.page.keyboard.press("ArrowRight")
        expect(one.page.locator(".lead b")).to_have_text(head)
        one.settle()
    assert len(set(one.page.evaluate("boxes"))) == 1


MARK = """() => {
  window.again = [];
  for (const plot of document.querySelectorAll(".js-plotly-plot")) {
    plot.dataset.stayed = "yes";
    plot.on("plotly_afterplot", () => again.push(plot.closest("[class*=st-key-]").className));
  }
}"""
ANEW = """() => [...again, ...[...document.querySelectorAll(".js-plotly-plot:not([data-stayed])")]
  .map((plot) => plot.closest("[class*=st-key-]").className.match(/st-key-([\\w-]+)/)[1])]"""


@pytest.mark.parametrize(
    ("path", "link", "redrawn_by"),
    [
        ("head", {"look": "Why this weight"}, {"Export": [], "by magnitude": ["why_product"]}),
        ("head", {"look": "Values"}, {"Export": []}),
        ("next_token", {}, {"Export": []}),
        ("pruning", {"off": "L3H4"}, {"Export": []}),
        ("variants", {"variants": "KV cache"}, {"Next": ["cache_contents", "cache_step"]}),
        ("variants", {"variants": "FlashAttention"}, {"Next": ["tiles", "running"]}),
    ],
)
def test_a_choice_redraws_what_it_changes_and_nothing_else(
    tab: Tab, path: str, link: dict[str, str], redrawn_by: dict[str, list[str]]
) -> None:
    tab.open(path, **link)
    for choice, redrawn in redrawn_by.items():
        tab.page.evaluate(MARK)
        tab.page.get_by_text(choice, exact=True).click()
        tab.settle()
        assert tab.page.evaluate(ANEW) == redrawn

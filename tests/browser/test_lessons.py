"""The pages beyond the first, in a real Chromium: they draw, they answer, they fit."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from support.browser import Tab, chromium

pytestmark = pytest.mark.browser
if chromium() is None and not os.environ.get("MHA_VIZ_NEED_BROWSER"):
    pytest.skip("no Chromium on this machine (apt install chromium)", allow_module_level=True)

PAGES = {
    "shapes": ["Walkthrough", "Memory layout", "Bugs"],
    "many_heads": ["Implementations", "Output projection", "Parameters and FLOPs"],
    "pruning": ["Ablation", "Tasks", "Importance", "Curves", "Prune"],
}
PART = {"shapes": "shapes", "many_heads": "many", "pruning": "lab"}
QUICK = {"curve_texts": "1", "curve_every": "8", "off": "L3H4"}


@pytest.fixture
def tab(chrome: Browser, address: str, request: pytest.FixtureRequest) -> Iterator[Tab]:
    options = getattr(request, "param", {"viewport": {"width": 1440, "height": 900}})
    one = Tab(chrome, address, **options)
    yield one
    one.context.close()
    assert one.problems == []


PHONE_DARK = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}


@pytest.mark.parametrize("tab", [PHONE_DARK], indirect=True, ids=["phone"])
@pytest.mark.parametrize(("path", "part"), [(p, part) for p in PAGES for part in PAGES[p]])
def test_every_part_draws_on_a_phone_from_a_link_and_asks_nobody(
    tab: Tab, path: str, part: str
) -> None:
    tab.open(path, **{PART[path]: part}, **QUICK)
    assert tab.page.locator(".stException, [data-testid=stAlertContentError]").count() == 0
    assert tab.page.evaluate(
        "() => { const m = document.querySelector('[data-testid=stMain]');"
        "return m.scrollWidth <= m.clientWidth }"
    )
    for chart in tab.page.locator(".stPlotlyChart").all():
        assert chart.get_attribute("aria-label")


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
    ("path", "link", "choice", "anew"),
    [
        ("head", {"look": "Why this weight"}, "by magnitude", ["why_product"]),
        ("head", {"look": "Why this weight"}, "Export", []),
        ("head", {"look": "Values"}, "Export", []),
        ("next_token", {}, "Export", []),
        ("pruning", {"off": "L3H4"}, "Export", []),
        ("variants", {"variants": "KV cache"}, "Next", ["cache_step"]),
        ("variants", {"variants": "FlashAttention"}, "Next", ["tiles", "running"]),
    ],
)
def test_a_choice_draws_anew_what_it_changes_and_nothing_else(
    tab: Tab, path: str, link: dict[str, str], choice: str, anew: list[str]
) -> None:
    tab.open(path, **link)
    tab.page.evaluate(MARK)
    tab.page.get_by_text(choice, exact=True).click()
    tab.page.wait_for_timeout(800)
    tab.settle()
    assert tab.page.evaluate(ANEW) == anew


def test_arrow_keys_step_through_the_walkthrough(tab: Tab) -> None:
    tab.open("shapes", step="view")
    expect(tab.page.locator(".caption").first).to_contain_text("4. View as heads")
    tab.page.keyboard.press("ArrowRight")
    expect(tab.page.locator(".caption").first).to_contain_text("5. Transpose", timeout=10_000)
    assert "step=transpose" in tab.page.url


def test_a_click_on_a_cell_shows_its_address(tab: Tab) -> None:
    tab.open("shapes", shapes="Memory layout")
    bar = tab.page.locator(".st-key-storage .barlayer .point").nth(17)
    box = bar.bounding_box()
    assert box
    tab.page.mouse.move(box["x"] + 4, box["y"] + 4)
    tab.page.mouse.click(box["x"] + box["width"] / 3, box["y"] + box["height"] / 3)
    # The 18th cell of [H, T, d_h] = [3, 4, 4] is head 1, position 0, column 1: address 5.
    sentence = tab.page.get_by_text("Element [1, 0, 1] is at address")
    expect(sentence).to_contain_text("1 · 4 + 0 · 12 + 1 · 1 = 5", timeout=10_000)
    assert "cell_head=1" in tab.page.url


def test_the_board_ablates_heads_by_pointer_and_by_key(tab: Tab) -> None:
    tab.open("pruning")
    cell = tab.page.locator("[data-head=L1H2]")
    cell.click()
    expect(tab.page.locator(".score")).to_contain_text("1 of 24 heads ablated", timeout=10_000)
    assert "off=L1H2" in tab.page.url
    tab.page.keyboard.press("ArrowRight")
    tab.page.keyboard.press("Space")
    expect(tab.page.locator(".score")).to_contain_text("2 of 24 heads ablated", timeout=10_000)
    expect(tab.page.locator("[data-head=L1H3]")).to_have_attribute("aria-pressed", "false")
    tab.page.locator("[data-group='row 0']").click()
    expect(tab.page.locator(".score")).to_contain_text("8 of 24 heads ablated", timeout=10_000)
    tab.page.locator("[data-head=L1H2]").click()
    expect(tab.page.locator(".score")).to_contain_text("7 of 24 heads ablated", timeout=10_000)
    tab.page.get_by_role("button", name="Undo").click()
    expect(tab.page.locator(".score")).to_contain_text("8 of 24 heads ablated", timeout=10_000)
    expect(cell).to_have_attribute("aria-pressed", "false")


def test_quick_clicks_are_all_kept(tab: Tab) -> None:
    tab.open("pruning")
    for head in range(6):
        tab.page.locator(f"[data-head=L2H{head}]").click(delay=10)
    expect(tab.page.locator(".score")).to_contain_text("6 of 24 heads ablated", timeout=15_000)


def test_two_users_ablate_their_own_heads(tab: Tab, chrome: Browser, address: str) -> None:
    tab.open("pruning", off="L0H0")
    other = Tab(chrome, address).open("pruning")
    expect(other.page.locator(".score")).to_contain_text("0 of 24 heads ablated")
    other.page.locator("[data-head=L3H3]").click()
    expect(other.page.locator(".score")).to_contain_text("1 of 24 heads ablated", timeout=10_000)
    tab.page.reload()
    tab.settle()
    expect(tab.page.locator("[data-head=L3H3]")).to_have_attribute("aria-pressed", "true")
    expect(tab.page.locator(".score")).to_contain_text("1 of 24 heads ablated")
    other.context.close()
    assert other.problems == []


def test_a_figure_whose_name_has_blanks_is_saved_as_a_picture(tab: Tab, tmp_path: Path) -> None:
    tab.open("compare")
    tab.page.get_by_text("Export", exact=True).click()
    figure = tab.page.get_by_role("combobox", name="Figure")
    expect(figure).to_be_visible()
    figure.click()
    figure.fill("pattern before")
    figure.press("Enter")
    tab.page.wait_for_timeout(1000)
    tab.settle()
    for form, begins in {"PNG": b"\x89PNG", "SVG": b"<svg"}.items():
        with tab.page.expect_download() as taken:
            tab.page.get_by_role("button", name=form, exact=True).click()
        taken.value.save_as(tmp_path / form)
        assert (tmp_path / form).read_bytes().startswith(begins)
    assert "The" in (tmp_path / "SVG").read_text(encoding="utf-8")


NARROW = [
    {"viewport": {"width": 390, "height": 844}},
    {"viewport": {"width": 1280, "height": 720}},
]


@pytest.mark.parametrize("tab", NARROW, indirect=True, ids=["phone", "1280"])
@pytest.mark.parametrize("token", ["0", "9", "20"])
def test_the_pinned_column_is_in_sight(tab: Tab, token: str) -> None:
    text = (
        "The king gave the princess a golden ring and a silver cup, and all the people of the town"
    )
    tab.open("next_token", text=text + " were glad of it.", token=token)
    seen = tab.page.evaluate(
        """() => {
          const box = document.querySelector(".st-key-tokens_box").getBoundingClientRect();
          const gd = document.querySelector(".st-key-positions .js-plotly-plot");
          const { xaxis } = gd._fullLayout;
          const pinned = xaxis.tickvals[xaxis.ticktext.findIndex((label) => label.includes("<b>"))];
          const at = (x) => gd.getBoundingClientRect().left + xaxis._offset + xaxis.l2p(x);
          return at(pinned - 0.5) >= box.left - 1 && at(pinned + 0.5) <= box.right + 1;
        }"""
    )
    assert seen


def test_a_text_too_long_for_a_link_stays_out_of_it_and_comes_back(tab: Tab) -> None:
    tab.open("compare")
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

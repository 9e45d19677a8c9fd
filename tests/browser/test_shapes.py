"""The Shapes page: the journey that plays, keys, touch, and cells."""

import re
from urllib.parse import quote_plus

import pytest
from playwright.sync_api import expect
from support.browser import Tab, plot

FIRST = "transpose"
GOLDEN = {"text": "The king gave the princess a golden ring", "at": "L3H2", "token": "6"}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
RECORD = """() => {
  const root = [...document.querySelectorAll("*")].map((node) => node.shadowRoot)
    .find((shadow) => shadow?.querySelector(".journey"));
  const canvas = root.querySelector("canvas"), scrub = root.querySelector(".scrub");
  window.frames_seen = [];
  const look = () => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let drawn = 0;
    for (let i = 3; i < data.length; i += 4) if (data[i] > 20) drawn += 1;
    const texts = root.querySelectorAll(".stage text").length;
    window.frames_seen.push([Number(scrub.value), drawn, texts]);
    requestAnimationFrame(look);
  };
  look();
}"""


def at(tab: Tab, step: str) -> None:
    """Waits until a step is the current one, in the band and in the link."""
    current = tab.page.locator(".station[aria-current=step] b")
    expect(current).to_have_text(step)
    linked = f"step={re.escape(quote_plus(step))}"
    # Streamlit leaves the value that a page opens with out of its address.
    expect(tab.page).to_have_url(re.compile("(?!.*step=)" if step == FIRST else linked))


def scrubbed(tab: Tab) -> int:
    """The place of the scrubber among all frames."""
    return int(tab.page.locator(".scrub").input_value())


def test_keys_step_through_the_walkthrough(tab: Tab) -> None:
    tab.open("shapes", step="view", **GOLDEN)
    tab.page.keyboard.press("ArrowRight")
    at(tab, "transpose")
    tab.page.keyboard.press("ArrowRight")  # to the end of the step
    assert scrubbed(tab) == 5 * 12 - 1
    tab.page.keyboard.press("ArrowRight")
    at(tab, "scores")
    tab.page.keyboard.press("ArrowLeft")
    tab.page.keyboard.press("ArrowLeft")
    at(tab, "view")


def test_no_frame_is_blank_while_it_plays_and_a_pause_stays_on_its_frame(tab: Tab) -> None:
    tab.open("shapes", step="x", **GOLDEN)
    tab.page.evaluate(RECORD)
    tab.page.keyboard.press(" ")
    at(tab, "view")
    tab.page.keyboard.press(" ")
    paused = scrubbed(tab)
    tab.settle()
    assert scrubbed(tab) == paused
    tab.page.keyboard.press(" ")
    at(tab, "scores")
    seen = tab.page.evaluate("window.frames_seen")
    assert len({place for place, _, _ in seen}) > 24, "it moves"
    assert [place for place, _, _ in seen] == sorted(place for place, _, _ in seen)
    assert all(drawn > 1000 and texts > 5 for _, drawn, texts in seen)


def test_the_old_picture_stays_until_the_new_one_is_drawn(tab: Tab) -> None:
    tab.open("shapes", **GOLDEN)
    tab.page.evaluate(RECORD)
    tab.page.get_by_role("button", name="Previous token").click()
    expect(tab.page.locator(".chooser .token .mono")).to_have_text("·a")
    tab.page.get_by_role("button", name="H5").click()
    expect(tab.page.locator(".chooser .head.at")).to_have_text("H5")
    tab.settle()
    assert "at=L3H5" in tab.page.url
    assert "token=5" in tab.page.url
    assert all(drawn > 1000 for _, drawn, _ in tab.page.evaluate("window.frames_seen"))


def test_a_click_on_a_cell_follows_its_number(tab: Tab) -> None:
    tab.open("shapes", **GOLDEN)
    expect(tab.page.locator(".stage text", has_text="q[6, 64]")).to_be_visible()
    label = tab.page.locator(".stage text", has_text=re.compile("^·the$")).first.bounding_box()
    assert label
    tab.page.mouse.click(label["x"] + label["width"] + 12, label["y"] + label["height"] / 2)
    expect(tab.page.locator(".stage text", has_text="q[3, 0, ")).to_be_visible()
    tab.settle()
    assert "token=3" in tab.page.url
    assert "at=L3H0" in tab.page.url


def test_a_second_head_is_in_the_link_and_stays_in_another_layer(tab: Tab) -> None:
    tab.open("shapes", **GOLDEN)
    tab.page.get_by_role("button", name="H5").click()
    expect(tab.page.locator(".chooser .head.full")).to_have_text(["H2", "H5"])
    expect(tab.page).to_have_url(re.compile("second=H2"))
    tab.open("shapes", **{**GOLDEN, "at": "L1H5", "second": "H2"})
    expect(tab.page.locator(".chooser .head.full")).to_have_text(["H2", "H5"])
    expect(tab.page.locator(".chooser .head.at")).to_have_text("H5")
    tab.page.get_by_role("button", name="H5").click()
    expect(tab.page.locator(".chooser .head.full")).to_have_text(["H5"])
    expect(tab.page).not_to_have_url(re.compile("second="))


def test_the_picture_keeps_its_height_from_step_to_step(tab: Tab) -> None:
    tab.open("shapes", step="x", **GOLDEN)
    heights = set()
    for step in ("x", "q k v", "split", "view", "transpose", "scores", "mask", "softmax", "z"):
        tab.page.locator(".station", has=tab.page.get_by_text(step, exact=True)).click()
        at(tab, step)
        box = tab.page.locator(".stage").bounding_box()
        assert box
        heights.add((box["y"], box["height"]))
    assert len(heights) == 1


STAGE = {"viewport": {"width": 1280, "height": 720}}


@pytest.mark.parametrize("tab", [STAGE], indirect=True)
@pytest.mark.parametrize("step", ["split", "view", "transpose", "softmax", "merge"])
def test_on_stage_a_step_is_seen_whole(tab: Tab, step: str) -> None:
    tab.open("shapes", step=step, stage="true", **GOLDEN)
    at(tab, step)
    lowest = tab.page.locator(".stage svg").evaluate(
        "(svg) => Math.max(...[...svg.children].filter((node) => node.style.display !== 'none')"
        ".map((node) => node.getBoundingClientRect().bottom))"
    )
    assert lowest <= 720


@pytest.mark.parametrize("tab", [PHONE], indirect=True)
def test_a_swipe_steps_on_a_phone_and_nothing_is_too_small(tab: Tab) -> None:
    tab.open("shapes", step="view", **GOLDEN)
    stage = tab.page.locator(".stage")
    swipe = """(stage, dx) => {
      const touch = (x) => new Touch({ identifier: 1, target: stage, clientX: x, clientY: 300 });
      stage.dispatchEvent(new TouchEvent("touchstart", { touches: [touch(200)] }));
      stage.dispatchEvent(new TouchEvent("touchend", { changedTouches: [touch(200 + dx)] }));
    }"""
    stage.evaluate(swipe, -120)
    at(tab, "transpose")
    stage.evaluate(swipe, 120)
    at(tab, "view")
    sizes = stage.evaluate(
        """(stage) => [...stage.querySelectorAll("text")].map((text) =>
             text.getAttribute("font-size") * stage.querySelector("svg").getScreenCTM().a)"""
    )
    assert min(sizes) >= 11.99
    main = "document.querySelector('[data-testid=stMain]')"
    assert tab.page.evaluate(f"{main}.scrollWidth <= {main}.clientWidth")
    heights = tab.page.locator(".transport button, .chooser button.head")
    for one in heights.all():
        box = one.bounding_box()
        assert box
        assert box["height"] >= 40


def test_with_reduced_motion_only_stills_are_shown(tab: Tab) -> None:
    tab.page.emulate_media(reduced_motion="reduce")
    tab.open("shapes", step="split", **GOLDEN)
    triptych = ["split", "view", "transpose"]
    expect(tab.page.locator(".station.lit b")).to_have_text(triptych)
    tab.page.get_by_role("button", name="Next step").click()
    at(tab, "view")
    assert scrubbed(tab) == 4 * 12 - 1
    for shown in ("q[6, 64]", "q[6, 2, 0]", "q[2, 6, 0]"):
        expect(tab.page.locator(".stage text", has_text=shown)).to_be_visible()
    tab.page.emulate_media(reduced_motion="no-preference")


def test_print_shows_the_still_of_the_step(tab: Tab) -> None:
    tab.open("shapes", step="split", **GOLDEN)
    lit = tab.page.locator(".station.lit b")
    expect(lit).to_have_text(["split"])
    tab.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    expect(lit).to_have_text(["split", "view", "transpose"])
    expect(tab.page.locator(".stage text", has_text="q[2, 6, 0]")).to_be_visible()
    tab.page.emulate_media(media="print")
    expect(tab.page.locator(".transport")).to_be_hidden()
    tab.page.emulate_media(media="screen")
    tab.page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    expect(lit).to_have_text(["split"])


def test_a_click_on_a_cell_shows_its_address(tab: Tab) -> None:
    tab.open("shapes", shapes="Memory layout")
    bar = tab.page.locator(".st-key-storage .barlayer .point").nth(17)
    box = bar.bounding_box()
    assert box
    tab.page.mouse.move(box["x"] + 4, box["y"] + 4)
    tab.page.mouse.click(box["x"] + box["width"] / 3, box["y"] + box["height"] / 3)
    # The 18th cell of [H, T, d_h] = [3, 4, 4] is head 1, position 0, column 1: address 5.
    sentence = tab.page.get_by_text("Number 5: element [1, 0, 1] is at address")
    expect(sentence).to_contain_text("1 · 4 + 0 · 36 + 1 · 1 = 5")
    assert "cell_head=1" in tab.page.url


def test_a_line_of_code_selects_its_step_and_keeps_the_keyboard(tab: Tab) -> None:
    tab.open("shapes", shapes="The module", step="view", **GOLDEN)
    line = tab.page.locator(".code_view [data-option=scores]")
    line.click()
    expect(tab.page).to_have_url(re.compile("step=scores"))
    expect(tab.page.locator(".code_view mark")).to_contain_text("q @ k")
    tab.settle()
    following = tab.page.locator(".code_view [data-option=mask]").first
    following.focus()
    number = following.locator("i").text_content()
    tab.page.keyboard.press("Enter")
    expect(tab.page).to_have_url(re.compile("step=mask"))
    tab.settle()
    assert tab.page.evaluate("document.activeElement.querySelector('i')?.textContent") == number
    tab.page.get_by_text("Walkthrough", exact=True).click()
    at(tab, "mask")


def test_the_module_plays_to_its_last_step_and_stops_there(tab: Tab) -> None:
    tab.open("shapes", shapes="The module", step="z", **GOLDEN)
    play = tab.page.locator(".st-key-play_steps button").first
    play.click()
    for step in ("merge", "output", r"%2B\+x|\+\+x"):
        expect(tab.page).to_have_url(re.compile(f"step=({step})"))
    expect(tab.page.locator(".code_view mark")).to_contain_text("resid")
    tab.settle()
    expect(play).to_contain_text("play_arrow")


def test_a_click_on_a_row_of_the_list_opens_that_bug(tab: Tab) -> None:
    tab.open("shapes", shapes="Bugs", bugs_on="this text")
    names = tab.page.evaluate(
        "figure => document.querySelector(figure).data.at(-1).customdata.map((row) => row[1])",
        plot("bug_list"),
    )
    for x, bug in ((4.0, "no mask"), (0.2, "root of C"), (-0.5, "no W_O")):  # number, bar, name
        tab.settle()
        tab.click(plot("bug_list"), x, 1 + names.index(bug))
        expect(tab.page.locator(".opened")).to_have_text(bug)

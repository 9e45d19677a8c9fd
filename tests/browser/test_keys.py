"""The arrow keys on the Attention page."""

import pytest
from playwright.sync_api import expect
from support.browser import GRID, MAP, Opener

LONG = " ".join(["The king gave the princess a golden ring."] * 20)
SHOWN = f"""window.shown = () => [
  document.querySelector("{MAP} .hm image").href.baseVal,
  document.querySelector(".lead b").textContent,
  [...document.querySelectorAll("*")].map((node) => node.shadowRoot?.querySelector(".sentence"))
    .find(Boolean).textContent,
]"""
# What is shown two frames after a key. No server answers as soon.
AFTER_A_KEY = """async (key) => {
  const frame = () => new Promise(requestAnimationFrame);
  const press = { key, bubbles: true, cancelable: true };
  document.body.dispatchEvent(new KeyboardEvent("keydown", press));
  await frame();
  await frame();
  return shown();
}"""
# The largest difference of a colour between two pictures, at the middles of n x n cells.
DIFFERENCE = """async ([n, ...pictures]) => {
  const [a, b] = await Promise.all(pictures.map(async (href) => {
    const image = Object.assign(new Image(), { src: href });
    await image.decode();
    const { width, height } = image;
    const canvas = Object.assign(document.createElement("canvas"), { width, height });
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const middle = (i, side) => Math.floor(((i + 0.5) * side) / n);
    return Array.from({ length: n * n }, (_, i) => (
      [...context.getImageData(middle(i % n, width), middle(Math.floor(i / n), height), 1, 1).data]
    )).flat();
  }));
  return a.reduce((most, value, i) => Math.max(most, Math.abs(value - b[i])), 0);
}"""


def test_arrow_keys_move_from_head_to_head_without_losing_a_step(visit: Opener) -> None:
    one = visit().open(at="L0H0")
    for key in ["ArrowRight"] * 4 + ["ArrowDown"] * 3 + ["ArrowLeft"]:
        one.page.keyboard.press(key)
    expect(one.page.locator(".lead b")).to_have_text("L3 H3")
    one.page.get_by_label("Text", exact=True).press("ArrowUp")
    one.settle()
    expect(one.page.locator(".lead b")).to_have_text("L3 H3")


def test_keys_in_quick_succession_end_at_the_last_head(visit: Opener) -> None:
    one = visit().open(at="L0H0")
    for _ in range(3):
        for key in ["ArrowRight"] * 5 + ["ArrowDown", "ArrowUp"] + ["ArrowLeft"] * 5:
            one.page.keyboard.press(key, delay=33)  # as a key that is held down repeats
        one.settle()
    one.page.keyboard.press("ArrowDown")
    expect(one.page.locator(".lead b")).to_have_text("L1 H0")
    one.settle()
    assert "at=L1H0" in one.query()
    assert one.page.get_by_role("dialog").count() == 0


@pytest.mark.parametrize("link", [{}, {"text": LONG}], ids=["cells with gaps", "without"])
def test_another_head_is_shown_before_the_server_answers_as_the_server_shows_it(
    visit: Opener, link: dict[str, str]
) -> None:
    one = visit().open(at="L0H0", **link)
    n_tokens = len(one.chips())
    before = one.page.evaluate(f"() => {{ {SHOWN}; return shown(); }}")
    for key, head in [("ArrowRight", "L0 H1"), ("ArrowDown", "L1 H1"), ("ArrowDown", "L2 H1")]:
        ahead = one.page.evaluate(AFTER_A_KEY, key)
        assert ahead[1] == head
        assert ahead[0] != before[0]
        one.settle()
        answered = one.page.evaluate("shown()")
        assert answered[1:] == ahead[1:]
        assert one.page.evaluate(DIFFERENCE, [n_tokens, ahead[0], answered[0]]) <= 16
        before = answered


def test_all_patterns_are_sent_once_for_a_text(visit: Opener) -> None:
    one = visit()
    received: list[int] = []
    one.page.on(
        "websocket", lambda socket: socket.on("framereceived", lambda x: received.append(len(x)))
    )
    one.open(at="L0H0", text=LONG)
    size = 24 * len(one.chips()) * (len(one.chips()) + 1) // 2
    assert sum(received) > size > 300_000
    received.clear()
    one.page.keyboard.press("ArrowRight")
    expect(one.page.locator(".lead b")).to_have_text("L0 H1")
    one.settle()
    assert sum(received) < size


def test_the_wheel_over_the_grid_moves_from_head_to_head(visit: Opener) -> None:
    one = visit().open(at="L0H4")
    one.hover(GRID, 4, 0)
    for head in ("L0 H5", "L1 H0"):
        one.page.mouse.wheel(0, 100)
        expect(one.page.locator(".lead b")).to_have_text(head)
    one.page.mouse.wheel(0, -100)
    expect(one.page.locator(".lead b")).to_have_text("L0 H5")
    one.settle()
    assert "at=L0H5" in one.query()


def test_the_link_ends_at_the_last_head_however_quickly_it_follows_the_one_before(
    visit: Opener,
) -> None:
    one = visit().open(at="L0H4")
    for _ in range(4):
        for key, head in (("ArrowRight", "L0 H5"), ("ArrowDown", "L1 H5"), ("ArrowUp", "L0 H5")):
            one.page.keyboard.press(key)
            expect(one.page.locator(".lead b")).to_have_text(head)
        one.settle()
        assert "at=L0H5" in one.query()
        one.page.keyboard.press("ArrowLeft")
        one.settle()
        assert "at=L0H4" in one.query()

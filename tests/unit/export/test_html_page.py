"""A page as one HTML file: it needs no network, and no text of it is markup."""

import re
from dataclasses import replace

import plotly.graph_objects as go
from support.exported import TOKENS, pattern, picture

from mha_viz.export import page
from mha_viz.figures.theme import DARK, LIGHT


def test_a_page_needs_no_network_and_shows_tokens_origin_and_text() -> None:
    origin = {"Link": "http://localhost/?at=L0H0", "Weights": "abc<script>", "Token ids": [1, 2]}
    text = page(
        "A title",
        [picture("One <head>", "from <a> to b"), picture("Two")],
        tokens=["a", "<b>"],
        theme=LIGHT,
        origin=origin,
        text="<script>alert(1)</script>",
    )
    assert text.count("plotly.js v") == 1  # once, inside
    assert not re.search(r"<(script|link)[^>]+(src|href)=", text)
    assert "<h2>One &lt;head&gt;</h2>" in text
    assert "from &lt;a&gt; to b" in text
    assert '<div class="tokens"><span>a</span><span>&lt;b&gt;</span></div>' in text
    assert "&lt;script&gt;alert(1)" in text
    assert "abc&lt;script&gt;" in text
    assert "[1, 2]" in text
    assert '<a href="http://localhost/?at=L0H0">' in text


def test_a_figure_has_the_size_and_the_colours_of_the_page() -> None:
    shown = page("t", [picture("one", ratio=2.0)], theme=DARK, origin={}, text="")
    assert "aspect-ratio:2.0000;max-width:1080px" in shown
    assert f"background:{DARK.page}" in shown
    assert "color-scheme:dark" in shown
    fixed = page("t", [picture("one", height=230)], theme=LIGHT, origin={}, text="")
    assert "height:230px" in fixed
    assert "image-rendering:pixelated" in fixed


def test_a_wide_figure_is_not_squeezed_on_a_phone() -> None:
    wide, narrow = (
        page("t", [picture("one", ratio=ratio)], theme=LIGHT, origin={}, text="")
        for ratio in (2.4, 1.0)
    )
    assert "min-width:1080px" in wide
    assert "min-width:1080px" not in narrow


def test_labels_of_a_matrix_do_not_touch_on_a_phone() -> None:
    for n in (5, 33):
        drawn = go.Figure(layout={"yaxis": {"ticktext": ["a"] * n}})
        matrix = replace(picture("one", ratio=1.0), figure=drawn)
        shown = page("t", [matrix], theme=LIGHT, origin={}, text="")
        assert f"min-width:{13 * n + 110}px" in shown


def test_no_token_ends_the_script_of_a_page() -> None:
    token = "</script><script>alert(1)</script>"
    shown = picture("one", tokens=[token] * len(TOKENS))
    assert len(pattern()) == len(TOKENS)
    assert token not in page("A title", [shown], tokens=[token], theme=LIGHT, origin={}, text="")

"""A page as one HTML file: it needs no network, and no text of it is markup."""

import re

from support.exported import TOKENS, pattern

from mha_viz.export import Picture, page, versions
from mha_viz.figures.heatmap import head_heatmap
from mha_viz.figures.theme import LIGHT


def test_a_page_needs_no_network_and_shows_facts_and_text() -> None:
    figure = head_heatmap(pattern(), TOKENS, LIGHT)
    pictures = [Picture("one", figure, "from <a> to b"), Picture("two", figure)]
    facts = {"Token ids": [1, 2], "Weights": "abc<script>"}
    text = page("A title", pictures, facts, "<script>alert(1)</script>")
    assert text.count("plotly.js v") == 1  # once, inside
    assert not re.search(r"<(script|link)[^>]+(src|href)=", text)
    assert "from &lt;a&gt; to b" in text
    assert "&lt;script&gt;alert(1)" in text
    assert "abc&lt;script&gt;" in text
    assert "[1, 2]" in text


def test_no_token_ends_the_script_of_a_page() -> None:
    token = "</script><script>alert(1)</script>"
    figure = head_heatmap(pattern(), [token] * len(TOKENS), LIGHT)
    text = page("A title", [Picture("one", figure)], {}, "")
    assert token not in text


def test_versions_name_the_installed_packages() -> None:
    installed = versions()
    assert {"Python", "torch", "plotly", "streamlit"} <= set(installed)

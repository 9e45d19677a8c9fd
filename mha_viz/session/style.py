"""The few rules of style that Streamlit's theme cannot say."""

from pathlib import Path

import streamlit as st

# A Material icon here would be fetched from a font server.
_ICON = Path(__file__).resolve().parents[2] / "assets" / "icon.png"
_RULES = """
.stMainBlockContainer { padding: 1rem 1.5rem 1rem 1rem; max-width: none; }
.stMainBlockContainer [data-testid=stVerticalBlock] { gap: 0.4rem; }
[data-testid=stSidebarContent] [data-testid=stVerticalBlock] { gap: 0.6rem; }
.stAppHeader { background: transparent; height: 2.5rem; min-height: 2.5rem; pointer-events: none; }
.stAppHeader button, .stAppHeader a { pointer-events: auto; }
.lead h1 { font-size: 1.375rem; line-height: 2rem; padding: 0; margin: 0 0.6rem 0 0; display: inline; }
.lead span, .caption { color: var(--muted); }
.lead b { color: var(--query); font-weight: 650; }
.caption b { color: var(--ink); font-weight: 650; font-size: 1rem; }
.caption { font-size: 0.875rem; line-height: 1.4rem; min-height: 1.4rem; }
.st-key-head_grid image { image-rendering: pixelated; }
.st-key-head_grid .nsewdrag, .st-key-head_grid .barlayer { cursor: pointer; }
@media (max-width: 640px) {
  .stMainBlockContainer { padding: 2.75rem 0.75rem 1rem; }
  .st-key-head_grid image { image-rendering: auto; }
}
@media (prefers-reduced-motion: reduce) { * { transition: none !important; animation: none !important; } }
"""
_STAGE = """
html { font-size: 20px; }
.lead { display: none; }
.stMainBlockContainer { padding-top: 0.4rem; padding-right: 2.5rem; }
.caption .more { display: none; }
"""


def page_setup() -> None:
    """Title, width and sidebar of every page; the first call of a run."""
    st.set_page_config(
        page_title="GPT-2 attention",
        page_icon=str(_ICON),
        layout="wide",
        initial_sidebar_state=300,
    )


def rules(*, stage: bool, colours: dict[str, str]) -> None:
    """Writes the rules into the page, with the theme's colours as variables."""
    variables = "".join(f"--{name}:{value};" for name, value in colours.items())
    extra = _STAGE if stage else ""
    st.html(f"<style>:root{{{variables}}}{_RULES}{extra}</style>")

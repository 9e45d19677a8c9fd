"""The few rules of style that Streamlit's theme cannot say."""

from pathlib import Path

import streamlit as st

# A Material icon here would be fetched from a font server.
_ICON = Path(__file__).resolve().parents[2] / "assets" / "icon.png"
_RULES = """
:root { --tall: max(22rem, min(33.75rem, calc(100vh - 23.4rem))); }
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
.st-key-grid_box { aspect-ratio: var(--grid-ratio); max-height: var(--tall); }
.st-key-map_box { aspect-ratio: 1; max-height: var(--tall); }
.measures { display: grid; grid-template-columns: max-content 1fr max-content; gap: 0.3rem 0.75rem;
  align-items: center; color: var(--muted); font-size: 0.875rem; padding: 0.25rem 0.25rem 0 1.75rem; }
.measures i { display: block; height: 0.6rem; background: var(--track); border-radius: 2px; }
.measures i::before { content: ""; display: block; height: 100%; width: calc(100% * var(--w));
  background: var(--bar); border-radius: 2px; }
.measures b { color: var(--ink); font-weight: 500; font-variant-numeric: tabular-nums; }
@media (max-width: 640px) {
  .stMainBlockContainer { padding: 2.75rem 0.75rem 1rem; }
  .st-key-head_grid image { image-rendering: auto; }
}
@media (prefers-reduced-motion: reduce) { * { transition: none !important; animation: none !important; } }
"""
_STAGE = """
html { font-size: 20px; }
.lead, .more, .st-key-how_to_read, .st-key-measures { display: none; }
[data-testid=stExpandSidebarButton] { position: fixed; right: 0.25rem; top: 0.4rem; }
.stMainBlockContainer { padding: 0.4rem 2.5rem 0.4rem 1rem; }
:root { --tall: max(18rem, calc(100vh - 11rem)); }
"""


def page_setup(*, stage: bool) -> None:
    """Title, width and sidebar of every page; the first call of a run."""
    st.set_page_config(
        page_title="GPT-2 attention",
        page_icon=str(_ICON),
        layout="wide",
        initial_sidebar_state="collapsed" if stage else 300,
    )


def rules(*, stage: bool, variables: dict[str, str]) -> None:
    """Writes the rules into the page, with colours and proportions as variables."""
    values = "".join(f"--{name}:{value};" for name, value in variables.items())
    extra = _STAGE if stage else ""
    st.html(f"<style>:root{{{values}}}{_RULES}{extra}</style>")

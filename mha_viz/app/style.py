"""The style rules that Streamlit's theme cannot express."""

from pathlib import Path

import streamlit as st

from mha_viz.assets import ASSETS

_HERE = Path(__file__).resolve().parent
_ICON = ASSETS / "icon.png"  # a Material icon would be fetched from a font server
_RULES = (_HERE / "style.css").read_text(encoding="utf-8")
_SCENE = (_HERE / "scene.css").read_text(encoding="utf-8")
_STAGE = (_HERE / "stage.css").read_text(encoding="utf-8")


def page_setup(*, stage: bool) -> None:
    """Sets title, width and sidebar; the first Streamlit call of every run."""
    st.set_page_config(
        page_title="GPT-2 attention",
        page_icon=str(_ICON),
        layout="wide",
        initial_sidebar_state="collapsed" if stage else 316,
    )


def rules(*, stage: bool, scene: bool, variables: dict[str, str]) -> None:
    """Writes the rules into the page, with `variables` (colours, proportions) for CSS."""
    values = "".join(f"--{name}:{value};" for name, value in variables.items())
    extra = (_STAGE if stage else "") + (_SCENE if scene else "")
    st.html(f"<style>:root{{{values}}}{_RULES}{extra}</style>")

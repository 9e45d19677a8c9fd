"""What the Pruning page is made of: one module for each of its parts."""

import streamlit as st

PARTS = ["By hand", "Tasks", "Importance", "Curves", "Take out"]


def part() -> str:
    """Which part is open."""
    chosen: str = st.segmented_control(
        "Part", PARTS, default=PARTS[0], key="lab", bind="query-params", required=True,
        label_visibility="collapsed",
    )  # fmt: skip
    return chosen

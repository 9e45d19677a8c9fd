"""What the Heads page is made of: the passport of each head, many heads at once, many texts."""

import streamlit as st

PARTS = ["Passport", "Over layers", "Several texts"]


def part() -> str:
    """Which part is open."""
    chosen: str = st.segmented_control(
        "Part", PARTS, default=PARTS[0], key="numbers_of", bind="query-params", required=True,
        label_visibility="collapsed",
    )  # fmt: skip
    return chosen

"""A button at the top of a page under which the text can be changed without the sidebar."""

import streamlit as st

from mha_viz.app.samples import EFFECTS, SAMPLES


def popover() -> None:
    """The text and the samples, with what each shows; they set the sidebar's text."""
    state = st.session_state
    state["own_text"] = state.get("text") or ""
    with st.popover("Change the text", type="tertiary", icon=":material/edit:"):
        st.text_area(
            "Your own text", key="own_text", on_change=_take, help="Press Ctrl + Enter to apply"
        )
        st.button("Show it", type="primary")
        st.caption("Samples")
        for name in SAMPLES:
            st.button(
                name,
                key=f"sample {name}",
                on_click=take_sample,
                args=(name,),
                help=EFFECTS[name].sentence,
            )


def take_sample(name: str) -> None:
    """Shows a sample and, on the bundled model, the head to look at."""
    state = st.session_state
    state["text"], state["welcomed"] = SAMPLES[name], True  # says what to look for instead
    if state.get("model", "bundled") == "bundled":
        state["at"], state["opened on"] = EFFECTS[name].head.key, None  # or another head may open


def _take() -> None:
    st.session_state["text"] = st.session_state["own_text"]

"""The settings of the Training page: heads and W_O of both models, text, steps and seeds."""

import streamlit as st

from mha_viz.app.pages.training import texts
from mha_viz.app.pages.training.plan import Plan
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.choices import check_link
from mha_viz.lessons.char_model import Settings

HEADS = [1, 2, 4, 8, 16, 32]
DEFAULT_HEADS = {"a": 1, "b": 4}
SEEDS = [1, 2, 3, 4, 5]
MAX_STEPS, MAX_SEED = 50_000, 1_000_000
MODEL_KEYS = ("train_heads_a", "train_W_O_a", "train_heads_b", "train_W_O_b")
KEYS = (*MODEL_KEYS, "train_on", "train_steps", "train_seed", "train_seeds")


def select_plan() -> Plan | None:
    """The inputs and what they select; None while there is no text."""
    _restore()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        models = [_model_inputs(which) for which in DEFAULT_HEADS]
        source = explained.selectbox(
            "Text", texts.SOURCES, key="train_on", bind="query-params", width=165
        )
        steps = _number("Steps", 1, MAX_STEPS, 5_000, key="train_steps", width=128, step=1_000)
        seed = _number(
            "Seed",
            0,
            MAX_SEED,
            0,
            key="train_seed",
            width=92,
            help="Determines the initial weights and the windows of text in each batch",
        )
        n_seeds = explained.selectbox(
            "Seeds",
            SEEDS,
            key="train_seeds",
            bind="query-params",
            width=92,
            help="How many consecutive seeds each model is trained with",
        )
    _keep_and_check()
    text = texts.get(source)
    if text is None:
        return None
    settings = (Settings(H, projection=W_O, steps=steps, seed=seed) for H, W_O in models)
    return Plan(tuple(settings), n_seeds, text)


def _number(
    label: str,
    low: int,
    high: int,
    default: int,
    *,
    key: str,
    width: int,
    step: int = 1,
    help: str | None = None,
) -> int:
    number = explained.number_input(
        label, low, high, default, step, key=key, bind="query-params", width=width, help=help
    )
    return int(number)


def _model_inputs(which: str) -> tuple[int, bool]:
    """The number of heads of a model, and whether it learns W_O."""
    name = f"Model {which.upper()}"
    with st.container(horizontal=True, vertical_alignment="bottom", width="content"):
        H = explained.selectbox(
            f"{name}: heads",
            HEADS,
            HEADS.index(DEFAULT_HEADS[which]),
            key=f"train_heads_{which}",
            bind="query-params",
            width=118,
        )
        W_O = explained.toggle(
            "W_O",
            key=f"train_W_O_{which}",
            bind="query-params",
            width="content",
            help=f"{name} learns an output projection after its heads",
        )
    return H, W_O


def _restore() -> None:
    """Restores the inputs that Streamlit forgot while the user was on another page."""
    for key, value in st.session_state.get("train_inputs", {}).items():
        st.session_state.setdefault(key, value)


def _keep_and_check() -> None:
    """Keeps the inputs for `_restore`, and warns of link values that are not available."""
    state = st.session_state
    state["train_inputs"] = {key: state[key] for key in KEYS}
    for key, value in state["train_inputs"].items():
        check_link(key, str(value).lower() if isinstance(value, bool) else str(value))

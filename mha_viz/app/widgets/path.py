"""The path through the Learn pages: the question that each part answers, and which comes next."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import streamlit as st

from mha_viz.app.messages import escaped
from mha_viz.app.view import View
from mha_viz.app.widgets.caption import about, title_line
from mha_viz.app.widgets.exercise import begin, exercises

WORDS = (
    "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stop:
    """A part of a Learn page. Its question can name {heads}, {matrices} and {C} of a layer.

    `key` is that of the choice between the parts in links; "" for a page without parts.
    """

    page: str
    key: str
    part: str
    question: str
    exercises: str  # the name of their file
    aside: bool = False  # whether the path passes it by; its next stop is the same as before it


STOPS = (
    Stop(
        "many_heads", "many", "Why several heads",
        "Why is one row of weights not enough?", "why_several_heads",
    ),
    Stop(
        "many_heads", "many", "A list of heads",
        "What is the simplest way to have {heads}?", "list_of_heads",
    ),
    Stop(
        "many_heads", "many", "One product",
        "Why is W {matrices} side by side?", "one_product",
    ),
    Stop(
        "many_heads", "many", "Output projection",
        "What does W_O add, once the heads are side by side?", "output_projection", aside=True,
    ),
    Stop(
        "shapes", "shapes", "Walkthrough",
        "How does one row become {heads}, without moving a number?", "walkthrough",
    ),
    Stop(
        "shapes", "shapes", "Memory layout",
        "Where do the numbers lie, and when must they be copied?", "memory_layout",
    ),
    Stop("shapes", "shapes", "The module", "What is each line for?", "module"),
    Stop(
        "shapes", "shapes", "Bugs",
        "Which mistakes would you notice, and which look like success?", "bugs",
    ),
    Stop(
        "variants", "variants", "Grouped-query attention",
        "What can heads share?", "grouped_query",
    ),
    Stop(
        "variants", "variants", "KV cache",
        "What need not be computed again?", "kv_cache", aside=True,
    ),
    Stop(
        "variants", "variants", "FlashAttention",
        "What need not be stored?", "flash_attention", aside=True,
    ),
    Stop(
        "variants", "variants", "Masks",
        "Which keys may a query look at?", "masks", aside=True,
    ),
    Stop("many_heads", "many", "Cost", "When does T² outweigh the projections?", "cost"),
    Stop(
        "training", "", "",
        "Do four narrow heads learn more than one wide head?", "training",
    ),
)  # fmt: skip


@contextmanager
def part_of(view: View, page: str, title: str, *, instead: str = "") -> Iterator[None]:
    """Around the selected part of a Learn page: the title line above, then what leads on.

    The title line has the question that the part answers; `instead` takes the place of the model's
    sizes. Below come the exercises and a link to the next stop.
    """
    begin()
    _take_asked_part(page)
    line, guess = st.empty(), current(page)
    with line:
        _title(view, title, guess, instead)
    yield
    stop = current(page)
    if stop != guess:  # Back and Forward change the part only when its input is drawn
        with line:
            _title(view, title, stop, instead)
    exercises(view, stop.exercises)
    after = following(stop)
    label = f"Next: {question(view, after)}" if after else "Back to the start of the path"
    _link(page, after or STOPS[0], label)


def _take_asked_part(page: str) -> None:
    """Selects the part that a link from another page asks for.

    Streamlit ignores it if it is the default and another part was selected earlier.
    """
    arrived = st.session_state.get("lesson") != page
    st.session_state["lesson"] = page
    stops = [stop for stop in STOPS if stop.page == page]
    asked = st.query_params.get(stops[0].key) if stops[0].key else None
    if arrived and asked in [stop.part for stop in stops]:
        st.session_state[stops[0].key] = asked


def _title(view: View, title: str, stop: Stop, instead: str) -> None:
    asked = escaped(question(view, stop))
    shown = f'<span class="question" style="color: var(--ink)">{asked}</span> '
    if view.stage:
        about(title, shown)
    elif instead:
        about(title, shown + instead)
    else:
        title_line(view, title, shown)


def _link(page: str, to: Stop, label: str) -> None:
    """A link to a stop. The sidebar's inputs are kept, because every page has them."""
    icon = ":material/arrow_forward:"
    with st.container(key="onward"):
        if to.page == page:  # a link to the same page would leave the choice of its part as it is
            st.button(label, on_click=_take, args=(to,), icon=icon, key="next_stop")
        else:
            chosen = {to.key: to.part} if to.key else None
            st.page_link(f"{to.page}.py", label=label, icon=icon, query_params=chosen)


def _take(to: Stop) -> None:
    st.session_state[to.key] = to.part


def current(page: str) -> Stop:
    """The stop of the part that is selected on a page, by default that of its first part."""
    stops = [stop for stop in STOPS if stop.page == page]
    key = stops[0].key
    part = st.session_state.get(key) or st.query_params.get(key, "") if key else ""
    return next((stop for stop in stops if stop.part == part), stops[0])


def following(stop: Stop) -> Stop | None:
    """The next stop of the path; None after the last."""
    later = STOPS[STOPS.index(stop) + 1 :]
    return next((other for other in later if not other.aside), None)


def question(view: View, stop: Stop) -> str:
    """The question of a stop, for the sizes of the model."""
    config = view.model.config
    H = config.n_heads
    n = H + 2 * (config.n_kv_heads or H)
    matrices = "three matrices" if n == 3 else f"{n} matrices"
    return stop.question.format(heads=_heads(H), matrices=matrices)


def _heads(n: int) -> str:
    return f"{WORDS[n] if n < len(WORDS) else n} head{'s' * (n != 1)}"

"""The shared inputs of every page: model, text, head, colours. All of them live in the link."""

import ipaddress
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from mha_viz import checkpoints, devices
from mha_viz.app import link
from mha_viz.app.messages import notice, problem
from mha_viz.app.samples import DEFAULT, SAMPLES
from mha_viz.app.view import View
from mha_viz.app.widgets.choices import check_link, text_area
from mha_viz.app.work import downloads, models
from mha_viz.checkpoints import hub
from mha_viz.errors import CheckpointError, SourceError
from mha_viz.figures.scale import SCALES
from mha_viz.figures.theme import THEMES
from mha_viz.head import Head
from mha_viz.heads.patterns import kept_heads
from mha_viz.model import MAX_CHARACTERS, Model
from mha_viz.trace import Cut, Trace

SCALE_NAMES = {"sqrt": "√ weight", "weight": "weight", "share": "vs even"}
FIRST_HEAD = {"bundled": "L3H0", "gpt2": "L5H1"}


def view() -> View | None:
    """Draws the sidebar and gathers what to show; None while there is nothing to show yet.

    Whatever cannot be done is said on the page, and what was shown before stays.
    """
    link.restore()
    state = st.session_state
    with st.sidebar:
        source = _model_input()
        device = _device_input()
        text = _text_input()
        below = st.container()
    shown_source, shown_text = state.get("shown", ("bundled", ""))
    loaded = obtain(source, device)
    waits = loaded is None  # for a model that the link may have been made for
    if loaded is None:
        loaded = models.model(shown_source, device, lane="model before")
        source, loaded = (shown_source, loaded) if loaded else ("bundled", models.bundled(device))
    if not text:
        _ask_for_text()
    found = None
    for asked in dict.fromkeys((text, shown_text)):
        cut = _cut_input(below, loaded, asked) if asked is text else state.get("cut") or "end"
        lane = "text" if asked is text else "text before"
        if asked and (found := models.trace(source, device, asked, cut, lane=lane)):
            state["shown"] = (source, asked)
            break
    if found is None:
        return None
    trace, trace_key = found
    if not any(kept_heads(trace, layer) for layer in range(trace.n_layers)):
        problem("Every head was taken out of this model: there is no attention to show.")
        return None
    layer, head = _head_input(below, source, trace, waits=waits)
    chosen = _looks(below)
    _about(below, loaded)
    _forget_what_another_text_had(trace_key, waits=waits)
    view = View(
        source=source, device=device, model=loaded, trace=trace, trace_key=trace_key,
        layer=layer, head=head, token=_token(trace), window_edges=state.get("window"), **chosen,
    )  # fmt: skip
    if not waits:
        _check_focus(view)
    link.save(trace.n_tokens - 1)
    _say_what_was_changed(trace)
    return view


def _forget_what_another_text_had(trace_key: str, *, waits: bool) -> None:
    """A pinned token and a zoomed part mean nothing in another text."""
    state = st.session_state
    if state.get("trace_key", trace_key) != trace_key and not state.get("waits"):
        for name in ("token", "key_chosen", "side", "window"):
            state.pop(name, None)
    state["trace_key"], state["waits"] = trace_key, waits


def _check_focus(view: View) -> None:
    """Says a word where the link asks for a token or a part that this text does not have."""
    state = st.session_state
    key = state.get("key_chosen")
    if key is not None and key >= view.trace.n_tokens:
        state["key_chosen"] = key = None
    for name, taken, held in (
        ("token", str(view.token), "token"),
        ("key", "the strongest" if key is None else str(key), "key_chosen"),
        ("window", view.window_text or "the whole pattern", "window"),
    ):
        if check_link(name, taken):
            state[held] = None
    if view.window is None:
        state["window"] = None


def _model_input() -> str:
    chosen = st.selectbox(
        "Model",
        list(models.TITLES),
        key="model",
        bind="query-params",
        accept_new_options=True,
        help=(
            "Pick one, or type the name of any GPT-2 on the model hub (owner/name), or a folder "
            "on this machine that starts with ./ or /"
        ),
    )
    return (chosen or "bundled").strip()


def _device_input() -> str | None:
    """A choice where there is one; None is the best device."""
    here = devices.available()
    if len(here) == 1:
        return None
    chosen: str = st.segmented_control(
        "Device", here, default=here[0], key="device", bind="query-params", required=True
    )
    return chosen


def _about(sidebar: DeltaGenerator, loaded: Model) -> None:
    """Where the numbers come from: for those who must be able to trust them."""
    about = loaded.description
    with sidebar.expander("About this model"):
        st.text(
            f"{about.n_parameters:,} parameters, d_model {loaded.config.d_model}, "
            f"{loaded.config.n_positions:,} positions\n"
            f"stored as {about.stored_dtype}, computed as float32 on {loaded.device.type}\n"
            f"weights {about.weights_hash[:12]}\n" + "\n".join(about.notes)
        )


def _text_input() -> str:
    text = text_area("Text", DEFAULT, "text", height=132, help="Ctrl + Enter shows it")
    st.selectbox(
        "Samples", list(SAMPLES), index=None, key="sample", placeholder="Samples",
        label_visibility="collapsed", on_change=_take_sample,
    )  # fmt: skip
    return text


def _take_sample() -> None:
    sample = st.session_state.get("sample")
    if sample in SAMPLES:
        st.session_state["text"] = SAMPLES[sample]
    st.session_state["sample"] = None


def _ask_for_text() -> None:
    st.info("Type a sentence; every head will show where it looks.", icon=":material/edit:")
    for column, (name, text) in zip(st.columns(3), list(SAMPLES.items())[:3], strict=True):
        column.button(name, on_click=_set_text, args=(text,), width="stretch")


def _set_text(text: str) -> None:
    st.session_state["text"] = text


def obtain(source: str, device: str | None, *, lane: str = "model") -> Model | None:
    """The model, or None after the page has said why it is not there."""
    try:
        if checkpoints.is_local(source) and not serves_this_machine_only():
            raise SourceError("Folders are read only while the app serves this machine alone.")
        if source != "bundled" and not checkpoints.is_local(source):
            hub.check_name(source)
            if not hub.is_cached(source):
                downloads.offer(source)
                return None
        return models.model(source, device, lane=lane)
    except (SourceError, CheckpointError) as error:
        problem(str(error))
        return None


def _cut_input(sidebar: DeltaGenerator, loaded: Model, text: str) -> Cut:
    limit = loaded.config.n_positions
    asked = st.session_state.get("link", {}).get("cut")
    if len(text) < limit and asked is None:  # a token is at least one byte
        return st.session_state.get("cut") or "end"
    if len(text) > MAX_CHARACTERS or len(loaded.encode(text)[0]) <= limit:
        return "end"
    cut: Cut = sidebar.segmented_control(
        "Too long: leave out the", ["end", "start"], default="end", key="cut",
        bind="query-params", required=True,
    )  # fmt: skip
    check_link("cut", cut)
    return cut


def _head_input(sidebar: DeltaGenerator, source: str, trace: Trace, *, waits: bool) -> Head:
    options = [Head(i, h).key for i in range(trace.n_layers) for h in kept_heads(trace, i)]
    first = FIRST_HEAD.get(source, Head(trace.n_layers // 2, 0).key)
    first = first if first in options else options[0]
    state = st.session_state
    if state.get("waits") and not waits and (asked := state["link"].get("at")) in options:
        state["at"] = asked  # the model of the link is here at last
    elif (before := state.get("at")) is not None and before not in options:
        if not waits:
            notice(f"{source} has no head {before}; {first} is shown.")
        state["at"] = first
    at = sidebar.selectbox(
        "Head", options, index=options.index(first), key="at", bind="query-params",
        help="A click on a thumbnail or the arrow keys choose it too",
    )  # fmt: skip
    if not waits:
        check_link("at", at)
    return Head.parse(at)


def _looks(sidebar: DeltaGenerator) -> dict[str, Any]:
    scale = sidebar.segmented_control(
        "Colour", SCALES, default="sqrt", key="colour", bind="query-params", required=True,
        format_func=SCALE_NAMES.__getitem__,
    )  # fmt: skip
    dim_sink = sidebar.toggle(
        "Dim the first-token sink", key="sink", bind="query-params",
        help="Draws the first key at a quarter of its strength; no weight is changed",
    )  # fmt: skip
    stage = sidebar.toggle(
        "Stage mode", key="stage", bind="query-params",
        help="Larger type for a projector; the sidebar can be folded away",
    )  # fmt: skip
    taken = {"colour": SCALE_NAMES[scale], "sink": str(dim_sink).lower()}
    taken["stage"] = str(stage).lower()
    for name, value in taken.items():
        check_link(name, value)
    theme = st.session_state.get("theme") or st.context.theme.type or "light"
    return {"scale": scale, "dim_sink": dim_sink, "stage": stage, "theme": THEMES[theme]}


def _token(trace: Trace) -> int:
    """The pinned token; without a choice the last, from which the model predicts."""
    chosen = st.session_state.get("token")
    if isinstance(chosen, int) and 0 <= chosen < trace.n_tokens:
        return chosen
    return trace.n_tokens - 1


def _say_what_was_changed(trace: Trace) -> None:
    if trace.left_out:
        total = trace.n_tokens + trace.left_out
        kept = "First" if trace.cut == "end" else "Last"
        notice(
            f"The text has {total:,} tokens; this model reads {trace.n_tokens:,}. {kept} "
            f"{trace.n_tokens:,} shown, {trace.left_out:,} left out at the {trace.cut}."
        )
    say_what_was_replaced(trace, "The text")


def say_what_was_replaced(trace: Trace, text: str) -> None:
    """A word where a text holds U+FFFD: a browser replaces what it cannot send."""
    lost = trace.replaced + trace.text.count("\ufffd")
    if lost:
        notice(
            f"{text} holds U+FFFD {lost} time{'s' * (lost > 1)}: it stands for characters that "
            "were no valid Unicode."
        )


def serves_this_machine_only() -> bool:
    """Whether nobody else can reach the app: then folders are read and written."""
    address = str(st.get_option("server.address"))
    try:
        return address == "localhost" or ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False

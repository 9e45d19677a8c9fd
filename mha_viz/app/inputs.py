"""The shared inputs of every page: model, text, head and colours. All of them are in the link."""

import ipaddress
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from mha_viz import checkpoints, devices
from mha_viz.app import link
from mha_viz.app.messages import notice, problem
from mha_viz.app.samples import DEFAULT, SAMPLES
from mha_viz.app.view import View
from mha_viz.app.widgets import explained, revisions, text_read, tour
from mha_viz.app.widgets.change_text import take_sample
from mha_viz.app.widgets.choices import check_link, text_area
from mha_viz.app.widgets.colour_inputs import colour_inputs
from mha_viz.app.work import downloads, models
from mha_viz.checkpoints import hub
from mha_viz.errors import CheckpointError, SourceError, TextError
from mha_viz.figures.theme import THEMES
from mha_viz.head import Head
from mha_viz.heads.patterns import kept_heads
from mha_viz.model import Model
from mha_viz.trace import Cut, Trace

_MOST = 20  # tokens that a character can become: it may expand, and each byte be a token


def view(page: str) -> View | None:
    """Draws the sidebar and gathers what to show; None while there is nothing to show yet.

    If an input cannot be used, the page says why and keeps showing the previous model or text.
    """
    link.restore()
    tour.begin()
    with st.sidebar:
        asked = _model_input()
        revisions.choose(asked)
        device = _device_input()
        text = _text_input()
        below = st.container()
    source, model, waits = _model(asked, device)
    model = model.with_template(text_read.template_input(below, model))
    if not text:
        _ask_for_text()
    found = _trace(below, source, device, model, text)
    if found is None:
        return None
    trace, trace_key = found
    if not any(kept_heads(trace, layer) for layer in range(trace.n_layers)):
        problem("All heads of this model have been pruned, so there is no attention to show.")
        return None
    layer, head = _head_input(below, source, model, trace, trace_key, waits=waits)
    drawing = _drawing_inputs(below, page)
    with below:
        _about(model)
    _forget_focus_of_another_text(trace_key, waits=waits)
    view = View(
        source=source,
        device=device,
        model=model,
        trace=trace,
        trace_key=trace_key,
        layer=layer,
        head=head,
        token=_token(trace),
        window_edges=st.session_state.get("window"),
        **drawing,
    )
    if not waits:
        _check_focus(view)
    link.save(trace.n_tokens - 1)
    text_read.warn_of_dropped_tokens(trace)
    text_read.warn_of_replaced_characters(trace, "The text")
    text_read.warn_of_changed_text(trace, "the text")
    return view


def obtain(source: str, device: str | None, *, lane: str = "model") -> Model | None:
    """The model, or None if it cannot be used; the page then says why."""
    try:
        if checkpoints.is_local(source) and not serves_this_machine_only():
            raise SourceError(
                "Local folders are disabled because other machines may reach this app. Choose a "
                "model from the Hub."
            )
        if source != "bundled" and not checkpoints.is_local(source):
            hub.check_name(source)
            if not hub.is_cached(source):
                downloads.offer(source)
                return None
        return models.model(source, device, lane=lane)
    except (SourceError, CheckpointError) as error:
        problem(str(error))
        return None


def serves_this_machine_only() -> bool:
    """Whether only this machine can reach the app, which may then read and write folders."""
    address = str(st.get_option("server.address"))
    try:
        return address == "localhost" or ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _model_input() -> str:
    selected = explained.selectbox(
        "Model",
        list(models.TITLES),
        key="model",
        bind="query-params",
        accept_new_options=True,
        help="Choose a model, type the name of any GPT-2 on the Hugging Face Hub (owner/name or "
        "owner/name@revision), or "
        "enter a folder path that starts with ./ or /",
    )
    return (selected or "bundled").strip()


def _device_input() -> str | None:
    """The selected device; None, for the default, if the machine has only one."""
    names = devices.available()
    if len(names) == 1:
        return None
    selected: str = st.segmented_control(
        "Device", names, default=names[0], key="device", bind="query-params", required=True
    )
    return selected


def _text_input() -> str:
    text = text_area("Text", DEFAULT, "text", height=132, help="Press Ctrl + Enter to apply")
    st.selectbox(
        "Samples",
        list(SAMPLES),
        index=None,
        key="sample",
        placeholder="Samples",
        label_visibility="collapsed",
        on_change=_take_sample,
    )
    return text


def _take_sample() -> None:
    sample = st.session_state.get("sample")
    if sample in SAMPLES:
        take_sample(sample)
    st.session_state["sample"] = None


def _ask_for_text() -> None:
    st.info("Type a sentence to see where every head looks.", icon=":material/edit:")
    for column, name in zip(st.columns(3), list(SAMPLES)[:3], strict=True):
        column.button(name, on_click=take_sample, args=(name,), width="stretch")


def _set_text(text: str) -> None:
    st.session_state["text"] = text


def _model(asked: str, device: str | None) -> tuple[str, Model, bool]:
    """The model to show with its source, and whether the page waits for another one.

    Until the requested model is ready, the previous one is shown, or else the bundled one.
    """
    model = obtain(asked, device)
    if model is not None:
        return asked, model, False
    before, _ = st.session_state.get("shown", ("bundled", ""))
    model = models.model(before, device, lane="model before")
    if model is not None:
        return before, model, True
    return "bundled", models.bundled(device), True


def _trace(
    sidebar: DeltaGenerator, source: str, device: str | None, model: Model, text: str
) -> tuple[Trace, str] | None:
    """The trace of the text and its key in caches, or else those of the text shown before."""
    state = st.session_state
    _, before = state.get("shown", ("", ""))
    found = None
    if text:
        cut = _cut_input(sidebar, model, text)
        found = models.trace(source, device, text, cut, template=model.template)
    if found is None and before and before != text:
        text = before
        cut = state.get("cut") or "end"
        template = model.template
        found = models.trace(source, device, text, cut, template=template, lane="text before")
    if found is not None:
        state["shown"] = (source, text)
    return found


def _cut_input(sidebar: DeltaGenerator, model: Model, text: str) -> Cut:
    """Where a text that is too long for the model is cut."""
    limit = model.config.n_positions
    asked = st.session_state.get("link", {}).get("cut")
    if len(text) * _MOST < limit and asked is None:
        return st.session_state.get("cut") or "end"
    try:
        fits = len(model.input_ids(text)) <= limit
    except TextError:  # tracing will report it
        return "end"
    if fits:
        return "end"
    with sidebar:
        cut: Cut = explained.segmented_control(
            "Text too long. Drop tokens at the",
            ["end", "start"],
            default="end",
            key="cut",
            bind="query-params",
            required=True,
        )
    check_link("cut", cut)
    return cut


def _head_input(
    sidebar: DeltaGenerator, source: str, model: Model, trace: Trace, trace_key: str, *, waits: bool
) -> Head:
    """The selected head; until a user selects one, the head that is most telling on the text."""
    options = [Head(i, h).key for i in range(trace.n_layers) for h in kept_heads(trace, i)]
    first = models.telling_head(trace_key, model, trace).key
    state = st.session_state
    if state.get("opened on", first) != first and state.get("at") == state["opened on"]:
        state["at"] = first  # of another text
    state["opened on"] = first
    if state.get("waits") and not waits and (asked := state["link"].get("at")) in options:
        state["at"] = asked  # the model in the link has been loaded by now
    elif (before := state.get("at")) is not None and before not in options:
        if not waits:
            notice(f"{source} has no head {before}; showing {first}.")
        state["at"] = first
    with sidebar:
        at = explained.selectbox(
            "Head",
            options,
            index=options.index(first),
            key="at",
            bind="query-params",
            help="You can also click a thumbnail or use the arrow keys",
        )
    if not waits:
        check_link("at", at)
    return Head.parse(at)


def _drawing_inputs(sidebar: DeltaGenerator, page: str) -> dict[str, Any]:
    """How patterns are drawn, as arguments of View."""
    with sidebar:
        scale, dim_sink = colour_inputs(page)
        stage = explained.toggle(
            "Stage mode",
            key="stage",
            bind="query-params",
            help="Larger type for a projector; the sidebar can be collapsed",
        )
    check_link("stage", str(stage).lower())
    theme = st.session_state.get("theme") or st.context.theme.type or "light"
    return {"scale": scale, "dim_sink": dim_sink, "stage": stage, "theme": THEMES[theme]}


def _about(model: Model) -> None:
    """Where the numbers come from, for users who want to verify them."""
    about = model.description
    # Every model has a note on its unembedding; the expander is open if there are others.
    with st.expander("About this model", expanded=len(about.notes) > 1):
        st.text(
            f"{about.n_parameters:,} parameters, d_model {model.config.d_model}, "
            f"{model.config.n_positions:,} positions\n"
            f"stored as {about.stored_dtype}, computed as float32 on {model.device.type}\n"
            f"weights SHA-256 {about.weights_hash[:12]}…\n" + "\n".join(about.notes)
        )


def _forget_focus_of_another_text(trace_key: str, *, waits: bool) -> None:
    """Forgets the pinned token and the zoom, which mean nothing in another text."""
    state = st.session_state
    if state.get("trace_key", trace_key) != trace_key and not state.get("waits"):
        for name in ("token", "key_chosen", "side", "window"):
            state.pop(name, None)
    state["trace_key"], state["waits"] = trace_key, waits


def _token(trace: Trace) -> int:
    """The pinned token, by default the last one, from which the model predicts."""
    pinned = st.session_state.get("token")
    if isinstance(pinned, int) and 0 <= pinned < trace.n_tokens:
        return pinned
    return trace.n_tokens - 1


def _check_focus(view: View) -> None:
    """Warns if the link asks for a token or a part of the pattern that this text does not have."""
    state = st.session_state
    key = state.get("key_chosen")
    if key is not None and key >= view.trace.n_tokens:
        state["key_chosen"] = key = None
    if check_link("token", str(view.token)):
        state["token"] = None
    if check_link("key", "the strongest" if key is None else str(key)):
        state["key_chosen"] = None
    if check_link("window", view.window_text or "the whole pattern") or view.window is None:
        state["window"] = None

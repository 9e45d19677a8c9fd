"""Shared keys: fewer key/value heads than query heads, what that saves, and what it costs."""

import hashlib
from collections.abc import Callable, Sequence

import numpy as np
import streamlit as st

from mha_viz import texts
from mha_viz.counting import attention_parameters, kv_cache_bytes
from mha_viz.errors import MhaVizError, TextError
from mha_viz.figures.cache_sizes import in_bytes
from mha_viz.figures.lines import Line, Ticks, line_chart
from mha_viz.figures.sharing import sharing_figure
from mha_viz.model import Model
from mha_viz.pruning.inputs import pieces
from mha_viz.session.attention import CONFIG, caption, model_name
from mha_viz.session.messages import escaped, notice, problem
from mha_viz.session.variants import losses
from mha_viz.session.variants.common import QUICK, facts, one_of, table_download
from mha_viz.session.variants.losses import Measurement
from mha_viz.session.view import View

TICK = 0.4  # seconds between two looks at a measurement
MOST_TOKENS = 8192  # of a text of one's own
LARGEST_FILE = 1  # MiB


def show(view: View) -> None:
    """The drawing, the arithmetic, and the loss against G."""
    config = view.model.config
    if any(config.removed_heads):
        notice(
            "Heads were taken out of this model, so that a layer's heads need not divide into "
            "equal groups. Choose a whole model to see its heads share keys and values."
        )
        return
    own = config.n_kv_heads or config.n_heads
    groups = [n for n in range(own, 0, -1) if own % n == 0]
    G = one_of("Key/value heads G", groups, groups[len(groups) // 2], "kv_heads")
    _drawing(view, G)
    left, right = st.columns(2, gap="medium")
    with left:
        _arithmetic(view, G, own)
    with right:
        _losses(view, G, groups)


def _drawing(view: View, G: int) -> None:
    H = view.model.config.n_heads
    caption(
        _kind(G, H),
        f"layer {view.layer}: {H} query heads above, {G} key/value head{'s' * (G > 1)} below; "
        "a line leads to the keys and values that a query head reads.",
    )
    st.plotly_chart(
        sharing_figure(H, G, view.theme, chosen=view.head, sizes=view.sizes),
        key="sharing", theme=None, config=CONFIG, height=170,
        alt=f"{H} query heads share {G} key/value heads, {H // G} each; H{view.head} reads "
        f"key/value head {view.head // (H // G)}.",
    )  # fmt: skip


def _kind(G: int, H: int) -> str:
    if G == H:
        return "Multi-head attention"
    return "Multi-query attention" if G == 1 else "Grouped-query attention"


def _arithmetic(view: View, G: int, own: int) -> None:
    config = view.model.config
    H, C, d_h = config.n_heads, config.d_model, config.d_head
    n_bytes = view.model.network.wte.weight.element_size()

    def both(of: Callable[[int], int], write: Callable[[int], str]) -> str:
        before, after = of(own), of(G)
        if before == after:
            return write(before)
        return f"{write(before)} → {write(after)} ({after / before:.0%})"

    def weights(n: int) -> int:
        return attention_parameters(C, H, n_kv_heads=n, d_head=d_h).total

    def cache(n: int, n_tokens: int) -> int:
        return kv_cache_bytes(config.n_layers, n, d_h, n_tokens=n_tokens, bytes_per_number=n_bytes)

    T = config.n_positions
    change = f" from G = {own} to G = {G}" if own != G else ""
    caption("What it saves", f"{escaped(model_name(view))}{change}; {n_bytes} bytes a number.")
    st.latex(r"\text{weights} = 2\,C\,H\,d_h + 2\,C\,G\,d_h + \text{biases}")
    st.latex(r"\text{cache} = 2\,L\,G\,d_h \ \text{numbers a token}")
    facts(
        {
            "weights of a layer": both(weights, "{:,}".format),
            "cache, a token": both(lambda n: cache(n, 1), in_bytes),
            f"cache, {T:,} tokens": both(lambda n: cache(n, T), in_bytes),
        }
    )
    st.markdown(_sentence(G, H))
    st.latex(r"W_K^{(g)} = \frac{G}{H}\sum_{h\,\in\,g} W_K^{(h)}\quad\text{and so for } W_V")
    st.caption(
        "Shazeer 2019, section 3 (G = 1); Ainslie et al. 2023, sections 2.1 (the mean) and 2.2."
    )


def _sentence(G: int, H: int) -> str:
    if G == H:
        return "Every query head has keys and values of its own: nothing is shared."
    who = "All query heads" if G == 1 else f"The {H // G} query heads of a group"
    return f"{who} read the same keys and values. To convert a model, take the mean of theirs:"


def _losses(view: View, G: int, groups: Sequence[int]) -> None:
    """The loss for each G, measured beside the page; quick ones start by themselves."""
    below = st.container()
    given, title = _texts()
    try:
        parts, cut = _pieces(view.model.description.weights_hash, given, _model=view.model)
    except MhaVizError as error:
        problem(str(error))
        return
    if cut:
        with below:
            notice(cut)
    spelled = hashlib.sha256("\n\n".join(given).encode("utf-8", "surrogatepass")).hexdigest()
    key = f"{view.model.description.weights_hash} {view.model.device} {spelled}"
    running = _running(key)
    n_tokens = sum(map(len, parts))
    work = view.model.description.n_parameters * n_tokens * len(groups)
    fresh = key not in st.session_state.get("measured_before", ())
    if running is None and len(losses.known(key)) < len(groups) and work <= QUICK and fresh:
        _start(key, view.model, parts, groups)
        running = _running(key)
    with below:
        st.fragment(_chart, run_every=TICK if running else None)(
            view, G, groups, parts, title, key, running
        )


def _chart(
    view: View, G: int, groups: Sequence[int], parts: Sequence[list[int]], title: str, key: str,
    running: Measurement | None,
) -> None:  # fmt: skip
    if running is not None:
        running.look()
        if running.ended:
            st.rerun()
    found = losses.known(key)
    n_tokens = sum(map(len, parts))
    caption(
        "Loss against G",
        f"{title}: mean over {n_tokens - len(parts):,} tokens in {len(parts)} pieces, each read "
        "on its own. Keys and values are pooled by their mean in every layer and nothing is "
        "trained afterwards (Ainslie et al. 2023 train on for 5 % of the steps).",
    )
    order = [n for n in groups if n in found]
    figure = line_chart(
        [groups.index(n) for n in order],
        [Line("loss", [found[n] for n in order], view.theme.accent)],
        view.theme, x_title="key/value heads G", y_title="loss, nats a token",
        x_ticks=Ticks(range(len(groups)), [str(n) for n in groups]),
        x_range=(-0.3, len(groups) - 0.7), marked=groups.index(G), sizes=view.sizes,
    )  # fmt: skip
    numbers = ", ".join(f"G = {n}: {found[n]:.3f}" for n in order) or "nothing measured yet"
    st.plotly_chart(
        figure, key="loss_by_G", theme=None, config=CONFIG, height=270, alt=f"Loss: {numbers}."
    )
    if running is not None:
        share = running.share
        told = "Waiting for another measurement" if running.waits else f"Measuring, {share:.0%}"
        st.progress(share, text=told)
        st.button("Stop", on_click=running.stop.set, key="stop_measuring")
        return
    _end(view, groups, parts, key, found)


def _end(
    view: View, groups: Sequence[int], parts: Sequence[list[int]], key: str,
    found: dict[int, float],
) -> None:  # fmt: skip
    """Below a chart that nobody works at: what it says, or a way to begin."""
    last = st.session_state.get("measurement")
    if isinstance(last, Measurement) and last.key == key and last.error:
        problem(last.error)
    if len(found) < len(groups):
        n = len(groups) - len(found)
        label = "Go on" if found else "Measure"
        st.markdown(f"{n} of {len(groups)} values of G are not measured yet.")
        if st.button(
            label, on_click=_start, args=(key, view.model, parts, groups), type="primary",
            key="measure",
        ):  # fmt: skip
            st.rerun()
        return
    table = [(n, f"{found[n]:.6f}") for n in groups]
    st.markdown("  ·  ".join(f"G = {n}: **{found[n]:.3f}**" for n in groups))
    table_download("loss_by_kv_heads.csv", ("G", "loss in nats a token"), table)


def _running(key: str) -> Measurement | None:
    """The visitor's measurement, if it is this one; another one is stopped."""
    last = st.session_state.get("measurement")
    if not isinstance(last, Measurement):
        return None
    if last.key != key:
        last.stop.set()
        return None
    return None if last.ended else last


def _start(
    key: str, model: Model, parts: Sequence[list[int]], groups: Sequence[int]
) -> None:  # fmt: skip
    st.session_state.setdefault("measured_before", set()).add(key)
    st.session_state["measurement"] = Measurement(key, model, parts, groups).start()


def _texts() -> tuple[tuple[str, ...], str]:
    """The texts to measure on, and what they are called."""
    with st.expander("Measure on a text of your own"):
        file = st.file_uploader(
            "A text file in UTF-8; its paragraphs are read one by one", type=["txt", "md"],
            max_upload_size=LARGEST_FILE, key="own_text",
        )  # fmt: skip
    if file is not None:
        try:
            return read_texts(file.getvalue(), file.name), escaped(file.name)
        except TextError as error:
            problem(str(error))
    return texts.measuring_texts(), "the reference text, its measuring half"


def read_texts(data: bytes, name: str) -> tuple[str, ...]:
    """The paragraphs of a file. Raises TextError where it is no UTF-8, or empty."""
    try:
        return texts.paragraphs(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise TextError(
            f"{name} is not a text in UTF-8 (byte {error.start:,} does not fit). Save it as UTF-8, "
            "or choose another file. The reference text is shown."
        ) from error


@st.cache_resource(max_entries=8, show_spinner=False)
def _pieces(
    weights: str, given: tuple[str, ...], *, _model: Model
) -> tuple[list[list[int]], str]:  # fmt: skip
    """The token ids of the texts, and a word where they are more than are read."""
    found = pieces(_model, given, _model.config.n_positions)
    sizes = np.cumsum([len(piece) for piece in found])
    kept = max(1, int((sizes <= MOST_TOKENS).sum()))
    if kept == len(found):
        return found, ""
    return found[:kept], (
        f"The text has {sizes[-1]:,} tokens; the first {sizes[kept - 1]:,} are measured."
    )

"""What the Compare page is made of: two traces, aligned tokens, and what each head changed."""

from dataclasses import dataclass

import numpy as np
import streamlit as st

from mha_viz import pruning
from mha_viz.analysis import compare
from mha_viz.analysis.compare import Alignment, Change
from mha_viz.app import inputs
from mha_viz.app.messages import escaped, notice
from mha_viz.app.samples import DEFAULT
from mha_viz.app.view import View
from mha_viz.app.widgets import head_board
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import chart, record_settings
from mha_viz.app.widgets.choices import segmented_control, text_area
from mha_viz.app.widgets.download_buttons import download_matrix, download_table
from mha_viz.app.work import models
from mha_viz.app.work.progress import Reporter, ResultSlots, wait_for
from mha_viz.export import head_table
from mha_viz.figures.head_map import head_map
from mha_viz.figures.values import matrix_heatmap
from mha_viz.head import Head
from mha_viz.trace import Trace

AGAINST = ["another text", "another model", "ablated heads"]
OTHER_TEXT = DEFAULT.replace("king", "queen")
ALL_OFF = (
    "Every head is off: all that remains is what the embeddings, the MLPs and biases write, and "
    "there is no head to compare."
)
MOST_SHOWN = 256  # aligned tokens a side of a heatmap

_gated = ResultSlots[Trace](8)
_changed = ResultSlots[tuple[Alignment, Change]](8)


@dataclass(frozen=True, slots=True, eq=False)
class Other:
    """What the text in the sidebar is compared with."""

    trace: Trace
    trace_key: str
    name: str  # in captions
    first: str = "this text"  # what the other side is called there
    off: tuple[pruning.Head, ...] = ()


def show(view: View) -> None:
    """The other side is chosen, then both stand side by side."""
    other = _other(view)
    if other is not None:
        _comparison(view, other)


def _other(view: View) -> Other | None:
    """The other side; None after the page has said what is missing."""
    against = segmented_control("Against", AGAINST, AGAINST[0], "against", show_label=False)
    if against == AGAINST[0]:
        return _other_text(view)
    return _other_model(view) if against == AGAINST[1] else _without_heads(view)


def _other_text(view: View) -> Other | None:
    text = text_area("The other text", OTHER_TEXT, "other_text", height=90)
    if not text:
        st.info("Type a second text; tokens that both have in the same order are aligned.")
        return None
    found = models.trace(view.source, view.device, text, view.trace.cut, lane="other text")
    record_settings(Compared_with_the_text=text)
    if found is None:
        return None
    record_settings(Its_token_ids=found[0].token_ids)
    _say_what_was_cut(found[0], "The other text", view.about.name)
    inputs.say_what_was_replaced(found[0], "The other text")
    return Other(*found, "the other text")


def _other_model(view: View) -> Other | None:
    source = st.selectbox(
        "The other model", list(models.TITLES), key="other_model", bind="query-params",
        accept_new_options=True, help="With as many layers and heads as the first",
    )  # fmt: skip
    loaded = inputs.obtain(source or "bundled", view.device, lane="other model")
    if loaded is None:
        return None
    found = models.trace(
        source or "bundled", view.device, view.trace.text, view.trace.cut, lane="other text"
    )
    about = loaded.description
    record_settings(Compared_with=f"{about.name} ({about.source}), SHA-256 {about.weights_hash}")
    if found is None:
        return None
    _say_what_was_cut(found[0], "The text", about.name)
    return Other(*found, about.name, view.about.name)


def _say_what_was_cut(trace: Trace, text: str, model: str) -> None:
    """A word on the other trace, as the sidebar has one on the first."""
    if trace.left_out:
        n, out = trace.n_tokens, trace.left_out
        kept = "First" if trace.cut == "end" else "Last"
        notice(
            f"{text} has {n + out:,} tokens for {model}, which reads {n:,}. {kept} {n:,} compared, "
            f"{out:,} left out at the {trace.cut}."
        )


def _without_heads(view: View) -> Other | None:
    off = head_board.heads_off(view)
    if not off:
        st.info("Name heads that are off, for example L0H1-L3H4, or choose them under Pruning.")
        return None
    trace_key = f"{view.trace_key} {off}"
    some = "1 head" if len(off) == 1 else f"{len(off)} heads"
    gate = pruning.gate_without(view.model.config, off).numpy()

    def work(report: Reporter) -> Trace:
        return view.model.trace_ids(
            view.trace.token_ids, head_gate=gate,
            on_layer=lambda done: report(done / view.trace.n_layers),
        )  # fmt: skip

    found = wait_for(_gated(trace_key), "Running without these heads", work, lane="other text")
    return None if found is None else Other(found, trace_key, f"without {some}", "as it is", off)


def _comparison(view: View, other: Other) -> None:
    """The diff of the tokens, the map of changes, and the chosen head on both sides."""
    changes = _changes(view, other)
    if changes is None:
        return
    alignment, change = changes
    _tokens(view, other, alignment)
    if not change.n_queries:
        notice("No token after the first stands in both: there is nothing to compare.")
        return
    if not np.isfinite(change.distance).any():
        notice(ALL_OFF if other.off else "No head is in both models: there is nothing to compare.")
        return
    left, right = st.columns([2, 3], gap="medium")
    with left:
        _map(view, other, change)
        _most(view, change)
    with right:
        _patterns(view, other, alignment)


def _changes(view: View, other: Other) -> tuple[Alignment, Change] | None:
    a, b = view.trace, other.trace

    def work(report: Reporter) -> tuple[Alignment, Change]:
        alignment = compare.align_traces(a, b)
        change = compare.change(a, b, alignment, on_layer=lambda done: report(done / a.n_layers))
        for head in other.off:  # it has a pattern still, of which nothing is written any more
            for values in (change.distance, change.elsewhere_a, change.elsewhere_b):
                values[head] = np.nan
        return alignment, change

    slot = _changed(view.trace_key, other.trace_key)
    return wait_for(slot, "Comparing every head", work, lane="changes")


def _tokens(view: View, other: Other, alignment: Alignment) -> None:
    n = len(alignment)
    caption(
        "Tokens",
        f"{n} stand{'s' * (n == 1)} in both in the same order and {'is' if n == 1 else 'are'} "
        "aligned, as a diff finds them; the others are struck through above and underlined below.",
    )
    sides = ((view.trace, alignment.a, "s"), (other.trace, alignment.b, "u"))
    lines = []
    for trace, kept, tag in sides:
        same = set(kept.tolist())
        words = [
            escaped(t) if i in same else f"<{tag}>{escaped(t)}</{tag}>"
            for i, t in enumerate(trace.tokens[:400])
        ]
        more = " …" if trace.n_tokens > 400 else ""
        lines.append(f"<div>{' '.join(words)}{more}</div>")
    st.html(f'<div class="diff">{"".join(lines)}</div>')


def _map(view: View, other: Other, change: Change) -> None:
    most = float(np.nanmax(change.distance))
    top = max(most, 0.01)
    blank = " A head that is off is blank." if other.off else ""
    caption("Change of each head", f"{compare.DISTANCE}; colour from 0 to {top:.2f}.{blank}")
    L = len(change.distance)
    chart(
        head_map(
            change.distance, view.theme, bounds=(0.0, top), chosen=(view.layer, view.head),
            name="change", sizes=view.sizes,
        ),
        key="change_map", on_select=_clicked, selection_mode="points",
        height=min(560, 60 + 44 * L), table=lambda: head_table(["change"], change.distance),
        alt=f"Change of each head, at most {most:.3f}.{blank}",
    )  # fmt: skip


def _clicked() -> None:
    points = st.session_state["change_map"]["selection"]["points"]
    if points:
        layer, head, *_ = points[0]["customdata"]
        st.session_state["at"] = Head(layer, head).key


def _most(view: View, change: Change) -> None:
    order = np.argsort(-np.nan_to_num(change.distance, nan=-1.0), axis=None)[:5]
    with st.container(horizontal=True):
        for flat in order:
            layer, head = np.unravel_index(flat, change.distance.shape)
            if not np.isfinite(change.distance[layer, head]):
                continue
            st.button(
                f"{Head(layer, head).label} · {change.distance[layer, head]:.2f}",
                key=f"change {Head(layer, head).key}",
                on_click=_choose,
                args=(Head(layer, head).key,),
            )
    names = ["distance", "elsewhere before", "elsewhere after"]
    values = (change.distance, change.elsewhere_a, change.elsewhere_b)
    download_table("change.csv", *head_table(names, *values))


def _choose(at: str) -> None:
    st.session_state["at"] = at


def _patterns(view: View, other: Other, alignment: Alignment) -> None:
    a, b = compare.aligned_patterns(view.trace, other.trace, view.layer, view.head, alignment)
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        notice(f"{view.at.label} was taken out of one of the two models.")
        return
    name = view.at.label
    if (view.layer, view.head) in other.off:
        notice(f"{name} is off: it writes nothing now; its pattern is only where it would look.")
    tokens = [view.trace.tokens[i] for i in alignment.a]
    if len(tokens) > MOST_SHOWN:
        notice(f"The first {MOST_SHOWN} of {len(tokens):,} aligned tokens are drawn.")
        a, b, tokens = a[:MOST_SHOWN, :MOST_SHOWN], b[:MOST_SHOWN, :MOST_SHOWN], tokens[:MOST_SHOWN]
    causal = np.tri(len(tokens), dtype=bool)
    sides = (("before", other.first, a), ("after", other.name, b))
    for column, (key, title, pattern) in zip(st.columns(2, gap="small"), sides, strict=True):
        with column:
            caption(name, f"{escaped(title)}, aligned tokens.")
            chart(
                matrix_heatmap(
                    np.where(causal, pattern, np.nan), view.theme, rows="from", columns="to",
                    weights=True, both=True, tokens=tokens, sizes=view.sizes,
                    most_labels=10 if view.stage else 16,
                ),
                key=f"pattern {key}", height=330,
                alt=f"Pattern of {name}: {title}, {len(tokens)} aligned tokens.",
            )  # fmt: skip
    difference = (b - a).astype(np.float32)
    top = float(np.abs(difference).max())
    caption(
        f"{name}, the difference",
        f"“{escaped(other.name)}” minus “{escaped(other.first)}”: orange is more, blue is less, "
        f"0 has no colour; the largest is {top:.2f}.",
    )
    chart(
        matrix_heatmap(
            np.where(causal, difference, np.nan), view.theme, rows="from", columns="to", both=True,
            tokens=tokens, top=max(top, 0.01), most_labels=14 if view.stage else 20,
            sizes=view.sizes,
        ),
        key="difference", height=420,
        alt=f"Difference of the patterns of {name}, at most {top:.3f}.",
    )  # fmt: skip
    download_matrix("difference.csv", difference, rows=tokens)

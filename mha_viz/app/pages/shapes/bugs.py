"""The Bugs part of the Shapes page: one bug in every layer, and what it does to the model.

On the left the loss over a text with each bug, and whether it would be noticed; on the right the
bug that is open. `bug_runs` computes, `bug_figures` draws, `bug_words` puts numbers into sentences.
"""

from typing import Any

import streamlit as st

from mha_viz.app.messages import escaped, notice, problem
from mha_viz.app.pages.shapes import bug_figures
from mha_viz.app.pages.shapes.bug_runs import (
    MAX_TOKENS,
    SOURCES,
    Comparison,
    Losses,
    compare,
    losses,
)
from mha_viz.app.pages.shapes.bug_words import (
    after_training,
    checks,
    given_to_head,
    given_to_row,
    gradient_sentence,
    largest_weights,
    looks_like_success,
)
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption, model_name
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.choices import check_link, segmented_control
from mha_viz.app.widgets.download_buttons import download_matrix
from mha_viz.app.widgets.recipes import recipe
from mha_viz.app.widgets.selection import n_first_tokens, selected_index
from mha_viz.errors import MhaVizError
from mha_viz.export import Given
from mha_viz.figures.text import format_probability
from mha_viz.lessons.bug_effects import LENGTH, row_of_merge, rows_of_head
from mha_viz.lessons.bug_training import CORRECT, SETTINGS, stored_losses
from mha_viz.lessons.bug_training import Losses as Curves
from mha_viz.lessons.bugs import BUGS

FIRST = "no transpose"  # open at first, because its harm is seen
PIECES = 8  # drawn of a head or a row
PATTERN_HEIGHT, CURVE_HEIGHT = 190, 140  # pixels


def show(view: View) -> None:
    """The losses of all bugs on the left, the open one on the right."""
    index = selected_index(view)
    if index is None:
        return
    left, right = st.columns([4, 5], gap="medium")
    with left:
        bug, source = _inputs()
        loss_area = st.container()
    curves = _stored()
    with right:  # first, because it takes less time than the losses
        T = n_first_tokens(view, MAX_TOKENS)
        compared = compare(view, T, bug)
        if compared is not None:
            _opened(view, bug, compared, index, T)
        if curves:
            _trained(view, bug, curves)
        if bug == "no scale":
            _gradient(view)
    with left:
        measured = losses(view, source)  # its progress is shown below the list
        with loss_area:
            if measured is not None:
                _list(view, bug, measured)
        if measured is not None and curves:
            _success(measured, curves)
        if compared is not None:
            _checks(bug, measured, compared)
        if isinstance(compared, Comparison):
            tokens = view.trace.tokens[:T]
            download_matrix("pattern_with_bug.csv", compared.patterns[index], rows=tokens)


def _inputs() -> tuple[str, str]:
    """The open bug, and the text of the losses."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        names = list(BUGS)
        bug: str = explained.selectbox(
            "Bug",
            names,
            names.index(FIRST),
            key="mistake",
            bind="query-params",
            width=210,
            label_visibility="collapsed",
        )
        check_link("mistake", bug)
        source = segmented_control("Text", SOURCES, SOURCES[0], "bugs_on", show_label=False)
    return bug, source


def _stored() -> dict[str, Curves]:
    try:
        return stored_losses()
    except MhaVizError as error:
        problem(str(error))
        return {}


def _list(view: View, bug: str, measured: Losses) -> None:
    caption(
        f"Loss over {measured.n_tokens:,} tokens",
        f"{measured.source}, in pieces of {LENGTH}, nats per token. "
        '<span class="diamond">◆</span> one token at a time, as when it writes. Click a bug.',
    )
    code = "measured(model, texts, n_writing)"
    drawn = recipe(
        view,
        bug_figures.draw_list,
        source=measured.source,
        texts=Given(None, "texts_of(model, source, trace.token_ids)"),
        n_writing=measured.n_writing,
        bugs=Given(measured.bugs, code),
        right=Given(measured.right, "loss_whole(model.network, texts, None)"),
        bug=bug,
    )
    opened = measured.of(bug)
    chart(
        drawn,
        key="bug_list",
        name="Loss with each bug",
        height=(30 if view.stage else 28) * (len(BUGS) + 1) + 40,
        on_select=_open_clicked,
        selection_mode="points",
        alt=f"The loss is {measured.right:.3f} without a bug and {opened.whole:.3f} with {bug}. "
        "From the largest loss down: "
        + ", ".join(f"{each.name} {each.whole:.3f}" for each in measured.bugs),
    )


def _open_clicked() -> None:
    points = st.session_state["bug_list"]["selection"]["points"]
    names = [point["customdata"][1] for point in points if point.get("customdata")]
    if names:
        st.session_state["mistake"] = names[0]


def _success(measured: Losses, curves: dict[str, Curves]) -> None:
    title, text = looks_like_success(measured, curves["no mask"].last)
    explained.html(f'<div class="callout"><b>{escaped(title)}</b><br>{escaped(text)}</div>')


def _checks(bug: str, measured: Losses | None, compared: Comparison | str) -> None:
    """Four ways to find the bug, and whether each does."""
    caption("Would you notice?", f"{bug}: what each check finds")
    cells = "".join(
        f"<span>{escaped(name)}</span><span>{escaped(found)}</span>"
        f'<b class="{"yes" if seen else "no"}">{"yes" if seen else "no"}</b>'
        for name, found, seen in checks(bug, measured, compared)
    )
    explained.html(f'<div class="checks">{cells}</div>')


def _opened(view: View, bug: str, compared: Comparison | str, index: int, T: int) -> None:
    """The lines, what heads are given, the patterns and the next token."""
    effect = BUGS[bug].effect
    if isinstance(compared, Comparison) and bug in ("no scale", "root of C"):
        patterns = (compared.correct_patterns[index], compared.patterns[index])
        effect = f"{effect} {largest_weights(view.at.label, *patterns)}".strip()
    explained.html(
        f'<div class="caption"><b class="opened">{escaped(bug)}</b> {escaped(effect)}</div>'
    )
    shapes = ("", "") if isinstance(compared, str) else compared.shapes
    _lines(bug, shapes)
    if isinstance(compared, str):
        problem(f"This model cannot run with this bug: {compared}")
        return
    if compared.same:
        unscaled = bug == "no scale" and view.model.config.scale(view.layer) == 1
        why = "This model does not scale its scores, so" if unscaled else "Here"
        notice(f"{why} the wrong line computes the same numbers.")
    _pieces(view, bug, index, T, compared)
    _patterns(view, bug, compared, index, T)


def _lines(bug: str, shapes: tuple[str, str]) -> None:
    lines = ((BUGS[bug].correct, "right"), (BUGS[bug].wrong or "# missing", "wrong"))
    cells = "".join(
        f'<b class="{name}">{name}</b><code>{escaped(line)}</code><span>{shape}</span>'
        for (line, name), shape in zip(lines, shapes, strict=True)
    )
    explained.html(f'<div class="twolines">{cells}</div>')


def _pieces(view: View, bug: str, index: int, T: int, compared: Comparison) -> None:
    """Where the numbers of a head, or of a merged row, come from."""
    H, kept = len(compared.patterns), view.model.config.kept_heads(view.layer)
    if compared.same or bug not in ("no transpose", "no transpose back"):
        return
    given: dict[str, Any] = {
        "T": T,
        "bug": bug,
        "index": index,
        "n_heads": H,
        "kept": kept,
        "n": PIECES,
    }
    if bug == "no transpose":
        wrong = rows_of_head(T, H, index, bug)
        caption(f"The first {min(T, PIECES)} rows of {view.at.label}",
                "Colour and number: the head that a piece of q was made for.")  # fmt: skip
        words = given_to_head(view.at.label, T, H, wrong)
    else:
        wrong = row_of_merge(T, H, 0, bug)
        token = view.trace.tokens[0]
        caption(f"The row of “{escaped(token)}” after merging",
                "Colour and number: the head that computed a piece of z.")  # fmt: skip
        words = given_to_row(token, H, wrong)
    drawn = recipe(view, bug_figures.draw_pieces, **given)
    with st.container(key="pieces_box"):  # which scrolls sideways on a phone
        height = 118 if view.stage else 92
        chart(drawn, key="pieces", name="What a head is given", height=height, alt=words)
    explained.html(f'<div class="caption">{escaped(words)}</div>')


def _patterns(view: View, bug: str, compared: Comparison, index: int, T: int) -> None:
    given: dict[str, Any] = {
        "T": T,
        "bug": bug,
        "index": index,
        "ids": Given(None, "torch.tensor([trace.token_ids[:T]], device=model.device)"),
        "comparison": Given(compared, "run_both(model.network, ids, bug, layer)"),
    }
    left, right = st.columns([7, 4], gap="small")
    with left:
        caption(f"Layer {view.layer}, head {view.head}", "Rows are queries, columns are keys.")
        drawn = recipe(view, bug_figures.draw_patterns, **given)
        alt = f"The pattern of {view.at.label} over {T} tokens, right and wrong."
        chart(
            drawn,
            key="pattern_pair",
            name=f"Patterns of {view.at.label}",
            height=PATTERN_HEIGHT,
            alt=alt,
        )
    with right:
        token = view.trace.tokens[T - 1]
        caption("", f"<b>What follows “{escaped(token)}”?</b>")
        drawn = recipe(view, bug_figures.draw_next, **given)
        chart(
            drawn, key="next", name="Next token", height=PATTERN_HEIGHT, alt=_falls(view, compared)
        )
    explained.html(
        f'<div class="caption words">{escaped(_falls(view, compared))} '
        f"KL divergence from {escaped(model_name(view))}: "
        f"{compared.last_divergence:.2f} nats at the last position, "
        f"{compared.mean_divergence:.2f} on average.</div>"
    )


def _falls(view: View, compared: Comparison) -> str:
    """What happens to the model's most likely next token."""
    (expected, before), *_ = compared.right_top
    token = view.model.read([expected])[0].label
    after = compared.followed
    how = "falls" if after < before else "rises" if after > before else "stays"
    if how == "stays":
        return f"“{token}” stays at {format_probability(before)}."
    return f"“{token}” {how} from {format_probability(before)} to {format_probability(after)}."


def _trained(view: View, bug: str, curves: dict[str, Curves]) -> None:
    """The stored losses of the character model, trained with the bug from the start."""
    d_h = SETTINGS.width // SETTINGS.n_heads
    right, wrong = curves[CORRECT], curves[bug]
    caption(
        "Trained with it from the start",
        f"Character model, {SETTINGS.n_heads} heads of {d_h}, W_O; held-out loss over "
        f"{SETTINGS.steps:,} steps, logarithmic.",
    )
    words = after_training(bug, right.last, wrong.last, d_h, right.whole[0])
    drawn = recipe(view, bug_figures.draw_trained, bug=bug, curves=Given(curves, "stored_losses()"))
    chart(drawn, key="trained_losses", name=f"Trained with {bug}", height=CURVE_HEIGHT, alt=words)
    explained.html(f'<div class="caption words">{escaped(words)}</div>')


def _gradient(view: View) -> None:
    """How much the softmax lets through with the scale and without it, for several d_h."""
    scaled, bare = bug_figures.softmax_gradients()
    words = gradient_sentence(bug_figures.D_HEADS, scaled, bare)
    caption(
        "Gradient through the softmax",
        "Random q and k of variance 1, 64 keys: the sum of |∂ weight / ∂ score|.",
    )
    drawn = recipe(view, bug_figures.draw_gradient)
    chart(
        drawn,
        key="softmax_gradient",
        name="Gradient through the softmax",
        height=CURVE_HEIGHT,
        alt=words,
    )
    explained.html(f'<div class="caption words">{escaped(words)}</div>')

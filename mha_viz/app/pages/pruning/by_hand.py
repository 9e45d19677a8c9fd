"""The By hand part: heads switched off, and at once what it does to the text and to other text."""

import math
from dataclasses import dataclass

import numpy as np
import streamlit as st

from mha_viz import pruning
from mha_viz.app.messages import escaped, notice, problem
from mha_viz.app.pages.pruning.methods import fill
from mha_viz.app.view import View
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.widgets.reference_text import Reference
from mha_viz.app.work.progress import Reporter, ResultSlot, ResultSlots, wait_for
from mha_viz.errors import MhaVizError
from mha_viz.figures.predictions import compare_predictions
from mha_viz.figures.token_losses import token_losses
from mha_viz.pruning import Head, Pass
from mha_viz.pruning.ablation import Scores
from mha_viz.trace import Array

PIECE = 256  # tokens of a piece at most
QUICK = 4  # pieces of the reference text that are read at every switch; curves read all
CHANGED = 5  # heads named
TOP = 10  # next tokens of the whole model
ENTRANTS = 2  # and as many that came in


@dataclass(frozen=True, slots=True, eq=False)
class Read:
    """Passes over the text and over pieces of the reference text, and the loss of each token."""

    passes: tuple[Pass, ...]
    losses: tuple[Array, ...]

    @property
    def here(self) -> float:
        """The mean over the tokens of the text, in nats."""
        return float(self.losses[0].mean(dtype=np.float64))

    @property
    def elsewhere(self) -> float:
        """The mean over the tokens of the reference text, in nats."""
        return float(np.concatenate(self.losses[1:]).mean(dtype=np.float64))


@dataclass(frozen=True, slots=True, eq=False)
class Switched:
    """What was read with all heads and without those that are off, and how far apart that is."""

    before: Read
    after: Read
    divergence: Array  # [T], KL in nats
    moved: Scores  # [L, H], how much each pattern changed

    @property
    def whole(self) -> Pass:
        """The pass over the text with all heads."""
        return self.before.passes[0]

    @property
    def now(self) -> Pass:
        """The pass over the text without the heads."""
        return self.after.passes[0]


_wholes = ResultSlots[Read](8)


def show(view: View, off: tuple[Head, ...], method: pruning.Method, reference: Reference) -> None:
    """What changed: the prediction, each token's loss, unseen text, and other heads' patterns."""
    found = switched(view, off, method, reference)
    if found is None:
        return
    summary(view, off, found)
    next_token(view, found)
    losses(view, found)
    changed(view, found)
    save(view, found)


def switched(
    view: View, off: tuple[Head, ...], method: pruning.Method, reference: Reference
) -> Switched | None:
    """The passes, or None after the page has said why there are none."""
    if view.trace.n_tokens < 2:
        st.info("One token has no loss: nothing comes before it. Type a second one.")
        return None
    whole = _whole(view, reference)
    return None if whole is None else _now(view, off, method, reference, whole)


def _whole(view: View, reference: Reference) -> Read | None:
    """What was read with all heads."""
    model, ids = view.model, view.trace.token_ids

    def work(report: Reporter) -> Read:
        limit = min(model.config.n_positions, PIECE)
        texts = [ids, *pruning.chunks(model, reference.evaluation[:QUICK], limit)[:QUICK]]
        passes: list[Pass] = []
        for one in texts:
            report(len(passes) / (1 + len(texts)))
            passes.append(Pass.of(model, one))
        return Read(tuple(passes), tuple(one.losses() for one in passes))

    slot = _wholes(view.trace_key, reference.key)
    return wait_for(slot, "Running with all heads", work, lane="whole")


def _now(
    view: View, off: tuple[Head, ...], method: pruning.Method, reference: Reference, whole: Read
) -> Switched | None:
    """The passes without the heads, from those of the last switch where they fit.

    Only the layers from the lowest change on are run; the bits are those of a run from the start.
    What stands in for a head is made for each text's own length, as everywhere in the lab.
    """
    if not off:
        return _nothing_off(view, whole)
    state = st.session_state
    fills = [fill(view, method, one.ids.shape[1], reference) for one in whole.passes]
    filled = [one for one in fills if one is not None]
    if len(filled) < len(fills):
        return None
    text = (view.trace_key, reference.key, id(view.model.network))
    before: Read = state["read"] if state.get("read_of") == text else whole
    gate = pruning.gate_without(view.model.config, off)

    def work(report: Reporter) -> Switched:
        steps = len(filled) + 3
        passes: list[Pass] = []
        for one, filling in zip(before.passes, filled, strict=True):
            report(len(passes) / steps)
            passes.append(one.gated(gate, filling))
        report(len(filled) / steps)
        after = Read(tuple(passes), tuple(one.losses() for one in passes))
        report((len(filled) + 1) / steps)
        divergence = pruning.divergence(whole.passes[0], passes[0])
        report((len(filled) + 2) / steps)
        return Switched(
            whole, after, divergence, pruning.pattern_change(whole.passes[0], passes[0])
        )

    asked = (*text, off, method)
    if state.get("switched_by") != asked:
        state["switched_by"], state["switched"] = asked, ResultSlot()
    slot: ResultSlot[Switched] = state["switched"]
    found = wait_for(slot, "Running without these heads", work, lane="without")
    if found is not None:
        state["read_of"], state["read"] = text, found.after
    return found


def _nothing_off(view: View, whole: Read) -> Switched:
    config = view.model.config
    moved = np.full((config.n_layers, config.n_heads), np.nan)
    for head in pruning.all_heads(config):
        moved[head] = 0.0
    return Switched(whole, whole, np.zeros(view.trace.n_tokens, np.float32), moved)


def summary(view: View, off: tuple[Head, ...], found: Switched) -> None:
    """How many heads are off, and what it costs here and elsewhere."""
    n = sum(len(view.model.config.kept_heads(i)) for i in range(view.trace.n_layers))
    here = found.before.here, found.after.here
    there = found.before.elsewhere, found.after.elsewhere
    apart = found.divergence
    st.html(
        f'<div class="score"><b>{len(off)} of {n} off</b>'
        f"<span>this text {_change(*here)}</span>"
        f"<span>reference text {_change(*there)}</span>"
        f"<span>KL {apart[-1]:.3f} nats at the end, {apart.mean():.3f} on average</span></div>"
    )


def _change(before: float, after: float) -> str:
    change = f"{after - before:+.3f}".replace("-", "−")
    perplexity = f"{math.exp(after):,.1f}" if after < 20 else "beyond all bounds"
    return f"<b>{after:.3f}</b> nats ({change}), perplexity {perplexity}"


def next_token(view: View, found: Switched) -> None:
    """The likeliest next tokens before and after, and one of the visitor's choice."""
    also = _wanted(view)
    likely = pruning.next_tokens(found.whole, found.now, TOP, also=also)
    candidates = [c for c in likely if c.id not in also][: TOP + ENTRANTS]
    candidates += [c for c in likely if c.id in also]
    labels = [view.model.read([c.id])[0].label for c in candidates]
    caption("What comes next", "probability after the text; pale the whole model, violet now.")
    chart(
        compare_predictions(
            labels, [c.before for c in candidates], [c.after for c in candidates], view.theme,
            names=("whole model", "now"), sizes=view.sizes,
        ),
        key="next", name="next-token", height=44 + 23 * len(labels),
        table=lambda: (
            ["id", "token", "whole model", "now"],
            [[c.id, t, c.before, c.after] for c, t in zip(candidates, labels, strict=True)],
        ),
        alt="; ".join(
            f"{token} {c.before:.3f}, now {c.after:.3f}"
            for token, c in zip(labels[:5], candidates, strict=False)
        ),
    )  # fmt: skip
    for c in candidates:
        if c.id in also:
            name = escaped(view.model.read([c.id])[0].label)
            st.html(
                f'<p class="caption"><b>{name}</b> was {c.before:.4f}, rank {c.rank_before:,}; '
                f"now {c.after:.4f}, rank {c.rank_after:,}.</p>"
            )


def _wanted(view: View) -> list[int]:
    asked = st.text_input(
        "Another token", key="wanted", bind="query-params", placeholder="for example  ring",
        help="A token as it is, or a word, which is looked for with the space before it first",
    )  # fmt: skip
    if not asked:
        return []
    try:
        # As typed, and else as a word with the space before it that it has within a text.
        ways = [view.model.encode(way)[0] for way in (asked, f" {asked}")]
    except MhaVizError as error:
        problem(str(error))
        return []
    ids = min(ways, key=lambda ids: (len(ids), ids is ways[0] and asked.isalpha()))
    if len(ids) > 1:
        first = view.model.read(ids[:1])[0].label
        notice(f"This is {len(ids)} tokens to the model; the first, {first}, is shown.")
    return ids[:1]


def losses(view: View, found: Switched) -> None:
    """The loss of each token, under the text."""
    before, after = found.before.losses[0], found.after.losses[0]
    worst = int((after - before).argmax()) + 1
    caption(
        "Loss of each token",
        "bars: now, orange where it rose; line: the whole model; in nats. "
        f"Hardest hit: {escaped(view.trace.tokens[worst])}, "
        f"{after[worst - 1] - before[worst - 1]:+.2f}.".replace("-", "−"),
    )
    chart(
        token_losses(view.trace.tokens, before, after, view.theme, sizes=view.sizes),
        key="token_losses", height=230,
        alt=f"Mean loss {after.mean():.3f} nats a token, {before.mean():.3f} with all heads.",
    )  # fmt: skip


def changed(view: View, found: Switched) -> None:
    """The heads above whose patterns moved most; a press chooses one."""
    distance = found.moved
    order = np.argsort(-np.nan_to_num(distance, nan=-1.0), axis=None)[:CHANGED]
    heads = [np.unravel_index(i, distance.shape) for i in order]
    heads = [head for head in heads if distance[head] > 1e-6]
    caption(
        "Patterns that changed most",
        "mean over queries of the total variation between a head's row before and now: "
        "0 is the same, 1 no key in common.",
    )
    if not heads:
        st.caption("None: no pattern above depends on the heads that are off.")
        return
    with st.container(horizontal=True):
        for layer, head in heads:
            st.button(
                f"{Head(layer, head).label} · {distance[layer, head]:.2f}",
                on_click=_choose, args=(Head(layer, head).key,), key=f"to {Head(layer, head).key}",
            )  # fmt: skip


def _choose(at: str) -> None:
    st.session_state["at"] = at


def save(view: View, found: Switched) -> None:
    """Both charts as tables."""
    before, after = found.before.losses[0], found.after.losses[0]
    with st.container(horizontal=True):
        download_table(
            "losses.csv", ["position", "token", "before", "after"],
            [
                [i + 1, view.trace.tokens[i + 1], float(b), float(a)]
                for i, (b, a) in enumerate(zip(before, after, strict=True))
            ],
            label="Losses as CSV",
        )  # fmt: skip
        likely = pruning.next_tokens(found.whole, found.now, 50)
        download_table(
            "next.csv", ["id", "token", "before", "after", "rank before", "rank after"],
            [
                [c.id, view.model.read([c.id])[0].label, c.before, c.after, c.rank_before,
                 c.rank_after]
                for c in likely
            ],
            label="Next tokens as CSV",
        )  # fmt: skip

"""The Break it part of the Shapes page: one mistake in every layer, and what it costs."""

from dataclasses import dataclass

import numpy as np
import streamlit as st
import torch
from numpy.typing import NDArray

from mha_viz.app.messages import escaped, notice, problem
from mha_viz.app.view import View
from mha_viz.app.widgets.caption import caption, model_name
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.choices import segmented_control
from mha_viz.app.widgets.download_buttons import download_matrix
from mha_viz.app.work.progress import Reporter, ResultSlots, wait_for
from mha_viz.figures.predictions import compare_predictions
from mha_viz.figures.values import matrix_heatmap
from mha_viz.lessons.bugs import FAULTS, divergence, run_with

MOST_TOKENS = 256
TOP = 5


@dataclass(frozen=True, slots=True, eq=False)
class Broken:
    """Patterns of the chosen layer and what comes next, right and wrong."""

    right: NDArray[np.float32]  # [H, T, T]
    wrong: NDArray[np.float32]
    ids: list[int]  # the likeliest of either
    before: list[float]
    after: list[float]
    last: float  # KL in nats at the last position
    mean: float  # over all positions


_damages = ResultSlots[Broken](8)


def show(view: View) -> None:
    """The line, the damage to the pattern and to the prediction, and how far it went."""
    name: str = segmented_control(
        "Mistake", list(FAULTS), next(iter(FAULTS)), "mistake", show_label=False
    )
    if view.head not in view.model.config.kept_heads(view.layer):
        problem(f"{view.at.label} was taken out of this model. Choose another head.")
        return
    if name == "no scale" and view.model.config.scale(view.layer) == 1:
        notice("This model does not scale its scores, so there is no line to leave out.")
    T = min(view.trace.n_tokens, MOST_TOKENS)
    if view.trace.n_tokens > T:
        notice(f"Shown for the first {T} of {view.trace.n_tokens:,} tokens.")
    fault = FAULTS[name]
    found = _broken(view, T, name)
    if found is None:
        return
    _red_line(view, found)
    words, code = st.columns([2, 3], gap="medium", vertical_alignment="center")
    words.markdown(fault.sentence)
    code.code(f"- {fault.right}\n+ {fault.wrong or '# left out'}", language="diff", wrap_lines=True)
    right, wrong, next_token = st.columns([4, 4, 3], gap="small")
    kept = view.model.config.kept_heads(view.layer).index(view.head)
    causal = np.tri(T, dtype=bool)
    pictures = {
        "As it is": (right, np.where(causal, found.right[kept], np.nan)),
        "With the mistake": (
            wrong,
            found.wrong[kept] if name == "no mask" else np.where(causal, found.wrong[kept], np.nan),
        ),
    }
    for title, (column, pattern) in pictures.items():
        with column:
            caption(title, f"{view.at.label}, rows look from, columns look at.")
            chart(
                matrix_heatmap(
                    pattern, view.theme, rows="from", columns="to", weights=True, both=True,
                    tokens=view.trace.tokens[:T], most_labels=12 if view.stage else 18,
                    sizes=view.sizes,
                ),
                key=f"pattern {title}", height=400,
                alt=f"{title}: the pattern of {view.at.label} over {T} tokens.",
            )  # fmt: skip
    with next_token:
        caption("What comes next", "probability of the likeliest tokens of either.")
        labels = [label_of(view, i) for i in found.ids]
        chart(
            compare_predictions(
                labels, found.before, found.after, view.theme, names=("as it is", "broken"),
                sizes=view.sizes,
            ),
            key="next", height=400,
            table=lambda: (
                ["id", "token", "as it is", "broken"],
                [
                    [int(i), token, float(b), float(a)]
                    for i, token, b, a in zip(
                        found.ids, labels, found.before, found.after, strict=True
                    )
                ],
            ),
            alt="; ".join(
                f"{token} {b:.2f}, broken {a:.2f}"
                for token, b, a in zip(labels, found.before, found.after, strict=True)
            ),
        )  # fmt: skip
    download_matrix("broken_pattern.csv", found.wrong[kept], rows=view.trace.tokens[:T])


def label_of(view: View, token_id: int) -> str:
    """What a token of the vocabulary is called."""
    return view.model.read([token_id])[0].label


def _red_line(view: View, found: Broken) -> None:
    was, now = int(np.argmax(found.before)), int(np.argmax(found.after))
    likeliest = (
        f"The likeliest next token stays {label_of(view, found.ids[was])}, at "
        f"{found.after[was]:.2f} in place of {found.before[was]:.2f}."
        if was == now
        else f"The likeliest next token was {label_of(view, found.ids[was])} and is "
        f"{label_of(view, found.ids[now])}."
    )
    st.html(
        f'<p class="broken">{found.last:.2f} nats from {escaped(model_name(view))} at the last '
        f"position, {found.mean:.2f} on average (KL divergence of what comes next). "
        f"{escaped(likeliest)}</p>"
    )


def _broken(view: View, T: int, name: str) -> Broken | None:
    network, layer, L = view.model.network, view.layer, view.trace.n_layers
    ids = torch.tensor([view.trace.token_ids[:T]], device=view.model.device)

    def work(report: Reporter) -> Broken:
        right = run_with(network, ids, None, layer, on_layer=lambda n: report(n / L / 2))
        wrong = run_with(network, ids, name, layer, on_layer=lambda n: report((1 + n / L) / 2))
        apart = divergence(right.logits, wrong.logits)
        before, after = (run.logits[-1].float().softmax(-1) for run in (right, wrong))
        likely = {i for run in (before, after) for i in run.topk(TOP).indices.tolist()}
        ids_shown = sorted(likely, key=lambda i: -float(before[i]))
        return Broken(
            right=right.pattern.float().cpu().numpy(),
            wrong=wrong.pattern.float().cpu().numpy(),
            ids=ids_shown,
            before=[float(before[i]) for i in ids_shown],
            after=[float(after[i]) for i in ids_shown],
            last=float(apart[-1]),
            mean=float(apart.mean()),
        )

    slot = _damages(view.trace_key, layer, T, name)
    return wait_for(slot, "Running the model twice", work, lane="mistake")

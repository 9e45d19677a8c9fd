"""The board of the Training page: buttons, progress, and the results so far."""

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from mha_viz.app.messages import escaped, notice, problem
from mha_viz.app.pages.training import reproduction, summaries, texts
from mha_viz.app.pages.training.plan import Plan, same_results
from mha_viz.app.pages.training.summaries import Report
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import chart, proportioned, record_source
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.widgets.recipes import recipe
from mha_viz.app.work import jobs
from mha_viz.app.work.jobs import Job
from mha_viz.app.work.progress import row
from mha_viz.errors import MhaVizError
from mha_viz.export import Drawn, Given, Recipe
from mha_viz.figures.loss_curves import LossCurve
from mha_viz.lessons.char_model import read_corpus, side_by_side

JOB = "training"
PLAN = (
    "Plan(models, n_seeds, TrainingText(name, content, len(vocabulary_of(content))), "
    "read_corpus(content).sample)"
)
TICK = 0.8  # seconds between updates of a training run


def show(view: View, plan: Plan | None) -> None:
    """The current or last training run; before the first one, the plan."""
    running = _is_running(jobs.find(JOB))
    st.fragment(_board, run_every=TICK if running else None)(view, plan, running)


def _board(view: View, plan: Plan | None, was_running: bool) -> None:
    job: Job[Report] | None = jobs.find(JOB)
    if _is_running(job) != was_running:
        st.rerun()  # the whole page, which starts or ends the automatic reruns of this fragment
    if refused := st.session_state.pop("train_refused", ""):
        problem(refused)
    shown: Plan | None = st.session_state.get("trained", plan)
    reports = list(job.results) if job is not None else []
    _controls(job, plan, shown, reports)
    if shown is None:
        _explanation()
        return
    curves = summaries.loss_curves(shown, reports)
    if job is not None and (plan is None or not same_results(plan, shown)):
        notice(_old_results(shown, job))
    left, right = st.columns([6, 5], gap="medium")
    with left:
        _loss_curves(view, shown, curves, reports)
    with right:
        if not reports:
            _explanation()
        else:
            _patterns(view, shown, reports)
            _loss_table(shown, curves, reports)
    reproduction.show(shown, curves)
    if reports:
        _explanation()


def _old_results(shown: Plan, job: Job[Report]) -> str:
    """That the results belong to other settings than those above, and to which."""
    to_do = "Stop this run, then click Start to train" if job.active else "Click Start to train"
    return (
        "The settings have changed, so the results below are old. They are from this run: "
        f"{shown.title}, {shown.steps:,} steps, text: {shown.text.name}. {to_do} with the settings "
        "above."
    )


def _is_running(job: Job[Report] | None) -> bool:
    return job is not None and job.state in ("queued", "running")


def _controls(
    job: Job[Report] | None, plan: Plan | None, shown: Plan | None, reports: Sequence[Report]
) -> None:
    """Start; or Pause, the progress and Stop."""
    if job is None or not job.active:
        _button("Start", "play_arrow", _start, plan, primary=True)
    elif job.state == "paused":
        _button("Resume", "play_arrow", jobs.background.resume, job, primary=True)
    else:
        _button("Pause", "pause", jobs.background.pause, job)
    if shown is None:
        return
    if job is None:
        explained.note(
            f"{shown.title}, {shown.steps:,} steps each. Text: {shown.text}. Click Start to "
            "train both models."
        )
        return
    if job.state == "failed":
        problem(job.error)
    step = reports[-1][1].step if reports else 0
    status = jobs.status(job, f"{step:,} of {shown.steps:,} steps")
    if job.active:
        row(job, status, key=JOB)
    else:
        explained.note(f"{status}. {shown.title}. Text: {shown.text}.")


def _button(
    label: str, icon: str, action: Callable[[Any], None], argument: object, *, primary: bool = False
) -> None:
    st.button(
        label,
        on_click=action,
        args=(argument,),
        disabled=argument is None,
        key=f"train_{label.lower()}",
        icon=f":material/{icon}:",
        type="primary" if primary else "secondary",
    )


def _start(plan: Plan) -> None:
    try:
        corpus = read_corpus(plan.text.content)
        job = Job(lambda report: side_by_side(plan.settings, corpus), total=plan.n_reports)
        jobs.start(JOB, job)
        st.session_state["trained"] = replace(plan, sample=corpus.sample)
    except MhaVizError as error:
        st.session_state["train_refused"] = str(error)


def _explanation() -> None:
    caption("The model", "A minimal model in which the number of heads can make a difference.")
    st.latex(
        r"\begin{gathered}\mathrm{logits} = \mathrm{MultiHead}(E_x + P)\,W_U + b \\"
        r"\mathrm{MultiHead}(x) = [\,z_0 \mid \dots \mid z_{H-1}\,]\,W_O\end{gathered}"
    )
    explained.paragraph(
        "Each character has an embedding ($E_x$) and each position a positional embedding ($P$), "
        "both of width 32. One layer of causal attention (Vaswani et al. 2017, section 3.2.2) "
        "moves information between 8 positions, and $W_U$ predicts the next character. There is "
        "no residual stream, norm or MLP, so a position learns about other positions only through "
        "its heads. Each of H heads has width 32 / H. Models with the same W_O setting have the "
        "same number of parameters, whatever H is. One head mixes everything that it looks at into "
        "one weighted mean; several heads keep separate means. With the W_O switch off, $W_O$ "
        "is the identity and is not trained."
    )
    explained.paragraph(
        "The loss is the mean of −ln p(next character). Each step takes 32 windows of 8 characters "
        "from the first nine tenths of the text (AdamW, learning rate 0.001; Loshchilov and Hutter "
        "2019). The validation loss is measured on 6,400 windows of the last tenth, the same for "
        "every model, step and seed."
    )


def _loss_curves(
    view: View, plan: Plan, curves: Sequence[LossCurve], reports: Sequence[Report]
) -> None:
    seeds = " Thin: single seeds; band: their range." if plan.n_seeds > 1 else ""
    mean = ", mean over seeds" if plan.n_seeds > 1 else ""
    caption("Loss", f"Solid: validation loss on held-out text{mean}. Dotted: training loss.{seeds}")
    uniform = math.log(plan.text.n_distinct)
    last_losses = ", ".join(
        f"{curve.label} {curve.last[1]:.3f} after {curve.last[0]:,} steps"
        for curve in curves
        if not math.isnan(curve.last[1])
    )
    result = f"Validation loss: {last_losses}" if last_losses else "Nothing has been trained yet"
    _record_source(plan)
    chart(
        _recipe(view, summaries.draw_losses, plan, reports),
        key="train_curves",
        name="Training losses",
        height=420,
        alt=f"{result}; the loss of uniform guessing is {uniform:.3f}.",
    )


def _record_source(plan: Plan) -> None:
    """Records for exports what the figures show, since it is not the sidebar's model and text."""
    first = plan.models[0].seed
    digest = hashlib.sha256(plan.text.content.encode("utf-8", "surrogatepass")).hexdigest()
    a, b = ("yes" if model.projection else "no" for model in plan.models)
    facts = {
        "Trained": plan.title,
        "Training text": f"{plan.text}, SHA-256 {digest}; its beginning is the text here",
        "Steps": plan.steps,
        "Seeds": ", ".join(str(first + n) for n in range(plan.n_seeds)),
        "W_O learnt": f"A {a}, B {b}",
    }
    record_source(f"{plan.text.content[:2000]} …", facts)


def _patterns(view: View, plan: Plan, reports: Sequence[Report]) -> None:
    step, _ = summaries.patterns(plan, reports)
    caption(
        "Attention patterns",
        f"After {step:,} steps, seed {plan.models[0].seed}, on held-out text. Each row shows what "
        "one character looks at. Colour: √ weight.",
    )
    drawn = _recipe(view, summaries.draw_patterns, plan, reports)
    figure = drawn.make()[0]
    # With Plotly's own constraint, square cells sometimes shrank when they were drawn again.
    proportioned(
        drawn,
        figure.layout.width / figure.layout.height,
        figure=figure,
        key="train_patterns",
        name="Training patterns",
        alt=f"Patterns of every head on {plan.sample!r}, held-out text, after {step:,} steps.",
    )


def _recipe(
    view: View, draw: Callable[..., Drawn], plan: Plan, reports: Sequence[Report]
) -> Recipe:
    """The recipe of a figure of the reports; its script trains the models again."""
    downloaded = plan.text.name == "Tiny Shakespeare"
    source = "download()" if downloaded else 'BUNDLED.read_text(encoding="utf-8")'
    known = downloaded or plan.text == texts.generated()
    return recipe(
        view,
        draw,
        models=plan.models,
        n_seeds=plan.n_seeds,
        name=plan.text.name,
        content=Given(plan.text.content, source, texts.__name__),
        plan=Given(plan, PLAN, texts.__name__),
        n=len(reports),
        reports=Given(reports, "list(islice(side_by_side(plan.settings, content), n))"),
        cannot="" if known else "The models were trained on an uploaded file.",
    )


def _loss_table(plan: Plan, curves: Sequence[LossCurve], reports: Sequence[Report]) -> None:
    """The losses at the last step, and a button that downloads all of them."""
    step, (header, *rows) = summaries.loss_table(plan, curves)
    caption(
        "Losses",
        f"After {step:,} steps, in nats per character; lower is better.",
        also=" ".join(header),
    )
    lines = [_table_row("th", header), *(_table_row("td", cells) for cells in rows)]
    st.html(
        '<div style="overflow-x: auto"><table style="border-collapse: collapse; font-size: 0.9rem">'
        f"{''.join(lines)}</table></div>"
    )
    download_table("training.csv", summaries.LOSS_HEADER, summaries.loss_rows(plan, reports))


def _table_row(tag: str, cells: Sequence[str]) -> str:
    first, *rest = map(escaped, cells)
    style = "text-align: right; padding: 0.15rem 0 0.15rem 0.8rem; white-space: nowrap"
    right = "".join(f'<{tag} style="{style}">{cell}</{tag}>' for cell in rest)
    return f'<tr><th style="text-align: left; padding: 0.15rem 0">{first}</th>{right}</tr>'

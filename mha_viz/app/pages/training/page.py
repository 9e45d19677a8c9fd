"""What the Training page is made of: two settings, a job that trains both, and its pictures."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import streamlit as st

from mha_viz.app.messages import problem
from mha_viz.app.pages.training import comparison, corpora
from mha_viz.app.pages.training.comparison import Plan, Report
from mha_viz.app.pages.training.corpora import SOURCES
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import chart, record_source
from mha_viz.app.widgets.choices import check_link
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.work import jobs
from mha_viz.app.work.jobs import Job
from mha_viz.errors import MhaVizError
from mha_viz.figures.loss_curves import LossCurve, loss_curves
from mha_viz.figures.pattern_mosaic import pattern_mosaic
from mha_viz.lessons.char_model import Settings, read_corpus, side_by_side

HEADS = [1, 2, 4, 8, 16, 32]
FIRST_HEADS = {"a": 1, "b": 4}
SEEDS = [1, 2, 3, 4, 5]
MOST_STEPS, MOST_SEED = 50_000, 1_000_000
TICK = 0.8  # seconds between two looks at a training
INPUTS = (
    "train_heads_a", "train_W_O_a", "train_heads_b", "train_W_O_b", "train_on", "train_steps",
    "train_seed", "train_seeds",
)  # fmt: skip


def lead() -> None:
    """The title line: what is compared."""
    explained.html(
        '<div class="lead"><h1>Training</h1><span>one head or several: two models of characters '
        "learn side by side</span></div>"
    )


def choices() -> Plan | None:
    """The settings of both models, the text, steps and seeds; None while there is no text."""
    _restore()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        models = [_model_input(which) for which in FIRST_HEADS]
        source: str = explained.selectbox(
            "Text", SOURCES, key="train_on", bind="query-params", width=165
        )
        steps = explained.number_input(
            "Steps", 1, MOST_STEPS, 5_000, step=1_000, key="train_steps", bind="query-params",
            width=128,
        )  # fmt: skip
        seed = explained.number_input(
            "Seed", 0, MOST_SEED, 0, key="train_seed", bind="query-params", width=92,
            help="Decides the first weights and which pieces of text are drawn",
        )  # fmt: skip
        n_seeds: int = explained.selectbox(
            "Seeds", SEEDS, key="train_seeds", bind="query-params", width=92,
            help="Each model is trained with this many seeds in a row",
        )  # fmt: skip
    _say_what_the_link_lost()
    text = corpora.obtain(source)
    if text is None:
        return None
    found = (Settings(H, projection=W_O, steps=int(steps), seed=int(seed)) for H, W_O in models)
    return Plan(tuple(found), n_seeds, text)


def controls(plan: Plan | None) -> None:
    """Start, or pause and stop what runs."""
    job, queue = jobs.find("training"), jobs.background
    with st.container(horizontal=True):
        if job is None or not job.active:
            _button("Start", "play_arrow", _start, plan, primary=True)
            return
        if job.state == "paused":
            _button("Resume", "play_arrow", queue.resume, job, primary=True)
        else:
            _button("Pause", "pause", queue.pause, job)
        _button("Stop", "stop", queue.stop, job)


def board(view: View, plan: Plan | None) -> None:
    """Progress, curves, patterns and losses; it renews itself while a training goes on."""
    goes_on = _goes_on(jobs.find("training"))
    st.fragment(_board, run_every=TICK if goes_on else None)(view, plan, goes_on)


def _board(view: View, plan: Plan | None, went_on: bool) -> None:
    job: Job[Report] | None = jobs.find("training")
    if went_on and not _goes_on(job):
        st.rerun()  # the buttons stand outside of what is renewed
    if word := st.session_state.pop("train_refused", ""):
        problem(word)
    shown: Plan | None = st.session_state.get("trained", plan)
    if shown is None:
        explanation()
        return
    reports = list(job.results) if job is not None else []
    _progress(job, shown, reports)
    curves = comparison.curves(shown, reports)
    left, right = st.columns([6, 5], gap="medium")
    with left:
        _draw_curves(view, shown, curves, reports)
    with right:
        if reports:
            _draw_patterns(view, shown, reports)
            _table(shown, curves, reports)
        else:
            explanation()
    if reports:
        explanation()


def explanation() -> None:
    """What is trained, and where it comes from."""
    caption("What is trained", "the smallest model in which heads can make a difference.")
    st.latex(
        r"\begin{gathered}\mathrm{logits} = \mathrm{MultiHead}(E_x + P)\,W_U + b \\"
        r"\mathrm{MultiHead}(x) = [\,z_0 \mid \dots \mid z_{H-1}\,]\,W_O\end{gathered}"
    )
    explained.paragraph(
        "Characters ($E_x$) and positions ($P$) become vectors of width 32. One layer of causal "
        "attention (Vaswani et al. 2017, section 3.2.2) moves them between 8 positions, and $W_U$ "
        "predicts the next character. There is no residual stream, norm or MLP, so all that a "
        "position knows of others came through its heads. H heads have width 32 / H each: models "
        "with different H have the same number of parameters. One head mixes all that it looks at "
        "into one weighted mean; several keep several means apart. $W_O$ is the identity unless "
        "its switch is on."
    )
    explained.paragraph(
        "The loss is the mean of −ln p(next character). A step takes 32 pieces of 8 characters "
        "from the first nine tenths of the text (AdamW, learning rate 0.001; Loshchilov and Hutter "
        "2019). The validation loss is that of 6,400 pieces of the last tenth, the same ones for "
        "every model, step and seed."
    )


def _restore() -> None:
    """Streamlit forgets the widgets of a page that is left; here they come back."""
    state = st.session_state
    for name, value in state.get("train_inputs", {}).items():
        state.setdefault(name, value)


def _say_what_the_link_lost() -> None:
    state = st.session_state
    state["train_inputs"] = {name: state[name] for name in INPUTS}
    for name, value in state["train_inputs"].items():
        taken = str(value).lower() if isinstance(value, bool) else str(value)
        check_link(name, taken)


def _model_input(which: str) -> tuple[int, bool]:
    title = f"Model {which.upper()}"
    with st.container(horizontal=True, vertical_alignment="bottom", width="content"):
        H: int = explained.selectbox(
            f"{title}: heads", HEADS, HEADS.index(FIRST_HEADS[which]), key=f"train_heads_{which}",
            bind="query-params", width=118,
        )  # fmt: skip
        W_O = explained.toggle(
            "W_O", key=f"train_W_O_{which}", bind="query-params", width="content",
            help=f"{title} learns an output projection after its heads",
        )  # fmt: skip
    return H, W_O


def _button(
    title: str, icon: str, action: Callable[..., None], of: object, *, primary: bool = False
) -> None:
    st.button(
        title, on_click=action, args=(of,), disabled=of is None, key=f"train_{title.lower()}",
        icon=f":material/{icon}:", type="primary" if primary else "secondary",
    )  # fmt: skip


def _start(plan: Plan) -> None:
    try:
        corpus = read_corpus(plan.text.content)
        job = Job(lambda report: side_by_side(plan.settings, corpus), total=plan.n_reports)
        jobs.start("training", job)
        st.session_state["trained"] = replace(plan, sample=corpus.sample)
    except MhaVizError as error:
        st.session_state["train_refused"] = str(error)


def _goes_on(job: Job[Report] | None) -> bool:
    return job is not None and job.state in ("queued", "running")


def _progress(job: Job[Report] | None, plan: Plan, reports: Sequence[Report]) -> None:
    about = f"The text is {plan.text}."
    if job is None:
        explained.note(f"{plan.versus}, {plan.steps:,} steps each. {about} Start trains both.")
        return
    if job.state == "failed":
        problem(job.error)
    done = reports[-1][1].step if reports else 0
    words = jobs.status(job, f"{done:,} of {plan.steps:,} steps")
    if job.active:
        st.progress(job.share, text=words)
    else:
        explained.note(f"{words}. {plan.versus}. {about}")


def _draw_curves(
    view: View, plan: Plan, curves: Sequence[LossCurve], reports: Sequence[Report]
) -> None:
    spread = "; thin: each seed, with their mean and range" if plan.n_seeds > 1 else ""
    caption("Loss", f"strong: held-out text; dotted: training batches{spread}.")
    even = math.log(plan.text.n_distinct)
    ends = ", ".join(
        f"{curve.label} {curve.last[1]:.3f} after {curve.last[0]:,} steps"
        for curve in curves
        if not math.isnan(curve.last[1])
    )
    a, b = plan.models
    record_source(
        f"{plan.text.content[:2000]} …",
        {
            "Trained": plan.versus,
            "Text": plan.text,
            "Steps": plan.steps,
            "Seeds": ", ".join(str(a.seed + n) for n in range(plan.n_seeds)),
            "W_O learnt": f"A {a.projection}, B {b.projection}",
        },
    )
    said = f"Validation loss: {ends}" if ends else "Nothing is trained yet"
    chart(
        loss_curves(curves, even, plan.steps, view.theme, sizes=view.sizes),
        key="train_curves", name="training losses", height=420,
        table=lambda: (comparison.CSV_HEADER, comparison.csv_rows(plan, reports)),
        alt=f"{said}; guessing evenly costs {even:.3f}.",
    )  # fmt: skip


def _draw_patterns(view: View, plan: Plan, reports: Sequence[Report]) -> None:
    step, found = comparison.patterns(plan, reports)
    caption(
        "Patterns",
        f"{step:,} steps, seed {plan.models[0].seed}: a row asks, a column is read; "
        "colour is √ weight.",
    )
    figure = pattern_mosaic(found, plan.sample, view.theme, sizes=view.sizes)
    # Square cells by Plotly's own constraint shrank now and then when drawn anew.
    shape = f"aspect-ratio: {figure.layout.width} / {figure.layout.height}"
    st.html(f"<style>.st-key-train_triangles {{ {shape} }}</style>")
    with st.container(key="train_triangles"):
        chart(
            figure, key="train_patterns", name="training patterns", height="stretch",
            table=lambda: (comparison.WEIGHTS_HEADER, comparison.weight_rows(found, plan.sample)),
            alt=f"Patterns of every head on {plan.sample!r}, held-out text, after {step:,} steps.",
        )  # fmt: skip


def _table(plan: Plan, curves: Sequence[LossCurve], reports: Sequence[Report]) -> None:
    """The losses that the curves have come to, and all of them as a file."""
    step, (header, *rows) = comparison.table(plan, curves)
    caption("Losses", f"after {step:,} steps, in nats a character: the lower, the better.")
    lines = [_row("th", header), *(_row("td", cells) for cells in rows)]
    st.html(
        '<div style="overflow-x: auto"><table style="border-collapse: collapse; font-size: 0.9rem">'
        f"{''.join(lines)}</table></div>"
    )
    rows_of_all = comparison.csv_rows(plan, reports)
    download_table("training.csv", comparison.CSV_HEADER, rows_of_all)


def _row(tag: str, cells: Sequence[str]) -> str:
    first = f'<th style="text-align: left; padding: 0.15rem 0">{cells[0]}</th>'
    style = "text-align: right; padding: 0.15rem 0 0.15rem 0.8rem; white-space: nowrap"
    rest = (f'<{tag} style="{style}">{cell}</{tag}>' for cell in cells[1:])
    return f"<tr>{first}{''.join(rest)}</tr>"

"""The Several texts tab: the measures as means over many texts."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import streamlit as st

from mha_viz import heads
from mha_viz.app.messages import notice, problem
from mha_viz.app.pages.heads.measures import (
    ENDINGS,
    choose_measure,
    download_frame,
    explain_missing,
    head_of,
    measure_map,
    rounded,
    table_without_empty_columns,
)
from mha_viz.app.samples import SAMPLES
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import record_source
from mha_viz.app.widgets.choices import text_area
from mha_viz.app.widgets.origins import facts_of_model
from mha_viz.app.work.progress import Reporter, results
from mha_viz.export import Given
from mha_viz.heads import PartialProfile

if TYPE_CHECKING:
    import pandas as pd

MAX_TEXTS = 200
MAX_CHARACTERS = 100_000
MANY_LAYERS = 6  # models with more layers are measured only after a click


def show(view: View) -> None:
    """The measures as means over the texts done so far, with intervals."""
    texts = _choose_texts()
    if not texts:
        st.info("Type one text per line. Every head is then measured on all of them.")
        return
    profile = _profile(view, texts)
    if profile is None:
        return
    measure = choose_measure("previous_token")
    _explain_truncation(view, profile)
    explain_missing(profile.frame)
    if st.session_state.get("export"):
        _record_texts(view, texts[: profile.done])
    ranked = profile.frame.dropna(subset=[measure]).sort_values(measure, ascending=False)
    if len(ranked):
        n_texts = _n_texts_so_far(profile, measure)
        left, right = st.columns(2, gap="medium")
        with left:
            code = "list(heads.measure_texts(model, texts))[-1].frame"
            frame = Given(profile.frame, code, __name__)
            done, on_text = texts[: profile.done], f"Mean over {n_texts}"
            measure_map(view, frame, measure, on_text=on_text, texts=done)
        with right:
            _table(ranked, measure, n_texts)
    download_frame("heads_over_texts.csv", profile.frame)


def _choose_texts() -> list[str]:
    """The texts that are typed or uploaded, one per line, within the limits."""
    samples = "\n".join(text.replace("\n", " ") for text in SAMPLES.values())
    lines = text_area("Texts, one per line", samples, "several", height=150)
    file = explained.file_uploader(
        f"Or upload a file with one text per line, up to {MAX_CHARACTERS:,} characters",
        type=["txt"],
        key="several_file",
        max_upload_size=1,
    )
    if file is not None:
        lines = _read(file.name, file.getvalue()) or lines
    if len(lines) > MAX_CHARACTERS:
        notice(
            f"The texts have {len(lines):,} characters in total. Using only the lines that fit "
            f"into the first {MAX_CHARACTERS:,} characters."
        )
        lines = lines[:MAX_CHARACTERS].rpartition("\n")[0] or lines[:MAX_CHARACTERS]
    texts = [line.strip() for line in lines.splitlines() if line.strip()]
    if len(texts) > MAX_TEXTS:
        notice(f"There are {len(texts):,} texts. Using the first {MAX_TEXTS}.")
    return texts[:MAX_TEXTS]


def _read(name: str, content: bytes) -> str:
    """The text of a file; "" after a message if it has none."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        problem(f"{name} is not UTF-8 text. Using the texts typed above.")
        return ""
    if not text.strip():
        notice(f"{name} contains no text. Using the texts typed above.")
        return ""
    return text


def _profile(view: View, texts: list[str]) -> PartialProfile | None:
    """The measures over the texts done so far; None before the first."""

    def work(report: Reporter) -> Iterator[PartialProfile]:
        yield from heads.measure_texts(view.model, texts, on_layer=lambda: report(0.0))

    name = f"several texts {view.model.key} {hash(tuple(texts))}"
    slow = view.model.config.n_layers > MANY_LAYERS
    cost = f"Measures every head on {_n_texts(len(texts))}." if slow else ""
    profiles, _ = results(name, work, total=len(texts), what="texts", cost=cost)
    return profiles[-1] if profiles else None


def _n_texts(n: int) -> str:
    return f"{n} text{'s' * (n != 1)}"


def _n_texts_so_far(profile: PartialProfile, measure: str) -> str:
    """How many texts the mean of a measure covers, and how many have no value."""
    n_without = profile.done - profile.n_measured.get(measure, profile.done)
    without = f" (no value for {n_without} of them)" if n_without else ""
    if profile.done < profile.total:
        return f"{profile.done} of {profile.total} texts so far{without}"
    return f"{_n_texts(profile.done)}{without}"


def _explain_truncation(view: View, profile: PartialProfile) -> None:
    if profile.n_truncated:
        limit = f"{view.model.config.n_positions:,}"
        notice(
            f"{profile.n_truncated} of {_n_texts(profile.done)} had more than {limit} tokens. Only "
            f"the first {limit} were used."
        )


def _record_texts(view: View, texts: list[str]) -> None:
    """Records these texts for exports, because the text in the sidebar is not used here."""
    limit = view.model.config.n_positions
    facts = {
        "Texts": f"{len(texts)}, one per line, run one at a time",
        "Token ids of each": [view.model.input_ids(text)[:limit] for text in texts],
    }
    record_source("\n".join(texts), facts | facts_of_model(view))


def _table(ranked: "pd.DataFrame", measure: str, n_texts: str) -> None:
    """The heads with their mean and its interval, largest first."""
    caption(
        "All heads",
        f"Mean over {n_texts}, run one at a time without padding. “low” and “high” bound the 95% "
        "interval over texts (over seeds for random tokens), if there are at least two.",
    )
    rows = [
        [head_of(row).label, *(rounded(row[measure + ending]) for ending in ENDINGS)]
        for _, row in ranked.iterrows()
    ]
    table_without_empty_columns(["head", "mean", "low", "high"], rows, height=360)

"""Several texts: the passport as a mean over them, each traced by itself."""

from collections.abc import Iterator

import streamlit as st

from mha_viz import heads
from mha_viz.heads import MEASURES, Batch
from mha_viz.session.attention import caption
from mha_viz.session.choices import one_of
from mha_viz.session.messages import notice, problem
from mha_viz.session.numbers import download_table
from mha_viz.session.running import Told, results
from mha_viz.session.samples import SAMPLES
from mha_viz.session.tables import table
from mha_viz.session.view import View

MOST_TEXTS = 200
MOST_CHARACTERS = 100_000
ENDS = ("", "_low", "_high")


def texts() -> list[str]:
    """The texts, one a line, typed or from a file; too many are cut, with a word."""
    first = "\n".join(text.replace("\n", " ") for text in SAMPLES.values())
    typed = st.text_area(
        "Texts, one a line", first, height=150, key="several", persist_state="session"
    )
    file = st.file_uploader(
        f"Or a file, one text a line, up to {MOST_CHARACTERS:,} characters", type=["txt"],
        key="several_file", max_upload_size=1,
    )  # fmt: skip
    source = typed or ""
    if file is not None:
        try:
            source = file.getvalue().decode("utf-8-sig")
        except UnicodeDecodeError:
            problem(f"{file.name} is not text in UTF-8. What is typed above is used.")
    if len(source) > MOST_CHARACTERS:
        notice(f"{len(source):,} characters; the first {MOST_CHARACTERS:,} are read, up to a line.")
        source = source[:MOST_CHARACTERS].rpartition("\n")[0] or source[:MOST_CHARACTERS]
    found = [line.strip() for line in source.splitlines() if line.strip()]
    if len(found) > MOST_TEXTS:
        notice(f"{len(found):,} texts; the first {MOST_TEXTS} are read.")
    return found[:MOST_TEXTS]


def show(view: View, given: list[str]) -> None:
    """The measures as means over the texts so far, with intervals, drawn while they come."""
    if not given:
        st.info("Type a text a line, and every head is measured on all of them.")
        return
    model = view.model

    def work(told: Told) -> Iterator[Batch]:
        for batch in heads.measure_texts(model, given):
            told(0.0)
            yield batch

    name = f"batch {view.about.weights_hash} {hash(tuple(given))}"
    cost = f"Measures every head on {len(given)} texts." if view.model.config.n_layers > 6 else ""
    found, _ = results(name, work, total=len(given), what="texts", cost=cost)
    if not found:
        return
    batch = found[-1]
    measure = one_of("Measure", list(MEASURES), "previous_token", "measure", named=False)
    caption(
        MEASURES[measure].title,
        f"mean over {batch.done} texts, each traced by itself, never padded into another; low and "
        "high end the 95 % interval (over texts, or over seeds for random tokens).",
    )
    frame = batch.frame.sort_values(measure, ascending=False)
    rows = [
        [f"L{int(row['layer'])} H{int(row['head'])}", *(float(row[measure + e]) for e in ENDS)]
        for _, row in frame.iterrows()
    ]  # fmt: skip
    table(["head", "mean", "low", "high"], rows, height=360)
    download_table(
        "heads_over_texts.csv",
        list(batch.frame.columns),
        batch.frame.astype(object).to_numpy().tolist(),
    )

"""Several texts: the passport as a mean over them, each traced by itself."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import streamlit as st

from mha_viz import heads
from mha_viz.app.export_panel import of_model
from mha_viz.app.messages import notice, problem
from mha_viz.app.pages.heads.table import ENDS, filled, heads_by, rounded, say_what_is_missing
from mha_viz.app.samples import SAMPLES
from mha_viz.app.view import View
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import record_source
from mha_viz.app.widgets.choices import segmented_control, text_area
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.work.progress import Reporter, results
from mha_viz.head import Head
from mha_viz.heads import MEASURES, PartialProfile
from mha_viz.heads.measures import ON_RANDOM_TOKENS

if TYPE_CHECKING:
    import pandas as pd

MOST_TEXTS = 200
MOST_CHARACTERS = 100_000


def texts() -> list[str]:
    """The texts, one a line, typed or from a file; too many are cut, with a word."""
    first = "\n".join(text.replace("\n", " ") for text in SAMPLES.values())
    source = text_area("Texts, one a line", first, "several", height=150)
    file = st.file_uploader(
        f"Or a file, one text a line, up to {MOST_CHARACTERS:,} characters", type=["txt"],
        key="several_file", max_upload_size=1,
    )  # fmt: skip
    if file is not None:
        source = _read(file.name, file.getvalue()) or source
    if len(source) > MOST_CHARACTERS:
        notice(f"{len(source):,} characters; the first {MOST_CHARACTERS:,} are read, up to a line.")
        source = source[:MOST_CHARACTERS].rpartition("\n")[0] or source[:MOST_CHARACTERS]
    found = [line.strip() for line in source.splitlines() if line.strip()]
    if len(found) > MOST_TEXTS:
        notice(f"{len(found):,} texts; the first {MOST_TEXTS} are read.")
    return found[:MOST_TEXTS]


def _read(name: str, content: bytes) -> str:
    """What the file holds; empty after the page has said that it is of no use."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        problem(f"{name} is not text in UTF-8. What is typed above is used.")
        return ""
    if not text.strip():
        notice(f"{name} holds no text. What is typed above is used.")
        return ""
    return text


def show(view: View) -> None:
    """The measures as means over the texts so far, with intervals, drawn while they come."""
    given = texts()
    if not given:
        st.info("Type a text a line, and every head is measured on all of them.")
        return
    model = view.model

    def work(report: Reporter) -> Iterator[PartialProfile]:
        yield from heads.measure_texts(model, given, on_layer=lambda: report(0.0))

    name = f"batch {view.about.weights_hash} {hash(tuple(given))}"
    large = view.model.config.n_layers > 6
    cost = f"Measures every head on {_texts(len(given))}." if large else ""
    found, _ = results(name, work, total=len(given), what="texts", cost=cost)
    if not found:
        return
    batch = found[-1]
    measure = segmented_control(
        "Measure", list(MEASURES), "previous_token", "measure", show_label=False
    )
    _say_what_was_cut(view, batch)
    say_what_is_missing(batch.frame)
    if st.session_state.get("export"):
        _say_what_was_read(view, given[: batch.done])
    shown = batch.frame.dropna(subset=[measure]).sort_values(measure, ascending=False)
    if len(shown):
        left, right = st.columns(2, gap="medium")
        with left:
            over = f"mean over {_so_far(batch, measure)}"
            heads_by(view, batch.frame, measure, over="" if measure in ON_RANDOM_TOKENS else over)
        with right:
            _table(batch, measure, shown)
    download_table(
        "heads_over_texts.csv",
        list(batch.frame.columns),
        batch.frame.astype(object).to_numpy().tolist(),
    )


def _texts(n: int) -> str:
    return f"{n} text{'s' * (n != 1)}"


def _say_what_was_cut(view: View, batch: PartialProfile) -> None:
    if batch.n_truncated:
        most = f"{view.model.config.n_positions:,}"
        notice(
            f"{batch.n_truncated} of {_texts(batch.done)} had more than {most} tokens; the first "
            f"{most} were read."
        )


def _so_far(batch: PartialProfile, measure: str) -> str:
    n = batch.done - batch.n_measured.get(measure, batch.done)
    silent = f" ({n} of them {'say' if n > 1 else 'says'} nothing about it)" if n else ""
    if batch.done < batch.total:
        return f"{batch.done} of {batch.total} texts so far{silent}"
    return f"{_texts(batch.done)}{silent}"


def _say_what_was_read(view: View, read: list[str]) -> None:
    """What a capsule has in place of the text of the sidebar, which made none of this."""
    limit = view.model.config.n_positions
    record_source(
        "\n".join(read),
        {
            "Texts": f"{len(read)}, one a line, each traced by itself",
            "Token ids of each": [view.model.encode(text)[0][:limit] for text in read],
        }
        | of_model(view),
    )


def _table(batch: PartialProfile, measure: str, frame: "pd.DataFrame") -> None:
    """The heads, largest mean first."""
    caption(
        "All heads",
        f"mean over {_so_far(batch, measure)}, each traced by itself, never padded into another; "
        "low and high end the 95 % interval (over texts, or over seeds for random tokens), where "
        "there are two or more.",
    )
    rows = [
        [
            _head(row).label,
            *(rounded(row[measure + e]) for e in ENDS),
        ]
        for _, row in frame.iterrows()
    ]
    filled(["head", "mean", "low", "high"], rows, height=360)


def _head(row: "pd.Series[Any]") -> Head:
    return Head(int(row["layer"]), int(row["head"]))

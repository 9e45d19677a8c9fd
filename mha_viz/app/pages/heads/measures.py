"""What the tabs of the Heads page share: the choice of a measure, its map, and tables."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mha_viz.app.messages import notice
from mha_viz.app.view import View
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.choices import segmented_control
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.widgets.head_links import selectable_head_map
from mha_viz.app.widgets.tables import table
from mha_viz.export import Given
from mha_viz.head import Head
from mha_viz.heads import MEASURES
from mha_viz.heads.measures import ON_RANDOM_TOKENS

if TYPE_CHECKING:
    import pandas as pd

SHAPE = "model.config.n_layers, model.config.n_heads"
ENDINGS = ("", "_low", "_high")  # of the columns of a measure


def choose_measure(default: str) -> str:
    """The name of the selected measure."""
    names = {measure.title: name for name, measure in MEASURES.items()}
    title = MEASURES[default].title
    return names[segmented_control("Measure", list(names), title, "measure", show_label=False)]


def has_values(frame: "pd.DataFrame", name: str) -> bool:
    """Whether the measure has a value for any head."""
    return bool(frame[name].notna().any())


def explain_missing(frame: "pd.DataFrame") -> None:
    """Says why some measures have no values, if that is so."""
    missing = [name for name in MEASURES if not has_values(frame, name)]
    if missing == [name for name in MEASURES if name not in ON_RANDOM_TOKENS]:
        notice(
            "Measures on the text need at least one token after the first that is not a special "
            "token. Only measures on random tokens are shown."
        )
    elif missing:
        titles = ", ".join(MEASURES[name].title for name in missing)
        notice(f"Not measured, because no token of the text qualifies: {titles}.")


def measure_map(view: View, frame: Given, name: str, *, on_text: str, **given: Any) -> None:
    """The map of one measure, if it has values; a click on a cell selects the head.

    `on_text` says in the caption what measures on text were measured on. `given` has arguments that
    the code of the frame refers to.
    """
    made, code = frame.value, f'frame["{name}"].to_numpy(float).reshape({SHAPE})'
    if not has_values(made, name):
        return
    measure = MEASURES[name]
    shape = (view.trace.n_layers, view.trace.n_heads)
    values: NDArray[np.float64] = made[name].to_numpy(dtype=np.float64).reshape(shape)
    low, high = measure.range
    top = high if np.isfinite(high) else float(np.nanmax(values, initial=1.0))
    source = f"Measured on {measure.measured_on}" if name in ON_RANDOM_TOKENS else on_text
    caption(
        measure.title,
        f"{source}. Rows: layers. Columns: heads. Colour runs from {low:g} to {top:.3g}. Click a "
        "cell to select the head.",
    )
    best = Head(*divmod(int(np.nanargmax(values)), shape[1]))
    selectable_head_map(
        view,
        Given(values, code),
        (float(low), float(top)),
        key="head_numbers",
        name=measure.title.lower(),
        title=measure.title,
        frame=frame,
        **given,
        column=name,
        alt=f"{measure.title}: largest at {best.label}, {values[best]:.3f}.",
    )


def head_of(row: "pd.Series[Any]") -> Head:
    """The head of a row of the frame."""
    return Head(int(row["layer"]), int(row["head"]))


def rounded(value: float) -> float | None:
    """The value rounded to four decimal places, never -0; None for NaN."""
    return round(float(value), 4) + 0.0 if np.isfinite(value) else None


def table_without_empty_columns(
    header: Sequence[str], rows: Sequence[Sequence[object]], *, height: int
) -> None:
    """A table of the columns that have at least one value."""
    kept = [i for i in range(len(header)) if any(row[i] not in (None, "") for row in rows)]
    table([header[i] for i in kept], [[row[i] for i in kept] for row in rows], height=height)


def download_frame(name: str, frame: "pd.DataFrame") -> None:
    """A button that downloads all measures with their intervals."""
    download_table(name, list(frame.columns), frame.astype(object).to_numpy().tolist())

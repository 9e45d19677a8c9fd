"""What is on the screen, to take away: a page that opens offline, and numbers as CSV, JSON or npz.

A figure carries its own numbers, so any of them can be had from it. Pictures (PNG, SVG) are made in
the browser, which has drawn them already.
"""

import base64
import csv
import html
import io
import json
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would take for a formula
PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "plotly", "streamlit")
Table = tuple[list[str], list[list[Any]]]  # header, rows


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A figure with what is said of it: its name for files, and the caption under it.

    `table` makes its numbers where the figure does not carry them, as an image does not. `plotted`
    says that Plotly has drawn it on the page, and not a component that makes its own pictures.
    """

    name: str
    figure: go.Figure = field(repr=False)
    caption: str = ""
    table: Callable[[], Table] | None = field(default=None, repr=False)
    plotted: bool = True

    def csv(self) -> str:
        """The numbers as CSV."""
        return table_csv(*(self.table() if self.table else figure_table(self.figure)))

    def json(self) -> str:
        """The figure as JSON with plain lists, as any Plotly reads it.

        The table, where there is one, is in the figure's own `meta`.
        """
        spec = self.figure.to_plotly_json()
        if self.table:
            header, rows = self.table()
            spec["layout"]["meta"] = {"header": header, "rows": rows}
        return json.dumps(_plain(spec), ensure_ascii=False, allow_nan=False)

    def npz(self) -> bytes:
        """The numbers as npz: the arrays of the figure, and a column of the table an array.

        They are `trace0_z`, `trace0_x` and so on. The labels of the axes are `x_labels` and
        `y_labels` at the places `x_ticks` and `y_ticks`; a cell of the figure stands for `block`
        tokens a side.
        """
        arrays = _figure_arrays(self.figure)
        if self.table:
            header, rows = self.table()
            columns = zip(*rows, strict=True) if rows else [()] * len(header)
            arrays |= {f"table_{name}": _column(c) for name, c in zip(header, columns, strict=True)}
        buffer = io.BytesIO()
        np.savez_compressed(buffer, allow_pickle=False, **arrays)
        return buffer.getvalue()


def safe(text: str) -> str:
    """The text so that a spreadsheet shows it and runs nothing."""
    return f"'{text}" if text.startswith(FORMULA) else text


def table_csv(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table as CSV; text that a spreadsheet would run is shown instead."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    for row in (header, *rows):
        writer.writerow([safe(cell) if isinstance(cell, str) else cell for cell in row])
    return buffer.getvalue()


def matrix_csv(matrix: NDArray[np.float32], rows: Sequence[str] = ()) -> str:
    """A matrix `[n, m]` as CSV, each row after its number and, where there is one, its token."""
    names = rows or [""] * len(matrix)
    header = ["row", "token", *map(str, range(matrix.shape[1]))]
    body = [[i, names[i], *map(float, row)] for i, row in enumerate(matrix)]
    return table_csv(header, body)


def head_table(names: Sequence[str], *values: NDArray[Any]) -> Table:
    """A row for each head, from numbers `[L, H]`; one that was taken out has none."""
    rows = [
        [layer, head, *(float(one[layer, head]) for one in values)]
        for layer, head in np.ndindex(values[0].shape)
        if np.isfinite([one[layer, head] for one in values]).all()
    ]
    return ["layer", "head", *names], rows


def figure_table(figure: go.Figure) -> Table:
    """A row for each mark of the figure: trace, place on both axes with its label, and value.

    The value of a heatmap's cell is what its hover says; a blank cell has no row. The heading says
    so where a cell stands for several tokens a side.
    """
    spec = figure.to_plotly_json()
    layout = spec["layout"]
    labels = {axis: _labels(layout, axis) for axis in "xy"}
    rows: list[list[Any]] = []
    for number, trace in enumerate(spec["data"]):
        if trace.get("hoverinfo") == "skip":
            continue  # a frame around others, not numbers of its own
        name = str(trace.get("name") or f"{trace['type']} {number}")
        marks = _marks(trace)
        written = _list(trace.get("text"))
        if len(written) != len(marks):
            written = [""] * len(marks)
        for (x, y, value), word in zip(marks, written, strict=True):
            told = _unmarked(str(word))
            rows.append([name, x, labels["x"](x), y, labels["y"](y), value, told])
    block = (layout.get("meta") or {}).get("block", 1)
    value = f"value (the largest of {block} x {block})" if block > 1 else "value"
    return ["trace", "x", "x label", "y", "y label", value, "written"], rows


def _figure_arrays(figure: go.Figure) -> dict[str, NDArray[Any]]:
    spec = figure.to_plotly_json()
    arrays: dict[str, NDArray[Any]] = {}
    for number, trace in enumerate(spec["data"]):
        for key in ("x", "y", "z", "base", "customdata"):
            if key in trace and (array := _array(trace[key])) is not None:
                arrays[f"trace{number}_{key}"] = array
    for axis in "xy":
        names = _names(spec["layout"], axis)
        if names:
            arrays[f"{axis}_ticks"] = np.array(list(names), dtype=np.float64)
            arrays[f"{axis}_labels"] = np.array(list(names.values()))
    meta = spec["layout"].get("meta") or {}
    if "block" in meta:
        arrays["block"] = np.array(meta["block"])
    return arrays


def _column(values: Sequence[Any]) -> NDArray[Any]:
    """Numbers, or else the words as they are read; what is missing among numbers is NaN."""
    numbers = [np.nan if value is None or value == "" else value for value in values]
    if all(isinstance(value, int | float | np.number) for value in numbers):
        return np.array(numbers)
    return np.array([str(value) for value in values])


def page(title: str, pictures: Sequence[Picture], facts: Mapping[str, object], text: str) -> str:
    """One HTML that opens without a network: figures with captions, facts, and the text.

    Of several pictures the first brings plotly.js, once, inside the file.
    """
    parts = []
    for number, picture in enumerate(pictures):
        drawn = picture.figure.to_html(
            full_html=False, include_plotlyjs=number == 0,
            config={"displaylogo": False, "responsive": True},
        )  # fmt: skip
        parts.append(
            f"<figure>{drawn}<figcaption>{html.escape(picture.caption)}</figcaption></figure>"
        )
    rows = "".join(
        f"<dt>{html.escape(name)}</dt><dd>{_as_html(str(value))}</dd>"
        for name, value in facts.items()
    )
    shown = html.escape(text)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{html.escape(title)}</title><style>{STYLE}</style></head><body>"
        f"<h1>{html.escape(title)}</h1>{''.join(parts)}<h2>Text</h2><pre>{shown}</pre>"
        f"<h2>How this was made</h2><dl>{rows}</dl></body></html>"
    )


def _as_html(fact: str) -> str:
    shown = html.escape(fact)
    is_address = fact.startswith(("http://", "https://")) and not any(map(str.isspace, fact))
    return f'<a href="{shown}">{shown}</a>' if is_address else shown


STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:72rem;margin:1rem auto;padding:0 1rem}"
    "figure{margin:1rem 0}pre{white-space:pre-wrap;overflow-wrap:anywhere}"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem}"
    "dd{margin:0;overflow-wrap:anywhere}"
)


def versions() -> dict[str, str]:
    """The versions of what computed and drew, of those that are installed."""
    found = {"Python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _marks(trace: Mapping[str, Any]) -> list[tuple[Any, Any, Any]]:
    if trace["type"] == "heatmap":
        return _cells(trace)
    x, y = (_list(trace.get(axis)) for axis in "xy")
    if "base" in trace:  # bars that are cells: where they begin says where they are
        data = _list(trace.get("customdata")) or [None] * len(x)
        return list(zip(x, _list(trace["base"]), data, strict=False))
    return [(a, b, b if trace.get("orientation") != "h" else a) for a, b in zip(x, y, strict=False)]


def _cells(trace: Mapping[str, Any]) -> list[tuple[Any, Any, Any]]:
    z = _array(trace.get("customdata", trace["z"]))
    if z is None or z.ndim != 2:
        z = np.asarray(_array(trace["z"]), dtype=np.float64)
    xs, ys = (
        _list(trace[axis])
        if axis in trace
        else [trace.get(f"{axis}0", 0) + trace.get(f"d{axis}", 1) * i for i in range(n)]
        for axis, n in (("x", z.shape[1]), ("y", z.shape[0]))
    )
    return [
        (xs[j], ys[i], float(z[i, j]))
        for i in range(z.shape[0])
        for j in range(z.shape[1])
        if np.isfinite(z[i, j])
    ]


def _names(layout: Mapping[str, Any], axis: str) -> dict[Any, str]:
    """Places and labels of an axis: every token that the figure keeps, or the ticks it writes."""
    meta = layout.get("meta") or {}
    if axis in meta.get("axes", ""):
        return dict(enumerate(meta["tokens"]))
    ticks = layout.get(f"{axis}axis", {})
    places, texts = _list(ticks.get("tickvals")), _list(ticks.get("ticktext"))
    return {place: _unmarked(str(text)) for place, text in zip(places, texts, strict=False)}


def _labels(layout: Mapping[str, Any], axis: str) -> Callable[[Any], str]:
    """The label of a place; of a cell that stands for several tokens, the first and the last."""
    names = _names(layout, axis)
    block = (layout.get("meta") or {}).get("block", 1)

    def label(place: Any) -> str:
        if block == 1:
            return names.get(place, "")
        first = round(place - (block - 1) / 2)
        last = min(first + block, len(names)) - 1
        return f"{names[first]} ({first}) … {names[last]} ({last})"

    return label


def _unmarked(text: str) -> str:
    """What Plotly shows for a text: each < of its own is escaped, so the others are markup."""
    return html.unescape(re.sub(r"<[^>]*>", "", text.replace("<br>", " ")))


def _list(values: Any) -> list[Any]:
    array = _array(values)
    if array is not None:
        return list(array.tolist())
    return list(values) if isinstance(values, list | tuple | np.ndarray) else []


def _array(values: Any) -> NDArray[Any] | None:
    """The numbers of a figure's property, also where Plotly packed them; None for others."""
    if isinstance(values, dict) and "bdata" in values:
        flat = np.frombuffer(base64.b64decode(values["bdata"]), dtype=values["dtype"])
        shape = str(values.get("shape", "")).replace(" ", "")
        return flat.reshape([int(n) for n in shape.split(",")]) if shape else flat
    if values is None:
        return None
    array = np.asarray(values)
    return array if array.dtype.kind in "biuf" else None


def _plain(value: Any) -> Any:
    """Lists in place of arrays, and None in place of what JSON has no number for."""
    if isinstance(value, dict):
        packed = _array(value)
        return _plain(packed) if packed is not None else {k: _plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value

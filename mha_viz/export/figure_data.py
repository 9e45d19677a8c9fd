"""The data of a figure: every figure carries its numbers and its labels, which are read here."""

import base64
import html
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from mha_viz.export.tables import Table


def figure_table(figure: go.Figure) -> Table:
    """A row for each mark: its trace, its place on both axes with labels, its value and its text.

    The value of a cell of a heatmap is what its hover shows; blank cells have no row. Where a cell
    stands for several tokens per side, the header of the value says so.
    """
    spec = figure.to_plotly_json()
    layout = spec["layout"]
    x_label, y_label = _label_at(layout, "x"), _label_at(layout, "y")
    rows: list[list[Any]] = []
    for number, trace in enumerate(spec["data"]):
        if trace.get("hoverinfo") == "skip":
            continue  # decoration, such as the outlines of other marks
        name = str(trace.get("name") or f"{trace['type']} {number}")
        marks = _marks(trace)
        texts = _list(trace.get("text"))
        if len(texts) != len(marks):
            texts = [""] * len(marks)
        for (x, y, value), text in zip(marks, texts, strict=True):
            rows.append([name, x, x_label(x), y, y_label(y), value, _displayed(str(text))])
    block = (layout.get("meta") or {}).get("block", 1)
    value = f"value (the largest of {block} x {block})" if block > 1 else "value"
    return ["trace", "x", "x label", "y", "y label", value, "text"], rows


def figure_arrays(figure: go.Figure) -> dict[str, NDArray[Any]]:
    """The arrays of each trace as `trace0_z`, `trace0_x` and so on, and the labels of the axes.

    `x_labels` and `y_labels` are at the places `x_ticks` and `y_ticks`; a cell stands for `block`
    tokens per side.
    """
    spec = figure.to_plotly_json()
    arrays: dict[str, NDArray[Any]] = {}
    for number, trace in enumerate(spec["data"]):
        for key in ("x", "y", "z", "base", "customdata"):
            if key in trace and (array := _array(trace[key])) is not None:
                arrays[f"trace{number}_{key}"] = array
    for axis in "xy":
        if labels := _labels(spec["layout"], axis):
            arrays[f"{axis}_ticks"] = np.array(list(labels), dtype=np.float64)
            arrays[f"{axis}_labels"] = np.array(list(labels.values()))
    meta = spec["layout"].get("meta") or {}
    if "block" in meta:
        arrays["block"] = np.array(meta["block"])
    return arrays


def to_plain(value: Any) -> Any:
    """The value with lists for arrays and None for NaN and infinity, which JSON does not have."""
    if isinstance(value, dict):
        packed = _array(value)
        if packed is None:
            return {key: to_plain(part) for key, part in value.items()}
        value = packed
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [to_plain(part) for part in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _marks(trace: Mapping[str, Any]) -> list[tuple[Any, Any, Any]]:
    if trace["type"] == "heatmap":
        return _cells(trace)
    x, y = (_list(trace.get(axis)) for axis in "xy")
    if "base" in trace:  # bars that are cells: their base is their place
        data = _list(trace.get("customdata")) or [None] * len(x)
        return list(zip(x, _list(trace["base"]), data, strict=False))
    values = x if trace.get("orientation") == "h" else y
    return list(zip(x, y, values, strict=False))


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
    drawn = np.argwhere(np.isfinite(z)).tolist()
    return [(xs[column], ys[row], float(z[row, column])) for row, column in drawn]


def _labels(layout: Mapping[str, Any], axis: str) -> dict[Any, str]:
    """The labels of an axis by their place: all tokens if the figure keeps them, or the ticks."""
    meta = layout.get("meta") or {}
    if axis in meta.get("axes", ""):
        return dict(enumerate(meta["tokens"]))
    ticks = layout.get(f"{axis}axis", {})
    places, texts = _list(ticks.get("tickvals")), _list(ticks.get("ticktext"))
    return {place: _displayed(str(text)) for place, text in zip(places, texts, strict=False)}


def _label_at(layout: Mapping[str, Any], axis: str) -> Callable[[Any], str]:
    """The label of a place; for a cell of several tokens, the first and the last of them."""
    labels = _labels(layout, axis)
    block = (layout.get("meta") or {}).get("block", 1)

    def label(place: Any) -> str:
        if block == 1:
            return labels.get(place, "")
        first = round(place - (block - 1) / 2)
        last = min(first + block, len(labels)) - 1
        return f"{labels[first]} ({first}) … {labels[last]} ({last})"

    return label


def _displayed(text: str) -> str:
    """The text as Plotly shows it; its own < are escaped, so any other < starts markup."""
    return html.unescape(re.sub(r"<[^>]*>", "", text.replace("<br>", " ")))


def _list(values: Any) -> list[Any]:
    array = _array(values)
    if array is not None:
        return list(array.tolist())
    return list(values) if isinstance(values, list | tuple | np.ndarray) else []


def _array(values: Any) -> NDArray[Any] | None:
    """A property of a figure as numbers, unpacked if Plotly packed them; None for other types."""
    if isinstance(values, dict) and "bdata" in values:
        flat = np.frombuffer(base64.b64decode(values["bdata"]), dtype=values["dtype"])
        shape = str(values.get("shape", "")).replace(" ", "")
        return flat.reshape([int(n) for n in shape.split(",")]) if shape else flat
    if values is None:
        return None
    array = np.asarray(values)
    return array if array.dtype.kind in "biuf" else None

"""What a page shows, as numbers rather than words, for comparison with a record."""

import base64
import io
import math
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from PIL import Image
from streamlit.proto.ButtonGroup_pb2 import ButtonGroup
from streamlit.testing.v1 import AppTest

from support.script import figures

ONE = ButtonGroup.ClickMode.SINGLE_SELECT
SAMPLES = 7  # numbers of an array that a record keeps, evenly spaced


def what_is_shown(test: AppTest) -> dict[str, Any]:
    """The view of a page that has run: what the sidebar chose, each figure and each table."""
    view = test.session_state["view"]
    return {
        "model": view.source,
        "text": view.trace.text,
        "token_ids": list(map(int, view.trace.token_ids)),
        "head": [view.layer, view.head],
        "token": view.token,
        "key": _state(test, "key_chosen"),
        "side": _state(test, "side"),
        "window": view.window_text,
        "colour": [view.scale, view.dim_sink, view.theme.name],
        "stage": view.stage,
        "messages": sum(len(boxes) for boxes in (test.error, test.warning, test.info)),
        "figures": [_figure(figure) for figure in figures(test)],
        "tables": [_table(frame.value) for frame in test.dataframe],
    }


def inputs(test: AppTest) -> dict[str, str | list[str]]:
    """What each input with a key holds, as links write it: labels, `true`, numbers."""
    held: dict[str, str | list[str]] = {}
    for choice in test.button_group:
        labels = list(choice.formatted_values)
        held[choice.key] = labels[0] if choice.proto.click_mode == ONE else labels
    held |= {box.key: list(box.values) for box in test.multiselect}
    held |= {box.key: str(box.format_func(box.value)) for box in test.selectbox}
    others = (*test.number_input, *test.slider, *test.text_input, *test.text_area)
    held |= {widget.key: str(widget.value) for widget in others}
    return held | {switch.key: str(switch.value).lower() for switch in test.toggle}


def options(test: AppTest) -> dict[str, list[str]]:
    """The options of each choice with a key, as links write them."""
    return {choice.key: list(choice.options) for choice in (*test.button_group, *test.selectbox)}


def differences(found: Any, recorded: Any, where: str = "") -> list[str]:
    """Where two records differ; numbers may differ in the fourth digit, None in a record is any."""
    if recorded is None and where.rpartition(".")[2].isdecimal():
        return []  # a measured time
    if isinstance(recorded, dict) and isinstance(found, dict):
        keys = sorted(recorded.keys() | found.keys())
        pairs: Iterable[tuple[Any, Any, Any]] = (
            (key, found.get(key), recorded.get(key)) for key in keys
        )
    elif isinstance(recorded, list) and isinstance(found, list) and len(found) == len(recorded):
        pairs = zip(range(len(found)), found, recorded, strict=True)
    else:
        same = _same(found, recorded)
        return [] if same else [f"{where}: {str(found)[:80]} was {str(recorded)[:80]}"]
    return [line for key, a, b in pairs for line in differences(a, b, f"{where}.{key}")]


def _state(test: AppTest, name: str) -> Any:
    state = test.session_state  # which has no get
    return state[name] if name in state else None  # noqa: SIM401


def _same(found: Any, recorded: Any) -> bool:
    if isinstance(found, float) and isinstance(recorded, (int, float)):
        return math.isclose(found, recorded, rel_tol=1e-3, abs_tol=2e-4)
    return bool(found == recorded)


def _figure(figure: dict[str, Any]) -> dict[str, Any]:
    """The numbers of a figure's traces and the colours of its images."""
    traces = [
        {"type": trace["type"]}
        | {axis: _numbers(trace[axis]) for axis in ("x", "y", "z", "base") if axis in trace}
        for trace in figure["data"]
    ]
    images = [_image(image["source"]) for image in figure["layout"].get("images", [])]
    return {"traces": traces, "images": images}


def _numbers(sent: Any) -> list[Any]:
    """How many there are, their mean and extremes, and some of them; names have no numbers."""
    if isinstance(sent, dict) and "bdata" in sent:
        values = np.frombuffer(base64.b64decode(sent["bdata"]), np.dtype(sent["dtype"]))
    else:
        flat = np.array(sent, dtype=object).ravel()
        if not all(isinstance(one, (int, float, type(None))) for one in flat):
            return [len(flat)]
        values = np.array([math.nan if one is None else one for one in flat])
    values = values.astype(np.float64)
    real = values[np.isfinite(values)]
    if not len(real):
        return [len(values)]
    some = values[np.linspace(0, len(values) - 1, SAMPLES).round().astype(int)]
    return [len(values), *(_rounded(v) for v in (real.mean(), real.min(), real.max(), *some))]


def _rounded(value: float) -> float | str:
    return float(f"{value:.5g}") if math.isfinite(value) else "none"


def _image(source: str) -> list[Any]:
    picture = Image.open(io.BytesIO(base64.b64decode(source.partition(",")[2]))).convert("RGBA")
    means = np.asarray(picture, dtype=np.float64).mean(axis=(0, 1))
    return [*picture.size, *(_rounded(mean) for mean in means)]


def _table(frame: Any) -> list[list[Any]]:
    """Each column: its numbers, the heads that it names, or how many rows it has."""
    columns = [frame.iloc[:, i].tolist() for i in range(frame.shape[1])]
    return [_heads(column) or _numbers(column) for column in columns]


def _heads(column: list[Any]) -> list[str]:
    """The first heads of a column of heads, as links write them; empty for other columns."""
    names = [str(cell).replace(" ", "") for cell in column]
    return names[:SAMPLES] if all(re.fullmatch(r"L\d+H\d+", name) for name in names) else []

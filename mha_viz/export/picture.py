"""A figure with its title, caption and data, as CSV, JSON, npz or a script.

PNG and SVG are made in the browser, which has already drawn the figure.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from mha_viz.export.data import Data
from mha_viz.export.origin import Origin
from mha_viz.export.recipe import Recipe


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure, its title, its caption, and the recipe that makes it.

    `ratio` is its width over its height on the page; without it, `height` is the height in pixels.
    On a page narrower than `min_width`, the figure scrolls sideways. `plotted` is False for figures
    that a component of the page draws itself, without Plotly.
    """

    title: str
    figure: go.Figure = field(repr=False)
    recipe: Recipe = field(repr=False)
    caption: str = ""
    ratio: float | None = None
    height: int = 400
    min_width: int = 0
    plotted: bool = True

    @cached_property
    def data(self) -> Data:
        """The data in the figure's files."""
        return self.recipe.make()[1]

    def csv(self, origin: Origin | None = None) -> str:
        """The data as CSV, after comment lines with its origin."""
        return self.data.csv(origin)

    def npz(self, origin: Origin | None = None) -> bytes:
        """The data as npz, which can be read without pickle."""
        return self.data.npz(origin)

    def json(self, origin: Origin | None = None) -> str:
        """The figure as JSON with plain lists, which every version of Plotly reads.

        Next to `data` and `layout` it has `numbers`, the arrays of its data, and `provenance`.
        """
        spec = {**self.figure.to_plotly_json(), "numbers": dict(self.data.arrays)}
        spec["provenance"] = dict(origin or {})
        return json.dumps(to_plain(spec), ensure_ascii=False, allow_nan=False)

    def script(self, origin: Origin | None = None) -> str:
        """A Python script that reproduces the figure and its data."""
        return self.recipe.script(self.title, origin)


def to_plain(value: Any) -> Any:
    """The value with lists for arrays and None for NaN and infinity, which JSON does not have."""
    if isinstance(value, dict) and "bdata" in value:
        value = _unpacked(value)
    if isinstance(value, dict):
        return {key: to_plain(part) for key, part in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [to_plain(part) for part in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _unpacked(packed: Mapping[str, Any]) -> NDArray[Any]:
    """The array that Plotly encoded as base64."""
    flat = np.frombuffer(base64.b64decode(packed["bdata"]), dtype=packed["dtype"])
    return flat.reshape([int(n) for n in str(packed.get("shape", flat.size)).split(",")])

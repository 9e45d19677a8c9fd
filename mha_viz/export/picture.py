"""A figure with its caption, and its data as CSV, JSON or npz.

PNG and SVG are made in the browser, which has already drawn the figure.
"""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import plotly.graph_objects as go

from mha_viz.export.figure_data import figure_arrays, figure_table, to_plain
from mha_viz.export.tables import Table, column_array, table_csv


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A figure, its name in files, and its caption.

    `table` makes the numbers of a figure that does not carry them, such as an image. `plotted` is
    False for figures that a component of the page draws by itself, without Plotly.
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
        """The figure as JSON with plain lists, which every version of Plotly reads.

        The table, if there is one, is in the figure's `meta`.
        """
        spec = self.figure.to_plotly_json()
        if self.table:
            header, rows = self.table()
            spec["layout"]["meta"] = {"header": header, "rows": rows}
        return json.dumps(to_plain(spec), ensure_ascii=False, allow_nan=False)

    def npz(self) -> bytes:
        """The arrays of the figure (see `figure_arrays`), and each column of the table, as npz."""
        arrays = figure_arrays(self.figure)
        if self.table:
            header, rows = self.table()
            columns = zip(*rows, strict=True) if rows else [()] * len(header)
            named = zip(header, columns, strict=True)
            arrays |= {f"table_{name}": column_array(column) for name, column in named}
        buffer = io.BytesIO()
        np.savez_compressed(buffer, allow_pickle=False, **arrays)
        return buffer.getvalue()

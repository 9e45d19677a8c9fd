"""The data of a figure, from the code that draws it: a table, or a matrix with its tokens.

A matrix holds the values themselves at full resolution, not the colours that are drawn.
"""

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mha_viz.export.origin import Origin
from mha_viz.export.tables import Table, column_array, head_table, table_csv


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """The content of a figure's files: `arrays` in npz and JSON, the rows of `table` in CSV."""

    arrays: Mapping[str, NDArray[Any]]
    table: Callable[[], Table]

    def csv(self, origin: Origin | None = None) -> str:
        """The table as CSV, with its origin in lines that start with "#"."""
        return table_csv(*self.table(), origin)

    def npz(self, origin: Origin | None = None) -> bytes:
        """The arrays as npz, with the origin as JSON in `provenance`."""
        named = {**self.arrays, "provenance": np.array(json.dumps(dict(origin or {})))}
        buffer = io.BytesIO()
        np.savez_compressed(buffer, allow_pickle=False, **named)
        return buffer.getvalue()


def rows_data(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> Data:
    """A table with these column names; in npz and JSON, each column is an array."""
    columns = list(zip(*rows, strict=True)) or [()] * len(header)
    named = zip(header, columns, strict=True)
    arrays = {name: column_array(column) for name, column in named}
    return Data(arrays, lambda: (list(header), [list(row) for row in rows]))


def columns_data(**columns: Sequence[Any] | NDArray[Any]) -> Data:
    """A table of these columns, all of equal length; `_` in a name becomes a space in the file."""
    plain = [c.tolist() if isinstance(c, np.ndarray) else list(c) for c in columns.values()]
    header = [name.replace("_", " ") for name in columns]
    return rows_data(header, list(zip(*plain, strict=True)))


def heads_data(**values: NDArray[Any]) -> Data:
    """A row for each head, from arrays `[L, H]`; a head with a NaN in any of them has no row."""
    return rows_data(*head_table([name.replace("_", " ") for name in values], *values.values()))


def pattern_data(
    values: NDArray[Any],
    tokens: Sequence[str],
    *,
    keys: Sequence[str] | None = None,
    name: str = "pattern",
    value: str = "weight",
    **facts: Any,
) -> Data:
    """A value for each query and key, `[T_q, T_k]`, with the `tokens` of both.

    Give `keys` if the keys are other tokens. `facts` such as layer, head and token_ids are in npz
    and JSON, where a masked weight, NaN, is 0. In CSV, keys after the query have no row if all of
    their weights are 0.
    """
    known = np.nan_to_num(values, nan=0.0)
    causal = keys is None and not np.triu(known, 1).any()
    named: dict[str, Any] = {"tokens": tokens}
    if keys is not None:
        named = {"query tokens": tokens, "key tokens": keys}
    return matrix_data(
        np.where(np.tri(*values.shape, dtype=np.bool_), values, np.nan) if causal else values,
        ("query", tokens),
        ("key", tokens if keys is None else keys),
        value=value,
        arrays={name: known if value == "weight" else values, **named, **facts},
    )


def patterns_data(
    patterns: NDArray[Any], tokens: Sequence[str], *, block: int = 1, **facts: Any
) -> Data:
    """The patterns of many heads, `[L, H, s, s]`; each cell stands for `block` tokens per side.

    For a block above 1, a weight is the largest in the block, and its query and key are the first
    ones there. In CSV, keys after the query and pruned heads have no row.
    """

    def table() -> Table:
        places = np.argwhere(np.tri(patterns.shape[-1], dtype=np.bool_) & ~np.isnan(patterns))
        rows = [
            [layer, head, i * block, tokens[i * block], j * block, tokens[j * block], float(weight)]
            for (layer, head, i, j), weight in zip(
                places.tolist(), patterns[tuple(places.T)], strict=True
            )
        ]
        value = "weight" if block == 1 else "largest weight"
        return ["layer", "head", "query", "query token", "key", "key token", value], rows

    arrays = {"patterns": patterns, "block": block, "tokens": tokens, **facts}
    return Data({name: np.asarray(array) for name, array in arrays.items()}, table)


def matrix_data(
    values: NDArray[Any],
    rows: tuple[str, Sequence[str]],
    columns: tuple[str, Sequence[str]],
    *,
    value: str,
    arrays: Mapping[str, Any] | None = None,
    labels: str = "token",
) -> Data:
    """A value for each row and column; `rows` and `columns` hold a name and the labels, if any.

    `value` and `labels` name the columns in CSV, where a NaN has no row. `arrays` are those of npz
    and JSON, by default the values.
    """

    def table() -> Table:
        header = [*_named(rows, labels), *_named(columns, labels), value]
        places = np.argwhere(~np.isnan(values)).tolist()
        return header, [[*_at(rows, i), *_at(columns, j), float(values[i, j])] for i, j in places]

    return Data({k: np.asarray(v) for k, v in (arrays or {value: values}).items()}, table)


def tensor_data(values: NDArray[Any], axes: Sequence[str]) -> Data:
    """A row for each element of a tensor, with its place on each of the `axes`."""
    names = [f"{axis} of keys" if axis in axes[:n] else axis for n, axis in enumerate(axes)]

    def table() -> Table:
        rows = [[*place, float(value)] for place, value in np.ndenumerate(values)]
        return [*names, "value"], rows

    return Data({"tensor": values, "axes": np.array(names)}, table)


def _named(side: tuple[str, Sequence[str]], labels: str) -> list[str]:
    return [side[0], f"{side[0]} {labels}"] if len(side[1]) else [side[0]]


def _at(side: tuple[str, Sequence[str]], i: int) -> list[Any]:
    return [i, side[1][i]] if len(side[1]) else [i]

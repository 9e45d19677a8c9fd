"""Tables and pairs of names and values."""

from collections.abc import Mapping, Sequence

import streamlit as st
from streamlit.elements.lib.column_types import ColumnConfig

from mha_viz.app import glossary
from mha_viz.app.messages import escaped
from mha_viz.app.widgets import explained

Rows = Sequence[Sequence[object]]


def table(
    header: Sequence[str],
    rows: Rows,
    *,
    height: int | None = None,
    widths: Mapping[str, int | None] | None = None,
    key: str | None = None,
    alt: str | None = None,
) -> None:
    """A table that can be sorted and searched; whole numbers are grouped by thousands.

    `height` and the `widths` of columns are in pixels; `alt` describes it to screen readers.
    """
    columns = {
        name: _column(name, [row[i] for row in rows], (widths or {}).get(name))
        for i, name in enumerate(header)
    }
    st.dataframe(
        [dict(zip(header, row, strict=True)) for row in rows],
        hide_index=True,
        width="stretch",
        height=height or "auto",
        column_config=columns,
        key=key,
        alt=alt,
    )


def facts(rows: Mapping[str, str]) -> None:
    """Names and values, one pair per line."""
    cells = "".join(f"<dt>{escaped(k)}</dt><dd>{escaped(v)}</dd>" for k, v in rows.items())
    explained.html(f'<dl class="facts">{cells}</dl>')


def _column(name: str, values: Sequence[object], width: int | None) -> ColumnConfig:
    """How a column is shown, with help for its name."""
    text = glossary.help_for(name)
    if values and all(isinstance(value, int) for value in values):
        return st.column_config.NumberColumn(format="localized", help=text, width=width)
    return st.column_config.Column(help=text, width=width)

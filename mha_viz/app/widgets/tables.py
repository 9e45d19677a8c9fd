"""Tables and pairs of names and values."""

from collections.abc import Mapping, Sequence

import streamlit as st
from streamlit.elements.lib.column_types import ColumnConfig

from mha_viz.app import glossary
from mha_viz.app.messages import escaped
from mha_viz.app.widgets import explained


def table(
    header: Sequence[str], rows: Sequence[Sequence[object]], *, height: int | None = None
) -> None:
    """A table that can be sorted and searched; whole numbers are grouped by thousands."""
    whole = [
        name
        for i, name in enumerate(header)
        if rows and all(isinstance(row[i], int) for row in rows)
    ]
    st.dataframe(
        [dict(zip(header, row, strict=True)) for row in rows],
        hide_index=True,
        width="stretch",
        height=height or "auto",
        column_config=columns(header, whole=whole),
    )


def columns(header: Sequence[str], *, whole: Sequence[str] = ()) -> dict[str, ColumnConfig]:
    """Streamlit's settings of columns: help for their names, and the format of whole numbers."""
    found = {name: glossary.help_for(name) for name in header}
    return {
        name: st.column_config.NumberColumn(format="localized", help=text)
        if name in whole
        else st.column_config.Column(help=text)
        for name, text in found.items()
        if text or name in whole
    }


def facts(rows: Mapping[str, str]) -> None:
    """Names and values, a pair per line."""
    cells = "".join(f"<dt>{escaped(k)}</dt><dd>{escaped(v)}</dd>" for k, v in rows.items())
    explained.html(f'<dl class="facts">{cells}</dl>')

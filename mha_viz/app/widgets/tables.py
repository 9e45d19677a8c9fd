"""Numbers in rows: sortable, searchable, and read as a table by screen readers."""

from collections.abc import Mapping, Sequence

import streamlit as st

from mha_viz.app.messages import escaped


def table(
    header: Sequence[str], rows: Sequence[Sequence[object]], *, height: int | None = None
) -> None:
    """A table whose whole numbers are grouped by thousands."""
    numbers = {
        name: st.column_config.NumberColumn(format="localized")
        for i, name in enumerate(header)
        if rows and all(isinstance(row[i], int) for row in rows)
    }
    st.dataframe(
        [dict(zip(header, row, strict=True)) for row in rows], hide_index=True, width="stretch",
        height=height or "auto", column_config=numbers,
    )  # fmt: skip


def facts(rows: Mapping[str, str]) -> None:
    """Names and values side by side."""
    cells = "".join(f"<dt>{escaped(k)}</dt><dd>{escaped(v)}</dd>" for k, v in rows.items())
    st.html(f'<dl class="facts">{cells}</dl>')

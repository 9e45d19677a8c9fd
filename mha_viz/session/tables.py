"""Numbers in rows: sortable, searchable, and read as a table by screen readers."""

from collections.abc import Sequence

import streamlit as st


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

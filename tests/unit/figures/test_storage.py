"""Each number is drawn by index and by address, under one name, and before and after a copy."""

import numpy as np
import pytest

from mha_viz.figures.storage import storage_figure
from mha_viz.figures.theme import LIGHT
from mha_viz.lessons.layout import OTHER, Layout, layouts

SELECTED = (1, 2, 3)
NAME = (2 * 2 + 1) * 4 + 3  # of the selected number, for H = 2 and d_h = 4


def drawn(layout: Layout, selected: tuple[int, int, int] = SELECTED):
    return storage_figure(
        layout.cells, layout.tape, layout.axes, LIGHT, selected=selected, before=layout.before
    )


@pytest.mark.parametrize("layout", layouts(3, 2, 4), ids=lambda layout: layout.title)
def test_each_number_is_at_its_index_and_at_its_address(layout: Layout) -> None:
    figure = drawn(layout)
    panels = [trace for trace in figure.data if trace.customdata is not None]
    tapes = [layout.tape] if layout.before is None else [layout.before, layout.tape]
    assert len(panels) == 1 + len(tapes)
    for cells, tape in zip(panels, [layout.tape, *tapes], strict=True):
        for (h, t, i, address), name in zip(cells.customdata, cells.text, strict=True):
            assert int(name) == (t * 2 + h) * 4 + i, "under its own name"
            assert tape[address] == int(name)
    # The first panel is ordered by index; on a tape, numbers follow each other by address.
    by_index = {tuple(cell[:3]): cell[3] for cell in panels[0].customdata}
    assert by_index == {cell: int(address) for cell, address in np.ndenumerate(layout.cells)}
    for cells in panels[1:]:
        addresses = [cell[3] for cell in cells.customdata]
        assert addresses == sorted(addresses)
        rows = np.array(cells.base, dtype=float)
        assert (np.diff(rows) >= -1e-9).all(), "row after row"


def test_a_number_is_outlined_under_the_same_name_everywhere() -> None:
    for layout in layouts(3, 2, 4):
        figure = drawn(layout)
        panels = [trace for trace in figure.data if trace.customdata is not None]
        outlines = [shape for shape in figure.layout.shapes if shape.line.color == LIGHT.query]
        assert len(outlines) == len(panels)
        for outline, cells in zip(outlines, panels, strict=True):
            at = list(cells.text).index(str(NAME))
            assert (outline.x0 + outline.x1) / 2 == cells.x[at]


def test_k_and_v_lie_between_the_rows_of_q_alone() -> None:
    for layout in layouts(3, 2, 4):
        texts = [text for trace in drawn(layout).data for text in trace.text]
        assert ("k, 8" in texts) == ("v, 8" in texts) == (OTHER in layout.tape)


def test_arrows_lead_to_the_next_position_and_head_unless_there_is_none() -> None:
    for layout in layouts(3, 2, 4):
        arrows = [
            sum(bool(note.showarrow) for note in drawn(layout, cell).layout.annotations)
            for cell in ((0, 0, 0), (1, 0, 0), (1, 2, 0))
        ]
        assert arrows == ([2, 1, 0] if "H" in layout.axes else [1, 1, 0])


def test_the_view_has_a_tray_for_each_position_and_the_transpose_a_sheet_for_each_head() -> None:
    parts = {
        layout.title: sum(s.line.color == LIGHT.control for s in drawn(layout).layout.shapes)
        for layout in layouts(3, 2, 4)
    }
    assert (parts["As projected"], parts["View"], parts["Transpose"]) == (0, 3, 2)

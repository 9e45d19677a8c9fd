"""The first step: what the layer reads."""

from mha_viz.figures.journey.parts import TITLE, paragraph, ring, title, token_labels, words
from mha_viz.figures.journey.place import TAB
from mha_viz.figures.journey.scene import Cells, Crop, Item, Rect, Scene, stays
from mha_viz.figures.journey.setting import Setting


def read(setting: Setting) -> Scene:
    """A row of C numbers for each token; no head owns any of them."""
    layer, focus = setting.layer, setting.focus
    place = rows_of(setting)
    shape = f"[T, C] = [{layer.T}, {layer.C}]"
    row = Rect(place.x, place.y + focus.token * setting.row, place.width, setting.row - setting.gap)
    said = f"One row per token, {layer.C} numbers each. No head owns a column yet."
    y = place.bottom + setting.line
    items: list[Item] = [
        *title(setting, "x", shape, place.x, 10),
        *token_labels(setting, place.x, place.y),
        Cells(
            "x",
            Crop(0, 0, layer.C // setting.pool_of_x, layer.T),
            stays(place),
            (setting.gap, setting.gap),
        ),
        ring(setting, stays(row.grown(2))),
    ]
    lines = paragraph(setting, said, 0 if setting.narrow else place.x, y)
    items += lines
    about = "blue below 0, orange above"
    if not setting.narrow:
        items.append(words(setting, about, place.right, y, anchor="end"))
    question = "What does the layer read? One row of numbers for each token."
    return Scene("x", question, y + len(lines) * setting.line, tuple(items), said, ("x",))


def rows_of(setting: Setting) -> Rect:
    """Where the rows of x lie."""
    width = setting.width - setting.gutter - 4
    if not setting.narrow:
        width = min(width, 760)
    return Rect(setting.gutter, TITLE + TAB, width, setting.tall)

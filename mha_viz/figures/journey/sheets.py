"""The frames and tabs of sheets, one for each head."""

from collections.abc import Iterator

from mha_viz.figures.journey.parts import labelled
from mha_viz.figures.journey.place import PAD, TAB, Picture
from mha_viz.figures.journey.scene import Box, Item, Rect, Text, appears
from mha_viz.figures.journey.setting import Setting


def sheet_frames(setting: Setting, picture: Picture, since: int) -> Iterator[Item]:
    """A frame around each sheet, with a tab that names its head where there is room."""
    blocks, focus = picture.blocks, setting.focus
    pitch = blocks[1].x - blocks[0].x if len(blocks) > 1 else blocks[0].width + 2 * PAD
    named = set(labelled(len(blocks), pitch, _width(setting, len(blocks) - 1), *focus.chosen))
    for head, block in enumerate(blocks):
        thick = 2.5 if head in focus.chosen else 1
        yield Box(appears(block.grown(PAD), since), setting.names[head], "", thick, 3)
        if head in named:
            yield from _tab(setting, head, block, since)


def _width(setting: Setting, head: int) -> float:
    return 0.65 * setting.text * len(f"H{setting.layer.heads[head]}") + 10


def _tab(setting: Setting, head: int, block: Rect, since: int) -> Iterator[Item]:
    """The tab of a sheet; a click on it selects the head."""
    theme, chosen = setting.theme, head in setting.focus.chosen
    height = TAB - 3
    width = _width(setting, head)
    left = min(block.x - PAD, setting.width - width)
    tab = Rect(left, block.y - PAD - height, width, height)
    colour = setting.names[head]
    yield Box(appears(tab, since), colour, colour if chosen else theme.page, 1, 3)
    yield Text(
        f"H{setting.layer.heads[head]}",
        appears(Rect(*tab.centre), since),
        theme.page if chosen else colour,
        setting.text,
        "middle",
        bold=True,
        selects=("head", head),
    )

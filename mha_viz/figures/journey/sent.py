"""Scenes and images as JSON, for the browser that plays them."""

from typing import Any

import numpy as np
from PIL import Image as Picture

from mha_viz.figures.journey.cells import Image
from mha_viz.figures.journey.scene import Item, Motion, Scene
from mha_viz.figures.marks import png_uri

KINDS = {"Cells": "cells", "Box": "box", "Line": "line", "Text": "text"}


def as_data(scene: Scene) -> dict[str, Any]:
    """A scene as journey/stage.js reads it."""
    fields = ("step", "question", "height", "sentence", "shown", "still")
    found = {name: getattr(scene, name) for name in fields}
    return found | {"items": [item_data(item) for item in scene.items]}


def item_data(item: Item) -> dict[str, Any]:
    """An item as journey/marks.js and cells.js read it; pixels have one decimal."""
    names = [name for name in item.__dataclass_fields__ if name != "motion"]
    found = {name: getattr(item, name) for name in names}
    return found | {"kind": KINDS[type(item).__name__], "motion": _motion(item.motion)}


def _motion(motion: Motion) -> list[Any]:
    rects = ([round(value, 1) for value in rect] for rect in (motion.start, motion.end))
    return [*rects, motion.first, motion.last, *motion.opacity, motion.until]


def uri(image: Image) -> str:
    """An image as a data URI; with a palette, where its colours fit into one."""
    flat = image.pixels.reshape(-1, 4)
    words = np.ascontiguousarray(flat).view(np.uint32).ravel()
    colours, index = np.unique(words, return_inverse=True)
    if len(colours) > 256:
        return png_uri(Picture.fromarray(image.pixels))
    palette = colours.view(np.uint8).reshape(-1, 4)
    drawn = Picture.fromarray(index.reshape(image.pixels.shape[:2]).astype(np.uint8), "P")
    drawn.putpalette(palette[:, :3].tobytes())
    return png_uri(drawn, transparency=palette[:, 3].tobytes())

"""The grid of all heads: each thumbnail is a smaller heatmap."""

import base64
import io
import json

import numpy as np
import plotly.graph_objects as go
import pytest
from PIL import Image
from support.patterns import random_pattern

from mha_viz.figures.grid import LEVELS, head_grid, name_room, thumbnail_size
from mha_viz.figures.theme import DARK, LIGHT, THEMES, rgb


def mosaic(figure: go.Figure) -> np.ndarray:
    source = figure.layout.images[0].source
    image = Image.open(io.BytesIO(base64.b64decode(source.split(",", 1)[1])))
    return np.asarray(image.convert("RGBA"))


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_a_thumbnail_is_the_heatmap_smaller(theme: object) -> None:
    assert theme in (LIGHT, DARK)
    palette = THEMES[theme.name]  # type: ignore[attr-defined]
    thumbnails = np.zeros((2, 3, 4, 4), dtype=np.float32)
    thumbnails[1, 2] = np.tril(np.ones((4, 4)))
    pixels = mosaic(head_grid(thumbnails, palette))
    rows, columns = pixels.shape[0] // 2, pixels.shape[1] // 3
    strong = pixels[rows:, 2 * columns :]
    opaque = strong[strong[..., 3] > 0]
    assert {tuple(p[:3]) for p in opaque} == {rgb(palette.sequential[-1])}
    share = (strong[..., 3] > 0).mean()
    room = 1 + name_room(3)
    assert 0.45 < share * room < 0.625  # the triangle of 10 of 16 cells, less the gap
    weak = pixels[:rows, :columns]
    assert {tuple(p[:3]) for p in weak[weak[..., 3] > 0]} == {rgb(palette.sequential[0])}


def test_dimming_the_sink_changes_the_first_column_alone() -> None:
    thumbnails = np.tril(np.full((8, 8), 0.5, dtype=np.float32))[None, None]
    plain = mosaic(head_grid(thumbnails, LIGHT)).astype(int)
    dimmed = mosaic(head_grid(thumbnails, LIGHT, dim_sink=True)).astype(int)
    columns = np.flatnonzero((plain != dimmed).any(axis=(0, 2)))
    drawn = np.flatnonzero((plain[..., 3] > 0).any(axis=0))
    width = len(drawn) // 8
    assert list(columns) == list(drawn[:width])


def test_a_cell_of_the_grid_names_its_head() -> None:
    figure = head_grid(np.zeros((12, 12, 8, 8), dtype=np.float32), LIGHT)
    bar = figure.data[0]
    assert len(bar.x) == 144
    assert list(bar.customdata[12 * 5 + 1]) == [5, 1]
    assert (bar.x[61], bar.base[61]) == (1, 4.5)


def test_the_grid_of_gpt2_small_stays_small() -> None:
    thumbnails = np.stack(
        [[random_pattern(64, 12 * i + h)[:41, :41] for h in range(12)] for i in range(12)]
    )
    assert len(head_grid(thumbnails, LIGHT).to_json()) <= 300_000


@pytest.mark.parametrize("n_heads", [6, 12, 16, 20, 25])
def test_thumbnails_fit_a_row(n_heads: int) -> None:
    assert n_heads * thumbnail_size(n_heads) <= 560


def test_levels_leave_room_for_the_dimmed_and_the_clear() -> None:
    assert 2 * LEVELS < 256
    assert json.loads(head_grid(np.zeros((1, 1, 1, 1), np.float32), LIGHT).to_json())["data"]

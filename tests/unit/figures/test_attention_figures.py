"""Figures are values: what they hold must be the weights, and nothing of a text may be markup."""

import base64
import io
import json
import tomllib
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import pytest
from PIL import Image

from mha_viz.errors import HeadNotFound
from mha_viz.figures import scale
from mha_viz.figures.grid import LEVELS, head_grid, thumbnail_size
from mha_viz.figures.heatmap import head_heatmap
from mha_viz.figures.labels import MAX_TICKS
from mha_viz.figures.notebook import all_heads, head_view, one_head
from mha_viz.figures.text import escape
from mha_viz.figures.theme import DARK, LIGHT, THEMES, colorscale, config_toml, rgb
from mha_viz.figures.window import MAX_CELLS, Window, clamp_window, whole
from mha_viz.model import Model
from mha_viz.trace import Array

ROOT = Path(__file__).resolve().parents[3]


def random_pattern(T: int, seed: int = 0) -> Array:
    """Rows that add up to 1, the future exactly 0."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(T, T)) * 2
    scores[np.triu_indices(T, 1)] = -np.inf
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)


def trace_of(figure: go.Figure) -> dict[str, np.ndarray]:
    heatmap = figure.data[0]
    return {"z": np.asarray(heatmap.z), "weights": np.asarray(heatmap.customdata)}


@pytest.mark.parametrize("T", [1, 2, 17, 64])
def test_a_heatmap_holds_the_weights_and_draws_no_future(T: int) -> None:
    pattern = random_pattern(T)
    held = trace_of(head_heatmap(pattern, ["a"] * T, LIGHT))
    future = np.triu(np.ones((T, T), dtype=bool), 1)
    np.testing.assert_array_equal(held["weights"][~future], pattern[~future])
    np.testing.assert_allclose(held["z"][~future], np.sqrt(pattern[~future]), rtol=0, atol=1e-7)
    assert np.isnan(held["z"][future]).all()


def test_equal_tokens_keep_a_row_and_a_column_each() -> None:
    tokens = ["the", "·the", "·the", "·cat", "·the"]
    figure = head_heatmap(random_pattern(5), tokens, LIGHT)
    for axis in (figure.layout.xaxis, figure.layout.yaxis):
        assert axis.type == "linear"
        assert list(axis.tickvals) == [0, 1, 2, 3, 4]
        assert list(axis.ticktext) == tokens


def test_a_label_is_never_markup() -> None:
    tokens = ["<b>x</b>", "<a href='https://e.invalid'>", "&lt;", "$x$", "a&b"]
    figure = head_heatmap(random_pattern(5), tokens, LIGHT)
    shown = "".join(figure.layout.xaxis.ticktext)
    assert "<" not in shown
    assert "$" not in shown
    assert escape("<&>$") == "&lt;&amp;&gt;&#36;"


@pytest.mark.parametrize("T", [257, 600, 1024])
def test_a_long_text_is_pooled_by_its_largest_weight(T: int) -> None:
    pattern = random_pattern(T)
    figure = head_heatmap(pattern, [str(i) for i in range(T)], LIGHT)
    held = trace_of(figure)
    block = whole(T).block
    assert max(held["z"].shape) <= MAX_CELLS
    assert np.nanmax(held["weights"]) == pattern.max()
    assert held["weights"][-1, 0] == pattern[(len(held["z"]) - 1) * block :, :block].max()
    assert len(figure.layout.xaxis.tickvals) <= MAX_TICKS
    assert len(figure.to_json()) < 1_500_000


def test_a_window_of_a_long_text_is_exact() -> None:
    pattern = random_pattern(1024)
    tokens = [str(i) for i in range(1024)]
    figure = head_heatmap(pattern, tokens, LIGHT, window=Window(100, 160, 90, 150))
    held = trace_of(figure)
    part = pattern[100:160, 90:150]
    future = np.arange(90, 150)[None, :] > np.arange(100, 160)[:, None]
    np.testing.assert_array_equal(held["weights"][~future], part[~future])
    assert np.isnan(held["z"][future]).all()
    assert figure.data[0].x0 == 90
    assert figure.data[0].y0 == 100


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        ((0, 50, 0, 50), None),
        ((-5, 99, -1, 60), None),
        ((10, 20, 5, 15), Window(10, 20, 5, 15)),
        ((20, 20, 5, 15), None),
        ((30, 10, 5, 15), None),
    ],
)
def test_a_window_is_clamped_to_the_text(edges: tuple[int, ...], expected: Window | None) -> None:
    assert clamp_window(edges, 50) == expected


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
    assert 0.45 < share < 0.625  # the triangle of 10 of 16 cells, less the gap
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


def test_scales_keep_order_and_their_ends() -> None:
    weights = np.linspace(0, 1, 64, dtype=np.float32)[None, :].repeat(64, axis=0)
    for name in scale.SCALES:
        at = scale.position(weights, name)
        assert (np.diff(at, axis=1) >= 0).all()
        assert at.min() >= 0
        assert at.max() <= 1
        positions, labels, _ = scale.ticks(name)
        assert len(positions) == len(labels)
        assert 0 <= min(positions) < max(positions) <= 1


def test_against_an_even_share_one_is_the_same_colour_in_every_row() -> None:
    rows = np.arange(50)
    uniform = np.tril(np.ones((50, 50), dtype=np.float32)) / (rows + 1)[:, None]
    at = scale.position(uniform.astype(np.float32), "share")
    np.testing.assert_allclose(at[np.tril_indices(50)], 3 / 7, atol=1e-6)


def _luminance(colour: str) -> float:
    channels = [c / 255 for c in rgb(colour)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(a: str, b: str) -> float:
    low, high = sorted((_luminance(a), _luminance(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", ["light", "dark"])
def test_text_can_be_read_on_the_page(name: str) -> None:
    theme = THEMES[name]
    for colour in (theme.ink, theme.muted, theme.accent, theme.link, theme.query, theme.key):
        assert _contrast(colour, theme.page) >= 4.5
        assert _contrast(colour, theme.surface) >= 4.5
    luminances = [_luminance(c) for _, c in colorscale(theme)]
    steps = np.diff(luminances)
    assert (steps < 0).all() if name == "light" else (steps > 0).all()


def test_streamlit_and_plotly_take_their_colours_from_one_source() -> None:
    written = (ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8")
    assert tomllib.loads(config_toml())["theme"] == tomllib.loads(written)["theme"]


def test_levels_leave_room_for_the_dimmed_and_the_clear() -> None:
    assert 2 * LEVELS < 256
    assert json.loads(head_grid(np.zeros((1, 1, 1, 1), np.float32), LIGHT).to_json())["data"]


def test_a_notebook_gets_the_figures_of_the_app_in_one_call(bundled: Model) -> None:
    trace = bundled.trace("The king gave the queen a ring.")
    figure = one_head(trace, 3, 4, size=500)
    np.testing.assert_allclose(
        np.nan_to_num(np.asarray(figure.data[0].customdata, dtype=float)),
        trace.pattern(3, 4),
        atol=1e-7,
    )
    assert list(figure.layout.xaxis.ticktext) == list(trace.tokens)
    assert (figure.layout.width, figure.layout.title.text) == (500, "bundled L3 H4")
    assert len(all_heads(trace).layout.images) == 1
    lines = head_view(trace, [(3, 4), (0, 1)], size=500)
    assert {line.name for line in lines.data[:-1]} == {"L3 H4", "L0 H1"}
    for draw in (lambda: one_head(trace, 9, 0), lambda: head_view(trace, [(9, 0)])):
        with pytest.raises(HeadNotFound):
            draw()

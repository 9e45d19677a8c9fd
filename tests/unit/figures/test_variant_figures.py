"""The figures of the Variants page hold what they are given, and blank is where nothing is."""

import numpy as np
import pytest
import torch

from mha_viz.attention import repeat_heads
from mha_viz.figures.base import Style
from mha_viz.figures.cache_sizes import KINDS, SYMBOLS, CacheSize, cache_sizes_figure
from mha_viz.figures.cache_steps import PER_LINE, State, cache_figure, height
from mha_viz.figures.labels import label_width, token_ticks
from mha_viz.figures.lines import Line, Ticks, line_chart
from mha_viz.figures.masks import mask_figure, masked_pattern
from mha_viz.figures.sharing import sharing_figure
from mha_viz.figures.text import format_bytes
from mha_viz.figures.theme import DARK, LIGHT, NORMAL, STAGE, Theme
from mha_viz.figures.tiles import running_figure, tiles_figure
from mha_viz.lessons.flash import tile_ranges

MARKUP = ["<b>x</b>", "$x$", "&lt;"]


# --- who shares -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("H", "G"), [(12, 12), (12, 4), (12, 1), (25, 5), (1, 1)])
def test_a_line_leads_to_the_head_that_attention_reads(H: int, G: int) -> None:

    figure = sharing_figure(H, G, LIGHT, selected=H - 1)
    queries, shared = figure.data
    assert (len(queries.x), len(shared.x)) == (H, G)
    names = torch.arange(G).view(1, G, 1, 1)
    reads = repeat_heads(names, H).flatten().tolist()
    lines = [shape for shape in figure.layout.shapes if shape.type == "line"]
    assert [list(shared.x).index(line.x1) for line in lines] == reads
    assert [line.x0 for line in lines] == list(range(H))
    for g in range(G):  # in the middle of its readers
        assert shared.x[g] == np.mean([h for h in range(H) if reads[h] == g])
    frames = [shape for shape in figure.layout.shapes if shape.type == "rect"]
    assert [(f.x0 + f.x1) / 2 for f in frames] == pytest.approx([H - 1, shared.x[-1]])


# --- lines ----------------------------------------------------------------------------------------


def test_a_line_that_is_still_measured_ends_early() -> None:
    figure = line_chart([0, 1, 2], [Line("loss", [3.0, 2.0], "#000000")], LIGHT, x_title="G",
                        y_title="nats", marked=1)  # fmt: skip
    assert list(figure.data[0].x) == [0, 1]
    assert list(figure.data[0].y) == [3.0, 2.0]
    (mark,) = figure.layout.shapes
    assert (mark.x0, mark.x1, mark.line.color) == (1, 1, LIGHT.query)


def test_a_guide_is_no_measurement() -> None:
    lines = [Line("a", [1, 4], "#000000"), Line("slope", [1, 2], "#000000", guide=True)]
    figure = line_chart([1, 2], lines, DARK, x_title="T", y_title="", log=True,
                        x_ticks=Ticks([1, 2], ["1", "2"]))  # fmt: skip
    measured, guide = figure.data
    assert "markers" in measured.mode
    assert (guide.mode, guide.hoverinfo, guide.line.dash) == ("lines", "skip", "dot")
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"
    assert list(figure.layout.xaxis.ticktext) == ["1", "2"]


# --- the steps of a cache -------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 5, 24, 25, 72])
def test_every_position_has_a_cell_in_both_rows(n: int) -> None:
    made = n - 1
    kept: list[State] = ["read" if i < made - 1 else "computed" for i in range(made)]
    kept = [*kept, "not yet"]
    without: list[State] = [*["computed"] * made, "not yet"]
    figure = cache_figure(["a"] * n, kept, without, LIGHT, generated=made)
    cells = {trace.name: len(trace.x) for trace in figure.data[:3]}
    both = [*kept, *without]
    assert cells == {s: both.count(s) for s in ("computed", "read", "not yet")}
    places = [
        (x, base) for trace in figure.data[:3] for x, base in zip(trace.x, trace.base, strict=True)
    ]
    assert len(set(places)) == 2 * n
    assert max(x for x, _ in places) < PER_LINE
    (mark,) = figure.layout.shapes
    last = figure.data[2]  # the position that is made is not there yet
    assert mark.x0 < last.x[0] < mark.x1
    assert mark.y0 < min(last.base)
    assert height(n) >= 100


def test_a_token_that_is_not_there_yet_has_no_name() -> None:
    states: list[State] = ["computed", "computed", "not yet", "not yet"]
    figure = cache_figure([*MARKUP, "later"], states, states, LIGHT, generated=2, sizes=STAGE)
    names = figure.data[-1]
    assert len(names.text) == 3
    assert "later" not in names.text
    assert not any("<" in text or "$" in text for text in names.text)
    assert list(names.textfont.color) == [LIGHT.ink, LIGHT.ink, LIGHT.query]
    hovers = " ".join(text for trace in figure.data[:3] for text in trace.hovertext)
    assert "<" not in hovers
    assert "later" not in hovers


def test_positions_left_of_the_picture_are_counted() -> None:
    states: list[State] = ["computed", "not yet"]
    figure = cache_figure(["a", "b"], states, states, LIGHT, generated=101, first=100)
    assert "position 100" in figure.data[0].hovertext[0]


# --- the cache of many models ---------------------------------------------------------------------


def test_what_a_model_has_carries_the_sign_of_its_kind() -> None:
    models = [
        CacheSize("<b>A</b>", (64, 8, 1), 64, KINDS[0]),
        CacheSize("B", (64, 8, 1), 1, KINDS[2]),
    ]
    figure = cache_sizes_figure(models, LIGHT)
    own = figure.data[-1]
    assert list(own.x) == [64, 1]
    assert list(own.marker.symbol) == [SYMBOLS[0], SYMBOLS[2]]
    assert [list(trace.x) for trace in figure.data[1:4]] == [[64, 64], [8, 8], [1, 1]]
    assert "<" not in figure.layout.yaxis.ticktext[0]


@pytest.mark.parametrize(
    ("n", "text"),
    [(0, "0 bytes"), (512, "512 bytes"), (1024, "1 KiB"), (36_864, "36 KiB"), (1536, "1.5 KiB"),
     (2**20 * 4.5, "4.5 MiB"), (2**30 * 1234, "1,234 GiB")],
)  # fmt: skip
def test_bytes_are_written_for_people(n: float, text: str) -> None:
    assert format_bytes(n) == text


# --- tiles ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_a_tile_at_work_shows_its_weights_and_nothing_else_does(theme: Theme) -> None:
    tiles = list(tile_ranges(10, 10, block=4))
    queries, keys = tiles[3]
    weights = np.full((len(queries), len(keys)), 0.25, dtype=np.float32)
    weights[0, -1] = np.nan
    figure = tiles_figure(tiles, 3, weights, ["a"] * 10, theme)
    drawn = np.array(figure.data[0].z)
    inside = drawn[queries.start : queries.stop, keys.start : keys.stop]
    np.testing.assert_allclose(inside, np.sqrt(weights), rtol=0, atol=1e-7)
    assert np.isfinite(drawn).sum() == weights.size - 1
    done = [shape for shape in figure.layout.shapes if shape.fillcolor]
    assert len(done) == 3
    assert len(figure.layout.shapes) == len(tiles)  # none for those beyond the diagonal
    mark = figure.layout.shapes[-1]
    assert (mark.x0, mark.y0) == (keys.start - 0.5, queries.start - 0.5)
    assert mark.line.color == theme.query


def test_the_running_values_are_drawn_row_by_row() -> None:
    m, total = np.array([1.0, -2.0], np.float32), np.array([1.0, 3.0], np.float32)
    figure = running_figure(
        ["a", "<b>"], {"m": (m, (-3, 3)), "l": (total, (0, 4))}, LIGHT, sizes=STAGE
    )
    assert [list(trace.x) for trace in figure.data] == [[1, -2], [1, 3]]
    assert [trace.xaxis for trace in figure.data] == ["x", "x2"]
    assert list(figure.layout.xaxis2.range) == [0, 4]
    assert figure.layout.xaxis.domain[1] < figure.layout.xaxis2.domain[0]
    assert "<" not in figure.layout.yaxis.ticktext[1]


# --- masks ----------------------------------------------------------------------------------------


def test_a_mask_draws_what_may_be_seen() -> None:
    mask = np.array([[True, False, True], [False, False, False]])
    figure = mask_figure(mask, ["a", "b"], MARKUP, LIGHT)
    np.testing.assert_array_equal(np.isfinite(np.array(figure.data[0].z)), mask)
    assert len(figure.layout.xaxis.tickvals) == 3
    assert len(figure.layout.yaxis.tickvals) == 2
    assert not any("<" in text for text in figure.layout.xaxis.ticktext)


def test_a_pattern_is_blank_where_it_is_masked_and_zero_is_not() -> None:
    mask = np.array([[True, True], [False, True]])
    pattern = np.array([[1.0, 0.0], [0.0, 1.0]], dtype=np.float32)
    figure = masked_pattern(pattern, mask, ["a", "b"], ["a", "b"], DARK)
    weights = np.array(figure.data[0].customdata)
    np.testing.assert_array_equal(np.isnan(weights), ~mask)
    assert weights[0, 1] == 0


def test_equal_tokens_keep_a_place_each_and_wide_ones_have_room() -> None:
    ticks = token_ticks(["the"] * 5)
    assert ticks == {"tickvals": [0, 1, 2, 3, 4], "ticktext": ["the"] * 5}
    style = Style(LIGHT, NORMAL)
    assert label_width(["漢字"], style) > label_width(["ab"], style)
    assert len(token_ticks(["a"] * 500)["ticktext"]) <= 44

"""What is computed both in Python and in the browser is computed alike."""

import re

import numpy as np
import pytest
from support.node import evaluate

from mha_viz.analysis.dot_product import Lines
from mha_viz.app.pages.head import lines
from mha_viz.app.widgets import token_strip
from mha_viz.figures import scale, theme
from mha_viz.head import Head

POINTS = [i / 255 for i in range(256)]
QUERIES = [0, 1, 7, 200, 1023]


def css(colour: str) -> str:
    """`#RRGGBB` as the browser writes it."""
    return "rgb({},{},{})".format(*theme.rgb(colour))


@pytest.mark.parametrize("name", theme.THEMES)
def test_the_colour_scale_is_that_of_the_figures(name: str) -> None:
    colours = theme.THEMES[name]
    code = """import { colourAt } from "#app/browser/colours.js";
    result = data.points.map((point) => colourAt(data.colours, point));"""
    found = evaluate(code, {"points": POINTS, "colours": colours.sequential})
    assert found == [css(theme.sequential_colour(colours, point)) for point in POINTS]
    assert len(set(found)) > 200


@pytest.mark.parametrize("name", scale.SCALES)
def test_a_weight_lies_where_it_lies_in_the_figures(name: scale.Scale) -> None:
    code = """import { scalePosition } from "#app/browser/colours.js";
    const places = (query) => data.weights.map((w) => scalePosition(w, data.scale, query));
    result = data.queries.map(places);"""
    found = evaluate(code, {"weights": POINTS, "queries": QUERIES, "scale": name})
    weights = np.array([POINTS], dtype=np.float32)
    expected = [scale.position(weights, name, first_query=query)[0] for query in QUERIES]
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("of_theme", theme.THEMES)
@pytest.mark.parametrize("of_scale", scale.SCALES)
def test_a_weight_has_the_colour_of_the_figures(of_theme: str, of_scale: scale.Scale) -> None:
    colours = theme.THEMES[of_theme]
    code = """import { colourAt, scalePosition } from "#app/browser/colours.js";
    const place = (weight) => scalePosition(weight, data.scale, data.query);
    result = data.weights.map((weight) => colourAt(data.colours, place(weight)));"""
    given = {"weights": POINTS, "query": 16, "scale": of_scale, "colours": colours.sequential}
    places = scale.position(np.array([POINTS], dtype=np.float32), of_scale, first_query=16)[0]
    expected = [css(theme.sequential_colour(colours, float(place))) for place in places]
    for colour, other in zip(evaluate(code, given), expected, strict=True):
        numbers = zip(re.findall(r"\d+", colour), re.findall(r"\d+", other), strict=True)
        assert all(abs(int(a) - int(b)) <= 1 for a, b in numbers)  # float64 against float32


@pytest.mark.parametrize("name", theme.THEMES)
def test_the_browser_tells_the_scheme_from_the_page(name: str) -> None:
    page = theme.THEMES[name].page
    code = """import { schemeOf } from "#app/browser/colours.js";
    result = data.map(schemeOf);"""
    assert evaluate(code, [page, css(page), ""]) == [name, name, None]


@pytest.mark.parametrize("length", [1, 2, 7, 64])
def test_a_pattern_arrives_to_the_last_digit_that_is_shown(length: int) -> None:
    raw = np.tril(np.random.default_rng(length).random((length, length)).astype(np.float32))
    pattern = raw / raw.sum(axis=1, keepdims=True)
    code = """import { Pattern } from "#app/widgets/token_strip/pattern.js";
    const pattern = new Pattern(data.packed, data.length), all = [...Array(data.length).keys()];
    result = all.map((query) => all.map((key) => pattern.weight(query, key)));"""
    found = evaluate(code, {"packed": token_strip.pack(pattern), "length": length})
    np.testing.assert_allclose(found, pattern, atol=0.5 / 4095 + 1e-7)


def test_the_lines_of_a_head_arrive() -> None:
    queries, keys = np.array([1023, 2, 1]), np.array([513, 0, 1])
    weights = np.array([1.0, 0.25, 0.001], dtype=np.float32)
    sent = {"name": "L5 H1", "lines": lines.pack(Lines(queries, keys, weights)), "at_rest": 2}
    code = """import { HeadLines } from "#app/pages/head/lines/head_lines.js";
    const { queries, keys, count, ...lines } = new HeadLines(data);
    const weights = Array.from(queries, (_, line) => new HeadLines(data).weight(line));
    result = [[...queries], [...keys], weights, count];"""
    found = evaluate(code, sent)
    assert found[0] == queries.tolist()
    assert found[1] == keys.tolist()
    np.testing.assert_allclose(found[2], weights, atol=0.5 / 65535 + 1e-7)
    assert found[3] == 3


def test_a_head_is_written_and_read_alike() -> None:
    heads = [Head(0, 0), Head(5, 1), Head(47, 24)]
    code = """import { headKey, headLabel, parseHead } from "#app/browser/head_name.js";
    result = data.map(([layer, head]) => [headLabel({ layer, head }), headKey({ layer, head })]);
    result.push(result.flat().map((text) => Object.values(parseHead(text))));"""
    *written, parsed = evaluate(code, heads)
    assert written == [[head.label, head.key] for head in heads]
    assert parsed == [list(head) for head in heads for _ in range(2)]

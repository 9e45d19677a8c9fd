"""What is computed in both Python and the browser has the same results."""

import copy
import re

import numpy as np
import pytest
import torch
from support.node import evaluate

from mha_viz.analysis.dot_product import Lines
from mha_viz.app.pages.head import lines
from mha_viz.app.samples import SAMPLES
from mha_viz.app.widgets import token_strip
from mha_viz.figures import scale, theme
from mha_viz.head import Head
from mha_viz.model import Model

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
def test_weights_are_where_the_figures_draw_them(name: scale.Scale) -> None:
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
def test_a_pattern_arrives(length: int) -> None:
    raw = np.tril(np.random.default_rng(length).random((length, length)).astype(np.float32))
    pattern = raw / raw.sum(axis=1, keepdims=True)
    code = """import { Pattern } from "#app/widgets/token_strip/pattern.js";
    const pattern = Pattern.exact(data.packed, data.length), all = [...Array(data.length).keys()];
    result = all.map((query) => all.map((key) => pattern.weight(query, key)));"""
    found = evaluate(code, {"packed": token_strip.pack(pattern), "length": length})
    np.testing.assert_allclose(found, pattern, atol=0.5 / 4000 + 1e-7)


def exact_patterns(model: Model, ids: list[int]) -> np.ndarray:
    """`[L, H, T, T]`: the patterns of the same weights, computed in float64 from the ids on."""
    network = copy.deepcopy(model.network).double()
    q, k, _ = network.run(torch.tensor([ids])).qkv[:, :, 0]
    scales = torch.tensor([network.config.scale(layer) for layer in range(len(q))])
    scores = (q @ k.mT) * scales[:, None, None, None]
    past = torch.ones(len(ids), len(ids), dtype=torch.bool).tril()
    exact: np.ndarray = scores.masked_fill(~past, -torch.inf).softmax(-1).numpy()
    return exact


@pytest.mark.parametrize("text", SAMPLES)
def test_every_digit_of_a_weight_is_right(bundled: Model, text: str) -> None:
    """In the tooltip (three digits), in strip and sentence (two), and beside lines (two)."""
    trace = bundled.trace(SAMPLES[text])
    cells = np.tril_indices(trace.n_tokens)
    patterns = np.stack([trace.patterns(layer) for layer in range(trace.n_layers)])
    weights = patterns[:, :, *cells].reshape(-1, len(cells[0]))
    code = """import { HeadLines } from "#app/pages/head/lines/head_lines.js";
    import { weightText as besideLine } from "#app/pages/head/lines/sentence.js";
    import { Pattern, tooltipText, weightText } from "#app/widgets/token_strip/pattern.js";
    result = data.map(({ packed, length, lines }) => {
      const pattern = Pattern.exact(packed, length), all = new HeadLines({ lines });
      return Array.from(all.queries, (query, line) => {
        const weight = pattern.weight(query, all.keys[line]);
        return [tooltipText(weight), weightText(weight), besideLine(all.weight(line))];
      });
    });"""
    sent = [
        {
            "packed": token_strip.pack(pattern),
            "length": trace.n_tokens,
            "lines": lines.pack(Lines(*cells, pattern[cells])),
        }
        for pattern in patterns.reshape(-1, trace.n_tokens, trace.n_tokens)
    ]
    found = np.array(evaluate(code, sent))
    for row, (tooltips, texts, beside) in zip(weights.tolist(), found.mT, strict=True):
        assert tooltips.tolist() == [f"{w:.3f}" for w in row]
        assert texts.tolist() == [f"{w:.2f}" if w < 0.995 else "1" for w in row]
        assert beside.tolist() == [f"{w:.2f}" if w >= 0.01 else "<0.01" for w in row]
    exact = exact_patterns(bundled, trace.token_ids)[:, :, *cells].reshape(weights.shape)
    # The precision of float32: 5e-6, as the README says.
    np.testing.assert_allclose(found[..., 0].astype(float), exact, atol=0.5e-3 + 5e-6, rtol=0)
    assert (found[..., 0] == np.char.mod("%.3f", exact)).mean() > 0.999


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
    np.testing.assert_allclose(found[2], weights, atol=0.5 / 64000 + 1e-7)
    assert found[3] == 3


def test_a_head_is_written_and_read_alike() -> None:
    heads = [Head(0, 0), Head(5, 1), Head(47, 24)]
    code = """import { headKey, headLabel, parseHead } from "#app/browser/head_name.js";
    result = data.map(([layer, head]) => [headLabel({ layer, head }), headKey({ layer, head })]);
    result.push(result.flat().map((text) => Object.values(parseHead(text))));"""
    *written, parsed = evaluate(code, heads)
    assert written == [[head.label, head.key] for head in heads]
    assert parsed == [list(head) for head in heads for _ in range(2)]

"""`mha-viz figure`: all heads, one head or lines, as a page, a picture or data."""

import argparse
from pathlib import Path

from mha_viz.analysis.dot_product import lines
from mha_viz.commands import browser, given, output
from mha_viz.commands.trace import about, traced
from mha_viz.export import (
    Drawn,
    Origin,
    Picture,
    Recipe,
    origin,
    page,
    pattern_data,
    patterns_data,
    rows_data,
)
from mha_viz.figures import notebook
from mha_viz.figures.grid import thumbnail_size
from mha_viz.figures.scale import Scale
from mha_viz.figures.theme import THEMES
from mha_viz.head import Head
from mha_viz.trace import Trace

MOST, THRESHOLD = 4, 0.05  # of lines, as on the Head page
DRAWN = (".svg", ".png")  # by a browser


def run(options: argparse.Namespace) -> int:
    """Writes the figure."""
    heads: list[Head] = options.head or []
    if options.lines and not heads:
        options.refuse("--lines needs --head; repeat it for several heads")
    if len(heads) > 1 and not options.lines:
        options.refuse("several heads can be drawn with --lines; without it, give one --head")
    text = given.needed_text(options)
    output.check_free(options.output, force=options.force)
    if options.output.suffix.lower() in DRAWN:
        browser.find()  # before any long work
    model = given.model(options)
    for head in heads:
        model.config.check_head(*head, model=options.model)
    trace = traced(model, text, options)
    facts = {
        **about(trace),
        **({"Heads": ", ".join(head.key for head in heads)} if heads else {}),
        "Colour": options.theme if options.lines else f"{options.scale}, {options.theme}",
    }
    picture = _picture(trace, heads, options)
    _write(picture, trace, origin(model.description, trace.text, facts), options)
    return 0


def _picture(trace: Trace, heads: list[Head], options: argparse.Namespace) -> Picture:
    style = {"theme": options.theme, "size": options.size}
    if options.lines:
        title = f"{trace.model}, lines of {', '.join(head.label for head in heads)}"
        recipe = Recipe(_draw_lines, {"trace": trace, "heads": heads, **style})
    elif heads:
        title = f"{trace.model}, {heads[0].label}"
        recipe = Recipe(
            _draw_head, {"trace": trace, "at": heads[0], "scale": options.scale, **style}
        )
    else:
        title = f"{trace.model}, all heads"
        recipe = Recipe(_draw_all, {"trace": trace, "scale": options.scale, **style})
    figure = recipe.make()[0]
    width, height = figure.layout.width, figure.layout.height
    return Picture(title, figure, recipe, ratio=None if options.lines else width / height)


def _draw_all(trace: Trace, scale: Scale, theme: str, size: int) -> Drawn:
    side = thumbnail_size(trace.n_heads)
    block = -(-trace.n_tokens // side)
    figure = notebook.all_heads(trace, scale=scale, theme=theme, size=size)
    ids = trace.token_ids
    return figure, patterns_data(trace.thumbnails(side), trace.tokens, block=block, token_ids=ids)


def _draw_head(trace: Trace, at: Head, scale: Scale, theme: str, size: int) -> Drawn:
    figure = notebook.one_head(trace, *at, scale=scale, theme=theme, size=size)
    return figure, pattern_data(
        trace.pattern(*at),
        trace.tokens,
        layer=at.layer,
        head=at.head,
        token_ids=trace.token_ids,
    )


def _draw_lines(trace: Trace, heads: list[Head], theme: str, size: int) -> Drawn:
    figure = notebook.head_view(
        trace, heads, most=MOST, threshold=THRESHOLD, theme=theme, size=size
    )
    rows = [
        [head.label, int(i), trace.tokens[i], int(j), trace.tokens[j], float(weight)]
        for head in heads
        for drawn in (lines(trace.pattern(*head), most=MOST, threshold=THRESHOLD),)
        for i, j, weight in zip(drawn.queries, drawn.keys, drawn.weights, strict=True)
    ]
    return figure, rows_data(["head", "from", "from token", "to", "to token", "weight"], rows)


def _write(picture: Picture, trace: Trace, facts: Origin, options: argparse.Namespace) -> None:
    path: Path = options.output
    kind, written = path.suffix.lower(), b""
    if kind in DRAWN:
        with given.progress("Drawing"):
            written = browser.with_origin(browser.image(picture.figure, kind), kind, facts)
    elif kind == ".html":
        theme = THEMES[options.theme]
        written = page(
            picture.title,
            [picture],
            tokens=trace.tokens,
            theme=theme,
            origin=facts,
            text=trace.text,
        ).encode("utf-8", "replace")
    elif kind == ".json":
        written = picture.json(facts).encode("utf-8", "replace")
    elif kind == ".csv":
        written = picture.csv(facts).encode("utf-8", "replace")
    else:
        written = picture.npz(facts)
    with output.file(path, force=options.force) as file:
        file.write(written)

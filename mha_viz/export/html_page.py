"""All figures of a page in one HTML file that opens offline and looks like the page."""

import html
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mha_viz.export.origin import Origin
from mha_viz.export.picture import Picture

if TYPE_CHECKING:
    from mha_viz.figures.theme import Theme

TALLEST = 540  # maximum height in pixels of a figure that has a ratio
NARROW = 1.6  # ratio of width to height, below which two figures share a line
WIDE = 1080  # minimum width in pixels of others; on a phone they scroll sideways
LABEL, AROUND = 13, 110  # pixels of a tick label, and of what is around a square matrix
STYLE = """
:root{color-scheme:SCHEME}
body{font:16px/1.5 system-ui,sans-serif;max-width:76rem;margin:1rem auto;padding:0 1rem;
 color:INK;background:PAGE}
h1{font-size:1.375rem}h2{font-size:1rem;margin:0}a{color:LINK}
main{display:grid;grid-template-columns:1fr 1fr;gap:1.5rem;margin-bottom:1.5rem}
figure{margin:0;grid-column:1/-1;min-width:0}
figure.narrow{grid-column:auto}
@media(max-width:52rem){main{display:block}figure{margin-bottom:1.5rem}}
figcaption{color:MUTED;font-size:.875rem;overflow-wrap:anywhere}
.box{overflow-x:auto}.box>div{margin:0 auto 0 0}
image{image-rendering:pixelated}
pre{white-space:pre-wrap;overflow-wrap:anywhere}
.tokens{display:flex;flex-wrap:wrap;gap:2px;margin:.5rem 0 1.5rem;max-height:16rem;overflow-y:auto}
.tokens span{background:SURFACE;border-radius:4px;padding:1px 5px;white-space:pre;
 font:.9375rem/1.4 monospace;unicode-bidi:isolate}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem;font-size:.875rem}
dt{color:MUTED}dd{margin:0;overflow-wrap:anywhere}
@media(max-width:34rem){dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:.4rem}}
"""


def page(
    title: str,
    pictures: Sequence[Picture],
    *,
    tokens: Sequence[str] = (),
    theme: "Theme",
    origin: Origin,
    text: str,
) -> str:
    """HTML with the tokens, the figures under their titles, the text, and the origin of both.

    plotly.js is inside the file, once, before the first figure.
    """
    name = html.escape(title)
    strip = "".join(f"<span>{html.escape(token)}</span>" for token in tokens)
    parts = [_figure(picture, first=number == 0) for number, picture in enumerate(pictures)]
    rows = (
        f"<dt>{html.escape(name)}</dt><dd>{_linked(str(value))}</dd>"
        for name, value in origin.items()
        if name != "Text"  # it is above
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{name}</title><style>{_style(theme)}</style></head><body><h1>{name}</h1>"
        f'{f"""<div class="tokens">{strip}</div>""" if strip else ""}<main>{"".join(parts)}</main>'
        f"<h2>Text</h2><pre>{html.escape(text)}</pre>"
        f"<h2>How this was made</h2><dl>{''.join(rows)}</dl></body></html>"
    )


def _style(theme: "Theme") -> str:
    colours: Mapping[str, str] = {
        "SCHEME": theme.name, "INK": theme.ink, "PAGE": theme.page, "LINK": theme.link,
        "MUTED": theme.muted, "SURFACE": theme.surface,
    }  # fmt: skip
    style = STYLE
    for name, colour in colours.items():
        style = style.replace(name, colour)
    return style


def _figure(picture: Picture, *, first: bool) -> str:
    config = {"displaylogo": False, "displayModeBar": False, "responsive": True}
    drawn = picture.figure.to_html(
        full_html=False, include_plotlyjs=first, config=config, default_height="100%"
    )
    size = f"min-width:{picture.min_width:g}px;height:{picture.height:g}px"
    if picture.ratio:
        size = f"aspect-ratio:{picture.ratio:.4f};max-width:{TALLEST * picture.ratio:.0f}px"
        size += f";min-width:{_least_width(picture)}px"
    narrow = ' class="narrow"' if picture.ratio and picture.ratio < NARROW else ""
    return (
        f"<figure{narrow}><h2>{html.escape(picture.title)}</h2>"
        f'<div class="box"><div style="{size}">{drawn}</div></div>'
        f"<figcaption>{html.escape(picture.caption)}</figcaption></figure>"
    )


def _least_width(picture: Picture) -> int:
    """The width in pixels of a figure with a ratio, below which its labels would touch."""
    if picture.ratio and picture.ratio >= NARROW:
        return picture.min_width or WIDE
    axes = (picture.figure.layout.xaxis, picture.figure.layout.yaxis)
    return LABEL * max(len(axis.ticktext or ()) for axis in axes) + AROUND


def _linked(fact: str) -> str:
    shown = html.escape(fact)
    is_address = fact.startswith(("http://", "https://")) and not any(map(str.isspace, fact))
    return f'<a href="{shown}">{shown}</a>' if is_address else shown

"""All figures of a page in one HTML file that opens offline."""

import html
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version

from mha_viz.export.picture import Picture

PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "plotly", "streamlit")
STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:72rem;margin:1rem auto;padding:0 1rem}"
    "figure{margin:1rem 0}pre{white-space:pre-wrap;overflow-wrap:anywhere}"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem}"
    "dd{margin:0;overflow-wrap:anywhere}"
)


def page(title: str, pictures: Sequence[Picture], facts: Mapping[str, object], text: str) -> str:
    """HTML with the figures and their captions, the text, and facts about how they were made.

    plotly.js is inside the file, once, before the first figure.
    """
    parts = [_figure(picture, first=number == 0) for number, picture in enumerate(pictures)]
    rows = (
        f"<dt>{html.escape(name)}</dt><dd>{_linked(str(value))}</dd>"
        for name, value in facts.items()
    )
    name = html.escape(title)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{name}</title><style>{STYLE}</style></head><body>"
        f"<h1>{name}</h1>{''.join(parts)}<h2>Text</h2><pre>{html.escape(text)}</pre>"
        f"<h2>How this was made</h2><dl>{''.join(rows)}</dl></body></html>"
    )


def versions() -> dict[str, str]:
    """The versions of Python and of those of PACKAGES that are installed."""
    installed = {"Python": platform.python_version()}
    for name in PACKAGES:
        try:
            installed[name] = version(name)
        except PackageNotFoundError:
            continue
    return installed


def _figure(picture: Picture, *, first: bool) -> str:
    config = {"displaylogo": False, "responsive": True}
    drawn = picture.figure.to_html(full_html=False, include_plotlyjs=first, config=config)
    return f"<figure>{drawn}<figcaption>{html.escape(picture.caption)}</figcaption></figure>"


def _linked(fact: str) -> str:
    shown = html.escape(fact)
    is_address = fact.startswith(("http://", "https://")) and not any(map(str.isspace, fact))
    return f'<a href="{shown}">{shown}</a>' if is_address else shown

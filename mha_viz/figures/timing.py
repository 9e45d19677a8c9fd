"""The time of two implementations of a layer over the number of heads."""

from collections.abc import Sequence

import plotly.graph_objects as go

from mha_viz.figures.base import Spec, Style, hover
from mha_viz.figures.marks import line
from mha_viz.figures.theme import NORMAL, TextSizes, Theme


def timing_chart(
    heads: Sequence[int],
    fused: Sequence[float],
    loop: Sequence[float],
    theme: Theme,
    *,
    all_heads: Sequence[int],
    sizes: TextSizes = NORMAL,
) -> go.Figure:
    """Milliseconds of a fused projection and of a loop over heads, for each number of heads.

    `heads` are the numbers timed so far, of `all_heads`.
    """
    style = Style(theme, sizes)
    x = [list(all_heads).index(n) for n in heads]
    border = {"showline": True, "linecolor": theme.hairline}
    counts = {"tickvals": list(range(len(all_heads))), "ticktext": [str(n) for n in all_heads]}
    longest = max([*fused, *loop, 1.0])
    return style.figure(
        _line("loop over heads", x, loop, theme.control, style),
        _line("fused projection", x, fused, theme.accent, style),
        margin={"l": 52, "r": 150, "t": 10, "b": 46},
        xaxis=style.axis("heads H", range=[-0.3, len(all_heads) - 0.7]) | counts | border,
        yaxis=style.axis("milliseconds", grid=True, range=[0, 1.12 * longest], nticks=5) | border,
    )


def _line(name: str, x: list[int], y: Sequence[float], colour: str, style: Style) -> Spec:
    """The times with markers; the last one carries the name."""
    names = [""] * (len(x) - 1) + [f"  {name}"] if x else []
    points = {"mode": "lines+markers+text", "marker": {"size": 7, "color": colour}}
    labels = {"text": names, "textposition": "middle right", "textfont": style.ink(1)}
    text = {"hoverinfo": "all", "cliponaxis": False} | hover(f"{name}: %{{y:.1f}} ms")
    return line(x, list(y), colour, 2.5, name=name) | points | labels | text

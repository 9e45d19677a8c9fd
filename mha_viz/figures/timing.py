"""Two ways against each other: time over the number of heads."""

from collections.abc import Sequence

import plotly.graph_objects as go

from mha_viz.figures.theme import NORMAL, SANS, Theme, Type


def race_chart(
    heads: Sequence[int],
    fused: Sequence[float],
    listed: Sequence[float],
    theme: Theme,
    *,
    all_heads: Sequence[int],
    sizes: Type = NORMAL,
) -> go.Figure:
    """Milliseconds of both ways for each number of heads done so far, of `all_heads` to come."""
    places = {n: i for i, n in enumerate(all_heads)}
    x = [places[n] for n in heads]
    data = [
        _line(x, listed, "a list of heads", theme.control, sizes, theme),
        _line(x, fused, "one product for all", theme.accent, sizes, theme),
    ]
    font = {"size": sizes.tick, "color": theme.muted}
    axis = {
        "fixedrange": True, "showgrid": False, "zeroline": False, "tickfont": font,
        "linecolor": theme.hairline, "title": {"font": {"size": sizes.note, "color": theme.muted}},
    }  # fmt: skip
    top = max([*fused, *listed, 1.0]) * 1.12
    layout = {
        "template": "none", "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 52, "r": 150, "t": 10, "b": 46}, "dragmode": False, "showlegend": False,
        "font": {"family": SANS, "color": theme.ink},
        "hoverlabel": {"bgcolor": theme.surface, "bordercolor": theme.query,
                       "font": {"family": SANS, "size": sizes.tick + 1, "color": theme.ink}},
        "xaxis": axis | {
            "range": [-0.3, len(all_heads) - 0.7], "tickvals": list(range(len(all_heads))),
            "ticktext": [str(n) for n in all_heads],
            "title": axis["title"] | {"text": "heads H"},  # type: ignore[operator]
        },
        "yaxis": axis | {
            "range": [0, top], "showgrid": True, "gridcolor": theme.hairline, "nticks": 5,
            "title": axis["title"] | {"text": "milliseconds"},  # type: ignore[operator]
        },
    }  # fmt: skip
    return go.Figure(data=data, layout=layout)


def _line(
    x: Sequence[int], y: Sequence[float], name: str, colour: str, sizes: Type, theme: Theme
) -> dict[str, object]:
    labels = [""] * (len(x) - 1) + [f"  {name}"] if x else []
    return {
        "type": "scatter", "mode": "lines+markers+text", "x": list(x), "y": list(y), "name": name,
        "text": labels, "textposition": "middle right", "cliponaxis": False,
        "textfont": {"size": sizes.note + 1, "color": theme.ink},
        "line": {"color": colour, "width": 2.5}, "marker": {"size": 7, "color": colour},
        "hovertemplate": f"{name}: %{{y:.1f}} ms<extra></extra>",
    }  # fmt: skip

"""Every figure is drawn from one base, in the colours of its theme, and no text of it is markup."""

import importlib
import inspect
import json
import pkgutil
from collections.abc import Iterator
from typing import Any

import plotly.graph_objects as go
import pytest
from support.figure_examples import EVIL, EXAMPLES, SAFE

from mha_viz import figures
from mha_viz.figures.base import CLEAR, Style
from mha_viz.figures.theme import DARK, LIGHT, MONO, NORMAL, SANS, STAGE, TextSizes, Theme

NO_TEXT = {"dot_product_figure", "head_grid", "sharing_figure", "storage_figure"}
NO_TEXT |= {"contributions_figure", "timing_chart"}

every_figure = pytest.mark.parametrize("draw", EXAMPLES, ids=lambda draw: draw.func.__name__)
every_style = pytest.mark.parametrize(
    ("theme", "sizes"), [(LIGHT, NORMAL), (DARK, NORMAL), (LIGHT, STAGE)]
)


def public_figures() -> Iterator[Any]:
    """The functions of mha_viz.figures that return a figure, but those that only add a title."""
    for module in pkgutil.iter_modules(figures.__path__):
        if module.name == "notebook":
            continue
        members = vars(importlib.import_module(f"mha_viz.figures.{module.name}"))
        for name, member in members.items():
            public = inspect.isfunction(member) and not name.startswith("_")
            if public and inspect.get_annotations(member).get("return") is go.Figure:
                yield member


def leaves(part: object, path: str = "") -> Iterator[tuple[str, object]]:
    """The values of a figure's JSON with their paths."""
    if isinstance(part, dict):
        for key, value in part.items():
            yield from leaves(value, f"{path}.{key}")
    elif isinstance(part, list):
        for value in part:
            yield from leaves(value, path)
    else:
        yield path, part


def drawn(draw: Any, theme: Theme, sizes: TextSizes = NORMAL) -> list[tuple[str, object]]:
    return list(leaves(json.loads(draw(theme=theme, sizes=sizes).to_json())))


def test_every_public_figure_has_an_example() -> None:
    assert {draw.func for draw in EXAMPLES} == set(public_figures())


@every_figure
@every_style
def test_a_figure_has_the_layout_of_the_base(draw: Any, theme: Theme, sizes: TextSizes) -> None:
    layout = draw(theme=theme, sizes=sizes).layout
    assert layout.paper_bgcolor == layout.plot_bgcolor == CLEAR
    assert layout.template.layout.to_plotly_json() == {}
    assert (layout.font.family, layout.font.color) == (SANS, theme.ink)
    assert layout.hovermode == "closest"
    label = layout.hoverlabel
    assert (label.bgcolor, label.bordercolor) == (theme.surface, theme.query)
    assert label.font.to_plotly_json() == Style(theme, sizes).mono(1)
    assert layout.margin.to_plotly_json().keys() == {"l", "r", "t", "b"}


@every_figure
@every_style
def test_a_figure_has_the_fonts_of_its_style(draw: Any, theme: Theme, sizes: TextSizes) -> None:
    found = drawn(draw, theme, sizes)
    assert {value for path, value in found if path.endswith(".family")} <= {SANS, MONO}
    allowed = {*range(sizes.text - 1, sizes.text + 3), sizes.cell, sizes.cell - 1}
    assert {value for path, value in found if path.endswith("font.size")} <= allowed


@every_figure
def test_a_figure_has_no_colour_of_the_other_theme(draw: Any) -> None:
    for theme, other in ((LIGHT, DARK), (DARK, LIGHT)):
        own, foreign = (
            {colour for _, colour in leaves(vars_of(one)) if str(colour).startswith("#")}
            for one in (theme, other)
        )
        found = {str(value).upper() for _, value in drawn(draw, theme)}
        assert not found & (foreign - own)


def vars_of(theme: Theme) -> dict[str, object]:
    values = {name: getattr(theme, name) for name in theme.__slots__}
    return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}


@every_figure
def test_text_is_never_markup(draw: Any) -> None:
    # `legendgroup` is not drawn.
    texts = [str(value) for path, value in drawn(draw, LIGHT) if not path.endswith(".legendgroup")]
    assert not any(EVIL in text or "$x$" in text for text in texts)
    if draw.func.__name__ not in NO_TEXT:
        assert any(SAFE in text for text in texts)

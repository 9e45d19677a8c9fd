"""A script holds what its figure needs, and nothing else; run, it makes the same figure."""

import math

import numpy as np
import plotly.graph_objects as go
import pytest

from mha_viz.export import Drawn, Given, Recipe, columns_data
from mha_viz.head import Head


def _draw(xs: list[float], at: Head, text: str) -> Drawn:
    """A figure of some numbers."""
    ys = [math.sqrt(x) for x in xs]
    figure = go.Figure(go.Scatter(x=xs, y=ys, name=f"{at.label}, {text}"))
    data = columns_data(x=xs, root=np.array(ys))
    return figure, data


def _recipe(**given: object) -> Recipe:
    values = {
        "n": 3,
        "unused": Given(None, "never(computed)"),
        "xs": Given([0.0, 1.0, 2.0], "list(map(float, range(n)))"),
        "at": Head(1, 2),
        "text": 'It said "so"\n\\ and # went.',
    }
    return Recipe(_draw, values | given)


def _run(script: str, monkeypatch: pytest.MonkeyPatch) -> dict:
    monkeypatch.setattr(go.Figure, "show", lambda figure: None)
    made: dict = {}
    exec(compile(script, "script", "exec"), made)
    return made


def test_a_script_makes_the_figure_and_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    figure, data = _recipe().make()
    made = _run(_recipe().script("A\ntitle", {"Model": "m"}), monkeypatch)
    assert made["figure"] == figure
    assert made["data"].csv() == data.csv()


@pytest.mark.parametrize("text", ["", "'\"", "\ud800", "line\u2028end", "x" * 500, "a\tb\\n"])
def test_any_text_is_an_argument(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _run(_recipe(text=text).script("t"), monkeypatch)["text"] == text


def test_a_script_reads_as_a_person_would_write_it() -> None:
    lines = _recipe().script("A title").splitlines()
    assert lines[:2] == ["# A title", "#"]
    assert "import math" in lines
    assert "from mha_viz.export import columns_data" in lines
    assert lines.index("n = 3") < lines.index("xs = list(map(float, range(n)))")
    assert "at = Head(layer=1, head=2)" in lines
    assert not [line for line in lines if "unused" in line or line.startswith("return")]
    assert lines[-1] == "figure.show()"


def test_a_recipe_that_cannot_be_made_again_says_why() -> None:
    recipe = Recipe(_draw, {}, "It uses an uploaded file, mine.txt.")
    script = recipe.script("A title")
    assert "# No script can reproduce this figure. It uses an uploaded file" in script
    assert compile(script, "script", "exec")

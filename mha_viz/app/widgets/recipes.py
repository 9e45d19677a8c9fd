"""Recipes of figures, made from the view; the export panel writes them as files and scripts."""

from collections.abc import Callable
from typing import Any

from mha_viz.app.view import View
from mha_viz.checkpoints import load as load  # the scripts of models use it
from mha_viz.export import Drawn, Given, Recipe
from mha_viz.figures.theme import DARK, LIGHT, NORMAL, STAGE
from mha_viz.model import Model
from mha_viz.trace import Trace

NAMED = {"LIGHT": LIGHT, "DARK": DARK, "NORMAL": NORMAL, "STAGE": STAGE}


def recipe(view: View, draw: Callable[..., Drawn], *, cannot: str = "", **given: Any) -> Recipe:
    """The recipe of a figure: `draw` with the arguments `given` and those that the view holds.

    The view holds model, trace, layer, head, position, window, scale, dim_sink, theme and sizes. A
    value of `given` that a script should compute again is a `Given`.
    """
    arguments: dict[str, Any] = {
        "model": loaded(view.source, view.model, view.device),
        "text": view.trace.text,
    }
    arguments["trace"] = traced(view.trace)
    for name in ("layer", "head", "window", "scale", "dim_sink"):
        arguments[name] = getattr(view, name)
    arguments["position"] = view.token
    for name in ("theme", "sizes"):
        value = getattr(view, name)
        constant = next(each for each, named in NAMED.items() if named is value)
        arguments[name] = Given(value, constant, __name__)
    return Recipe(draw, arguments | given, cannot)


def loaded(source: str, model: Model, device: str | None = None) -> Given:
    """A model as scripts load it."""
    where = f", device={device!r}" if device else ""
    template = ".with_template()" if model.template else ""
    return Given(model, f"load({source!r}{where}){template}", __name__)


def traced(trace: Trace, model: str = "model", text: str = "text") -> Given:
    """A trace as scripts make it, from the arguments of these names."""
    cut = "" if trace.cut == "end" else f", cut={trace.cut!r}"
    return Given(trace, f"{model}.trace({text}{cut})")

"""A figure as a function and its arguments, and the Python script that makes the same figure.

The function that draws a figure on a page is ordinary code of this package, so its own source is
the script: the arguments come first, then the body, then `figure.show()`.
"""

import ast
import inspect
import pprint
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass
from functools import cache
from typing import Any

import plotly.graph_objects as go

from mha_viz.export.data import Data
from mha_viz.export.origin import Origin, comments

Drawn = tuple[go.Figure, Data]
WIDTH = 96  # characters of a line
APP = "mha_viz.app"  # its helpers are copied into the script, which needs no Streamlit


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """The value of an argument, and an expression that computes the value again.

    The expression may refer to other arguments, and to names in the module of the drawing function
    or in `module`.
    """

    value: Any = field(repr=False)
    code: str
    module: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """The function that draws a figure and returns its data, and its arguments by name.

    Arguments that `draw` does not accept are only used in the expressions of others. `draw` ends
    with `return figure, data`. `cannot` says why no script can reproduce the figure, if none can.
    """

    draw: Callable[..., Drawn]
    given: Mapping[str, Any]
    cannot: str = ""

    def make(self) -> Drawn:
        """The figure and its data."""
        taken = inspect.signature(self.draw).parameters
        given = {name: value for name, value in self.given.items() if name in taken}
        return self.draw(**{n: v.value if isinstance(v, Given) else v for n, v in given.items()})

    def script(self, title: str, origin: Origin | None = None) -> str:
        """The script, which defines `figure` and `data`, a `Data` with the content of the files."""
        said = [line for line in comments(origin or {}) if not line.startswith("# Text: ")]
        heading = "\n".join([f"# {' '.join(title.split())}", "#", *said, ""])
        if self.cannot:
            return f"{heading}\n# No script can reproduce this figure. {self.cannot}\n"
        return f"{heading}\n{_Writer(self).code()}\nfigure.show()\n"


class _Writer:
    """Collects what the body of the drawing function needs: imports, helpers and arguments."""

    def __init__(self, recipe: Recipe) -> None:
        self.draw = recipe.draw
        self.given = recipe.given
        self.imports: set[str] = set()
        self.helpers: dict[str, None] = {}  # the source of what the app defines, in order
        self.needed: dict[str, str] = {}  # the lines of arguments, each after those it needs

    def code(self) -> str:
        """The script without its heading."""
        body = _body(self.draw)
        self._resolve(body, self.draw.__module__)
        parts = [
            "\n".join(_sorted(self.imports)),
            *(source if "\n" not in source else f"\n{source}\n" for source in self.helpers),
            "\n".join(self.needed.values()),
            body,
        ]
        return "\n".join(f"{part}\n" for part in parts if part)

    def _resolve(self, code: str, module: str) -> None:
        """Finds where each free name of code from a module comes from."""
        defined = _definitions(self.draw.__module__) | _definitions(module)
        names = _free_names(ast.parse(code))
        for name in [*(n for n in self.given if n in names), *names]:
            if name in self.given:
                self._argument(name)
            elif name in defined:
                self._definition(name, *defined[name])

    def _argument(self, name: str) -> None:
        if name in self.needed:
            return
        value = self.given[name]
        if isinstance(value, Given):
            self._resolve(value.code, value.module or self.draw.__module__)
        else:
            self.imports.update(_imports_of(value))
        self.needed[name] = _assigned(name, value)

    def _definition(self, name: str, module: str, code: str) -> None:
        if not module.startswith(APP):
            self.imports.add(code)
        elif code.startswith(("import ", "from ")):
            self._definition(name, *_definitions(module)[name])
        elif code not in self.helpers:
            self.helpers[code] = None  # in case it calls itself
            self._resolve(code, module)
            del self.helpers[code]
            self.helpers[code] = None


@cache
def _definitions(module: str) -> dict[str, tuple[str, str]]:
    """A module's names: for each, the module that defines it, and its import line or source."""
    source = inspect.getsource(sys.modules[module])
    found: dict[str, tuple[str, str]] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            start = f"from {node.module} import" if isinstance(node, ast.ImportFrom) else "import"
            for part in node.names:
                renamed = part.asname not in (None, part.name)
                line = f"{start} {part.name}" + (f" as {part.asname}" if renamed else "")
                origin = getattr(node, "module", None) or part.name
                found[part.asname or part.name] = (origin, line)
    for node in ast.parse(source).body:
        segment = ast.get_source_segment(source, node) or ""
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            lines = source.splitlines()[first - 1 : node.end_lineno]
            found[node.name] = (module, "\n".join(lines))
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            names = [part.id for part in ast.walk(target) if isinstance(part, ast.Name)]
            found |= dict.fromkeys(names, (module, segment))
    return found


def _sorted(imports: Iterable[str]) -> list[str]:
    """Import lines in order, with one line for all names from a module."""
    modules = [line for line in imports if line.startswith("import")]
    pairs = [line[5:].split(" import ") for line in imports if line.startswith("from")]
    names: dict[str, list[str]] = {}
    for module, name in sorted(pairs):
        names.setdefault(module, []).append(name)
    return sorted(modules) + [f"from {m} import {', '.join(some)}" for m, some in names.items()]


def _body(function: Callable[..., Any]) -> str:
    """The statements of a function that ends with `return figure, data`."""
    source = textwrap.dedent(inspect.getsource(function))
    (defined,) = ast.parse(source).body
    assert isinstance(defined, ast.FunctionDef)
    statements = defined.body[1:] if ast.get_docstring(defined) else defined.body
    last = statements[-1]
    assert isinstance(last, ast.Return)
    assert isinstance(last.value, ast.Tuple)
    lines = source.splitlines()[statements[0].lineno - 1 : last.lineno - 1]
    for name, part in zip(("figure", "data"), last.value.elts, strict=True):
        text = str(ast.get_source_segment(source, part))
        if text != name:
            lines.append(f"    {name} = {text}")
    return textwrap.dedent("\n".join(lines))


def _free_names(tree: ast.AST) -> list[str]:
    """The names that the code uses without defining them, in order."""
    nodes = list(ast.walk(tree))
    own = {node.arg for node in nodes if isinstance(node, ast.arg)}
    names = [node for node in nodes if isinstance(node, ast.Name)]
    own |= {node.id for node in names if isinstance(node.ctx, ast.Store)}
    return list(dict.fromkeys(node.id for node in names if node.id not in own))


def _assigned(name: str, value: Any) -> str:
    """A line that gives the name its value."""
    if isinstance(value, Given):
        return f"{name} = {value.code}"
    if isinstance(value, str) and value.isprintable() and not set(value) & {'"', "\\"}:
        return f'{name} = "{value}"'
    written = pprint.pformat(value, width=WIDTH - len(name) - 3, compact=True, sort_dicts=False)
    return f"{name} = {written}"


def _imports_of(value: Any) -> Iterator[str]:
    """The imports that the `repr` of a value needs."""
    if isinstance(value, Mapping):
        value = [*value.keys(), *value.values()]
    elif is_dataclass(value) or hasattr(value, "_fields"):
        yield f"from {type(value).__module__} import {type(value).__qualname__}"
        value = [getattr(value, name) for name in getattr(value, "_fields", ())] or [
            getattr(value, name) for name in getattr(value, "__dataclass_fields__", ())
        ]
    if isinstance(value, list | tuple | set | frozenset):
        for part in value:
            yield from _imports_of(part)

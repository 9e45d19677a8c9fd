"""What a piece of code computes, line by line, recorded while it runs."""

import ast
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import dropwhile, takewhile
from types import FrameType, ModuleType
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

R = TypeVar("R")


@dataclass(frozen=True, slots=True, eq=False)
class ExecutedLine:
    """A line that was executed: the local names before and after it, and what it returned."""

    number: int  # in its file
    before: Mapping[str, Any] = field(repr=False)
    after: Mapping[str, Any] = field(repr=False)
    returned: Any = field(default=None, repr=False)


@dataclass(frozen=True)
class Code:
    """Functions and classes of one module, as the text that a reader is shown."""

    parts: tuple[Callable[..., Any], ...]

    @cached_property
    def text(self) -> str:
        """The source of the parts, with an empty line between them."""
        return "\n\n".join(inspect.getsource(part).rstrip() for part in self.parts)

    @cached_property
    def tree(self) -> ast.Module:
        """The text, parsed."""
        return ast.parse(self.text)

    @cached_property
    def line_numbers(self) -> list[int]:
        """The number in its file of each line of the text; 0 for the empty lines between parts."""
        found: list[int] = []
        for part in self.parts:
            lines, first = inspect.getsourcelines(part)
            found += [0] * bool(found) + list(range(first, first + len(lines)))
        return found

    def span(self, expression: str) -> tuple[int, int, int, int]:
        """Where an expression is in the text: its first line and column, its last line and column.

        Lines count from 1, columns from 0. Raises LookupError if the text does not contain it.
        """
        wanted = ast.dump(ast.parse(expression, mode="eval").body)
        for node in ast.walk(self.tree):
            if isinstance(node, ast.expr) and ast.dump(node) == wanted:
                end_line, end_column = node.end_lineno or 0, node.end_col_offset or 0
                return node.lineno, node.col_offset, end_line, end_column
        raise LookupError(f"The code has no {expression!r}.")

    def statement(self, line: int) -> tuple[int, int]:
        """The first and the last line of the innermost statement that `line` is part of."""
        ranges = [
            (node.lineno, node.end_lineno or node.lineno)
            for node in ast.walk(self.tree)
            if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0)
        ]
        return min(ranges, key=lambda lines: lines[1] - lines[0])

    def executed(self, lines: Sequence[ExecutedLine], first: int, last: int) -> ExecutedLine | None:
        """What lines `first` to `last` of the text first did; None if they did not run."""
        numbers = set(self.line_numbers[first - 1 : last])
        later = dropwhile(lambda line: line.number not in numbers, lines)
        ran = list(takewhile(lambda line: line.number in numbers, later))
        return replace(ran[-1], before=ran[0].before) if ran else None

    def results(self, lines: Sequence[ExecutedLine]) -> dict[int, str]:
        """For each line of the text that ends a statement, the shapes that the statement gave."""
        shapes = {}
        for node in _statements(self.tree):
            last = node.end_lineno or node.lineno
            if ran := self.executed(lines, node.lineno, last):
                text = described(list(_given(node, ran)))
                if text:
                    shapes[last] = text
        return shapes


def traced(module: ModuleType, run: Callable[[], R]) -> tuple[R, list[ExecutedLine]]:
    """What `run` returns, and the lines of `module` that it executed, in order."""
    lines: list[ExecutedLine] = []

    def of_frame(frame: FrameType, event: str, value: Any) -> Any:
        code = frame.f_code
        if code.co_filename != module.__file__ or code.co_name.startswith("<"):
            return None
        at, before = 0, dict[str, Any]()

        def of_line(frame: FrameType, event: str, value: Any) -> Any:
            nonlocal at, before
            if event in ("line", "return"):
                after = dict(frame.f_locals)
                if at:
                    lines.append(ExecutedLine(at, before, after, value))
                at, before = frame.f_lineno, after
            return of_line

        return of_line

    previous = sys.gettrace()
    sys.settrace(of_frame)
    try:
        return run(), lines
    finally:
        sys.settrace(previous)


def described(values: Sequence[Any]) -> str:
    """The shapes of tensors and arrays in words: “3 × [1, 8, 192]”; whole numbers as a list."""
    if values and all(isinstance(value, int) for value in values):
        return str(list(values)) if len(values) > 1 else str(values[0])
    shapes = [str(list(v.shape)) for v in values if isinstance(v, (Tensor, np.ndarray))]
    if len(shapes) > 1 and len(set(shapes)) == 1:
        return f"{len(shapes)} × {shapes[0]}"
    return ", ".join(shapes)


def _statements(tree: ast.AST) -> Iterator[ast.Assign | ast.Return]:
    return (node for node in ast.walk(tree) if isinstance(node, (ast.Assign, ast.Return)))


def _given(node: ast.Assign | ast.Return, ran: ExecutedLine) -> Iterator[Any]:
    """The values that a statement returned or gave names to."""
    if isinstance(node, ast.Return):
        yield ran.returned
        return
    for target in node.targets:
        for part in target.elts if isinstance(target, ast.Tuple) else [target]:
            if isinstance(part, ast.Name):
                yield ran.after.get(part.id)
            elif isinstance(part, ast.Attribute):
                value = getattr(ran.after["self"], part.attr, None)
                yield value.weight if isinstance(value, torch.nn.Linear) else value

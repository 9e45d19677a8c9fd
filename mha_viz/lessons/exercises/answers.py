"""The answers of exercises, computed on a layer: a choice is right if it has the answer's value.

All lines are evaluated by `expression.evaluate`, which refuses whatever is not tensor arithmetic.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from mha_viz.assets import ASSETS
from mha_viz.errors import ExerciseError, LineError
from mha_viz.lessons.exercises.layer import Layer, random_layer
from mha_viz.lessons.exercises.texts import WORDS, Choice, Exercise, read
from mha_viz.lessons.expression import evaluate

FOLDER = ASSETS / "exercises"
TOLERANCE = 1e-4  # of the largest number, for rounding in float32
BY_TORCH = "torch: "  # how messages begin that are torch's own
_TARGETS = re.compile(r"(?P<names>\w+(?:, \w+)*) = ")
_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True, slots=True)
class Shown:
    """An exercise on a layer, with its sizes filled in; texts are Markdown."""

    kind: str
    question: str
    code: str
    choices: tuple[str, ...]
    explanations: tuple[str, ...]
    right: int
    elsewhere: str = ""  # the sizes of the layer, if it is not the given one


@dataclass(frozen=True, slots=True)
class _Refused:
    """Stands for the value of a line that raises an error."""

    words: str


def load(name: str) -> tuple[Exercise, ...]:
    """The exercises of `assets/exercises/NAME.md`; none if there is no such file.

    Raises ExerciseError, with the number of the line, if the file is broken.
    """
    path = FOLDER / f"{name}.md"
    return parse(path.read_text(encoding="utf-8"), path.name) if path.is_file() else ()


@lru_cache(maxsize=64)
def parse(text: str, file: str) -> tuple[Exercise, ...]:
    """The exercises in a text, each with a single right choice on a random layer.

    Raises ExerciseError, with the number of the line.
    """
    found = tuple(read(text, file))
    for exercise in found:
        _usual(exercise)
    return found


def on_layer(exercise: Exercise, layer: Layer | None) -> Shown:
    """The exercise on a layer, or on a random one where the layer gives it no single answer.

    With one head or one token, for example, two choices can be equal. Explanations belong to
    choices, so the right choice has to be the same on every layer, too.
    """
    usual = _usual(exercise)
    if layer is not None and layer.plain:
        try:
            shown = _solved(exercise, layer)
        except ExerciseError:
            return usual
        if shown.right == usual.right:
            return shown
    return usual


@lru_cache(maxsize=256)
def _usual(exercise: Exercise) -> Shown:
    layer = random_layer()
    return replace(_solved(exercise, layer), elsewhere=layer.sizes)


def _solved(exercise: Exercise, layer: Layer) -> Shown:
    """The exercise on exactly this layer. Raises ExerciseError if it has no single answer there."""
    solution = _Solution(exercise, layer)
    right = [n for n, choice in enumerate(exercise.choices) if solution.is_right(choice)]
    if not right:
        raise exercise.wrong("no choice of this exercise has the value of its answer")
    if len(right) > 1:
        lines = " and ".join(str(exercise.choices[n].line) for n in right)
        raise exercise.wrong(f"the choices in lines {lines} are both right")
    choices = tuple(map(solution.shown, exercise.choices))
    if len(set(choices)) < len(choices):
        raise exercise.wrong("two choices of this exercise look the same")
    question = solution.filled(exercise.question, exercise.line)
    whys = tuple(solution.filled(choice.why, choice.line) for choice in exercise.choices)
    return Shown(exercise.kind, question, "\n".join(exercise.code), choices, whys, right[0])


class _Solution:
    """The values of an exercise on a layer."""

    def __init__(self, exercise: Exercise, layer: Layer) -> None:
        self.exercise = exercise
        self._before = layer.names(exercise.everything)
        for line in exercise.given:
            if isinstance(refused := _assign(line, self._before), _Refused):
                raise exercise.wrong(f"{line}: {refused.words}")
        self._storages = {_storage(v) for v in self._before.values() if isinstance(v, Tensor)}
        self._names, last = self._run(exercise.code if exercise.runs else ())
        # Code that raises an error ends there; what it would have defined has no value.
        self._stopped = last if isinstance(last, _Refused) else None
        self.answer = self._value(exercise.answer, exercise.line)

    def is_right(self, choice: Choice) -> bool:
        """Whether the choice has the value of the answer."""
        if choice.code == "error":
            return isinstance(self.answer, _Refused)
        if choice.code in WORDS:
            inside = isinstance(self.answer, Tensor) and _storage(self.answer) in self._storages
            return isinstance(self.answer, Tensor) and inside == (choice.code == "shared")
        return _same(self._value_of(choice), self.answer)

    def shown(self, choice: Choice) -> str:
        """The words of a choice, or else the line that it replaces, its code or its value."""
        if choice.shown:
            return self.filled(choice.shown, choice.line)
        if choice.code in WORDS:
            return WORDS[choice.code]
        if choice.replaces:
            return f"line {choice.replaces}: `{choice.code}`"
        value = self._value_of(choice)
        numbers = isinstance(value, _Refused) or (isinstance(value, Tensor) and value.ndim > 0)
        as_code = numbers or self.exercise.kind.startswith("which line")
        return f"`{choice.code}`" if as_code else written(value)

    def filled(self, text: str, line: int) -> str:
        """The text with the value of each expression in braces; `{error}` is the answer's error."""

        def value(found: re.Match[str]) -> str:
            if found[1] == "error" and isinstance(self.answer, _Refused):
                return self.answer.words.removeprefix(BY_TORCH)
            value = self._value(found[1], line)
            if isinstance(value, (_Refused, Tensor)) and getattr(value, "ndim", 1) > 0:
                raise self.exercise.wrong(f"{found[0]} is not a number or a shape", line)
            return written(value, grouped=not inside_code)

        parts = []
        for part in re.split("(`[^`]*`)", text):
            inside_code = part.startswith("`")
            parts.append(_PLACEHOLDER.sub(value, part))
        return "".join(parts)

    def _value_of(self, choice: Choice) -> Any:
        if not choice.replaces:
            return self._value(choice.code, choice.line)
        code = list(self.exercise.code)
        code[choice.replaces - 1] = choice.code
        return self._run(code)[1]

    def _value(self, code: str, line: int) -> Any:
        value = _evaluated(code, self._names)
        if isinstance(value, _Refused) and not value.words.startswith(BY_TORCH):
            if self._stopped is not None:
                return self._stopped
            raise self.exercise.wrong(f"{code}: {value.words}".rstrip("."), line)
        return value

    def _run(self, code: Sequence[str]) -> tuple[dict[str, Any], Any]:
        """The names after the code, and the value of its last line or of the one that fails."""
        names, value = dict(self._before), None
        for line in code:
            value = _assign(line, names)
            if isinstance(value, _Refused):
                if not value.words.startswith(BY_TORCH):
                    raise self.exercise.wrong(f"{line}: {value.words}".rstrip("."))
                break
        return names, value


def written(value: Any, *, grouped: bool = True) -> str:
    """A number or a shape in words; large numbers are grouped by thousands, if `grouped`."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, value))}]"
    if isinstance(value, Tensor):
        value = value.item()
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = (f"{value:,}" if grouped else str(value)) if isinstance(value, int) else f"{value:.3g}"
    return text.replace("-", "−") if grouped else text


def _assign(line: str, names: dict[str, Any]) -> Any:
    """The value of a line; the names before its equals sign are given it."""
    value = _evaluated(line, names)
    target = _TARGETS.match(line)
    if target is None or isinstance(value, _Refused):
        return value
    wanted = target["names"].split(", ")
    parts = value if len(wanted) > 1 else (value,)
    if not isinstance(parts, tuple) or len(parts) != len(wanted):
        return _Refused(f"the line does not give {len(wanted)} values")
    names.update(zip(wanted, parts, strict=True))
    return value


def _evaluated(line: str, names: Mapping[str, Any]) -> Any:
    try:
        return evaluate(line, names).value
    except LineError as error:
        return _Refused(str(error))


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _same(a: Any, b: Any) -> bool:
    """Whether two values are equal, numbers up to rounding."""
    if isinstance(a, Tensor) and isinstance(b, Tensor) and a.ndim:
        if a.shape != b.shape:
            return False
        a, b = a.double(), b.double()
        finite = b[b.isfinite()].abs()
        atol = TOLERANCE * float(finite.max()) if finite.numel() else 0.0
        return torch.allclose(a, b, rtol=0, atol=atol, equal_nan=True)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    a, b = _number(a), _number(b)
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return math.isclose(a, b, rel_tol=1e-5) or (math.isnan(a) and math.isnan(b))
    return False


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor) and value.ndim == 0 else value

"""The format of files with exercises; `assets/exercises/README.md` describes it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mha_viz.errors import ExerciseError

WORDS = {  # choices that are properties of the answer
    "error": "an error",
    "copied": "a copy: its numbers are in new memory",
    "shared": "no copy: the same numbers in the same memory",
}
_CHOICE = re.compile(
    r"- (?:line (?P<replaces>\d+) )?(?:`(?P<code>[^`]+)`|(?P<word>error|copied|shared))"
    r"(?: \*\*(?P<shown>.+?)\*\*)?: (?P<why>.+)"
)
_MARKED = re.compile(r"(?P<mark>Given|Answer): `(?P<code>[^`]+)`")
_BLOCK_STARTS = ("#", "- ", "```", "Given:", "Answer:")


@dataclass(frozen=True, slots=True)
class Choice:
    """One choice: an expression, a key of WORDS, or a line that replaces one of the code."""

    code: str
    shown: str  # words for it; "" if its code or its value is shown
    why: str
    replaces: int  # the number of the line, from 1; 0 for none
    line: int  # of the file


@dataclass(frozen=True, slots=True)
class Exercise:
    """A question, as a file holds it."""

    kind: str
    question: str
    code: tuple[str, ...]
    runs: bool  # whether the code is evaluated; if not, it is only shown
    given: tuple[str, ...]  # lines that define names, before the code
    answer: str
    choices: tuple[Choice, ...]
    file: str
    line: int

    @property
    def everything(self) -> str:
        """All its expressions and texts, to find the names in them."""
        choices = (part for c in self.choices for part in (c.code, c.shown, c.why))
        return "\n".join([*self.given, *self.code, self.answer, self.question, *choices])

    def wrong(self, what: str, line: int = 0) -> ExerciseError:
        """An error in this exercise, or in a line of it."""
        return _wrong(self.file, line or self.line, what)


@dataclass(slots=True)
class _Section:
    """What stands between two headings."""

    paragraphs: list[str] = field(default_factory=list)
    code: list[str] = field(default_factory=list)
    runs: bool = False
    given: list[str] = field(default_factory=list)
    answer: str = ""
    choices: list[Choice] = field(default_factory=list)


def read(text: str, file: str) -> Iterator[Exercise]:
    """The exercises of a file's text; `file` names it in errors.

    Raises ExerciseError, with the number of the line, for a text that does not have the format.
    """
    lines = text.splitlines()
    starts = [n for n, line in enumerate(lines) if line.startswith("## ")]
    if not starts:
        raise _wrong(file, 1, "there is no exercise; begin one with ## and its kind")
    common = _section(lines, 0, starts[0], file)
    if common.choices or common.answer:
        raise _wrong(file, 1, "an answer or a choice comes before the first ##")
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        section = _section(lines, start + 1, end, file)
        exercise = Exercise(
            kind=lines[start].removeprefix("## ").strip(),
            question="\n\n".join(section.paragraphs),
            code=tuple(section.code),
            runs=section.runs,
            given=(*common.given, *section.given),
            answer=section.answer,
            choices=tuple(section.choices),
            file=file,
            line=start + 1,
        )
        _check(exercise)
        yield exercise


def _check(exercise: Exercise) -> None:
    if not exercise.question:
        raise exercise.wrong("this exercise has no question")
    if not exercise.answer:
        raise exercise.wrong("this exercise has no line Answer: `expression`")
    if len(exercise.choices) < 2:
        raise exercise.wrong("this exercise has fewer than two choices")
    for choice in exercise.choices:
        if choice.replaces > (len(exercise.code) if exercise.runs else 0):
            what = f"the ```python code above has no line {choice.replaces} to replace"
            raise exercise.wrong(what, choice.line)


def _section(lines: Sequence[str], start: int, end: int, file: str) -> _Section:
    found = _Section()
    at = start
    while at < end:
        first, line = at, lines[at]
        at += 1
        if line.startswith("```"):
            close = next((n for n in range(at, end) if lines[n].startswith("```")), None)
            if close is None:
                raise _wrong(file, first + 1, "this code has no end; close it with ```")
            found.code, found.runs = list(lines[at:close]), line == "```python"
            at = close + 1
        elif line.startswith(("Given:", "Answer:")):
            _add_marked(found, line, file, first + 1)
        elif line.strip() and not line.startswith("#"):
            while at < end and lines[at].strip() and not lines[at].startswith(_BLOCK_STARTS):
                at += 1
            block = " ".join(part.strip() for part in lines[first:at])
            _add_block(found, block, file, first + 1)
    return found


def _add_marked(found: _Section, line: str, file: str, number: int) -> None:
    match = _MARKED.fullmatch(line.strip())
    if match is None:
        raise _wrong(file, number, "Given: and Answer: are followed by an expression in backticks")
    if match["mark"] == "Given":
        found.given.append(match["code"])
    elif found.answer:
        raise _wrong(file, number, "this exercise has a second Answer; leave one out")
    else:
        found.answer = match["code"]


def _add_block(found: _Section, block: str, file: str, number: int) -> None:
    """A choice, or a paragraph of the question."""
    if not block.startswith("- "):
        found.paragraphs.append(block)
        return
    match = _CHOICE.fullmatch(block)
    if match is None:
        raise _wrong(file, number, "a choice is written - `expression` **words**: explanation")
    code, replaces = match["code"] or match["word"], int(match["replaces"] or 0)
    found.choices.append(Choice(code, match["shown"] or "", match["why"], replaces, number))


def _wrong(file: str, line: int, what: str) -> ExerciseError:
    return ExerciseError(f"{file}, line {line}: {what}.")

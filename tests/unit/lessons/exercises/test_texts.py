"""Files with exercises: what is read, and which line of a broken file is named."""

import pytest

from mha_viz.errors import ExerciseError
from mha_viz.lessons.exercises.texts import read

GOOD = """# Notes for the teacher

Given: `s = module.scores`

## predict a shape

The first line
and the second.

```python
w = s.softmax(dim=-1)
```

Given: `a = x`
Answer: `w.shape`

- `(B, H, T, T)`: As many as scores,
  on two lines.
- line 1 `w = s` **no softmax**: It is missing.
- error: torch has nothing against it.
"""


def test_a_file_is_read() -> None:
    (exercise,) = read(GOOD, "a.md")
    assert exercise.kind == "predict a shape"
    assert exercise.question == "The first line and the second."
    assert (exercise.code, exercise.runs) == (("w = s.softmax(dim=-1)",), True)
    assert exercise.given == ("s = module.scores", "a = x")
    assert exercise.answer == "w.shape"
    shape, line, error = exercise.choices
    assert (shape.code, shape.why) == ("(B, H, T, T)", "As many as scores, on two lines.")
    assert (line.code, line.shown, line.replaces) == ("w = s", "no softmax", 1)
    assert (error.code, error.line) == ("error", 20)


@pytest.mark.parametrize(
    ("before", "after", "line", "words"),
    [
        ("## predict a shape\n", "", 1, "begin one with ##"),
        ("The first line\nand the second.\n", "", 5, "has no question"),
        ("Answer: `w.shape`", "", 5, "has no line Answer"),
        ("Answer: `w.shape`", "Answer: w.shape", 15, "in backticks"),
        ("Given: `a = x`", "Answer: `x`", 15, "a second Answer"),
        ("- error: torch has", "- error torch has", 20, "a choice is written"),
        ("- line 1 `w = s`", "- line 2 `w = s`", 19, "has no line 2"),
        ("```python", "```text", 19, "has no line 1"),
        ("```\n\nGiven", "\n\nGiven", 10, "has no end"),
        ("Given: `s = module.scores`", "- error: too early.", 1, "before the first ##"),
        (GOOD[GOOD.index("- line 1") :], "", 5, "fewer than two choices"),
    ],
)
def test_a_broken_file_is_refused_by_its_line(
    before: str, after: str, line: int, words: str
) -> None:
    assert before in GOOD
    with pytest.raises(ExerciseError, match=rf"^a\.md, line {line}: .*{words}.*\.$"):
        list(read(GOOD.replace(before, after, 1), "a.md"))

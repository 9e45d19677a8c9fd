"""Code that is recorded while it runs: the lines of the text, their statements and shapes."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from mha_viz.lessons import forms
from mha_viz.lessons.code_trace import Code, described, traced

SPLIT = Code((forms.split_heads, forms.merge_heads))


def test_the_text_is_the_source_with_an_empty_line_between_its_parts() -> None:
    lines = SPLIT.text.splitlines()
    assert lines[0].startswith("def split_heads")
    assert lines[3:5] == ["", "def merge_heads(z: Tensor) -> Tensor:"]
    source = Path(forms.__file__).read_text(encoding="utf-8").splitlines()
    for line, number in zip(lines, SPLIT.line_numbers, strict=True):
        assert line == (source[number - 1] if number else "")


def test_an_expression_is_found_where_it_is_written() -> None:
    line, start, last, end = SPLIT.span("t.view(B, T, H, C // H)")
    assert line == last
    assert SPLIT.text.splitlines()[line - 1][start:end] == "t.view(B, T, H, C // H)"
    assert SPLIT.statement(line) == (line, line)
    with pytest.raises(LookupError):
        SPLIT.span("t.view(B)")


def test_a_statement_over_two_lines_is_one() -> None:
    code = Code((forms.MultiHeadAttention,))
    line, *_ = code.span("t.view(B, T, self.H, self.d_h).transpose(1, 2)")
    assert code.statement(line) == (line, line + 1)


def test_each_line_has_the_shapes_that_it_gave() -> None:
    def run() -> torch.Tensor:
        return forms.merge_heads(forms.split_heads(torch.zeros(2, 5, 12), 3))

    out, lines = traced(forms, run)
    assert out.shape == (2, 5, 12)
    shapes = list(SPLIT.results(lines).values())
    assert shapes == ["[2, 5, 12]", "[2, 3, 5, 4]", "[2, 3, 5, 4]", "[2, 5, 12]"]
    first = SPLIT.executed(lines, 2, 2)
    assert first is not None
    assert "B" not in first.before
    assert first.after["B"] == 2
    assert SPLIT.executed([], 2, 2) is None


def test_tracing_ends_with_the_run_even_after_an_error() -> None:
    before = sys.gettrace()
    with pytest.raises(ValueError, match="not enough values"):
        traced(forms, lambda: forms.split_heads(torch.zeros(2), 3))
    assert sys.gettrace() is before


def test_shapes_are_described_in_a_few_words() -> None:
    t = torch.zeros(2, 3)
    assert described([t, t, t]) == "3 × [2, 3]"
    assert described([t, np.zeros(4)]) == "[2, 3], [4]"
    assert described([1, 8, 192]) == "[1, 8, 192]"
    assert described([8]) == "8"
    assert described(["no tensor"]) == ""

"""The figures of the Bugs part, each with its data."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch as torch  # for scripts

from mha_viz.app.pages.shapes.bug_runs import Comparison
from mha_viz.app.pages.shapes.bug_runs import measured as measured  # for scripts
from mha_viz.app.pages.shapes.bug_runs import run_both as run_both  # for scripts
from mha_viz.app.pages.shapes.bug_runs import texts_of as texts_of  # for scripts
from mha_viz.export import Data, Drawn, columns_data, rows_data
from mha_viz.figures.bug_list import BugLoss, bug_list
from mha_viz.figures.head_pieces import head_pieces
from mha_viz.figures.lines import Line, Ticks, line_chart
from mha_viz.figures.pattern_pair import pattern_pair
from mha_viz.figures.theme import TextSizes, Theme
from mha_viz.figures.top_tokens import top_tokens
from mha_viz.figures.trained_losses import trained_losses
from mha_viz.lessons.bug_effects import loss_whole as loss_whole  # for scripts
from mha_viz.lessons.bug_effects import row_of_merge, rows_of_head, softmax_gradient
from mha_viz.lessons.bug_training import CORRECT, Losses
from mha_viz.lessons.bug_training import stored_losses as stored_losses  # for scripts
from mha_viz.model import Model
from mha_viz.trace import Array, Trace

D_HEADS = (8, 16, 32, 64, 128)  # 64 is GPT-2's


def draw_list(
    model: Model, bugs: tuple[BugLoss, ...], right: float, bug: str, theme: Theme, sizes: TextSizes
) -> Drawn:
    """The loss with each bug."""
    uniform = math.log(model.config.vocab_size)
    figure = bug_list(bugs, right, uniform, theme, selected=bug, sizes=sizes)
    rows = [("none", right, right), *((each.name, each.whole, each.writing) for each in bugs)]
    data = rows_data(["bug", "loss read whole", "loss one token at a time"], rows)
    return figure, data


def draw_pieces(
    trace: Trace,
    T: int,
    bug: str,
    index: int,
    n_heads: int,
    kept: Sequence[int],
    n: int,
    theme: Theme,
    sizes: TextSizes,
) -> Drawn:
    """What a head, or the first merged row, is given: the first `n` pieces."""
    if bug == "no transpose":
        right, wrong = (rows_of_head(T, n_heads, index, each)[:n] for each in (None, bug))
    else:
        right, wrong = (row_of_merge(T, n_heads, 0, each)[:n] for each in (None, bug))
    named = [[(trace.tokens[p.token], kept[p.head]) for p in each] for each in (right, wrong)]
    first, second = named
    figure = head_pieces(first, second, theme, sizes=sizes)
    rows = [(*a, *b) for a, b in zip(first, second, strict=True)]
    data = rows_data(["right token", "right head", "wrong token", "wrong head"], rows)
    return figure, data


def draw_patterns(
    trace: Trace,
    T: int,
    comparison: Comparison,
    index: int,
    bug: str,
    theme: Theme,
    sizes: TextSizes,
) -> Drawn:
    """The selected head's pattern, right and wrong."""
    tokens, future = trace.tokens[:T], np.triu(np.ones((T, T), dtype=bool), 1)
    right = np.where(future, np.float32(np.nan), comparison.correct_patterns[index])
    wrong = comparison.patterns[index]
    if bug != "no mask":
        wrong = np.where(future, np.float32(np.nan), wrong)
    rows_are_tokens = bug != "no transpose"
    most = (most_of_last(right, tokens), most_of_last(wrong, tokens if rows_are_tokens else ()))
    figure = pattern_pair(right, wrong, tokens, theme, most=most, sizes=sizes)
    data = pair_data(right, wrong, tokens)
    return figure, data


def most_of_last(pattern: Array, tokens: Sequence[str]) -> str:
    """The key with the largest weight in the last row, by its token, or by its row."""
    key = int(np.nanargmax(pattern[-1]))
    name = tokens[key] if tokens else f"row {key}"
    return f"most on {name}: {pattern[-1, key]:.2f}"


def pair_data(right: Array, wrong: Array, tokens: Sequence[str]) -> Data:
    """Both patterns; the table has a row for each weight."""

    def table() -> tuple[list[str], list[list[object]]]:
        places = np.argwhere(~np.isnan(wrong)).tolist()
        rows: list[list[object]] = [
            [i, tokens[i], j, tokens[j], float(np.nan_to_num(right[i, j])), float(wrong[i, j])]
            for i, j in places
        ]
        return ["query", "query token", "key", "key token", "right", "wrong"], rows

    patterns = {"right": np.nan_to_num(right), "wrong": np.nan_to_num(wrong)}
    return Data(patterns | {"tokens": np.array(tokens)}, table)


def draw_next(model: Model, comparison: Comparison, theme: Theme, sizes: TextSizes) -> Drawn:
    """The most likely next tokens, right and wrong."""
    lists = [("right", comparison.right_top), ("wrong", comparison.wrong_top)]
    named = [
        (name, [(model.read([token_id])[0].label, p) for token_id, p in top]) for name, top in lists
    ]
    figure = top_tokens(named, theme, sizes=sizes)
    rows = [(name, *guess) for name, guesses in named for guess in guesses]
    data = rows_data(["model", "token", "probability"], rows)
    return figure, data


def draw_trained(curves: Mapping[str, Losses], bug: str, theme: Theme, sizes: TextSizes) -> Drawn:
    """The losses of the character model during training, without the bug and with it."""
    right, wrong = curves[CORRECT], curves[bug]
    apart = max(abs(a - b) for a, b in zip(wrong.whole, wrong.writing, strict=True)) > 0.01
    lines = [Line("right, both ways", right.whole, theme.ink)]
    if apart:
        lines += [
            Line("wrong, read whole", wrong.whole, theme.accent),
            Line("wrong, as it writes", wrong.writing, theme.warn),
        ]
    else:
        lines.append(Line("wrong, both ways", wrong.whole, theme.accent))
    figure = trained_losses(right.steps, lines, theme, sizes=sizes)
    data = columns_data(
        step=right.steps,
        right=right.whole,
        wrong_read_whole=wrong.whole,
        wrong_as_it_writes=wrong.writing,
    )
    return figure, data


def draw_gradient(theme: Theme, sizes: TextSizes) -> Drawn:
    """The gradient through the softmax, with the scale and without it."""
    scaled, bare = softmax_gradients()
    lines = [
        Line("scaled by 1 / √d_h", scaled, theme.ink),
        Line("no scale", bare, theme.accent),
    ]
    figure = line_chart(
        D_HEADS,
        lines,
        theme,
        x_title="d_h",
        y_title="gradient",
        x_ticks=Ticks(D_HEADS, [str(d_h) for d_h in D_HEADS]),
        sizes=sizes,
    )
    data = columns_data(d_h=D_HEADS, scaled=scaled, no_scale=bare)
    return figure, data


def softmax_gradients() -> tuple[list[float], list[float]]:
    """The gradient through the softmax with the scale and without it, for each of D_HEADS."""
    scaled = [softmax_gradient(d_h, d_h**-0.5) for d_h in D_HEADS]
    return scaled, [softmax_gradient(d_h, 1.0) for d_h in D_HEADS]

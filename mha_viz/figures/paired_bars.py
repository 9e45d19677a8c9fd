"""Two bars per row, before and after a change."""

from collections.abc import Callable, Sequence

from mha_viz.figures.base import Spec, Style, hover
from mha_viz.figures.marks import fill, outside, row_bars
from mha_viz.figures.text import escape

HEIGHT, OFFSET = 0.36, 0.2  # of a bar, and of its middle from that of the row


def paired_bars(
    names: tuple[str, str],
    before: Sequence[float],
    after: Sequence[float],
    style: Style,
    *,
    text: Callable[[float], str],
    number: str,
) -> tuple[Spec, Spec]:
    """The bars of all rows before (grey) and after (violet); NaN has none.

    `text` writes a value beside its bar, and `number` is its format in the hover.
    """

    def bars(name: str, values: Sequence[float], colour: str, offset: float) -> Spec:
        rows = [row + offset for row in range(len(values))]
        return (
            row_bars(list(values), rows, HEIGHT, name=escape(name))
            | fill(colour)
            | outside([text(value) for value in values], style.muted())
            | hover(f"{escape(name)}: %{{x:{number}}}")
        )

    theme = style.theme
    return (
        bars(names[0], before, theme.control, -OFFSET),
        bars(names[1], after, theme.accent, OFFSET),
    )

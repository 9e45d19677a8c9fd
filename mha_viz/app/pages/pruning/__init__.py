"""What the Pruning page is made of: one module for each of its parts."""

from mha_viz.app.widgets.choices import one_of

PARTS = ["By hand", "Tasks", "Importance", "Curves", "Take out"]


def part() -> str:
    """Which part is open."""
    chosen: str = one_of("Part", PARTS, PARTS[0], "lab", named=False)
    return chosen

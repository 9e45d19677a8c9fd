"""What the Heads page is made of: the passport of each head, many heads at once, many texts."""

from mha_viz.app.widgets.choices import one_of

PARTS = ["Passport", "Over layers", "Several texts"]


def part() -> str:
    """Which part is open."""
    chosen: str = one_of("Part", PARTS, PARTS[0], "numbers_of", named=False)
    return chosen

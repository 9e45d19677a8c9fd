"""Text and sizes written for people."""

import pytest

from mha_viz.figures.text import format_bytes


@pytest.mark.parametrize(
    ("n", "text"),
    [(0, "0 bytes"), (512, "512 bytes"), (1024, "1 KiB"), (36_864, "36 KiB"), (1536, "1.5 KiB"),
     (2**20 * 4.5, "4.5 MiB"), (2**30 * 1234, "1,234 GiB")],
)  # fmt: skip
def test_bytes_are_written_for_people(n: float, text: str) -> None:
    assert format_bytes(n) == text

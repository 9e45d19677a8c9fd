"""Readable texts and sizes."""

import pytest

from mha_viz.figures.text import format_bytes


@pytest.mark.parametrize(
    ("n", "text"),
    [(0, "0 bytes"), (512, "512 bytes"), (1024, "1 KiB"), (36_864, "36 KiB"), (1536, "1.5 KiB"),
     (2**20 * 4.5, "4.5 MiB"), (2**30 * 1234, "1,234 GiB"), (2**30 * 1.25, "1.25 GiB"),
     (1.256 * 2**20, "1.26 MiB"),
     (12.34 * 2**20, "12.3 MiB"), (99.96 * 2**10, "100 KiB"), (236 * 2**20, "236 MiB"),
     (9.999 * 2**30, "10 GiB")],
)  # fmt: skip
def test_bytes_are_written_for_people(n: float, text: str) -> None:
    assert format_bytes(n) == text

"""Waits for other threads."""

import time
from collections.abc import Callable

PATIENCE = 60  # seconds; a busy machine is not a failure


def until(happened: Callable[[], object]) -> None:
    """Waits until `happened()` is true; fails the test if it never is."""
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end, "the condition was never met"
        time.sleep(0.005)

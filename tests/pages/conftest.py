"""What the tests of pages share."""

import pytest

from mha_viz.app.widgets import parity_line


@pytest.fixture(autouse=True)
def _no_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages offer to compare their numbers with transformers, and do not start by themselves."""
    monkeypatch.setattr(parity_line, "AT_ONCE", 0)

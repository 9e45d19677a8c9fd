"""What the tests of pages share."""

import pytest

from mha_viz.app.widgets import parity_line
from mha_viz.app.work import head_names


@pytest.fixture(autouse=True)
def _no_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages offer to compare their numbers with transformers, and do not start by themselves."""
    monkeypatch.setattr(parity_line, "AT_ONCE", 0)


@pytest.fixture(autouse=True)
def _no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages measure no heads in the background; the bundled model's are known."""
    monkeypatch.setattr(head_names, "MAX_PARAMETERS", 0)

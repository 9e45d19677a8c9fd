"""Where the files that come with the project are: the bundled model, texts, the icon."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
ASSETS = _PACKAGE.parent / "assets"

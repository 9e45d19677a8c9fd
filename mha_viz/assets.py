"""Paths of the files that ship with the package, in a checkout and once installed.

A checkout keeps them beside the package; a wheel carries them inside it, in `_site`. No other
module needs to know which of the two it runs in.
"""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_INSTALLED = _PACKAGE / "_site"
_ROOT = _INSTALLED if _INSTALLED.is_dir() else _PACKAGE.parent

APP = _ROOT / "app.py"
"""The script that `streamlit run` starts. Streamlit looks for pages/ and .streamlit/ beside it."""

ASSETS = _ROOT / "assets"
"""The bundled model, the texts and the icon."""

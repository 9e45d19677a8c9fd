"""Paths of the files that ship with the package, in a checkout and in an installation.

A checkout keeps them beside the package; a wheel has them inside it, in `_site`. No other module
depends on the difference.
"""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_INSTALLED = _PACKAGE / "_site"
_ROOT = _INSTALLED if _INSTALLED.is_dir() else _PACKAGE.parent

APP = _ROOT / "app.py"
"""The script that `streamlit run` starts. Streamlit looks for pages/ and .streamlit/ beside it."""

ASSETS = _ROOT / "assets"
"""The bundled model, the texts and the icon."""

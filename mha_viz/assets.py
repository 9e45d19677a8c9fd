"""Where the files that come with the package are, in a checkout and where it is installed.

A checkout keeps them beside the package; a wheel carries them inside it, in `_site`. Nothing else
asks where it stands.
"""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_INSTALLED = _PACKAGE / "_site"
_ROOT = _INSTALLED if _INSTALLED.is_dir() else _PACKAGE.parent

APP = _ROOT / "app.py"
"""What `streamlit run` starts. Streamlit looks for pages/ and .streamlit/ beside it."""

ASSETS = _ROOT / "assets"
"""The bundled model, the texts and the icon."""

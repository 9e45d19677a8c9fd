"""Where the numbers of a file come from: model, weights, text, versions, link and date.

Every file includes it: CSV in lines that start with "#", JSON and npz as `provenance`, a page as a
list, a script as comments, PNG and SVG as metadata.
"""

import datetime
import hashlib
import json
import platform
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import mha_viz

if TYPE_CHECKING:
    from mha_viz.model import Description

Origin = Mapping[str, object]

PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "plotly", "streamlit")
LONGEST = 2_000  # characters of a text that is included; of a longer text, only its hash is


def origin(
    about: "Description | None", text: str | None, facts: Origin | None = None, *, link: str = ""
) -> dict[str, object]:
    """The origin of numbers that a model computed from a text, with `facts` such as settings.

    Without a model or a text (None), the facts say what the numbers come from. The date is now, in
    UTC.
    """
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    return {
        **({"Link": link} if link else {}),
        **(model_facts(about) if about else {}),
        **({} if text is None else _text_facts(text)),
        **(facts or {}),
        **versions(),
        "Created": now,
    }


def _text_facts(text: str) -> dict[str, object]:
    """The text, unless it is long, and its hash."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return {**({"Text": text} if len(text) <= LONGEST else {}), "Text, SHA-256": digest}


def model_facts(about: "Description") -> dict[str, object]:
    """Name, revision and weights of a model."""
    return {
        "Model": f"{about.name} ({about.source}), {about.n_parameters:,} parameters",
        **({"Revision": about.revision} if about.revision else {}),
        "Weights": f"SHA-256 {about.weights_hash}, stored as {about.stored_dtype}",
    }


@cache
def versions() -> dict[str, str]:
    """The versions of mha_viz, of Python and of those of PACKAGES that are installed."""
    installed = {"mha_viz": mha_viz.__version__, "Python": platform.python_version()}
    for name in PACKAGES:
        try:
            installed[name] = version(name)
        except PackageNotFoundError:
            continue
    return installed


def comments(facts: Origin) -> Iterator[str]:
    """One line per fact, after "# "; a value other than a one-line string is written as JSON."""
    for name, value in facts.items():
        one_line = isinstance(value, str) and value.isprintable()
        yield f"# {name}: {value if one_line else json.dumps(value, ensure_ascii=True)}"

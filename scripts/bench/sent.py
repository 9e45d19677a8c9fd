"""What a view of the app sends to the browser, and the model and the texts that it shows.

The model is the random one of `compute`, with the size of GPT-2 small; the texts are those of
`common`. Widths and heights are those on the pages at 1,440 pixels.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import plotly.graph_objects as go
from plotly.io import to_json

from bench import compute
from bench.common import text_of
from mha_viz.model import Model
from mha_viz.trace import Trace

AT = (5, 1)  # the selected head
LENGTHS = (16, 64, 256, 1024)
ANY = 64  # tokens of a view whose size does not depend on the text
FULL, HALF, THIRD = 1060, 520, 340  # pixels of a row, and of its columns
GIVEN = "random numbers"


@dataclass(frozen=True, slots=True)
class Sent:
    """A figure as JSON, or the data of the component `part`; `shown` says how much of the text."""

    content: str
    width: int
    height: int = 0  # a component has its own
    shown: str = ""
    part: str = ""

    @property
    def n_bytes(self) -> int:
        """Bytes on the wire, before compression."""
        return len(self.content.encode())


@dataclass(frozen=True, slots=True)
class Shown:
    """A view of the app: `make` does the server's work for a number of tokens.

    A view with at most `most` tokens shows the start of a longer text. One whose size does not
    depend on the text (`any_text`) is made once.
    """

    name: str
    make: Callable[[int], Sent]
    most: int = LENGTHS[-1]
    any_text: bool = False


def figure(drawn: go.Figure, width: int, height: int, shown: str = "") -> Sent:
    """A figure as Streamlit sends it."""
    return Sent(str(to_json(drawn, validate=False)), width, height, shown)


def pooled(block: int) -> str:
    """The number of tokens that a cell stands for, unless it is one per side."""
    return f"cells of {block} × {block} tokens" if block > 1 else ""


def some(n: int, of: int, what: str) -> str:
    """How many of something are shown, unless it is all."""
    return f"{n:,} of {of:,} {what}" if n < of else ""


def model() -> Model:
    """The model behind all views."""
    return compute.both()[1]


@functools.cache
def traced(n_tokens: int) -> Trace:
    """The trace of a text of `n_tokens` tokens, shared by all views."""
    return model().trace(text_of(n_tokens))


@functools.cache
def other(n_tokens: int) -> Trace:
    """The same text with every eighth token replaced by the one before it."""
    ids = traced(n_tokens).token_ids
    return model().trace_ids([ids[i - 1] if i % 8 == 5 else ids[i] for i in range(n_tokens)])

"""Parts that all measurements share: rows, alternate runs, a text of known length, Chromium."""

import os
import random
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from tokenizers import Tokenizer

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ViewportSize

ROOT = Path(__file__).resolve().parents[2]
TOKENIZER = ROOT / "assets" / "bundled" / "tokenizer.json"
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
WINDOW: "ViewportSize" = {"width": 1440, "height": 900}


class NotMeasured(Exception):
    """A measurement was not possible; the message says what is missing and what to do."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table; `met` is None without a goal; `note` says what the numbers include."""

    what: str
    theirs: str
    ours: str
    ratio: str
    goal: str
    met: bool | None
    note: str = ""


def at_least(
    what: str,
    theirs: float,
    ours: float,
    goal: float,
    unit: str,
    note: str = "",
    *,
    better: str = "faster",
) -> Row:
    """A row whose goal is that ours is `goal` times better than theirs."""
    ratio = theirs / ours
    return Row(
        what,
        show(theirs, unit),
        show(ours, unit),
        f"{factor(ratio)} {better}",
        f"{goal:g}× {better}",
        ratio >= goal,
        note,
    )


def show(number: float, unit: str) -> str:
    """A measured number with three digits."""
    return f"{_three_digits(number)} {unit}"


def factor(ratio: float) -> str:
    """A ratio with three digits: 1.67×."""
    return f"{_three_digits(ratio)}×"


def _three_digits(number: float) -> str:
    digits = 0 if number >= 100 else 1 if number >= 10 else 2
    return f"{number:,.{digits}f}"


def turns(
    sides: Mapping[str, Callable[[], object]],
    repeats: int,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, float]:
    """The median time of each side, run alternately; the first run of each does not count.

    The result of a run is freed outside the timed part.
    """
    seconds_of: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(repeats + 1):
        for name, side in sides.items():
            begun = clock()
            result = side()
            seconds = clock() - begun
            del result
            if turn:
                seconds_of[name].append(seconds)
    return {name: median(values) for name, values in seconds_of.items()}


def text_of(n_tokens: int) -> str:
    """A text of exactly `n_tokens` tokens of the bundled model: random words of one token each."""
    tokenizer = Tokenizer.from_file(str(TOKENIZER))
    words = sorted(word for word in tokenizer.get_vocab() if re.fullmatch("Ġ[a-z]{2,}", word))
    sample = random.Random(0).choices(words, k=n_tokens - 1)
    text = "The" + "".join(sample).replace("Ġ", " ")
    actual = len(tokenizer.encode(text).ids)
    if actual != n_tokens:
        raise NotMeasured(f"the text for {n_tokens} tokens has {actual}; choose other words.")
    return text


@contextmanager
def chromium() -> "Iterator[Browser]":
    """A headless Chromium: the installed one, or Playwright's own."""
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError as error:
        raise NotMeasured(f"{error}; requirements-bench.txt says how to install it.") from error
    path = os.environ.get("CHROMIUM", "")
    path = path or shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=path, args=FLAGS.split())
        except Error as error:
            raise NotMeasured(
                "there is no Chromium. Install one, set CHROMIUM to its path, or run "
                "`playwright install chromium`."
            ) from error
        try:
            yield browser
        except Error as error:
            raise NotMeasured(f"the page failed in the browser: {error.message}") from error
        finally:
            browser.close()

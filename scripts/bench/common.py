"""What the measurements share: rows, taking turns, a text of known length, Chromium."""

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
    """Something that a measurement needs is not here; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; `met` is None without a goal; `note` says what the numbers include."""

    what: str
    theirs: str
    ours: str
    ratio: str
    goal: str
    met: bool | None
    note: str = ""


def at_least(what: str, theirs: float, ours: float, goal: float, unit: str, note: str = "") -> Row:
    """A row whose goal is that ours is so many times less than theirs."""
    ratio = theirs / ours
    return Row(
        what, show(theirs, unit), show(ours, unit), f"{show(ratio, '×')} less",
        f"{goal:g} × less", ratio >= goal, note,
    )  # fmt: skip


def show(number: float, unit: str) -> str:
    """Three digits are more than these measurements can tell apart."""
    digits = 0 if number >= 100 else 1 if number >= 10 else 2
    return f"{number:,.{digits}f} {unit}"


def turns(
    sides: Mapping[str, Callable[[], object]],
    repeats: int,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, float]:
    """The median time of each side, after one run of each that does not count.

    What a run returns is let go after its time was taken.
    """
    times: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(repeats + 1):
        for name, side in sides.items():
            begun = clock()
            result = side()
            taken = clock() - begun
            del result
            if turn:
                times[name].append(taken)
    return {name: median(values) for name, values in times.items()}


def text_of(n_tokens: int) -> str:
    """A text of exactly so many tokens of the bundled model: random words, each one token."""
    tokenizer = Tokenizer.from_file(str(TOKENIZER))
    words = sorted(word for word in tokenizer.get_vocab() if re.fullmatch("Ġ[a-z]{2,}", word))
    chosen = random.Random(0).choices(words, k=n_tokens - 1)
    text = "The" + "".join(chosen).replace("Ġ", " ")
    found = len(tokenizer.encode(text).ids)
    if found != n_tokens:
        raise NotMeasured(f"the text made for {n_tokens} tokens has {found}; choose other words.")
    return text


@contextmanager
def chromium() -> "Iterator[Browser]":
    """A Chromium without a window: that of the machine, or the one that Playwright brought."""
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError as error:
        raise NotMeasured(f"{error}; requirements-bench.txt says how to install it.") from error
    named = os.environ.get("CHROMIUM", "")
    found = named or shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=found, args=FLAGS.split())
        except Error as error:
            raise NotMeasured(
                "there is no Chromium: install it, or name its path in CHROMIUM, or run "
                "`playwright install chromium`."
            ) from error
        try:
            yield browser
        except Error as error:
            raise NotMeasured(f"the page did not do what it should: {error.message}") from error
        finally:
            browser.close()

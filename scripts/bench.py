"""Measures speed and memory against what people use today, and prints a goal beside each ratio.

    pip install -r requirements-bench.txt && pip install --no-deps bertviz==1.4.1
    python scripts/bench.py [--quick] [--only NAME ...]

Both sides of a row run in this one command, taking turns, and the table shows medians. CPU time is
the process's own, with one thread; the rest is wall time, so let the machine do nothing else.
The names, and what each measures:

    forward  a text through GPT-2 small, every head reachable, against transformers: CPU time
    memory   the same with 1024 tokens: the peak of a fresh process (Linux)
    head     one more head of a text that was run already, against running transformers again
    grid     the picture of all 144 heads, against BertViz: bytes, and time in Chromium
    ablation every head removed, exactly and estimated, against hooks on transformers: CPU time
    start    from `streamlit run` to the first picture, against importing torch and streamlit
    change   from a key to the picture of another head, against Streamlit's default settings
    views    every view of the app: bytes, server time, time in Chromium; a table of its own

The command fails where a goal is missed or a row could not be measured.
"""

import argparse
import os
import platform
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import change, compute, grid, pruning, start, views
from bench.common import NotMeasured, Row

MEASURES: dict[str, Callable[[bool], Iterator[Row]]] = {
    "forward": compute.forward,
    "memory": compute.memory,
    "head": compute.head,
    "grid": grid.grid,
    "ablation": pruning.ablation,
    "start": start.start,
    "change": change.change,
    "views": views.views,
}
PACKAGES = (
    "torch",
    "numpy",
    "transformers",
    "streamlit",
    "plotly",
    "bertviz",
    "circuitsvis",
    "playwright",
)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few repetitions: a rough look")
    parser.add_argument("--only", nargs="+", choices=MEASURES, metavar="NAME", default=[])
    asked = parser.parse_args()
    print_machine(quick=asked.quick)
    rows: list[Row] = []
    missing: list[str] = []
    try:
        for name in asked.only or MEASURES:
            print(f"measuring {name} …", file=sys.stderr, flush=True)
            try:
                rows.extend(MEASURES[name](asked.quick))
            except NotMeasured as error:
                missing.append(f"{name} was not measured: {error}")
    finally:
        print_table(rows)  # what was measured before a fault too
    for line in missing:
        print(f"\n{line}")
    return 0 if all(row.met is not False for row in rows) and not missing else 1


def print_machine(*, quick: bool) -> None:
    load = ", ".join(f"{n:.1f}" for n in os.getloadavg())
    print(f"{processor()}, {os.cpu_count()} logical cores, load {load}; {platform.platform()}")
    print(f"Python {platform.python_version()}, {', '.join(map(package, PACKAGES))}")
    print("Few repetitions (--quick).\n" if quick else "", flush=True)


def processor() -> str:
    """The model of the processor, where the system tells it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def package(name: str) -> str:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return f"no {name}"


def print_table(rows: list[Row]) -> None:
    print("| What | Against | Ours | Ratio | Goal | |")
    print("|---|---:|---:|---:|---|---|")
    for row in rows:
        met = {True: "met", False: "**missed**", None: ""}[row.met]
        print(f"| {row.what} | {row.theirs} | {row.ours} | {row.ratio} | {row.goal} | {met} |")
    for note in dict.fromkeys(row.note for row in rows if row.note):
        print(f"\n{note}")


if __name__ == "__main__":
    sys.exit(main())

"""Measures speed and memory against other libraries, and prints each ratio with its goal.

    pip install -r requirements-bench.txt && pip install --no-deps bertviz==1.4.1
    python scripts/bench.py [--quick] [--only NAME ...]

Both sides of a row run in this command, alternately, and the table shows medians. CPU time is that
of the process, with one thread; everything else is wall time, so leave the machine idle. The
measurements:

    forward   a text through GPT-2 small with all heads, against transformers: CPU time
    memory    the same with 1,024 tokens: peak memory of a new process (Linux)
    head      the pattern of one more head, against another run of transformers: CPU time
    grid      the picture of all 144 heads, against BertViz: bytes, and time in Chromium
    ablation  each head ablated, exactly and estimated, against hooks on transformers: CPU time
    start     from `streamlit run` to the first figure, against importing torch and streamlit
    change    from a key press to another head's heatmap, against Streamlit's default settings
    views     every view of the app: bytes, server time, time in Chromium (a table of its own)

The exit status is 1 if a goal is missed or a measurement was not possible.
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
PACKAGES = "torch numpy transformers streamlit plotly bertviz circuitsvis playwright"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few repetitions, for a rough result")
    parser.add_argument("--only", nargs="+", choices=MEASURES, metavar="NAME", default=[])
    args = parser.parse_args()
    print_machine(quick=args.quick)
    rows: list[Row] = []
    missing: list[str] = []
    try:
        for name in args.only or MEASURES:
            print(f"measuring {name} …", file=sys.stderr, flush=True)
            try:
                rows.extend(MEASURES[name](args.quick))
            except NotMeasured as error:
                missing.append(f"{name} was not measured: {error}")
    finally:
        print_table(rows)  # even after an error
    for line in missing:
        print(f"\n{line}")
    return 0 if all(row.met is not False for row in rows) and not missing else 1


def print_machine(*, quick: bool) -> None:
    load = ", ".join(f"{n:.1f}" for n in os.getloadavg())
    print(f"{processor()}, {os.cpu_count()} logical cores, load {load}; {platform.platform()}")
    print(f"Python {platform.python_version()}, {', '.join(map(package, PACKAGES.split()))}")
    print("Few repetitions (--quick).\n" if quick else "", flush=True)


def processor() -> str:
    """The model of the processor, if the system reports it."""
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

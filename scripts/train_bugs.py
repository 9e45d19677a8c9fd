"""Trains the character model with each bug of the Shapes page and stores the losses.

    python scripts/train_bugs.py [--out assets/bugs.csv] [--text assets/training.txt]

Four heads of width 8 with W_O, 5,000 steps, seed 0, on the text of the Training page. A row holds
a bug ("correct" for none), a number of steps, and the held-out loss in nats per character: of
windows read whole, and one character at a time. Bugs that the file already has are kept, so an
interrupted run goes on where it was; delete the file to train all of them again. About ten minutes
on one core.
"""

import argparse
import csv
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from mha_viz.assets import ASSETS
from mha_viz.lessons.bug_training import CORRECT, HEADER, STORED, train_with_bug
from mha_viz.lessons.bugs import BUGS
from mha_viz.lessons.char_model import read_corpus


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=STORED)
    parser.add_argument("--text", type=Path, default=ASSETS / "training.txt")
    args = parser.parse_args()
    torch.set_num_threads(1)
    corpus = read_corpus(args.text.read_text(encoding="utf-8"))
    if not args.out.exists():
        args.out.write_text(",".join(HEADER) + "\n", encoding="utf-8")
    with args.out.open(encoding="utf-8", newline="") as file:
        stored = {row["bug"] for row in csv.DictReader(file)}
    for bug in (CORRECT, *BUGS):
        if bug in stored:
            continue
        runs = train_with_bug(None if bug == CORRECT else bug, corpus)
        rows = [(bug, step, f"{whole:.5f}", f"{writing:.5f}") for step, whole, writing in runs]
        with args.out.open("a", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
        print(f"{bug}: read whole {rows[-1][2]}, as it writes {rows[-1][3]}", flush=True)


if __name__ == "__main__":
    main()

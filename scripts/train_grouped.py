"""Trains the bundled model further after its heads were made to share keys and values.

    python scripts/train_grouped.py --state runs/grouped --out assets/grouped.csv

For G = 6 (the control, in which nothing is shared), 3, 2 and 1, it trains on assets/training.txt
and writes the loss on the evaluation texts of assets/reference.txt, which no run trains on. The
settings are in mha_viz/lessons/recovery.py. The same command resumes a run that was stopped. On one
core this takes about half an hour.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from mha_viz.analysis.reference_texts import evaluation_texts
from mha_viz.assets import ASSETS
from mha_viz.checkpoints import load
from mha_viz.lessons.recovery import (
    STEPS,
    Recovery,
    TrainingOn,
    held_out_loss,
    measured,
    story_ids,
    write_recoveries,
)
from mha_viz.pruning import chunks

COMMAND = "python scripts/train_grouped.py --state runs/grouped --out assets/grouped.csv"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--state", required=True, type=Path, help="folder for stopped runs")
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    args.state.mkdir(parents=True, exist_ok=True)
    model = load("bundled")
    held_out = chunks(model, evaluation_texts(), model.config.n_positions)
    ids = story_ids(model.encode, (ASSETS / "training.txt").read_text(encoding="utf-8"))
    recoveries = []
    for n_kv_heads in (6, 3, 2, 1):
        run = TrainingOn(model.network, n_kv_heads, ids)
        state = args.state / f"G{n_kv_heads}.pt"
        losses = _resume(run, state)
        begun = time.monotonic()
        for step in measured(run, STEPS):
            losses[step] = losses.get(step) or held_out_loss(run.network, held_out)
            torch.save({"run": run.state(), "losses": json.dumps(losses)}, state)
            seconds = time.monotonic() - begun
            print(
                f"G = {n_kv_heads}  step {step:3}  {losses[step]:.4f}  {seconds:.0f} s", flush=True
            )
        recoveries.append(Recovery(n_kv_heads, tuple(losses.values())))
        write_recoveries(args.out, recoveries, comment=COMMAND)


def _resume(run: TrainingOn, state: Path) -> dict[int, float]:
    """Continues a stopped run, if there is one; returns the losses measured so far."""
    if not state.exists():
        return {}
    saved = torch.load(state, weights_only=True)
    run.resume(saved["run"])
    return {int(step): loss for step, loss in json.loads(saved["losses"]).items()}


if __name__ == "__main__":
    main()

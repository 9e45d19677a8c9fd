"""Writes assets/bundled_heads.csv: the measures from which the bundled model's heads are named.

    python scripts/measure_heads.py

The app measures the heads of other models itself, in the same way.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from mha_viz import heads
from mha_viz.analysis.reference_texts import reference_texts
from mha_viz.app.work.head_names import BUNDLED, SEEDS
from mha_viz.checkpoints import load
from mha_viz.heads.names import label, names


def main() -> None:
    model = load("bundled", device="cpu")
    *_, last = heads.measure_texts(model, reference_texts(), seeds=SEEDS)
    table = last.frame.to_csv(index=False, float_format="%.6f", lineterminator="\n")
    BUNDLED.write_text(f"weights {model.description.weights_hash}\n{table}", encoding="utf-8")
    for head, of_head in names(last.frame.to_dict("records")).items():
        print(head.label, label(of_head))


if __name__ == "__main__":
    main()

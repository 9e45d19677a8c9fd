"""`mha-viz prune`: heads by importance, the loss as they are removed, and the pruned model."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mha_viz import checkpoints, pruning
from mha_viz.analysis.reference_texts import evaluation_texts, selection_texts, split_text
from mha_viz.callbacks import OnProgress
from mha_viz.commands import given, output
from mha_viz.errors import HeadNotFound
from mha_viz.export import Data, Origin, origin, rows_data
from mha_viz.head import Head
from mha_viz.model import Model
from mha_viz.pruning.inputs import n_losses
from mha_viz.pruning.orders import MEASURES

LENGTH = 256  # tokens of a chunk, as on the Pruning page


def run(options: argparse.Namespace) -> int:
    """Writes or prints the ranking with its curve, and writes the pruned model if asked."""
    chosen = bool(options.head or options.remove)
    if chosen != bool(options.folder):
        options.refuse("--folder needs --remove or --head, and these need --folder")
    if options.zeroed and not options.folder:
        options.refuse("--zeroed needs --folder")
    text = given.text(options)
    output.check_apart(options.output, options.folder)
    output.check_free(options.output, force=options.force)
    output.check_free(options.folder, force=options.force)
    model = given.model(options)
    for head in options.head or ():
        model.config.check_head(*head, model=options.model)
    pruned = list(dict.fromkeys(options.head or ()))
    found: tuple[Data, Origin] | None = None
    if options.output or not options.head:
        selection, evaluation = (
            split_text(text) if text is not None else (selection_texts(), evaluation_texts())
        )
        scores = _scores(model, selection, options.by)
        ranked = pruning.removal_order(scores)
        if not ranked:
            raise HeadNotFound(f"{options.model} has no head that can be ranked. Choose another.")
        pruned = pruned or _least(ranked, options)
        if options.output or not options.folder:
            facts = {
                "Importance": options.by,
                "Measured on": "text" if text is not None else "reference text",
            }
            about = origin(model.description, text or "\n\n".join(selection + evaluation), facts)
            found = _curve(model, evaluation, ranked, scores), about
    if options.folder:
        _write(model, pruned, options)
    if found:
        output.data(found[0], options, found[1])
    return 0


def _scores(model: Model, texts: Sequence[str], by: str) -> pruning.Scores:
    """`[L, H]`: the importance of each head; every token of the texts counts the same."""
    chunks = _chunks(model, texts)
    with given.progress("Ranking the heads") as report:
        found = []
        for done, chunk in enumerate(chunks):
            part = _part(report, done, len(chunks))
            found.append(MEASURES[by](model, chunk, pruning.ZERO, part))
            part(1.0)
    scores: pruning.Scores = np.average(found, axis=0, weights=n_losses(model, chunks))
    return scores


def _curve(model: Model, texts: Sequence[str], ranked: list[Head], scores: pruning.Scores) -> Data:
    """A row for each number of heads removed: the last one, its score, loss and agreement."""
    rows: list[list[object]] = []
    with given.progress("Removing heads one by one") as report:
        for point in pruning.curve(model, _chunks(model, texts), ranked):
            head = point.removed[-1] if point.removed else None
            named = [*head, float(scores[head])] if head else ["", "", ""]
            rows.append([point.n_removed, *named, point.loss, point.agreement])
            report(point.n_removed / len(ranked))
    return rows_data(["removed", "layer", "head", "importance", "loss", "agreement"], rows)


def _least(ranked: list[Head], options: argparse.Namespace) -> list[Head]:
    n: int = options.remove or 0
    if n > len(ranked):
        options.refuse(f"--remove {n}: {options.model} has {len(ranked)} heads that have a score")
    return ranked[:n]


def _write(model: Model, heads: list[Head], options: argparse.Namespace) -> None:
    """Writes the model without these heads, and prints which they are."""

    def write(folder: Path) -> None:
        if options.zeroed:
            checkpoints.write_zeroed(model, heads, folder)
        else:
            checkpoints.save(pruning.pruned_model(model, heads), folder)

    output.folder(options.folder, write, force=options.force)
    names = ", ".join(head.key for head in heads)
    print(f"{options.folder}: {options.model} without {names}", file=sys.stderr)


def _chunks(model: Model, texts: Sequence[str]) -> list[list[int]]:
    return pruning.chunks(model, texts, min(LENGTH, model.config.n_positions))


def _part(report: OnProgress, n: int, of: int) -> OnProgress:
    """A callback for part n of several, which reports the progress of all."""
    return lambda fraction: report((n + fraction) / of)

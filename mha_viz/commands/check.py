"""`mha-viz check`: compares the numbers of a text with transformers in eager mode."""

import argparse

from mha_viz.checkpoints.parity import Largest, Parity, check
from mha_viz.commands import given
from mha_viz.export import model_facts
from mha_viz.model import Model
from mha_viz.trace import Trace

DEFAULT = (
    "The king gave the princess a golden ring.\nThe king gave the princess a golden crown, too."
)


def run(options: argparse.Namespace) -> int:
    """Prints a table; 0 if everything is within its limit, else 1."""
    text = given.text(options)
    model = given.model(options)
    with given.progress("Running the model") as report:
        L = model.config.n_layers
        trace = model.trace(
            DEFAULT if text is None else text,
            cut=options.cut,
            on_layer=lambda done: report(done / L),
        )
    with given.progress("Comparing with transformers") as report:
        found = check(model, trace, on_progress=report)
    for name, fact in model_facts(model.description).items():
        print(f"{name}: {fact}")
    for sentence in (*model.description.notes, *_template(model), *changes(trace)):
        print(f"Note: {sentence}")
    print(f"Compared with transformers in eager mode, T = {found.n_tokens:,}, {found.device}")
    print(f"{found.reference} {found.token_reference}\n")
    print(table(found))
    return 0 if found.ok else 1


def _template(model: Model) -> list[str]:
    """A sentence if the tokenizer has a template that is off."""
    names = ", ".join(token.label for token in model.template_tokens)
    if model.template or not names:
        return []
    return [f"The tokenizer's template adds {names}; without --start-of-text, it is off."]


def changes(trace: Trace) -> list[str]:
    """Sentences on how the text that the model read differs from the one that was given."""
    found = []
    if n := trace.left_out:
        found.append(
            f"The text has {trace.n_tokens + n:,} tokens, but this model's context holds "
            f"{trace.n_tokens:,}; {n:,} were dropped at the {trace.cut}."
        )
    if trace.replaced:
        found.append(
            f"{trace.replaced:,} characters are not valid Unicode and were replaced by U+FFFD."
        )
    if trace.read_as:
        found.append(f"The tokenizer changes the text. The model reads: {trace.read_as!r}")
    return found


def table(found: Parity) -> str:
    """A line for each thing that was compared: the largest value, its limit, its head."""
    tokens = found.tokens or found.tokens_skipped or "same ids as transformers' tokenizer"
    state = "FAILED" if found.tokens else "not compared" if found.tokens_skipped else "ok"
    rows = [
        ("", "largest", "limit", "head", ""),
        _row("logits", "difference", found.logits),
        _row("patterns", "difference", found.patterns),
        _row("rows", "sum - 1", found.rows),
        _row("mask", "masked weight", found.masked),
    ]
    lines = [
        f"{name:24}{value:>10}{limit:>10}  {head:10}{ok}" for name, value, limit, head, ok in rows
    ]
    return "\n".join([*lines, f"{'tokens':24}{tokens}  {state}"])


def _row(name: str, what: str, part: Largest) -> tuple[str, str, str, str, str]:
    head = part.head.label if part.head and part.value else ""
    state = "ok" if part.ok else "FAILED"
    return f"{name}, {what}", f"{part.value:.1e}", f"{part.limit:.1e}", head, state

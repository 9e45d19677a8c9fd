"""`mha-viz trace`: writes everything that one forward pass records to a file."""

import argparse

import numpy as np

from mha_viz.commands import given, output
from mha_viz.errors import OutputError
from mha_viz.export import origin, patterns_data, write_trace
from mha_viz.model import Model
from mha_viz.trace import Trace

MAX_ROWS = 5_000_000  # of a CSV, one for each weight


def run(options: argparse.Namespace) -> int:
    """Writes the trace."""
    kind = options.output.suffix.lower()
    if options.patterns and kind == ".csv":
        options.refuse("--patterns is for .npz and .json; a .csv has every weight without it")
    text = given.needed_text(options)
    output.check_free(options.output, force=options.force)
    model = given.model(options)
    trace = traced(model, text, options)
    facts = origin(model.description, trace.text, about(trace))
    if kind == ".csv":
        tokens, n = trace.tokens, trace.n_layers * trace.n_heads * trace.n_tokens**2 // 2
        if n > MAX_ROWS:
            raise OutputError(
                f"{options.output} would have {n:,} rows, one for each weight; the limit is "
                f"{MAX_ROWS:,}. Write .npz, or use a shorter text."
            )
        every = np.stack([trace.patterns(layer) for layer in range(trace.n_layers)])
        output.data(patterns_data(every, tokens), options, facts)
        return 0
    with output.file(options.output, force=options.force) as file:
        if kind == ".npz":
            write_trace(trace, file, patterns=options.patterns, origin=facts)
        else:
            file.write(output.json({**_arrays(trace, options.patterns), "provenance": facts}))
    return 0


def traced(model: Model, text: str, options: argparse.Namespace) -> Trace:
    """The trace of the text, truncated as the options say."""
    n_layers = model.config.n_layers
    with given.progress("Running the model") as report:
        return model.trace(text, cut=options.cut, on_layer=lambda done: report(done / n_layers))


def about(trace: Trace) -> dict[str, object]:
    """The number of tokens in the trace, and of those dropped, added or replaced."""
    return {
        "Tokens": f"{trace.n_tokens:,}; dropped at the {trace.cut}: {trace.left_out:,}",
        **({"Added by the template": sum(trace.template)} if any(trace.template) else {}),
        **({"Replaced by U+FFFD": trace.replaced} if trace.replaced else {}),
        **({"Read as": trace.read_as} if trace.read_as else {}),
    }


def _arrays(trace: Trace, patterns: str | None) -> dict[str, object]:
    found: dict[str, object] = {
        "tokens": list(trace.tokens),
        "token_ids": trace.token_ids,
        "scales": list(trace.scales),
        **{name: getattr(trace, name) for name in ("q", "k", "v", "logits")},
    }
    if patterns:
        found["patterns"] = [
            trace.patterns(layer).astype(patterns) for layer in range(trace.n_layers)
        ]
    return found

"""`mha-viz heads`: every measure of every head, with its interval."""

import argparse

from mha_viz import heads
from mha_viz.commands import given, output
from mha_viz.commands.trace import about, traced
from mha_viz.export import origin, rows_data


def run(options: argparse.Namespace) -> int:
    """Writes or prints a row for each head."""
    text = given.text(options)
    if text is None and options.start_of_text:
        options.refuse("--start-of-text needs a text; random tokens have no template")
    output.check_free(options.output, force=options.force)
    model = given.model(options)
    trace = None if text is None else traced(model, text, options)
    with given.progress("Measuring every head") as report:
        frame = heads.measure(
            model, trace, seeds=options.seeds, on_step=lambda done, of: report(done / of)
        )
    facts = {
        "Seeds": options.seeds,
        "Measured on": "the text" if trace else "random tokens",
        **(about(trace) if trace else {}),
    }
    data = rows_data(list(frame.columns), frame.astype(object).values.tolist())
    output.data(data, options, origin(model.description, text, facts))
    return 0

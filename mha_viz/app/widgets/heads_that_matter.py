"""The heads that matter here: what each writes towards the next token, and what it is called.

The component also hands names, effects and the prediction to the token strip, which shows them on
the grid and after the text. They come last, so that no picture waits for them.
"""

from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from mha_viz.app.browser import component_code
from mha_viz.app.view import View
from mha_viz.app.work import head_names, models
from mha_viz.head import Head
from mha_viz.heads.names import NO_MEASURE, Names, label, short_label

MOST = 5  # heads
_HERE = Path(__file__).parent
_component = st.components.v2.component(
    "mha_viz_heads_that_matter",
    html='<div class="matter"></div>',
    css=(_HERE / "heads_that_matter.css").read_text(encoding="utf-8"),
    js=component_code(_HERE / "heads_that_matter.js"),
)


def heads_that_matter(view: View) -> None:
    """Five bars: the heads that raise the most likely next token most, at the selected token."""
    found = models.push(view.trace_key, view.token, view.model, view.trace)
    if found is None:
        return
    effects = np.nan_to_num(found.heads.astype(float))
    largest = np.argsort(-effects, axis=None, kind="stable")[:MOST]
    heads = [Head(*divmod(int(i), view.trace.n_heads)) for i in largest]
    expected = zip(view.model.read(found.tokens), found.probabilities, strict=True)
    known = head_names.of(view.model)
    _component(
        key="matter",
        data={
            "trace_key": view.trace_key,
            "token": view.token,
            "expects": [[token.label, p] for token, p in expected],
            "heads": [[head.key, float(effects[head])] for head in heads if effects[head] > 0],
            "sum": float(effects.sum()),
            "score": found.score,
            "n_heads": effects.size,
            "names": None if known is None else _written(known),
        },
    )


def _written(known: Names) -> dict[str, Any]:
    """Head -> its name, its short name, and what the name rests on."""
    return {
        head.key: [
            label(of_head),
            short_label(of_head),
            " ".join(name.evidence for name in of_head) or NO_MEASURE,
        ]
        for head, of_head in known.items()
    }

"""Numbers about heads, from their patterns alone: no torch here.

    summary(pattern)            five numbers of one pattern
    measure(model, text)        the head passport: all measures of all heads, with intervals
    measure_texts(model, ...)   the same as a mean over texts, text by text
    MEASURES                    what each measure is

Beside these, each in its module: `patterns` (the measures), `repeated` (random tokens), `rollout`
(many heads in one picture), `similarity` (heads like this one), `roles` (published ones).
"""

from mha_viz.heads.measures import MEASURES, NOT_MEASURED, Measure
from mha_viz.heads.patterns import Summary, summary
from mha_viz.heads.profile import PartialProfile, measure, measure_texts

__all__ = [
    "MEASURES",
    "NOT_MEASURED",
    "Measure",
    "PartialProfile",
    "Summary",
    "measure",
    "measure_texts",
    "summary",
]

"""Measures of heads, computed from their patterns alone. No torch.

    summary(pattern)            five measures of one pattern
    measure(model, text)        head profiles: all measures of all heads, with intervals
    measure_texts(model, ...)   the same as means over texts, updated after each text
    MEASURES                    the definition of each measure

Other modules: `patterns` (the measures), `repeated` (repeated random tokens), `rollout` (combined
patterns of many heads), `similarity` (similar heads), `names` (what a head is called after),
`roles` (published roles).
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

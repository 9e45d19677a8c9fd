"""Each sample shows what its sentence says."""

import pytest

from mha_viz.app.samples import EFFECTS, SAMPLES, effect_in
from mha_viz.model import Model

LEAST = 0.6  # of the last token's weight


def test_every_sample_says_what_to_look_for() -> None:
    assert list(EFFECTS) == list(SAMPLES)
    assert effect_in(SAMPLES["Two names"]) == EFFECTS["Two names"]
    assert effect_in("another text") is None


@pytest.mark.parametrize("name", SAMPLES)
def test_the_head_of_a_sample_looks_where_its_sentence_says(bundled: Model, name: str) -> None:
    effect, trace = EFFECTS[name], bundled.trace(SAMPLES[name])
    row = trace.pattern(*effect.head)[-1]
    assert row[list(effect.keys)].sum() > LEAST
    assert effect.sentence.startswith(effect.head.label)
    words = [token.strip("·") for token in trace.tokens]
    looked_at = {words[key] for key in effect.keys}
    quoted = set(effect.sentence.replace("”", "“").split("“")[1::2])
    if quoted:
        assert words[-1] in quoted
        assert looked_at <= quoted

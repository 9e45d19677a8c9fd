"""Texts to start from; each shows something that heads of the bundled model do."""

from dataclasses import dataclass

from mha_viz.head import Head

SAMPLES = {
    "A story told twice": (
        "The king gave the princess a golden ring.\nThe king gave the princess a golden"
    ),
    "The cat and the rug": (
        "The cat sat on the mat.\nThe cat lay on the rug, naïve and very still.\nThe"
    ),
    "Two names": "When Mary and John went to the old house, John gave the golden key to",
    "A list": "one two three four five one two three four five one two three",
    "Once upon a time": (
        "Once upon a time there lived a poor woodcutter and his wife, who had seven little "
        "children. The eldest was a girl, and the youngest was so small that he was called"
    ),
}
DEFAULT = next(iter(SAMPLES.values()))


@dataclass(frozen=True, slots=True)
class Effect:
    """What to look for in a sample: one head, whose last token looks at the tokens `keys`."""

    sentence: str
    head: Head
    keys: tuple[int, ...]


EFFECTS = {
    "A story told twice": Effect(
        "L3 H3 copies: the last “golden” looks at “ring”, which followed “golden” before.",
        Head(3, 3),
        (7,),
    ),
    "The cat and the rug": Effect(
        "L3 H3 copies: the last “The” looks at both words “cat”, which followed “The” before.",
        Head(3, 3),
        (1, 10),
    ),
    "Two names": Effect("L3 H1 finds the verb: the last “to” looks at “gave”.", Head(3, 1), (11,)),
    "A list": Effect(
        "L0 H2 finds copies: the last “three” looks at every “three” so far.",
        Head(0, 2),
        (2, 7, 12),
    ),
    "Once upon a time": Effect(
        "L0 H1 looks one token back, whatever the words are.", Head(0, 1), (35,)
    ),
}


def effect_in(text: str) -> Effect | None:
    """What to look for in a text, if it is a sample."""
    return next((EFFECTS[name] for name, sample in SAMPLES.items() if sample == text), None)

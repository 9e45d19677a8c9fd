"""Texts to start from; each shows something that heads are known to do."""

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

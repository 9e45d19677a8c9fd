"""The definition of each measure of a head: formula, input, exclusions and source."""

import math
from dataclasses import dataclass

from mha_viz.heads.patterns import NEAR, POSITIONAL
from mha_viz.heads.repeated import FOUR_TIMES, TWICE

ON_TEXT = f"the text; without one, {TWICE[0]} random tokens written twice, several seeds"
ON_TWICE = f"{TWICE[0]} random tokens written twice (n = {TWICE[0]}), several seeds"
ON_FOUR_TIMES = f"{FOUR_TIMES[0]} random tokens written {FOUR_TIMES[1]} times, several seeds"
ROW_0 = "Row 0, which can only look at itself, and queries that are special tokens."
TIES = "Ties go to the first key."


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of one head. `formula` is KaTeX; `range` holds the smallest and largest value.

    In formulas, A is the pattern, i a query and j a key, both from 0. The mean runs over the
    queries that are not excluded.
    """

    title: str
    formula: str
    measured_on: str
    exclusions: str
    source: str
    range: tuple[float, float] = (0.0, 1.0)


MEASURES: dict[str, Measure] = {
    "previous_token": Measure(
        "Previous token",
        r"\operatorname{mean}_i\, A_{i,i-1}",
        ON_TEXT,
        f"{ROW_0} Row 1 counts, although its previous token is the first.",
        "The role: Wang et al. 2023, section 3",
    ),
    "first_token": Measure(
        "First token (sink)",
        r"\operatorname{mean}_i\, A_{i,0}",
        ON_TEXT,
        ROW_0,
        "Xiao et al. 2023, section 3.1",
    ),
    "self": Measure("Itself", r"\operatorname{mean}_i\, A_{i,i}", ON_TEXT, ROW_0, ""),
    "duplicate_token": Measure(
        "Duplicate token",
        r"\operatorname{mean}_{i > n}\, A_{i,i-n}",
        ON_TWICE,
        "The first copy, and the first token of the second, whose duplicate is also the sink.",
        "The role: Wang et al. 2023, section 3",
    ),
    "induction": Measure(
        "Induction",
        r"\operatorname{mean}_{i \ge n}\, A_{i,i-n+1}",
        ON_TWICE,
        "The first copy. No start token precedes the tokens.",
        "Olsson et al. 2022: their prefix matching score, on two copies",
    ),
    "prefix_matching": Measure(
        "Prefix matching",
        r"\operatorname{mean}_i \sum_{j < i,\ t_j = t_i} A_{i,j+1}",
        ON_FOUR_TIMES,
        "The first copy. Olsson et al. average single entries, which on "
        f"{FOUR_TIMES[1]} copies gives half of this; they leave out the most and the least common "
        "tokens and begin with a start token.",
        "After Olsson et al. 2022, prefix matching score",
    ),
    "entropy": Measure(
        "Entropy",
        r"\operatorname{mean}_i \frac{-\sum_j A_{ij} \ln A_{ij}}{\ln(i+1)}",
        ON_TEXT,
        ROW_0,
        "Clark et al. 2019, section 3.3, without the division by ln(i + 1)",
    ),
    "distance": Measure(
        "Mean distance in tokens",
        r"\operatorname{mean}_i \sum_j A_{ij}\,(i-j)",
        ON_TEXT,
        f"{ROW_0} For a head with an attention sink, it grows with the length of the text.",
        "Vig and Belinkov 2019, attention distance, a mean over all tokens of a corpus",
        (0.0, math.inf),
    ),
    "confidence": Measure(
        "Confidence",
        r"\operatorname{mean}_i \max_j A_{ij}",
        ON_TEXT,
        f"{ROW_0} Keys that are special tokens, even at the first position. A first token that is "
        "text counts as a key, although it is often a sink.",
        "Voita et al. 2019, section 4, who exclude the end-of-sentence token",
    ),
    "positional": Measure(
        "Positional",
        r"\max_o \operatorname{mean}_i\, [\, i - \operatorname{argmax}_j A_{ij} = o\,]",
        ON_TEXT,
        f"{ROW_0} {TIES} At {POSITIONAL} or more, a head is called positional.",
        "Voita et al. 2019, section 5.1",
    ),
    "rare_token": Measure(
        "Rarest token",
        r"\operatorname{mean}_i\, [\, t_{\operatorname{argmax}_j A_{ij}} "
        r"= \max_{j \le i} t_j\,]",
        ON_TEXT,
        f"{ROW_0} Queries whose rarest token so far is their own or the first. {TIES} The id t "
        "stands for rarity: a byte-level BPE numbers its tokens in the order of their merges, so "
        "tokens that were frequent in its training text come first. Single bytes, such as "
        "punctuation, precede all merges.",
        "Voita et al. 2019, section 5.3, who count words",
    ),
    "syntactic_by_offset": Measure(
        "Near, at varying offsets",
        rf"\operatorname{{mean}}_i\, [\, 1 \le o_i \le {NEAR}\,] - "
        rf"\max_{{1 \le o \le {NEAR}}} \operatorname{{mean}}_i\, [\, o_i = o\,], \quad "
        r"o_i = i - \operatorname{argmax}_j A_{ij}",
        ON_TEXT,
        f"{ROW_0} The first token does not count as near. {TIES} This measure does not check "
        "grammar, which would need a parser. Syntactic heads often score high (not if they look "
        f"more than {NEAR} tokens back), and a high score does not make a head syntactic.",
        "The baseline of Voita et al. 2019, section 5.2: one fixed offset",
    ),
}

NOT_MEASURED: dict[str, str] = {
    "syntactic": "Voita et al. 2019 call a head syntactic if its largest weight finds the other "
    "end of a grammatical relation at least 10% more often than the best fixed offset does. "
    "Measuring that needs sentences with known relations, or a parser, which this app does not "
    "have.",
}
ON_RANDOM_TOKENS = ("duplicate_token", "induction", "prefix_matching")

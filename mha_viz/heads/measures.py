"""What each measure of a head is: formula, input, exclusions and source, for those who read it."""

import math
from dataclasses import dataclass

from mha_viz.heads.patterns import NEAR, POSITIONAL
from mha_viz.heads.repeated import FOUR_TIMES, TWICE

ON_TEXT = f"the text; without one, {TWICE[0]} random tokens written twice, over the seeds"
ON_TWICE = f"{TWICE[0]} random tokens written twice (n = {TWICE[0]}), over the seeds"
ON_FOUR_TIMES = f"{FOUR_TIMES[0]} random tokens written {FOUR_TIMES[1]} times, over the seeds"
ROW_0 = "Row 0, which can only look at itself, and queries that are special tokens."
TIES = "Of equal weights the first key counts."


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of one head. `formula` is KaTeX; `range` holds its least and largest value.

    In formulas A is the pattern, i a query, j a key, both from 0, and the mean goes over the
    queries that the exclusions leave.
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
        f"{ROW_0} Row 1 stays, though its previous token is the first.",
        "The role: Wang et al. 2022, section 3",
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
        "The first copy, and the first token of the second: its duplicate is where a sink looks.",
        "The role: Wang et al. 2022, section 3",
    ),
    "induction": Measure(
        "Induction",
        r"\operatorname{mean}_{i \ge n}\, A_{i,i-n+1}",
        ON_TWICE,
        "The first copy. No start token stands before the tokens.",
        "Olsson et al. 2022",
    ),
    "prefix_matching": Measure(
        "Prefix matching",
        r"\operatorname{mean}_i \sum_{j < i,\ t_j = t_i} A_{i,j+1}",
        ON_FOUR_TIMES,
        "The first copy. No start token stands before the tokens, where Olsson et al. have one.",
        "Olsson et al. 2022, prefix matching score",
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
        f"{ROW_0} It grows with the text for a head that rests on the first token.",
        "Vig and Belinkov 2019, attention distance",
        (0.0, math.inf),
    ),
    "confidence": Measure(
        "Confidence",
        r"\operatorname{mean}_i \max_j A_{ij}",
        ON_TEXT,
        f"{ROW_0} Keys that are special tokens, the first token too where it is one. A first token "
        "that is text stays a key, though heads rest on it.",
        "Voita et al. 2019, section 4, who leave out the end of the sentence",
    ),
    "positional": Measure(
        "Positional",
        r"\max_o \operatorname{mean}_i\, [\, i - \operatorname{argmax}_j A_{ij} = o\,]",
        ON_TEXT,
        f"{ROW_0} {TIES} A head is called positional from {POSITIONAL} on.",
        "Voita et al. 2019, section 5.1",
    ),
    "rare_token": Measure(
        "Rarest token",
        r"\operatorname{mean}_i\, [\, t_{\operatorname{argmax}_j A_{ij}} "
        r"= \max_{j \le i} t_j\,]",
        ON_TEXT,
        f"{ROW_0} Queries whose rarest token so far is themselves or the first. {TIES} How rare a "
        "token t is, is told by its id: a byte-level BPE numbers tokens in the order in which it "
        "merged them, frequent ones first, on the text that it was made from. Single bytes, "
        "punctuation among them, come before all merges.",
        "Voita et al. 2019, section 5.3, who count words",
    ),
    "syntactic_by_offset": Measure(
        "Near, at varying offsets",
        rf"\operatorname{{mean}}_i\, [\, 1 \le o_i \le {NEAR}\,] - "
        rf"\max_{{1 \le o \le {NEAR}}} \operatorname{{mean}}_i\, [\, o_i = o\,], \quad "
        r"o_i = i - \operatorname{argmax}_j A_{ij}",
        ON_TEXT,
        f"{ROW_0} The first token does not count as near. {TIES} Whether the token looked at is "
        "the one that grammar binds to this one takes a parser, and is not measured: a head that "
        "follows syntax has a high value, a head with a high value need not follow syntax.",
        "The baseline of Voita et al. 2019, section 5.2: one fixed offset",
    ),
}

NOT_MEASURED: dict[str, str] = {
    "syntactic": "Voita et al. 2019 call a head syntactic where its largest weight finds the other "
    "end of a grammatical relation at least 10 % more often than the best fixed offset does. That "
    "takes sentences whose relations are known, or a parser, and there is none here.",
}
ON_RANDOM_TOKENS = ("duplicate_token", "induction", "prefix_matching")

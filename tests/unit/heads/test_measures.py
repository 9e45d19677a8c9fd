"""Every measure is described."""

from mha_viz.heads import MEASURES, NOT_MEASURED


def test_every_measure_says_what_it_is() -> None:
    for name, about in MEASURES.items():
        assert about.title
        assert about.formula
        assert about.measured_on
        assert about.exclusions
        assert about.formula.count("{") == about.formula.count("}"), name
    assert "parser" in NOT_MEASURED["syntactic"]

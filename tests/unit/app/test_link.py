"""The page shows what a link specifies, or a message that it cannot."""

from functools import partial

import pytest
from support.script import ROOT, component, figures, opened, said

app = partial(opened, "attention")


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("at", ["L0H0", "L2H5", "L3H1"])
def test_a_link_restores_head_token_window_and_colour(at: str) -> None:
    test = app(at=at, token="5", window="4-9-2-7", colour="weight", sink="true", text="a b c d e f")
    assert not test.exception
    assert component(test, "strip")["at"] == at
    assert component(test, "strip")["token"] == 5
    assert component(test, "strip")["window"] == [4, 9, 2, 7]
    assert component(test, "strip")["scale"] == "weight"
    assert test.text_area(key="text").value == "a b c d e f"
    assert test.toggle(key="sink").value


@pytest.mark.parametrize(
    "link",
    [
        {"at": "L99H0"}, {"at": "nonsense"}, {"colour": "nope"}, {"at": "L3H4<b>"},
        {"token": "99999"}, {"token": "-3"}, {"token": "²"}, {"window": "9-1-9-1"},
        {"window": "1-2"}, {"sink": "🙂"}, {"stage": "maybe"},
    ],
)  # fmt: skip
def test_a_bad_value_in_a_link_falls_back_with_a_warning(link: dict[str, str]) -> None:
    test = app(**link)
    assert not test.exception
    (name,) = link
    assert "The link's value" in said(test)
    assert name in said(test)
    assert len(figures(test)) == 2


@pytest.mark.parametrize(
    "link",
    [{"token": "x" * 500}, {"token": "99999999999"}, {"cut": "middle"}, {"unknown": "1"}],
)  # fmt: skip
def test_an_unusual_link_never_breaks_the_page(link: dict[str, str]) -> None:
    test = app(**link)
    assert not test.exception
    assert len(figures(test)) == 2

"""A head has a label for people and a key for links, and is parsed from both."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mha_viz.errors import HeadNotFound
from mha_viz.head import Head

numbers = st.integers(0, 9999)


@given(numbers, numbers)
def test_label_and_key_are_read_back(layer: int, head: int) -> None:
    place = Head(layer, head)
    assert Head.parse(place.label) == Head.parse(place.key) == place == (layer, head)


def test_a_head_has_a_label_for_people_and_a_key_for_links() -> None:
    assert (Head(5, 1).label, Head(5, 1).key) == ("L5 H1", "L5H1")


@pytest.mark.parametrize("text", ["", "5.1", "L5", "H1L5", "L-1H0", "L5H1x", "L99999H0"])
def test_other_texts_are_rejected_with_an_example(text: str) -> None:
    with pytest.raises(HeadNotFound, match="L5H1"):
        Head.parse(text)


def test_heads_are_found_in_a_text_in_order_and_once() -> None:
    assert Head.find_all("l3h4-L0 H1, L3H4 and more") == [(3, 4), (0, 1)]


def test_a_head_outside_of_the_model_is_named_with_the_limits() -> None:
    Head(1, 3).check(2, 4, model="tiny")
    with pytest.raises(HeadNotFound, match="L2 H0 is not in tiny, which has layers 0 to 1"):
        Head(2, 0).check(2, 4, model="tiny")
    with pytest.raises(HeadNotFound, match="L1 H3 has been pruned from tiny"):
        Head(1, 3).check(2, 4, [0, 1], model="tiny")

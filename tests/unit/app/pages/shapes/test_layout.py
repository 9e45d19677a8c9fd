"""What the Memory layout part says is so for every size that can be drawn."""

from itertools import product

import pytest

from mha_viz.app.pages.shapes.layout import TITLES, explanation, made
from mha_viz.lessons.layout import MAX_SIZES, layouts, merges, operations, view_error


@pytest.mark.parametrize("sizes", [*product(*(range(1, n + 1) for n in MAX_SIZES.values()))])
def test_the_explanation_says_copy_where_torch_copies(sizes: tuple[int, int, int]) -> None:
    T, H, d_h = sizes
    of = dict(zip(TITLES, layouts(T, H, d_h), strict=True))
    said = {title: explanation(layout) for title, layout in of.items()}
    assert ("are still apart" in said["Transpose back"]) == (not of["Transpose back"].contiguous)
    assert ("This is the copy" in said["Merge"]) == of["Merge"].copied
    assert ("makes no copy" in said["Merge"]) == (not of["Merge"].copied)
    assert ("`view` would work too" in said["Merge"]) == (view_error(T, H, d_h) == "")
    assert (view_error(T, H, d_h) == "") == (1 in sizes)
    # Nothing else is said to copy, and nothing else does.
    assert not any(of[title].copied for title in TITLES[:-1])
    assert (of["As projected"].tape == of["Transpose"].tape).all(), "the tape is as before"
    assert of["As projected"].strides[0] == 3 * H * d_h, "the next token is 3C numbers away"


@pytest.mark.parametrize("sizes", [(4, 3, 4), (1, 3, 4), (4, 1, 4), (2, 2, 1)])
def test_the_result_of_an_operation_is_torchs(sizes: tuple[int, int, int]) -> None:
    every = [*merges(*sizes), *(one for title in TITLES for one in operations(*sizes, title))]
    for operation in every:
        said = made(operation)
        assert ("refused" in said) == bool(operation.error)
        assert operation.error in said
        if not operation.error:
            assert ("shares the tape" in said) == operation.shared
            assert ("a copy" in said) == (not operation.shared)

"""Operations of limited size: how much each makes is known from the sizes of its tensors."""

import operator

import pytest
import torch
from torch.nn import functional as F

from mha_viz.errors import LineError
from mha_viz.lessons.bounded import (
    MOST_PIECES,
    Bounded,
    check_pieces,
    check_products,
    first_line,
    flat,
    n_made,
    tensors_of,
)

a, b = torch.zeros(5, 1, 3, 4), torch.zeros(2, 4, 6)


@pytest.mark.parametrize(
    ("function", "args", "n"),
    [
        (operator.add, (torch.zeros(7, 1), torch.zeros(3)), 7 * 3),
        (operator.matmul, (a, b), 5 * 2 * 4 * 6),
        (torch.matmul, (a, torch.zeros(4)), 5 * 3 * 4),
        (F.linear, (a, torch.zeros(9, 4)), 5 * 3 * 9),
        (torch.cat, ((a, a, a),), 3 * a.numel()),
        (torch.Tensor.mT.fget if hasattr(torch.Tensor.mT, "fget") else torch.exp, (a,), a.numel()),
        (operator.add, (torch.zeros(7, 2), torch.zeros(3)), 0),
    ],
)
def test_the_numbers_that_an_operation_makes_follow_from_the_sizes(function, args, n) -> None:
    assert n_made(function, args) == n


def test_a_limit_counts_all_results_of_a_line_together() -> None:
    bounded = Bounded(3 * 2 * a.numel())
    for _ in range(3):
        bounded.run("exp", torch.exp, a)
    with pytest.raises(LineError, match=f"{3 * 2 * a.numel()} numbers"):
        bounded.run("exp", torch.exp, a)
    assert [operation.code for operation in bounded.operations] == ["exp"] * 3


def test_a_product_with_too_many_multiplications_is_refused() -> None:
    check_products(10**6)
    with pytest.raises(LineError, match="multiplications"):
        check_products(10**10)


def test_a_tensor_is_cut_into_few_pieces() -> None:
    long = torch.zeros(2 * MOST_PIECES)
    check_pieces(".split", [long, 2], {})
    check_pieces(".chunk", [long], {"chunks": MOST_PIECES, "dim": 0})
    with pytest.raises(LineError, match="pieces"):
        check_pieces(".split", [long], {"split_size": 1})
    with pytest.raises(LineError, match="pieces"):
        check_pieces(".chunk", [long, 10**9, -1], {})


def test_tensors_are_found_within_tuples() -> None:
    assert tensors_of((a, [1, (b,)], {"c": a})) == (a, b, a)
    assert list(flat((1, [2, (3,)]))) == [1, 2, 3]


def test_an_error_is_reported_in_one_line() -> None:
    assert first_line(ValueError("one\ntwo")) == "one"
    assert first_line(OverflowError()) == "OverflowError"

"""Tensor operations whose results have a limited size, for code that users type.

The sizes of what an operation makes follow from those of its tensors, so they are known before any
memory is taken.
"""

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mha_viz.errors import LineError

MOST_NUMBERS = 2**22  # in all results of a line together, views included
MOST_PRODUCTS = 2**32  # multiplications of one product of matrices
MOST_PIECES = 1024  # of split and chunk
PRODUCTS = (operator.matmul, torch.matmul, Tensor.matmul)
BROADCAST = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.pow,
    Tensor.masked_fill,
)  # fmt: skip
TORCH_ERRORS = (RuntimeError, TypeError, ValueError, IndexError, ArithmeticError)


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """A name or an operation of a line, and the tensors that it gave."""

    code: str  # "q", ".view(…)", "@ k"
    tensors: tuple[Tensor, ...] = field(repr=False)


class Bounded:
    """Runs operations whose results have at most `most_numbers` numbers together.

    `operations` lists what was run, in order.
    """

    def __init__(self, most_numbers: int) -> None:
        self.operations: list[Operation] = []
        self._most = self._left = most_numbers

    def run(self, code: str, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """The value of an operation; several tensors come as a tuple.

        Raises LineError where the result would be too large, or in torch's words where torch
        refuses.
        """
        if any(isinstance(part, (str, nn.Module)) for part in flat((args, options))):
            raise LineError("An argument is a tensor, a number or a tuple of numbers.")
        self.count(n_made(function, args))
        try:
            value = function(*args, **options)
        except TORCH_ERRORS as error:
            raise LineError(f"torch: {first_line(error)}") from None
        # A view takes no memory, whatever its size, but what is made of it would.
        self.count(sum(tensor.numel() for tensor in tensors_of(value)))
        if tensors := tensors_of(value):
            self.operations.append(Operation(code, tensors))
        return tuple(value) if isinstance(value, (list, torch.Size)) else value

    def count(self, n: int) -> None:
        """Counts numbers that will be made. Raises LineError where they are too many."""
        self._left -= n
        if self._left < 0:
            raise LineError(
                f"This line would make more than {self._most:,} numbers in all; use smaller sizes."
            )


def n_made(function: Callable[..., Any], args: Sequence[Any]) -> int:
    """The most numbers that an operation holds in memory at once, from the sizes of its tensors.

    0 where sizes do not fit together, which torch refuses before it makes anything. Raises
    LineError for a product with too many multiplications.
    """
    tensors = tensors_of(args)
    if function is F.linear:
        return _of_linear(*tensors[:2])
    try:
        if function in PRODUCTS and len(tensors) == 2:
            return _of_product(*tensors)
        if function in BROADCAST:
            return math.prod(_broadcast(*(tensor.shape for tensor in tensors)))
    except RuntimeError:
        return 0
    return sum(tensor.numel() for tensor in tensors)


def _of_linear(x: Tensor, W: Tensor) -> int:
    check_products(x.numel() * W.shape[0])
    return x.numel() // max(1, W.shape[1]) * W.shape[0]


def _of_product(a: Tensor, b: Tensor) -> int:
    """The largest of a @ b and its operands, which are repeated over the axes before."""
    rows = a.shape[-2] if a.dim() > 1 else 1
    columns = b.shape[-1] if b.dim() > 1 else 1
    inner = a.shape[-1] if a.dim() else 1
    batches = math.prod(_broadcast(a.shape[:-2], b.shape[:-2]))
    check_products(batches * rows * inner * columns)
    return batches * max(rows * inner, inner * columns, rows * columns)


def _broadcast(*shapes: torch.Size) -> torch.Size:
    size: torch.Size = torch.broadcast_shapes(*shapes)  # type: ignore[no-untyped-call]
    return size


def check_products(n: int) -> None:
    """Raises LineError for a product of matrices with too many multiplications."""
    if n > MOST_PRODUCTS:
        raise LineError(f"This takes {n:,} multiplications; at most {MOST_PRODUCTS:,} are allowed.")


def check_pieces(code: str, given: Sequence[Any], options: Mapping[str, Any]) -> None:
    """Raises LineError for a `.split` or `.chunk` that would make very many tensors."""
    tensor, *rest = given
    size = rest[0] if rest else options.get("split_size", options.get("chunks"))
    dim = rest[1] if len(rest) > 1 else options.get("dim", 0)
    if isinstance(size, int) and isinstance(dim, int) and -tensor.dim() <= dim < tensor.dim():
        along = tensor.shape[dim]
        pieces = min(size, along) if code == ".chunk" else along // max(size, 1)
        if pieces > MOST_PIECES:
            raise LineError(
                f"{code} would make {pieces:,} pieces; at most {MOST_PIECES:,} are allowed."
            )


def flat(value: Any) -> Iterator[Any]:
    """The parts of tuples, lists and dictionaries within one another."""
    if isinstance(value, dict):
        value = tuple(value.values())
    if not isinstance(value, (tuple, list)):
        yield value
        return
    for part in value:
        yield from flat(part)


def tensors_of(value: Any) -> tuple[Tensor, ...]:
    """The tensors among the parts of a value."""
    return tuple(part for part in flat(value) if isinstance(part, Tensor))


def first_line(error: Exception) -> str:
    """The first line of an error's message; in torch's, a trace can follow."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]

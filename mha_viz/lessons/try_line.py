"""A user's line of code for a step of the layer: what it gives, and whether it is right."""

from dataclasses import dataclass

import torch
from torch import Tensor

from mha_viz.errors import LineError
from mha_viz.lessons.code_trace import described
from mha_viz.lessons.expression import Names, Result, evaluate

ROUNDING = 64  # differences up to so many units in the last place of the largest number


@dataclass(frozen=True, slots=True)
class Answer:
    """What a line gave, in words; where it could not be evaluated, only the error."""

    line: str
    error: str = ""
    shape: str = ""
    strides: str = ""
    memory: str = ""  # whether it is shared with the tensor that the step begins with
    equal: str = ""  # whether it is the module's tensor
    same_shape: bool = False
    right: bool = False


def try_line(line: str, names: Names, main: str, target: tuple[Tensor, ...]) -> Answer:
    """Evaluates a line and compares it with the module's tensors.

    `main` is the name of the tensor that the step begins with. A line that gives one tensor is
    compared with the first of `target`.
    """
    try:
        result = evaluate(line, names)
    except LineError as error:
        return Answer(line, error=str(error))
    found = result.tensors
    if not found:
        return Answer(line, shape=f"not a tensor, but {result.value}", equal="no")
    wanted = target if len(found) == len(target) else target[:1]
    same_shape = [t.shape for t in found] == [t.shape for t in wanted]
    equal, right = _compared(found, wanted) if same_shape else (_other_shape(wanted), False)
    return Answer(
        line,
        shape=described(found),
        strides=str(found[0].stride()),
        memory=memory(result, main, names),
        equal=equal,
        same_shape=same_shape,
        right=right,
    )


def memory(result: Result, main: str, names: Names) -> str:
    """Whether a line's first tensor lies in the memory of the one named `main`, in words."""
    tensor = result.tensors[0]
    shared = [
        name
        for name, given in names.items()
        if isinstance(given, Tensor) and same_memory(tensor, given)
    ]
    if shared:
        return "yes" if main in shared else f"no: with {shared[0]}"
    kind = "a copy of" if result.only_layout else "new numbers,"
    return f"no: {kind} {_bytes(tensor.untyped_storage().nbytes())}"


def same_memory(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors lie in the same memory."""
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def n_different(found: Tensor, wanted: Tensor) -> int:
    """How many numbers differ by more than rounding; the shapes must be equal."""
    if found.dtype == torch.bool or wanted.dtype == torch.bool:
        return int((found != wanted).sum())
    size = wanted[wanted.isfinite()].abs()
    largest = float(size.max()) if len(size) else 1.0
    atol = ROUNDING * torch.finfo(wanted.dtype).eps * largest
    return int((~torch.isclose(found, wanted, rtol=0, atol=atol, equal_nan=True)).sum())


def _compared(found: tuple[Tensor, ...], wanted: tuple[Tensor, ...]) -> tuple[str, bool]:
    pairs = list(zip(found, wanted, strict=True))
    different = sum(n_different(a, b) for a, b in pairs)
    if different:
        total = sum(b.numel() for b in wanted)
        return f"no: {different:,} of {total:,} numbers differ", False
    if all(torch.equal(a, b) for a, b in pairs):
        return "yes, to the last digit", True
    largest = max(float((a - b).nan_to_num().abs().max()) for a, b in pairs)
    return f"yes, up to rounding: {largest:.0e} at most", True


def _other_shape(wanted: tuple[Tensor, ...]) -> str:
    return f"no: the module's is {described(wanted)}"


def _bytes(n: int) -> str:
    for unit, size in (("MiB", 2**20), ("KiB", 2**10)):
        if n >= size:
            return f"{n / size:,.4g} {unit}"
    return f"{n} bytes"

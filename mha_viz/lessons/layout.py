"""Memory layout: where numbers lie before and after view, transpose and the copy in merge.

q is a window on the fused product, whose rows hold q, k and v of a token; z is a tensor of its own.
Each number has a name that it keeps, t C + h d_h + i, so it can be followed from step to step.
Strides, copies and errors are read from torch, not derived from rules.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mha_viz.errors import ShapeError

MAX_SIZES = {"T": 6, "H": 4, "d_h": 4}  # with more, cells are too small to read on a phone
OTHER = -1  # the name of what lies on the tape and belongs to k or v


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """A tensor, its strides, and the tape of memory that it indexes.

    `cells` `[H, T, d_h]` holds the address on the tape of head h, position t, element i. `tape`
    holds the name of the number at each address, or OTHER; `before` is the tape of the step before,
    if this one copied it.
    """

    title: str
    name: str  # of the tensor: q or z
    code: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    contiguous: bool
    copied: bool
    cells: NDArray[np.int64]
    tape: NDArray[np.int64]
    before: NDArray[np.int64] | None


@dataclass(frozen=True, slots=True)
class Operation:
    """What torch makes of a tensor: strides, and whether memory is shared; or its error."""

    code: str
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    shared: bool = False
    error: str = ""


def layouts(T: int, H: int, d_h: int) -> tuple[Layout, ...]:
    """The split q, its view and transpose; then z, its transpose, and the merge to `[T, C]`.

    Raises ShapeError for a size that is not in 1..MAX_SIZES.
    """
    q, z = _q_and_z(T, H, d_h)
    view = q.view(T, H, d_h)
    back = z.transpose(0, 1)
    merged = back.reshape(T, H * d_h)
    steps = (
        ("As projected", "q", "q = qkv[:, :C]", "T C", q, q),
        ("View", "q", "q.view(T, H, d_h)", "T H d_h", view, q),
        ("Transpose", "q", "q.view(T, H, d_h).transpose(0, 1)", "H T d_h", view.transpose(0, 1), q),
        ("z", "z", "z = w @ v", "H T d_h", z, z),
        ("Transpose back", "z", "z.transpose(0, 1)", "T H d_h", back, z),
        ("Merge", "z", "z.transpose(0, 1).reshape(T, C)", "T C", merged, z),
    )
    return tuple(
        _layout(title, name, code, axes, tensor, before=before, H=H)
        for title, name, code, axes, tensor, before in steps
    )


def operations(T: int, H: int, d_h: int, title: str) -> tuple[Operation, ...]:
    """What torch makes of the tensor of a step with each operation that changes its shape.

    Raises ShapeError as `layouts` does, and LookupError for a step that there is not.
    """
    q, z = _q_and_z(T, H, d_h)
    view, back = q.view(T, H, d_h), z.transpose(0, 1)
    tensors = {"As projected": q, "View": view, "Transpose": view.transpose(0, 1), "z": z}
    tensors |= {"Transpose back": back, "Merge": back.reshape(T, H * d_h)}
    tensor = tensors[title]
    n = tensor.numel()
    return (
        _operation(".transpose(0, 1)", tensor, lambda t: t.transpose(0, 1)),
        _operation(f".view({n})", tensor, lambda t: t.view(n)),
        _operation(f".reshape({n})", tensor, lambda t: t.reshape(n)),
        _operation(".contiguous()", tensor, lambda t: t.contiguous()),
    )


def merges(T: int, H: int, d_h: int) -> tuple[Operation, ...]:
    """Ways from z `[H, T, d_h]` to `[T, C]`. Raises ShapeError as `layouts` does."""
    _, z = _q_and_z(T, H, d_h)
    C = H * d_h
    return (
        _operation(".transpose(0, 1).view(T, C)", z, lambda t: t.transpose(0, 1).view(T, C)),
        _operation(
            ".transpose(0, 1).contiguous().view(T, C)",
            z,
            lambda t: t.transpose(0, 1).contiguous().view(T, C),
        ),
        _operation(".transpose(0, 1).reshape(T, C)", z, lambda t: t.transpose(0, 1).reshape(T, C)),
    )


def view_error(T: int, H: int, d_h: int) -> str:
    """The error of torch for `z.transpose(0, 1).view(T, C)`; "" if it raises none.

    It raises none if T, H or d_h is 1, because then strides can express the merge.
    """
    return merges(T, H, d_h)[0].error


def strides_of_q(T: int, H: int, G: int, d_h: int) -> dict[str, tuple[int, ...]]:
    """The strides of q of a layer with these sizes, with B = 1 in front: split, view, transpose."""
    qkv = torch.empty(1, T, (H + 2 * G) * d_h, device="meta")
    q = qkv[..., : H * d_h]
    view = q.view(1, T, H, d_h)
    steps = {"split": q, "view": view, "transpose": view.transpose(1, 2)}
    return {name: tensor.stride() for name, tensor in steps.items()}


def _q_and_z(T: int, H: int, d_h: int) -> tuple[Tensor, Tensor]:
    """The window q `[T, C]` on `[T, 3C]`, and z `[H, T, d_h]`; numbers are their own names."""
    _check(T, H, d_h)
    names = torch.arange(T * H * d_h).view(T, H * d_h)
    qkv = torch.cat([names, torch.full((T, 2 * H * d_h), OTHER)], dim=1)
    z = names.view(T, H, d_h).transpose(0, 1).clone(memory_format=torch.contiguous_format)
    return qkv[:, : H * d_h], z


def _operation(code: str, tensor: Tensor, run: Callable[[Tensor], Tensor]) -> Operation:
    try:
        made = run(tensor)
    except RuntimeError as error:
        return Operation(code, error=str(error))
    return Operation(code, tuple(made.shape), made.stride(), _same_tape(made, tensor))


def _layout(
    title: str, name: str, code: str, axes: str, tensor: Tensor, *, before: Tensor, H: int
) -> Layout:
    """The layout of a tensor that was made from `before`, with its axes named as in "T H d_h"."""
    tape = _tape(tensor)
    addresses = torch.arange(len(tape)).as_strided(tensor.shape, tensor.stride())
    if axes != "H T d_h":
        addresses = addresses.reshape(len(addresses), H, -1).transpose(0, 1)
    copied = not _same_tape(tensor, before)
    return Layout(
        title=title,
        name=name,
        code=code,
        axes=tuple(axes.split()),
        shape=tuple(tensor.shape),
        strides=tensor.stride(),
        contiguous=tensor.is_contiguous(),
        copied=copied,
        cells=addresses.numpy().copy(),
        tape=tape.numpy().copy(),
        before=_tape(before).numpy().copy() if copied else None,
    )


def _tape(tensor: Tensor) -> Tensor:
    """All the memory behind a tensor, in the order of addresses."""
    return torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())


def _same_tape(a: Tensor, b: Tensor) -> bool:
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def _check(T: int, H: int, d_h: int) -> None:
    if not all(1 <= n <= most for n, most in zip((T, H, d_h), MAX_SIZES.values(), strict=True)):
        limits = ", ".join(f"{name} {most}" for name, most in MAX_SIZES.items())
        raise ShapeError(
            f"T = {T}, H = {H}, d_h = {d_h}; every cell is drawn, so each must be at least 1 and "
            f"at most {limits}."
        )

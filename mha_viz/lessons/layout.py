"""Memory layout: where elements are stored before and after view, transpose and contiguous.

Each element of the tensor holds its own address, so it shows where it was in the original storage.
Strides, copies and errors are read from torch, not derived from rules.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mha_viz.errors import ShapeError

MAX_SIZES = {"T": 6, "H": 4, "d_h": 4}  # with more, cells are too small to read on a phone


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """A tensor, its strides, and the storage that it indexes.

    `cells` `[H, T, d_h]` holds the address in `storage` of head h, position t, column i; `storage`
    holds, for each address, the address in the original storage of `[T, C]`.
    """

    title: str
    code: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    contiguous: bool
    copied: bool
    cells: NDArray[np.int64]
    storage: NDArray[np.int64]


def layouts(T: int, H: int, d_h: int) -> tuple[Layout, ...]:
    """`[T, C]`, its view, the transpose, a contiguous copy, and the merge back to `[T, C]`.

    Raises ShapeError for a size that is not in 1..MAX_SIZES.
    """
    _check(T, H, d_h)
    x = torch.arange(T * H * d_h).view(T, H * d_h)
    view = x.view(T, H, d_h)
    transposed = view.transpose(0, 1)
    copy = transposed.contiguous()
    merged = copy.transpose(0, 1).reshape(T, H * d_h)
    merge = "….transpose(0, 1).reshape(T, C)"
    return (
        _layout("As projected", "x", "T C", x, before=x, H=H),
        _layout("View", "x.view(T, H, d_h)", "T H d_h", view, before=x, H=H),
        _layout("Transpose", "….transpose(0, 1)", "H T d_h", transposed, before=x, H=H),
        _layout("Contiguous", "….contiguous()", "H T d_h", copy, before=transposed, H=H),
        _layout("Merge", merge, "T C", merged, before=copy, H=H),
    )


def view_error(T: int, H: int, d_h: int) -> str:
    """The error of torch for `z.transpose(0, 1).view(T, C)`; "" if it raises none.

    It raises none if T or H is 1, because then no element has to move.
    """
    _check(T, H, d_h)
    z = torch.zeros(H, T, d_h)
    try:
        z.transpose(0, 1).view(T, H * d_h)
    except RuntimeError as error:
        return str(error)
    return ""


def _layout(title: str, code: str, axes: str, tensor: Tensor, *, before: Tensor, H: int) -> Layout:
    """The layout of a tensor that was made from `before`, with its axes named as in "T H d_h"."""
    storage = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())
    addresses = torch.arange(len(storage)).as_strided(tensor.shape, tensor.stride())
    if axes != "H T d_h":
        addresses = addresses.view(len(addresses), H, -1).transpose(0, 1)
    return Layout(
        title=title,
        code=code,
        axes=tuple(axes.split()),
        shape=tuple(tensor.shape),
        strides=tensor.stride(),
        contiguous=tensor.is_contiguous(),
        copied=tensor.untyped_storage().data_ptr() != before.untyped_storage().data_ptr(),
        cells=addresses.numpy().copy(),
        storage=storage.numpy().copy(),
    )


def _check(T: int, H: int, d_h: int) -> None:
    if not all(1 <= n <= most for n, most in zip((T, H, d_h), MAX_SIZES.values(), strict=True)):
        limits = ", ".join(f"{name} {most}" for name, most in MAX_SIZES.items())
        raise ShapeError(
            f"T = {T}, H = {H}, d_h = {d_h}; every cell is drawn, so each must be at least 1 and "
            f"at most {limits}."
        )

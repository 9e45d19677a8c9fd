"""Where the numbers lie: storage order before and after view, transpose and contiguous.

The tensor is filled with its own addresses, so that each number says where in the first storage it
stood. What is shown of strides, copies and errors is what torch does, not what is said of it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mha_viz.errors import ShapeError

MOST = {"T": 6, "H": 4, "d_h": 4}  # beyond that no cell could be read on a phone


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """One way to count through memory.

    `cells` `[H, T, d_h]` holds for head h, position t, number i the address in `storage`; `storage`
    holds for each address the address in the first storage, that of `[T, C]`.
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
    """`[T, C]`, its view, the transpose, a contiguous copy, and the way back to `[T, C]`.

    Raises ShapeError for a size that is not in 1..MOST.
    """
    _check(T, H, d_h)
    x = torch.arange(T * H * d_h).view(T, H * d_h)
    view = x.view(T, H, d_h)
    turned = view.transpose(0, 1)
    copy = turned.contiguous()
    merged = copy.transpose(0, 1).reshape(T, H * d_h)

    def by_position(a: Tensor) -> Tensor:
        return a.view(T, H, d_h).transpose(0, 1)

    heads, positions = ("H", "T", "d_h"), ("T", "H", "d_h")
    return (
        _layout("As projected", "x", ("T", "C"), x, x, by_position),
        _layout("View", "x.view(T, H, d_h)", positions, view, x, by_position),
        _layout("Transpose", "….transpose(0, 1)", heads, turned, x, lambda a: a),
        _layout("Contiguous", "….contiguous()", heads, copy, turned, lambda a: a),
        _layout(
            "Merge", "….transpose(0, 1).reshape(T, C)", ("T", "C"), merged, copy, by_position
        ),
    )  # fmt: skip


def view_error(T: int, H: int, d_h: int) -> str:
    """What torch says to `z.transpose(0, 1).view(T, C)`; empty where it allows it.

    It does where T or H is 1: then no number would have to move.
    """
    _check(T, H, d_h)
    z = torch.zeros(H, T, d_h)
    try:
        z.transpose(0, 1).view(T, H * d_h)
    except RuntimeError as error:
        return str(error)
    return ""


def _layout(
    title: str, code: str, axes: tuple[str, ...], tensor: Tensor, before: Tensor,
    heads_first: Callable[[Tensor], Tensor],
) -> Layout:  # fmt: skip
    storage = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())
    addresses = torch.arange(len(storage)).as_strided(tensor.shape, tensor.stride())
    return Layout(
        title=title,
        code=code,
        axes=axes,
        shape=tuple(tensor.shape),
        strides=tensor.stride(),
        contiguous=tensor.is_contiguous(),
        copied=tensor.untyped_storage().data_ptr() != before.untyped_storage().data_ptr(),
        cells=heads_first(addresses).numpy().copy(),
        storage=storage.numpy().copy(),
    )


def _check(T: int, H: int, d_h: int) -> None:
    if not all(1 <= n <= most for n, most in zip((T, H, d_h), MOST.values(), strict=True)):
        limits = ", ".join(f"{name} {most}" for name, most in MOST.items())
        raise ShapeError(
            f"T = {T}, H = {H}, d_h = {d_h}; each is drawn cell by cell, so it must be from 1 to "
            f"at most {limits}."
        )

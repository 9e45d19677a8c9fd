"""Layers shared by several families of networks. Imports only torch."""

from dataclasses import dataclass

from torch import Tensor, nn

from mha_viz.errors import ShapeError


@dataclass(frozen=True, slots=True, eq=False)
class FrozenNorm:
    """A normalisation with its scale frozen at that of one vector x, which makes it affine:

    norm(x) = sum over parts of frozen(part) + frozen.bias, for any parts that add up to x.
    """

    weight: Tensor  # [C], divided by the scale of x
    bias: Tensor  # [C]
    centred: bool  # whether the mean over C is subtracted, as in LayerNorm

    def __call__(self, part: Tensor) -> Tensor:
        """The contribution of a part `[..., C]` of x to norm(x), `[..., C]`, without the bias."""
        if self.centred:
            part = part - part.mean(dim=-1, keepdim=True)
        return part * self.weight


class Embedding(nn.Embedding):
    """A table of vectors; left empty on the meta device, where filling it would import sympy."""

    def reset_parameters(self) -> None:
        """Initialises the weights at random, unless they are on the meta device."""
        if not self.weight.is_meta:
            super().reset_parameters()


def check_width(resid: Tensor, d_model: int) -> None:
    """Raises ShapeError for a residual stream that is not `[..., C]` with C = `d_model`."""
    if not resid.dim() or resid.shape[-1] != d_model:
        raise ShapeError(
            f"resid has shape {list(resid.shape)}; expected [..., C] with C = {d_model}."
        )

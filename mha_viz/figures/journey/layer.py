"""The arrays of one layer that the pictures show, and the cell that they follow."""

from dataclasses import dataclass, field, replace

from mha_viz.trace import Array


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """The tensors of one sequence in one layer, with their axes; heads in the order of `heads`.

    `heads` are the numbers of the layer's heads in the model; without pruned heads, 0 to H - 1.
    """

    x: Array = field(repr=False)  # [T, C], what the layer reads
    resid: Array = field(repr=False)  # [T, C], the residual stream before the layer
    qkv: Array = field(repr=False)  # [T, (H + 2G) d_h]
    scores: Array = field(repr=False)  # [H, T, T], scaled, before the mask
    pattern: Array = field(repr=False)  # [H, T, T]; what is masked is NaN
    z: Array = field(repr=False)  # [T, H d_h], merged
    out: Array = field(repr=False)  # [T, C]
    W_QKV: Array = field(repr=False)  # [C, (H + 2G) d_h]
    b_QKV: Array = field(repr=False)  # [(H + 2G) d_h]; zero where the layer has no bias
    W_O: Array = field(repr=False)  # [H d_h, C]
    b_O: Array = field(repr=False)  # [C]
    heads: tuple[int, ...]
    n_kv_heads: int
    d_head: int
    scale: float  # multiplies q @ k^T
    tokens: tuple[str, ...] = ()  # none for random input

    @property
    def T(self) -> int:
        """The number of positions."""
        return len(self.x)

    @property
    def C(self) -> int:
        """The width of a position."""
        return int(self.x.shape[1])

    @property
    def H(self) -> int:
        """The number of heads."""
        return len(self.heads)

    @property
    def G(self) -> int:
        """The number of key/value heads."""
        return self.n_kv_heads

    @property
    def width(self) -> int:
        """The numbers of a position in q, and in z: H d_h, less than C if heads were pruned."""
        return self.H * self.d_head

    @property
    def step(self) -> int:
        """The numbers of a position in q, k and v together: from one token to the next."""
        return int(self.qkv.shape[1])

    def kv_head(self, head: int) -> int:
        """The key/value head of a head, both as an index."""
        return head * self.G // self.H

    def column(self, part: str, head: int, element: int = 0) -> int:
        """The column of qkv that holds an element of "q", "k" or "v" of a head."""
        if part == "q":
            return head * self.d_head + element
        first = self.width + (part == "v") * self.G * self.d_head
        return first + self.kv_head(head) * self.d_head + element

    def label(self, token: int) -> str:
        """The token of a position, or its number."""
        return self.tokens[token] if self.tokens else str(token)


@dataclass(frozen=True, slots=True)
class Focus:
    """The number that is followed: q[token, head, element]; and the key that its token looks at.

    `head` and `other`, a second head that is shown in full, are indices among the layer's heads.
    """

    token: int
    head: int
    element: int = 0
    key: int = 0
    other: int | None = None

    @property
    def chosen(self) -> tuple[int, ...]:
        """The heads that are shown in full."""
        return (self.head,) if self.other in (None, self.head) else (self.head, self.other)


def pointed(focus: Focus, layer: Layer, image: str, row: int, column: int) -> Focus:
    """The focus after a click on a cell: `row` and `column` of the array behind an image.

    Images of all heads are one above the other, [H T, T]; those of positions are as in `Layer`.
    """
    d_h = layer.d_head
    if image in ("scores", "masked", "pattern"):
        return replace(focus, head=row // layer.T, token=row % layer.T, key=column)
    if image == "qkv" and column >= layer.width:
        group = (column - layer.width) // d_h % layer.G
        head = group * layer.H // layer.G
        if layer.kv_head(focus.head) == group:
            head = focus.head
        return replace(focus, head=head, key=row, element=column % d_h)
    if image in ("qkv", "z"):
        return replace(focus, token=row, head=column // d_h, element=column % d_h)
    return replace(focus, token=row)

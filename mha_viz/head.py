"""Head: identifies an attention head, by a label for people and a key for links."""

import re
from collections.abc import Collection
from typing import NamedTuple

from mha_viz.errors import HeadNotFound

_KEY = re.compile(r"L(\d{1,4}) ?H(\d{1,4})", re.IGNORECASE)


class Head(NamedTuple):
    """An attention head: its layer and its number there, both from 0. Equal to that tuple."""

    layer: int
    head: int

    @property
    def label(self) -> str:
        """For people: "L5 H1"."""
        return f"L{self.layer} H{self.head}"

    @property
    def key(self) -> str:
        """For links, file names and keys of widgets: "L5H1"."""
        return f"L{self.layer}H{self.head}"

    @classmethod
    def parse(cls, text: str) -> "Head":
        """The head that a label or a key names. Raises HeadNotFound for any other text."""
        found = _KEY.fullmatch(text.strip())
        if found is None:
            raise HeadNotFound(f"“{text[:40]}” does not name a head. Write L5H1, for example.")
        return cls(int(found[1]), int(found[2]))

    @classmethod
    def find_all(cls, text: str) -> "list[Head]":
        """Every head that a text names, in order, without repeats."""
        return list(dict.fromkeys(cls(int(layer), int(head)) for layer, head in _KEY.findall(text)))

    def check(
        self, n_layers: int, n_heads: int, kept: Collection[int] | None = None, *, model: str
    ) -> None:
        """Raises HeadNotFound if a model of this size does not have the head.

        `kept` are the heads of its layer that have not been pruned; None means all.
        """
        if not (0 <= self.layer < n_layers and 0 <= self.head < n_heads):
            raise HeadNotFound(
                f"{self.label} is not in {model}, which has layers 0 to {n_layers - 1} and heads 0 "
                f"to {n_heads - 1}."
            )
        if kept is not None and self.head not in kept:
            raise HeadNotFound(f"{self.label} has been pruned from {model}. Choose another head.")

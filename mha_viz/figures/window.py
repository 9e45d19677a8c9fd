"""The part of a pattern that is looked at, and how many tokens one of its cells stands for."""

from collections.abc import Sequence
from dataclasses import dataclass

MAX_CELLS = 256  # a side; more than that is pooled


@dataclass(frozen=True, slots=True)
class Window:
    """Half-open ranges of queries and keys: the part of a pattern that is looked at."""

    first_query: int
    end_query: int
    first_key: int
    end_key: int

    @property
    def block(self) -> int:
        """Tokens a side that one cell stands for."""
        longest = max(self.end_query - self.first_query, self.end_key - self.first_key)
        return -(-longest // MAX_CELLS)


def whole(n_tokens: int) -> Window:
    """The window that shows everything."""
    return Window(0, n_tokens, 0, n_tokens)


def clamp_window(edges: Sequence[float], n_tokens: int) -> Window | None:
    """A window from edges (queries from, to, keys from, to), or None where nothing is left out."""
    numbers = [int(min(max(edge, 0), n_tokens)) for edge in edges]
    q0, q1, k0, k1 = numbers
    if q1 - q0 < 1 or k1 - k0 < 1:
        return None
    window = Window(q0, q1, k0, k1)
    return None if window == whole(n_tokens) else window

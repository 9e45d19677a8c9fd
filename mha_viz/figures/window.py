"""The part of a pattern that is shown, and how many tokens one of its cells stands for."""

from collections.abc import Sequence
from dataclasses import dataclass

MAX_CELLS = 256  # per side; larger patterns are pooled


@dataclass(frozen=True, slots=True)
class Window:
    """Half-open ranges of queries and keys."""

    first_query: int
    end_query: int
    first_key: int
    end_key: int

    @property
    def block(self) -> int:
        """Tokens per side of one cell."""
        longest = max(self.end_query - self.first_query, self.end_key - self.first_key)
        return -(-longest // MAX_CELLS)


def whole(n_tokens: int) -> Window:
    """The window that shows the full pattern."""
    return Window(0, n_tokens, 0, n_tokens)


def clamp_window(edges: Sequence[float], n_tokens: int) -> Window | None:
    """The window with these edges, clamped to the text.

    `edges` are the first and end query, then the first and end key. None if the window is empty
    or shows the full pattern.
    """
    q0, q1, k0, k1 = (int(min(max(edge, 0), n_tokens)) for edge in edges)
    if q1 - q0 < 1 or k1 - k0 < 1:
        return None
    window = Window(q0, q1, k0, k1)
    return None if window == whole(n_tokens) else window

"""Types of the callbacks that report progress. A callback can stop the work by raising."""

from collections.abc import Callable
from typing import TypeAlias

OnProgress: TypeAlias = Callable[[float], None]
"""Called with the fraction done, from 0 to 1."""

OnLayer: TypeAlias = Callable[[int], None]
"""Called after each layer with the number of layers done."""

"""The loss of a model against its number of key/value heads, measured beside the page.

What was measured is kept for all visitors; a measurement belongs to the one who looks at it, and
ends soon after nobody does.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mha_viz.errors import MhaVizError
from mha_viz.model import Model
from mha_viz.pruning.passes import Pass
from mha_viz.variants import grouped_gpt2

ABANDONED = 90.0  # seconds; a browser wakes a hidden page about once a minute
MOST_KEPT = 32

_known: OrderedDict[str, dict[int, float]] = OrderedDict()
_guard = threading.Lock()
_turn = threading.Semaphore(1)  # two at once would only wait for each other


@dataclass(eq=False)
class Measurement:
    """One run over all `groups`; written by its thread, read by a page."""

    key: str
    model: Model
    pieces: Sequence[list[int]]
    groups: Sequence[int]
    stop: threading.Event = field(default_factory=threading.Event)
    waits: bool = True  # for its turn
    n_done: int = 0  # pieces, over all groups
    error: str = "The measurement broke off; the server's log may say why. Try again."
    ended: bool = False
    _seen: float = field(default_factory=time.monotonic)

    @property
    def share(self) -> float:
        """How much is done, from 0 to 1."""
        return min(1.0, self.n_done / (len(self.pieces) * len(self.groups)))

    def start(self) -> "Measurement":
        """Begins beside the page."""
        threading.Thread(target=self.run, daemon=True).start()
        return self

    def look(self) -> None:
        """Tells that somebody still looks."""
        self._seen = time.monotonic()

    def run(self) -> None:
        """Measures what is not known yet, one measurement at a time."""
        try:
            while not _turn.acquire(timeout=0.2):
                if self._over():
                    break
            else:
                try:
                    self.waits = False
                    self._measure()
                finally:
                    _turn.release()
            self.error = ""
        except MhaVizError as error:
            self.error = str(error)
        finally:
            self.ended = True

    def _measure(self) -> None:
        for number, n_kv_heads in enumerate(self.groups):
            self.n_done = number * len(self.pieces)
            if n_kv_heads in known(self.key):
                continue
            loss = self._loss(n_kv_heads)
            if loss is None:
                return
            _keep(self.key, n_kv_heads, loss)
        self.n_done = len(self.groups) * len(self.pieces)

    def _loss(self, n_kv_heads: int) -> float | None:
        """The mean over all tokens of all pieces, in nats; None where it was stopped."""
        network = self.model.network
        if n_kv_heads != (network.config.n_kv_heads or network.config.n_heads):
            network = grouped_gpt2(network, n_kv_heads)
        shared = replace(self.model, network=network)
        found = []
        for piece in self.pieces:
            if self._over():
                return None
            found.append(Pass.of(shared, piece).losses())
            self.n_done += 1
        return float(np.concatenate(found).mean(dtype=np.float64))

    def _over(self) -> bool:
        return self.stop.is_set() or time.monotonic() - self._seen > ABANDONED


def known(key: str) -> dict[int, float]:
    """The losses that were measured under this key, by number of key/value heads."""
    with _guard:
        return dict(_known.get(key, {}))


def _keep(key: str, n_kv_heads: int, loss: float) -> None:
    with _guard:
        _known.setdefault(key, {})[n_kv_heads] = loss
        _known.move_to_end(key)
        while len(_known) > MOST_KEPT:
            _known.popitem(last=False)

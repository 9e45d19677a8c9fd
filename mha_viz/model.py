"""Model: a network, its tokenizer and a description of both. `checkpoints.load` returns one."""

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from tokenizers import Tokenizer

from mha_viz.callbacks import OnLayer
from mha_viz.errors import TextError
from mha_viz.network import Network, NetworkConfig
from mha_viz.tokens import Token, clean_text, label, read_tokens, unknown_characters
from mha_viz.trace import Array, Cut, Trace

MAX_CHARACTERS = 200_000  # limits the tokenizer's work; 1,024 tokens are about 5,000 characters


@dataclass(frozen=True, slots=True)
class Description:
    """Where a model comes from and how its checkpoint was read, for people who use its numbers."""

    name: str
    source: str
    stored_dtype: str
    n_parameters: int
    weights_hash: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A language model. It never changes, so any number of threads may share it."""

    network: Network = field(repr=False)
    tokenizer: Tokenizer = field(repr=False)
    description: Description

    @property
    def config(self) -> NetworkConfig:
        """The sizes of the network."""
        return self.network.config

    @property
    def device(self) -> torch.device:
        """Where the network computes."""
        return self.network.device

    def trace(self, text: str, *, cut: Cut = "end", on_layer: OnLayer | None = None) -> Trace:
        """One forward pass over the text, as a `Trace`.

        `cut` says where tokens beyond n_positions are dropped: at the "start" or the "end" of the
        text. The trace records how many. `on_layer` is called with the number of layers done; an
        exception that it raises stops the pass. Raises TextError for an empty text, or another
        `cut`.
        """
        if cut not in ("start", "end"):
            raise TextError(f'cut = {cut!r}; expected "start" or "end".')
        ids, replaced = self.encode(text)
        kept, left_out = self._fit(ids, cut)
        return self._trace(
            kept, text, cut=cut, left_out=left_out, replaced=replaced, on_layer=on_layer
        )

    def trace_ids(
        self,
        ids: Sequence[int],
        *,
        head_gate: Array | None = None,
        on_layer: OnLayer | None = None,
    ) -> Trace:
        """One forward pass over exactly these token ids, as a `Trace`; its text is the decoded ids.

        `head_gate` `[L, H]` scales each head's z before W_O: 0 ablates a head, 1 leaves it intact.
        `on_layer` is called with the number of layers done; an exception that it raises stops
        the pass. Raises TextError as `check_ids` does, ShapeError for a gate of another shape.
        """
        given = self.check_ids(ids)
        text = b"".join(token.bytes for token in self.read(given)).decode("utf-8", "replace")
        return self._trace(given, text, head_gate=head_gate, on_layer=on_layer)

    def encode(self, text: str) -> tuple[list[int], int]:
        """The token ids, and the number of characters that had to be replaced by U+FFFD.

        No special token is added. Raises TextError for an empty text, for more than MAX_CHARACTERS
        characters, and for a character that the tokenizer would drop.
        """
        if not isinstance(text, str):
            raise TextError(f"The text is a {type(text).__name__}; expected a str.")
        if not text:
            raise TextError("The text is empty. Type a sentence, or choose a sample.")
        if len(text) > MAX_CHARACTERS:
            raise TextError(
                f"The text has {len(text):,} characters; the limit is {MAX_CHARACTERS:,}. "
                "Shorten it: the model reads only a few thousand at once."
            )
        clean, replaced = clean_text(text)
        unknown = unknown_characters(self.tokenizer, clean)
        if unknown:
            raise TextError(
                f"{self.description.name} has no token for {label(unknown[0].encode())} "
                f"({len(unknown)} such characters), so its tokenizer would drop it. Remove it from "
                "the text."
            )
        return self.tokenizer.encode(clean, add_special_tokens=False).ids, replaced

    def read(self, ids: list[int]) -> tuple[Token, ...]:
        """The token of each id."""
        return read_tokens(self.tokenizer, ids)

    def check_ids(self, ids: Sequence[int]) -> list[int]:
        """The ids as Python integers.

        Raises TextError for no ids, for more than n_positions, for an id that the model does not
        have and for anything that is not an integer.
        """
        try:
            given = [operator.index(i) for i in ids]
        except TypeError as error:
            raise TextError(f"{ids!r:.60} is not a list of token ids. Give integers.") from error
        name, limit = self.description.name, self.config.n_positions
        if not 1 <= len(given) <= limit:
            raise TextError(
                f"There are {len(given):,} token ids; {name} reads from 1 to {limit:,} at once. "
                "Shorten the text, or split it."
            )
        self.check_vocabulary(given)
        return given

    def check_vocabulary(self, ids: Sequence[int]) -> None:
        """Raises TextError for an id that the model does not have. `ids` must not be empty."""
        V = self.config.vocab_size
        if not 0 <= min(ids) <= max(ids) < V:
            raise TextError(
                f"The token ids range from {min(ids)} to {max(ids)}; {self.description.name} has "
                f"ids 0 to {V - 1}."
            )

    def single_token(self, text: str) -> int:
        """The id of a text that is one token. Raises TextError for one that is several."""
        ids, _ = self.encode(text)
        if len(ids) != 1:
            parts = " + ".join(token.label for token in self.read(ids))
            raise TextError(
                f"`{text}` is {len(ids)} tokens for {self.description.name} ({parts}). Choose a "
                "word that is a single token, with the space before it."
            )
        return ids[0]

    def _trace(
        self,
        ids: list[int],
        text: str,
        *,
        head_gate: Array | None = None,
        cut: Cut = "end",
        left_out: int = 0,
        replaced: int = 0,
        on_layer: OnLayer | None = None,
    ) -> Trace:
        gate = None
        if head_gate is not None:
            gate = torch.tensor(head_gate, dtype=torch.float32, device=self.device)
        given = torch.tensor([ids], device=self.device)
        run = self.network.run(given, head_gate=gate, on_layer=on_layer)
        q, k, v = _numpy(run.qkv[:, :, 0])
        layers = range(self.config.n_layers)
        return Trace(
            model=self.description.name,
            text=text,
            details=self.read(ids),
            q=q,
            k=k,
            v=v,
            logits=_numpy(run.logits[0]),
            scales=tuple(self.config.scale(layer) for layer in layers),
            cut=cut,
            left_out=left_out,
            replaced=replaced,
        )

    def _fit(self, ids: list[int], cut: Cut) -> tuple[list[int], int]:
        limit = self.config.n_positions
        left_out = max(0, len(ids) - limit)
        if not left_out:
            return ids, 0
        return (ids[left_out:] if cut == "start" else ids[:limit]), left_out


def _numpy(tensor: torch.Tensor) -> Array:
    array: Array = tensor.float().cpu().numpy()
    return np.ascontiguousarray(array)

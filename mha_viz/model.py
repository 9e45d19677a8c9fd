"""Model: a network, its tokenizer, and what is known about both. `checkpoints.load` makes it."""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from tokenizers import Tokenizer

from mha_viz.errors import TextError
from mha_viz.gpt2 import GPT2, GPT2Config
from mha_viz.tokens import Token, clean_text, label, read_tokens, unknown_characters
from mha_viz.trace import Array, Cut, Trace

OnLayer = Callable[[int], None]
MAX_CHARACTERS = 200_000  # a bound on the tokenizer's work; 1,024 tokens are about 5,000


@dataclass(frozen=True, slots=True)
class Description:
    """Where a model comes from and how it was read, for the person who looks at its numbers."""

    name: str
    source: str
    stored_dtype: str
    n_parameters: int
    weights_hash: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A GPT-2 that may be shared by any number of threads; nothing about it ever changes."""

    network: GPT2 = field(repr=False)
    tokenizer: Tokenizer = field(repr=False)
    description: Description

    @property
    def config(self) -> GPT2Config:
        """The sizes of the network."""
        return self.network.config

    @property
    def device(self) -> torch.device:
        """Where the network computes."""
        return self.network.wte.weight.device

    def trace(self, text: str, *, cut: Cut = "end", on_layer: OnLayer | None = None) -> Trace:
        """One forward pass over the text, as a `Trace`.

        A text of more than n_positions tokens is cut at its "start" or its "end"; the trace says
        by how much. `on_layer` is told the number of layers that are done, and may raise to stop.
        Raises TextError for an empty text, and for `cut` being anything else.
        """
        if cut not in ("start", "end"):
            raise TextError(f'cut = {cut!r}; a text is cut at its "start" or at its "end".')
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
        """One forward pass over exactly these token ids, as a `Trace`; its text is what they spell.

        `head_gate` `[L, H]` scales each head's z before W_O: 0 takes a head away, 1 leaves it.
        `on_layer` is told the number of layers that are done, and may raise to stop.
        Raises TextError for no ids, for more than n_positions (nothing is cut here) and for an id
        that the model does not have; ShapeError for another gate.
        """
        given = self._checked(ids)
        text = b"".join(token.bytes for token in self.read(given)).decode("utf-8", "replace")
        return self._trace(given, text, head_gate=head_gate, on_layer=on_layer)

    def encode(self, text: str) -> tuple[list[int], int]:
        """The token ids, and the number of characters that had to be replaced by U+FFFD.

        Nothing is added to the text. Raises TextError for an empty text, one beyond all reason, and
        one with a character that the tokenizer would drop.
        """
        if not isinstance(text, str):
            raise TextError(f"The text is a {type(text).__name__}; give a str.")
        if not text:
            raise TextError("The text is empty. Type a sentence, or pick a sample.")
        if len(text) > MAX_CHARACTERS:
            raise TextError(
                f"The text has {len(text):,} characters; at most {MAX_CHARACTERS:,} are read. "
                "Shorten it: a model sees a few thousand at once."
            )
        clean, replaced = clean_text(text)
        unknown = unknown_characters(self.tokenizer, clean)
        if unknown:
            raise TextError(
                f"{self.description.name} has no token for {label(unknown[0].encode())} "
                f"({len(unknown)} such characters), so it would vanish. Take it out of the text."
            )
        return self.tokenizer.encode(clean, add_special_tokens=False).ids, replaced

    def read(self, ids: list[int]) -> tuple[Token, ...]:
        """What the ids stand for."""
        return read_tokens(self.tokenizer, ids)

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

    def _checked(self, ids: Sequence[int]) -> list[int]:
        try:
            given = [operator.index(i) for i in ids]
        except TypeError as error:
            raise TextError(f"{ids!r:.60} is no list of token ids; give whole numbers.") from error
        limit, V = self.config.n_positions, self.config.vocab_size
        if not 1 <= len(given) <= limit:
            raise TextError(
                f"There are {len(given):,} token ids; {self.description.name} reads from 1 to "
                f"{limit:,} at once. Give as many, or cut them into pieces."
            )
        if not 0 <= min(given) <= max(given) < V:
            raise TextError(
                f"The token ids reach from {min(given)} to {max(given)}; {self.description.name} "
                f"knows those from 0 to {V - 1}."
            )
        return given

    def _fit(self, ids: list[int], cut: Cut) -> tuple[list[int], int]:
        limit = self.config.n_positions
        left_out = max(0, len(ids) - limit)
        if not left_out:
            return ids, 0
        return (ids[left_out:] if cut == "start" else ids[:limit]), left_out


def _numpy(tensor: torch.Tensor) -> Array:
    array: Array = tensor.float().cpu().numpy()
    return np.ascontiguousarray(array)

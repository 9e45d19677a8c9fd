"""Model: a network, its tokenizer and a description of both. `checkpoints.load` returns one."""

import hashlib
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from tokenizers import Encoding, Tokenizer

from mha_viz.callbacks import OnLayer
from mha_viz.errors import TextError
from mha_viz.network import Network, NetworkConfig
from mha_viz.spelling import spelling_of, text_read
from mha_viz.tokens import Token, clean_text, label, read_tokens, unknown_characters
from mha_viz.trace import Array, Cut, Trace

MAX_CHARACTERS = 200_000  # limits the tokenizer's work; 1,024 tokens are about 5,000 characters


@dataclass(frozen=True, slots=True)
class Description:
    """Where a model comes from, and how its checkpoint was read."""

    name: str
    source: str  # "bundled", "folder" or "hub"
    stored_dtype: str  # of the weights in the file
    n_parameters: int
    weights_hash: str  # SHA-256
    notes: tuple[str, ...] = ()  # sentences for the user
    revision: str = ""  # the commit on the Hub
    tokenizer_hash: str = ""  # SHA-256
    tokenizer_source: str = ""  # if it is not the checkpoint's own


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A language model. It never changes, so any number of threads may share it."""

    network: Network = field(repr=False)
    tokenizer: Tokenizer = field(repr=False)
    description: Description
    template: bool = False  # whether `trace` adds the tokens of the tokenizer's template

    @property
    def config(self) -> NetworkConfig:
        """The sizes of the network."""
        return self.network.config

    @property
    def key(self) -> str:
        """Identifies the model in caches, by weights, sizes, tokenizer and template."""
        about, sizes = self.description, hashlib.sha256(repr(self.config).encode()).hexdigest()[:16]
        return f"{about.weights_hash} {sizes} {about.tokenizer_hash} {self.template}"

    @property
    def device(self) -> torch.device:
        """The device that the network runs on."""
        return self.network.device

    def trace(self, text: str, *, cut: Cut = "end", on_layer: OnLayer | None = None) -> Trace:
        """One forward pass over the text, as a `Trace`.

        `cut` says where tokens beyond n_positions are dropped: at the "start" or the "end" of the
        text. The trace records how many. `on_layer` is called with the number of layers done; an
        exception that it raises stops the pass. Raises TextError as `encode` does, and for any
        other `cut`.
        """
        if cut not in ("start", "end"):
            raise TextError(f'cut = {cut!r}; expected "start" or "end".')
        found = self._encode(text)
        kept, left_out = self._fit(found, cut)
        return self._trace(
            [*found.before, *kept, *found.after],
            text,
            cut=cut,
            left_out=left_out,
            replaced=found.replaced,
            read_as=found.read_as,
            template=(len(found.before), len(found.after)),
            on_layer=on_layer,
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
        the pass. Raises TextError as `check_ids` does, ShapeError for a gate of the wrong shape.
        """
        given = self.check_ids(ids)
        return self._trace(given, self.text_of(given), head_gate=head_gate, on_layer=on_layer)

    def encode(self, text: str) -> tuple[list[int], int]:
        """The token ids, and the number of characters that had to be replaced by U+FFFD.

        No special token is added. Raises TextError for an empty text, for more than MAX_CHARACTERS
        characters, for a text that the tokenizer cannot read, and for a token with an id that the
        model does not have.
        """
        found = self._encode(text)
        return found.ids, found.replaced

    def input_ids(self, text: str) -> list[int]:
        """The token ids that `trace` gives to the model, before any are dropped. Raises TextError.

        They are those of `encode` and, if `template` is on, those of the tokenizer's template.
        """
        found = self._encode(text)
        return [*found.before, *found.ids, *found.after]

    @property
    def template_tokens(self) -> tuple[Token, ...]:
        """The tokens that the tokenizer's template adds around a text, such as a start token."""
        return self.read(self.tokenizer.encode("", add_special_tokens=True).ids)

    def with_template(self, template: bool = True) -> "Model":
        """The same model, with or without the tokens of the tokenizer's template."""
        return replace(self, template=template)

    def text_of(self, ids: Sequence[int]) -> str:
        """The text that these tokens stand for."""
        spelling = spelling_of(self.tokenizer)
        if spelling.keeps_blanks:
            tokens = read_tokens(self.tokenizer, ids, spelling)
            return b"".join(token.bytes for token in tokens).decode("utf-8", "replace")
        found: str = self.tokenizer.decode(list(ids), skip_special_tokens=False)
        return found

    def _encode(self, text: str) -> "_Encoded":
        if not isinstance(text, str):
            raise TextError(f"The text is a {type(text).__name__}; expected a str.")
        if not text:
            raise TextError("The text is empty. Type a sentence, or choose a sample.")
        if len(text) > MAX_CHARACTERS:
            raise TextError(
                f"The text has {len(text):,} characters; the limit is {MAX_CHARACTERS:,}. "
                "Shorten it."
            )
        clean, replaced = clean_text(text)
        name, spelling = self.description.name, spelling_of(self.tokenizer)
        try:
            encoding = self.tokenizer.encode(clean, add_special_tokens=False)
        except Exception as error:
            # The tokenizer is written in Rust: a bare Exception, for example for an unknown word.
            raise TextError(f"The tokenizer of {name} cannot read this text: {error}.") from error
        spelled = text_read(self.tokenizer, encoding, spelling)
        unknown = self._dropped(clean) if spelling.byte_level and spelled != clean else []
        if unknown:
            raise TextError(
                f"{name} has no token for {label(unknown[0].encode())} "
                f"({len(unknown)} such character{'s' * (len(unknown) != 1)}), so its tokenizer "
                "would drop it. Remove it from the text."
            )
        if not encoding.ids:
            raise TextError(
                f"The tokenizer of {name} finds no tokens in this text. Type some words."
            )
        before, after = self._around(encoding)
        self._check_tokens([*before, *encoding.ids, *after])
        read_as = "" if spelled == clean else spelled
        return _Encoded(encoding.ids, replaced, read_as, before, after)

    def _dropped(self, text: str) -> list[str]:
        """The characters that a byte-level tokenizer would drop silently."""
        if getattr(self.tokenizer.model, "unk_token", None):
            return []
        normalizer = self.tokenizer.normalizer
        return unknown_characters(
            self.tokenizer, normalizer.normalize_str(text) if normalizer else text
        )

    def _check_tokens(self, ids: Sequence[int]) -> None:
        """Raises TextError for a token of the tokenizer whose id the model does not have."""
        V, highest = self.config.vocab_size, max(ids)
        if highest >= V:
            (token,) = self.read([highest])
            raise TextError(
                f"`{token.label}` has id {highest:,} in the tokenizer of {self.description.name}, "
                f"but the model has ids 0 to {V - 1:,}. Remove it from the text."
            )

    def _around(self, encoding: Encoding) -> tuple[list[int], list[int]]:
        """The ids that the template puts before and after a text; none if it is off."""
        if not self.template:
            return [], []
        whole = self.tokenizer.post_process(encoding, None, True)
        first = whole.special_tokens_mask.index(0)
        end = first + len(encoding.ids)
        return whole.ids[:first], whole.ids[end:]

    def read(self, ids: Sequence[int]) -> tuple[Token, ...]:
        """The token of each id."""
        return read_tokens(self.tokenizer, ids, spelling_of(self.tokenizer))

    def check_ids(self, ids: Sequence[int]) -> list[int]:
        """The ids as Python integers.

        Raises TextError for an empty list, for more than n_positions ids, for an id that the model
        does not have and for anything that is not an integer.
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
        read_as: str = "",
        template: tuple[int, int] = (0, 0),
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
            read_as=read_as,
            template=template,
        )

    def _fit(self, found: "_Encoded", cut: Cut) -> tuple[list[int], int]:
        """The ids that fit beside those of the template, and how many do not."""
        ids, limit = found.ids, self.config.n_positions - len(found.before) - len(found.after)
        if limit < 1:
            raise TextError(
                f"{self.description.name} has room for {self.config.n_positions} tokens, and its "
                "template takes them all. Turn off “Start of text”, or use with_template(False)."
            )
        left_out = max(0, len(ids) - limit)
        if not left_out:
            return ids, 0
        return (ids[left_out:] if cut == "start" else ids[:limit]), left_out


@dataclass(frozen=True, slots=True)
class _Encoded:
    """The ids of a text, what was replaced or read differently, and the ids of the template."""

    ids: list[int]
    replaced: int
    read_as: str
    before: list[int]
    after: list[int]


def _numpy(tensor: torch.Tensor) -> Array:
    array: Array = tensor.float().cpu().numpy()
    return np.ascontiguousarray(array)

"""A full trace as one npz file: q, k, v, logits, scales, tokens and, on request, every pattern."""

import json
import zipfile
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from mha_viz.export.origin import Origin

if TYPE_CHECKING:
    from mha_viz.trace import Trace

PatternType = Literal["float16", "float32"]

COMPUTE_PATTERNS = """\
import numpy as np

file = np.load("{name}")
q, k, scales = file["q"], file["k"], file["scales"]  # [L, H, T, d_h], [L, H, T, d_h], [L]

def pattern(layer, head):  # [T, T]
    scores = scales[layer] * q[layer, head] @ k[layer, head].T
    scores[np.triu_indices(len(scores), 1)] = -np.inf  # no token looks ahead
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)
"""


def trace_size(trace: "Trace", patterns: PatternType | None = None) -> int:
    """The size of `write_trace`'s arrays in bytes; tokens and names add a few kB to the file."""
    n = trace.n_layers * trace.n_heads * trace.n_tokens**2
    kept = sum(array.nbytes for array in (trace.q, trace.k, trace.v, trace.logits))
    return kept + (n * np.dtype(patterns).itemsize if patterns else 0)


def write_trace(
    trace: "Trace",
    file: IO[bytes],
    *,
    patterns: PatternType | None = None,
    origin: Origin | None = None,
) -> None:
    """Writes q, k, v `[L, H, T, d_h]`, logits `[V]`, scales `[L]`, tokens and token_ids as npz.

    With `patterns`, also writes every pattern `[L, H, T, T]` in that type. Apart from the arrays of
    the trace, only one pattern is in memory at a time. Nothing is compressed.
    """
    arrays: Mapping[str, Any] = {
        "q": trace.q,
        "k": trace.k,
        "v": trace.v,
        "logits": trace.logits,
        "scales": np.array(trace.scales, dtype=np.float32),
        "tokens": np.array(trace.tokens),
        "token_ids": np.array(trace.token_ids),
        "provenance": np.array(json.dumps(dict(origin or {}))),
    }
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            _write(archive, name, array)
        if patterns:
            L, H, T = trace.n_layers, trace.n_heads, trace.n_tokens
            with archive.open("patterns.npy", "w", force_zip64=True) as entry:
                _header(entry, np.dtype(patterns), (L, H, T, T))
                for layer, head in np.ndindex(L, H):
                    entry.write(trace.pattern(layer, head).astype(patterns).data)


def _write(archive: zipfile.ZipFile, name: str, array: NDArray[Any]) -> None:
    with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
        np.lib.format.write_array(entry, np.asarray(array), allow_pickle=False)


def _header(entry: IO[bytes], dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    described = {"descr": dtype.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(entry, described)

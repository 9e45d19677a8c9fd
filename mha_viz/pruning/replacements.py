"""What may stand in for the z of a removed head: zero, a mean, or what another text gives.

Zero is what "without this head" says, and a value that the layers above have never seen: the mean
of z is not zero. The mean takes away what the head tells apart and leaves what it always adds
(Wang et al. 2023); the resampled z is one that the head could have had (Chan et al. 2022).
"""

from collections.abc import Callable, Iterable
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor

from mha_viz.analysis.reference_texts import selection_texts
from mha_viz.errors import ShapeError
from mha_viz.gpt2 import GPT2
from mha_viz.model import Model
from mha_viz.pruning.inputs import Text, windows
from mha_viz.pruning.passes import ZERO, Replacement, after_attention, head_outputs

Method: TypeAlias = Literal["zero", "mean", "position-wise mean", "resample"]
METHODS: tuple[Method, ...] = get_args(Method)
Progress: TypeAlias = Callable[[float], None]  # told the share that is done; what it raises ends it
BATCH = 1024  # tokens that run at once: enough for fast products, little enough for memory


def make_replacement(
    model: Model,
    method: Method,
    length: int,
    reference: Text | Iterable[Text] | None = None,
    *,
    max_tokens: int = 4096,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> Replacement:
    """What replaces a removed head's z, in texts of up to `length` tokens.

    "zero"; "mean" of that head's z over a reference text and its positions; "position-wise mean"
    at each position by itself; "resample", the z of one window of the reference,
    which `seed` picks. The reference is read in windows of `length`, at most `max_tokens` of it;
    unless given it is the part of the project's own that chooses.

    Raises ShapeError for another method or a length that does not fit, TextError for a reference
    that is shorter than `length`.
    """
    if method not in METHODS:
        raise ShapeError(f"method = {method!r}; a head is replaced by {', '.join(METHODS)}.")
    if method == "zero":
        return ZERO
    found = windows(model, selection_texts() if reference is None else reference, length)
    if method == "resample":
        # From the end: the first window may be the very text that is looked at.
        return Replacement(
            method, _mean_z(model.network, found[-1 - seed % len(found)][None], None)
        )
    z = _mean_z(model.network, found[: max(1, max_tokens // length)], on_progress)
    return Replacement(method, z.mean(2, keepdim=True) if method == "mean" else z)


def replacement_for(model: Model, method: Method | Replacement, length: int) -> Replacement:
    """The replacement itself where one was given, else one made by `make_replacement`."""
    return method if isinstance(method, Replacement) else make_replacement(model, method, length)


@torch.inference_mode()
def _mean_z(network: GPT2, ids: Tensor, on_progress: Progress | None) -> Tensor:
    """`[L, H, T, d_h]`: the mean over windows `[N, T]` of each head's z; 0 for heads taken out."""
    cfg, (N, T) = network.config, ids.shape
    total = torch.zeros(cfg.n_layers, cfg.n_heads, T, cfg.d_head, device=ids.device)
    done = 0
    for some in torch.split(ids, max(1, BATCH // T)):
        resid = network.wte(some) + network.wpe.weight[:T]
        for layer, block in enumerate(network.blocks):
            z = head_outputs(block, resid)
            total[layer, cfg.kept_heads(layer)] += z.float().sum(0)
            resid = after_attention(block, resid + block.attn.merge(z))
        done += len(some)
        if on_progress is not None:
            on_progress(done / N)
    return (total / N).to(resid.dtype)

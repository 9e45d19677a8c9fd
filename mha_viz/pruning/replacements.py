"""Replacement values for an ablated head's z: zero, mean, position-wise mean or resampled.

Zero means "without this head", but the layers above were not trained for it: the mean of z is not
zero. The mean removes what depends on the input and keeps what the head always adds (Wang et al.
2023). The resampled z comes from another text, so it is a value that the head really produces (Chan
et al. 2022).
"""

from collections.abc import Iterable
from typing import Literal, TypeAlias, get_args

import numpy as np
import torch
from torch import Tensor

from mha_viz.analysis.reference_texts import selection_texts
from mha_viz.callbacks import OnProgress
from mha_viz.errors import ShapeError
from mha_viz.model import Model
from mha_viz.network import Network
from mha_viz.pruning.inputs import Text, windows
from mha_viz.pruning.passes import ZERO, Replacement

Method: TypeAlias = Literal["zero", "mean", "position-wise mean", "resample"]
METHODS: tuple[Method, ...] = get_args(Method)
BATCH = 1024  # tokens per batch: enough for fast matrix products, and few enough to save memory


def make_replacement(
    model: Model,
    method: Method,
    length: int,
    reference: Text | Iterable[Text] | None = None,
    *,
    max_tokens: int = 4096,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> Replacement:
    """The value that replaces an ablated head's z, in texts of up to `length` tokens.

    "zero"; "mean", that head's mean z over a reference text and all positions; "position-wise
    mean", the mean over the reference at each position; "resample", the z of one window of the
    reference, which `seed` picks. The reference is read in windows of `length`, at most
    `max_tokens` of it; it is `selection_texts()` unless given. `on_progress` is called with the
    fraction done.

    Raises ShapeError for another method or a length that does not fit, TextError for a reference
    that is shorter than `length`.
    """
    if method not in METHODS:
        raise ShapeError(f"method = {method!r}; expected one of {', '.join(METHODS)}.")
    if method == "zero":
        return ZERO
    ids = windows(model, selection_texts() if reference is None else reference, length)
    if method == "resample":
        # From the end: the first window may be the text that is being ablated.
        window = ids[-1 - seed % len(ids)]
        return Replacement(method, _mean_z(model.network, window[None], None))
    z = _mean_z(model.network, ids[: max(1, max_tokens // length)], on_progress)
    return Replacement(method, z.mean(2, keepdim=True) if method == "mean" else z)


def draws(
    model: Model,
    method: Method,
    length: int,
    reference: Text | Iterable[Text] | None = None,
    *,
    n: int = 8,
    on_progress: OnProgress | None = None,
) -> list[Replacement]:
    """What `make_replacement` returns; for "resample", up to `n` of them from different windows.

    The effects of resampling vary a lot between draws, so average over several. There are fewer
    than `n` if the reference has fewer windows. Raises as `make_replacement`.
    """
    if method != "resample":
        return [make_replacement(model, method, length, reference, on_progress=on_progress)]
    given = windows(model, selection_texts() if reference is None else reference, length)
    seeds = np.unique(np.linspace(0, len(given), n, endpoint=False).astype(int)).tolist()
    made = []
    for seed in seeds:
        made.append(Replacement(method, _mean_z(model.network, given[-1 - seed][None], None)))
        if on_progress is not None:
            on_progress(len(made) / len(seeds))
    return made


def replacement_for(model: Model, method: Method | Replacement, length: int) -> Replacement:
    """The given replacement, or one that `make_replacement` makes for a method."""
    return method if isinstance(method, Replacement) else make_replacement(model, method, length)


@torch.inference_mode()
def _mean_z(network: Network, ids: Tensor, on_progress: OnProgress | None) -> Tensor:
    """`[L, H, T, d_h]`: the mean of each head's z over windows `[N, T]`; 0 for pruned heads."""
    cfg, (N, T) = network.config, ids.shape
    total = torch.zeros(cfg.n_layers, cfg.n_heads, T, cfg.d_head, device=ids.device)
    n_done = 0
    for batch in torch.split(ids, max(1, BATCH // T)):
        resid = network.embed(batch)
        for layer, block in enumerate(network.blocks):
            z = block.heads(resid).z
            total[layer, cfg.kept_heads(layer)] += z.float().sum(0)
            resid = block.after_attention(resid, block.attn.merge(z))
        n_done += len(batch)
        if on_progress is not None:
            on_progress(n_done / N)
    return (total / N).to(network.dtype)

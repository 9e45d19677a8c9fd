"""What a model makes of a text: the next token, that after every layer, and the losses.

One forward pass gives all three, for one text, one model and one gate:

    outcome(model, trace.token_ids, position=-1).probabilities      # [V]
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from mha_viz.analysis.predictions import POSITIONS
from mha_viz.callbacks import OnLayer
from mha_viz.errors import ShapeError
from mha_viz.model import Model
from mha_viz.trace import Array


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """The predictions of one pass. The logit lens starts at the embedding."""

    probabilities: Array  # [V], of the next token at the position
    lens_ids: NDArray[np.int64]  # [L + 1], the most likely token after each layer, at the position
    lens_probabilities: Array  # [L + 1], of that token
    losses: Array  # [T - 1], of the tokens from position 1 on, in nats


@torch.inference_mode()
def outcome(
    model: Model,
    ids: Sequence[int],
    position: int = -1,
    *,
    head_gate: Array | None = None,
    on_layer: OnLayer | None = None,
) -> Outcome:
    """The outcome of a text with these ids, its next token at one `position`.

    `head_gate` `[L, H]` scales each head's z: 0 ablates a head. `on_layer` is called with the
    number of layers done; an exception that it raises stops the pass. Raises ShapeError for a
    position outside the text and for a gate of the wrong shape, TextError as `Model.check_ids`.
    """
    given = model.check_ids(ids)
    T, network = len(given), model.network
    if not -T <= position < T:
        raise ShapeError(f"position = {position}; the text has positions 0 to {T - 1}.")
    gate = None if head_gate is None else torch.tensor(head_gate, device=model.device)
    lens = []
    steps = network.residuals(torch.tensor([given], device=model.device), head_gate=gate)
    for done, stream in enumerate(steps):
        lens.append(network.unembed(stream[0, position]).float().softmax(-1).max(-1))
        resid = stream[0]
        if done and on_layer is not None:
            on_layer(done)
    losses = []
    for start in range(0, T - 1, POSITIONS):
        end = min(start + POSITIONS, T - 1)
        log_p = network.unembed(resid[start:end]).float().log_softmax(-1)
        actual = torch.tensor(given[start + 1 : end + 1], device=model.device)
        losses.append(-log_p.gather(-1, actual[:, None])[:, 0].cpu().numpy())
    return Outcome(
        probabilities=network.unembed(resid[position]).float().softmax(-1).cpu().numpy(),
        lens_ids=np.array([int(ids) for _, ids in lens], dtype=np.int64),
        lens_probabilities=np.array([float(p) for p, _ in lens], dtype=np.float32),
        losses=np.concatenate(losses) if losses else np.zeros(0, dtype=np.float32),
    )

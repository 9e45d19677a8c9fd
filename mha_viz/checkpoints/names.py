"""Each tensor's name in a GPT-2 file and in `gpt2.GPT2`, and the conversion between them.

GPT-2's files store every projection as `[in, out]` (transformers calls that a Conv1D); `nn.Linear`
holds `[out, in]`. Those tensors are marked `transposed`. Both keep q, k and v as thirds of one
tensor, in the same order.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from mha_viz.errors import CheckpointError
from mha_viz.gpt2 import GPT2, GPT2Config

BLOCK = {  # name in GPT2Block -> (name in a GPT-2 file, transposed)
    "ln_1": ("ln_1", False),
    "attn.W_QKV": ("attn.c_attn", True),
    "attn.W_O": ("attn.c_proj", True),
    "ln_2": ("ln_2", False),
    "mlp.W_in": ("mlp.c_fc", True),
    "mlp.W_out": ("mlp.c_proj", True),
}


@dataclass(frozen=True, slots=True)
class Name:
    """One parameter: its name in GPT2.state_dict() and in a file, and whether it is transposed."""

    ours: str
    theirs: str
    transposed: bool = False


def names(config: GPT2Config) -> Iterator[Name]:
    """Every parameter of the model except `lm_head.weight`, which a tied checkpoint omits."""
    yield Name("wte.weight", "transformer.wte.weight")
    yield Name("wpe.weight", "transformer.wpe.weight")
    for layer in range(config.n_layers):
        for ours, (theirs, transposed) in BLOCK.items():
            ours, theirs = f"blocks.{layer}.{ours}", f"transformer.h.{layer}.{theirs}"
            yield Name(f"{ours}.weight", f"{theirs}.weight", transposed)
            yield Name(f"{ours}.bias", f"{theirs}.bias")
    yield Name("ln_f.weight", "transformer.ln_f.weight")
    yield Name("ln_f.bias", "transformer.ln_f.bias")


def adopt(state: Mapping[str, Tensor], config: GPT2Config) -> GPT2:
    """A read-only GPT2 whose parameters share their storage with `state`, a GPT-2 state dict.

    `state` has the names and the layout of a GPT-2 file. Without `lm_head.weight`, W_U is tied to
    the token embedding.
    Raises CheckpointError for a missing tensor or a wrong shape, by name.
    """
    with torch.device("meta"):
        model = GPT2(config)
    expected = {name: tensor.shape for name, tensor in model.state_dict().items()}
    ours = {}
    for name in names(config):
        if name.theirs not in state:
            raise CheckpointError(f"The checkpoint has no tensor `{name.theirs}`.")
        tensor = state[name.theirs]
        ours[name.ours] = tensor.t() if name.transposed and tensor.dim() == 2 else tensor
    head = state.get("lm_head.weight", state["transformer.wte.weight"])
    ours["W_U.weight"] = head
    for key, tensor in ours.items():
        if tensor.shape != expected[key]:
            raise CheckpointError(
                f"The tensor for `{key}` has shape {list(tensor.shape)}; "
                f"the configuration requires {list(expected[key])}."
            )
    model.load_state_dict(ours, assign=True)
    if "lm_head.weight" not in state:
        model.W_U.weight = model.token_embedding.weight
    return model.requires_grad_(False).eval()


def gpt2_state(model: GPT2) -> dict[str, Tensor]:
    """The state dict of `model` as a GPT-2 file holds it, contiguous; a tied W_U is omitted.

    Pruned heads are not in it; `with_zeros` puts zeros in their place.
    """
    ours = model.state_dict()
    state = {
        name.theirs: (ours[name.ours].t() if name.transposed else ours[name.ours]).contiguous()
        for name in names(model.config)
    }
    if not torch.equal(ours["W_U.weight"], ours["wte.weight"]):
        state["lm_head.weight"] = ours["W_U.weight"].contiguous()
    return state


def with_zeros(state: Mapping[str, Tensor], config: GPT2Config) -> dict[str, Tensor]:
    """A GPT-2 state dict of full width, with zeros for the pruned heads of `config`.

    transformers computes the same from it: a head whose v is zero adds nothing.
    """
    full = dict(state)
    for layer in range(config.n_layers):
        kept = config.kept_heads(layer)
        if len(kept) == config.n_heads:
            continue
        attn, n_heads, d_h = f"transformer.h.{layer}.attn", config.n_heads, config.d_head
        for name, dim, parts in (
            (f"{attn}.c_attn.weight", 1, 3),
            (f"{attn}.c_attn.bias", 0, 3),
            (f"{attn}.c_proj.weight", 0, 1),
        ):
            stored = torch.unflatten(state[name], dim, (parts, len(kept), d_h))
            shape = [*stored.shape[: dim + 1], n_heads, *stored.shape[dim + 2 :]]
            index = torch.tensor(kept, dtype=torch.long, device=stored.device)
            padded = stored.new_zeros(shape).index_copy(dim + 1, index, stored)
            full[name] = padded.flatten(dim, dim + 2)
    return full

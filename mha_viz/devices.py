"""Chooses a model's device: CUDA, then MPS, if its results agree with the CPU's; else the CPU."""

import copy
from typing import TypeVar

import torch

from mha_viz.errors import DeviceError
from mha_viz.network import Network, Run

N = TypeVar("N", bound=Network)
TOLERANCE = {torch.float32: 2e-3, torch.float16: 5e-2, torch.bfloat16: 2e-1}


def available() -> list[str]:
    """The devices available on this machine, best first; the CPU is last."""
    names = []
    if torch.cuda.is_available():
        names.append("cuda")
    if torch.backends.mps.is_available():
        names.append("mps")
    return [*names, "cpu"]


def place(
    model: N, device: str | torch.device | None, dtype: str | torch.dtype | None
) -> tuple[N, str]:
    """The model on `device` (default: the best one), and a message if it stays on the CPU instead.

    The model stays on the CPU if the device fails on a short text or disagrees with the CPU there;
    the message is empty otherwise. Raises DeviceError for a device or dtype that is not available.
    """
    target = _device(device)
    number_type = _dtype(dtype, target)
    if target.type == "cpu":
        return model.to(number_type), ""
    return _checked(model, target, number_type)


def _checked(model: N, device: torch.device, dtype: torch.dtype) -> tuple[N, str]:
    T = min(16, model.config.n_positions)
    ids = torch.linspace(0, model.config.vocab_size - 1, T).long()[None]
    try:
        moved = copy.deepcopy(model).to(device=device, dtype=dtype)
        worst = disagreement(model.run(ids), moved.run(ids.to(device)))
    except (RuntimeError, AssertionError) as error:  # Assertion: this torch lacks it
        reason = str(error).strip().split("\n")[0]
        return model, f"{device} failed on a short text ({reason}); the CPU is used."
    if not worst <= TOLERANCE[dtype]:
        return model, (
            f"{device} differs from the CPU by {worst:.1e} on a short text; the CPU is used."
        )
    return moved, ""


def disagreement(cpu: Run, other: Run) -> float:
    """The largest difference in q, k, v or the logits; NaN if there is a NaN.

    It is relative to the largest magnitude on the CPU, or absolute where that is below 1.
    """
    pairs = ((cpu.qkv, other.qkv), (cpu.logits, other.logits))
    worst = [(b.cpu().float() - a).abs().max() / a.abs().max().clamp(min=1.0) for a, b in pairs]
    # torch's max keeps a NaN; Python's drops one that does not come first.
    return float(torch.stack(worst).max())


def _device(device: str | torch.device | None) -> torch.device:
    names = available()
    if device is None:
        return torch.device(names[0])
    listed = f"Choose from: {', '.join(names)}."
    try:
        target = torch.device(device)
    except RuntimeError as error:
        raise DeviceError(f"There is no device `{device}`. {listed}") from error
    if target.type not in names:
        raise DeviceError(f"`{target.type}` is not available on this machine. {listed}")
    return target


def _dtype(dtype: str | torch.dtype | None, device: torch.device) -> torch.dtype:
    types = [torch.float32] if device.type == "cpu" else list(TOLERANCE)
    known = {_name(each): each for each in types}
    wanted = _name(torch.float32 if dtype is None else dtype)
    if wanted not in known:
        raise DeviceError(
            f"dtype {wanted} is not supported on {device}. Choose from: {', '.join(known)}."
        )
    return known[wanted]


def _name(dtype: str | torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")

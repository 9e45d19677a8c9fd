"""Where a model computes: CUDA, then MPS, then the CPU, and only where the CPU agrees."""

import copy

import torch

from mha_viz.errors import DeviceError
from mha_viz.gpt2 import GPT2, Run

TOLERANCE = {torch.float32: 2e-3, torch.float16: 5e-2, torch.bfloat16: 2e-1}
HALF = (torch.float16, torch.bfloat16)


def available() -> list[str]:
    """The devices of this machine, best first; the CPU is always there."""
    found = []
    if torch.cuda.is_available():
        found.append("cuda")
    if torch.backends.mps.is_available():
        found.append("mps")
    return [*found, "cpu"]


def place(
    model: GPT2, device: str | torch.device | None, dtype: str | torch.dtype | None
) -> tuple[GPT2, str]:
    """The model on the device that was asked for, or on the best one, and a word if that failed.

    Another device than the CPU must agree with the CPU on a short text; else the CPU is used and
    the word says so. Raises DeviceError for a device or number type that cannot be had.
    """
    chosen = _device(device)
    number = _dtype(dtype, chosen)
    if chosen.type == "cpu":
        return model.to(number), ""
    return _checked(model, chosen, number)


def _checked(model: GPT2, device: torch.device, dtype: torch.dtype) -> tuple[GPT2, str]:
    T = min(16, model.config.n_positions)
    ids = torch.linspace(0, model.config.vocab_size - 1, T).long()[None]
    try:
        moved = copy.deepcopy(model).to(device=device, dtype=dtype)
        found = moved.run(ids.to(device))
    except (RuntimeError, NotImplementedError) as error:
        return model, f"{device} failed on a short text ({error}); the CPU is used."
    worst = disagreement(model.run(ids), found)
    if not worst <= TOLERANCE[dtype]:
        return model, (
            f"{device} differs from the CPU by {worst:.1e} on a short text; the CPU is used."
        )
    return moved, ""


def disagreement(cpu: Run, other: Run) -> float:
    """The largest difference of q, k, v and logits, relative to the largest value; NaN if any is."""
    pairs = ((cpu.qkv, other.qkv), (cpu.logits, other.logits))
    return max(
        (float((b.cpu().float() - a).abs().max()) / max(1.0, float(a.abs().max())))
        if bool(torch.isfinite(b).all())
        else float("nan")
        for a, b in pairs
    )


def _device(device: str | torch.device | None) -> torch.device:
    here = available()
    if device is None:
        return torch.device(here[0])
    try:
        chosen = torch.device(device)
    except RuntimeError as error:
        raise DeviceError(f"There is no device `{device}`; here: {', '.join(here)}.") from error
    if chosen.type not in here:
        raise DeviceError(f"`{chosen.type}` is not available here; there is {', '.join(here)}.")
    return chosen


def _dtype(dtype: str | torch.dtype | None, device: torch.device) -> torch.dtype:
    number = torch.float32 if dtype is None else dtype
    if isinstance(number, str):
        number = getattr(torch, number.removeprefix("torch."), None)
    if number not in TOLERANCE or (device.type == "cpu" and number in HALF):
        allowed = ["float32"] if device.type == "cpu" else ["float32", "float16", "bfloat16"]
        raise DeviceError(f"dtype {dtype} is not for {device}; there is {', '.join(allowed)}.")
    return number

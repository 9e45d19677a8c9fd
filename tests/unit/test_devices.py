"""A device is used only if it computes what the CPU computes."""

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from mha_viz import devices
from mha_viz.checkpoints import load
from mha_viz.errors import DeviceError, MhaVizError
from mha_viz.gpt2 import GPT2, GPT2Config
from mha_viz.network import Run

CONFIG = GPT2Config(2, 4, 32, 128, 64, 300)
OTHER = "meta"  # a device that torch has everywhere; it stands for a GPU here


def network() -> GPT2:
    torch.manual_seed(0)
    return GPT2(CONFIG).requires_grad_(False).eval()


@pytest.fixture
def another(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Run], Run]], None]:
    """`another(change)`: a second device is there, which computes `change(what the CPU does)`."""
    original = GPT2.run

    def install(change: Callable[[Run], Run]) -> None:
        models: list[GPT2] = []

        def run(self: GPT2, ids: Tensor) -> Run:
            if self.wte.weight.device.type != OTHER:
                models.append(self)
                return original(self, ids)
            T = min(16, self.config.n_positions)
            same = torch.linspace(0, self.config.vocab_size - 1, T).long()[None]
            return change(original(copy.deepcopy(models[-1]), same))

        monkeypatch.setattr(devices, "available", lambda: [OTHER, "cpu"])
        monkeypatch.setattr(GPT2, "run", run)

    return install


def same(run: Run) -> Run:
    return run


def shifted(run: Run) -> Run:
    return Run(run.qkv, run.logits + 0.5)


def not_a_number(run: Run) -> Run:
    logits = run.logits.clone()
    logits[0, 7] = torch.nan
    return Run(run.qkv, logits)


def infinite(run: Run) -> Run:
    qkv = run.qkv.clone()
    qkv[2, 1, 0, 0, 0, 0] = torch.inf
    return Run(qkv, run.logits)


def broken(run: Run) -> Run:
    raise RuntimeError("out of memory\nat a place that nobody needs to see")


def missing(run: Run) -> Run:
    raise NotImplementedError("this operator is not there yet")


# --- the choice -----------------------------------------------------------------------------------


def test_the_cpu_is_always_there():
    assert devices.available()[-1] == "cpu"


def test_the_cpu_computes_in_float32():
    model, message = devices.place(network(), "cpu", None)
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert {p.device.type for p in model.parameters()} == {"cpu"}
    assert message == ""


@pytest.mark.parametrize("dtype", ["float32", "torch.float32", torch.float32])
def test_a_number_type_has_several_spellings(dtype: str | torch.dtype):
    model, _ = devices.place(network(), torch.device("cpu"), dtype)
    assert model.wte.weight.dtype == torch.float32


def test_the_best_device_comes_first(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert devices.available() == ["cuda", "mps", "cpu"]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert devices.available() == ["mps", "cpu"]
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert devices.available() == ["cpu"]


# --- devices and dtypes that are not available ----------------------------------------------------


@pytest.mark.parametrize("device", ["quantum", "", "cuda:x"])
def test_an_unknown_device_is_named_with_the_available_ones(device: str):
    with pytest.raises(DeviceError) as caught:
        devices.place(network(), device, None)
    assert f"There is no device `{device}`. Choose from: " in str(caught.value)
    assert "cpu" in str(caught.value)
    assert isinstance(caught.value, MhaVizError)


@pytest.mark.parametrize("device", ["mps", "cuda", "cuda:1", "xpu", "meta"])
def test_a_device_that_is_not_available_is_named(device: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(devices, "available", lambda: ["cpu"])
    name = device.partition(":")[0]
    message = rf"`{name}` is not available on this machine\. Choose from: cpu\."
    with pytest.raises(DeviceError, match=message):
        devices.place(network(), device, None)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", torch.float16, "float64", "int8", "x"])
def test_the_cpu_takes_float32_only(dtype: str | torch.dtype):
    with pytest.raises(DeviceError, match=r"is not supported on cpu\. Choose from: float32\."):
        devices.place(network(), "cpu", dtype)


def test_load_raises_the_error_of_place():
    message = r"dtype float16 is not supported on cpu\. Choose from: float32\."
    with pytest.raises(DeviceError, match=message):
        load("bundled", device="cpu", dtype="float16")


def test_an_unknown_number_type_is_rejected_on_any_device(another):
    another(same)
    with pytest.raises(DeviceError, match="Choose from: float32, float16, bfloat16"):
        devices.place(network(), OTHER, "int8")


# --- the check against the CPU --------------------------------------------------------------------


@pytest.mark.parametrize("asked", [None, OTHER])
def test_a_device_that_agrees_is_used(another, asked: str | None):
    another(same)
    model, message = devices.place(network(), asked, None)
    assert model.wte.weight.device.type == OTHER
    assert message == ""


@pytest.mark.parametrize("change", [shifted, not_a_number, infinite])
def test_a_device_that_disagrees_is_not_used_and_this_is_reported(another, change):
    another(change)
    model, message = devices.place(network(), None, None)
    assert model.wte.weight.device.type == "cpu"
    assert message.startswith(f"{OTHER} differs from the CPU by ")
    assert message.endswith("on a short text; the CPU is used.")


@pytest.mark.parametrize("change", [broken, missing])
def test_a_device_that_fails_is_not_used_and_this_is_reported(another, change):
    another(change)
    model, message = devices.place(network(), None, None)
    assert model.wte.weight.device.type == "cpu"
    assert message.startswith(f"{OTHER} failed on a short text (")
    assert message.endswith("; the CPU is used.")
    assert "\n" not in message


def test_a_device_whose_results_cannot_be_fetched_is_not_used(monkeypatch: pytest.MonkeyPatch):
    """An accelerator reports an error late: when a result is read, not when it is computed."""
    monkeypatch.setattr(devices, "available", lambda: [OTHER, "cpu"])
    model, message = devices.place(network(), None, None)
    assert model.wte.weight.device.type == "cpu"
    assert f"{OTHER} failed on a short text" in message


def test_the_message_is_in_the_description_of_the_model(another):
    another(shifted)
    model = load("bundled")
    assert model.device.type == "cpu"
    assert "the CPU is used" in " ".join(model.description.notes)


def test_a_half_precision_difference_is_allowed_in_half_precision_only(another):
    another(lambda run: Run(run.qkv, run.logits * 1.01))
    assert devices.place(network(), OTHER, "float16")[1] == ""
    assert "differs from the CPU" in devices.place(network(), OTHER, "float32")[1]


# --- the difference -------------------------------------------------------------------------------

RUN = Run(torch.linspace(-3, 3, 24).reshape(3, 1, 1, 2, 2, 2), torch.tensor([[4.0, -8.0]]))


def test_no_difference_is_zero():
    assert devices.disagreement(RUN, RUN) == 0.0


def test_a_difference_is_relative_to_the_largest_value():
    other = Run(RUN.qkv, RUN.logits + torch.tensor([[0.0, 0.8]]))
    assert devices.disagreement(RUN, other) == pytest.approx(0.1, abs=1e-6)
    other = Run(RUN.qkv + 0.3, RUN.logits)
    assert devices.disagreement(RUN, other) == pytest.approx(0.1, abs=1e-6)


def test_half_precision_is_compared_in_float32():
    other = Run(RUN.qkv.bfloat16(), RUN.logits.bfloat16())
    assert 0 < devices.disagreement(RUN, other) < 1e-2


@pytest.mark.parametrize("field", ["qkv", "logits"])
@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_what_is_no_number_never_passes_for_agreement(field: str, value: float):
    parts = {"qkv": RUN.qkv.clone(), "logits": RUN.logits.clone()}
    parts[field].view(-1)[1] = value
    other = Run(**parts)
    for pair in ((RUN, other), (other, RUN), (other, other)):
        assert not devices.disagreement(*pair) <= max(devices.TOLERANCE.values())

"""The fused form of a layer while it runs: what each step's expression is given and gives.

The steps are those of the Walkthrough. The code runs once on the text; then each expression is
evaluated again, call by call, on the names that it had.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from mha_viz.attention import MultiHeadAttention
from mha_viz.lessons import forms
from mha_viz.lessons.code_trace import Code, traced
from mha_viz.lessons.expression import Names, Result, evaluate
from mha_viz.lessons.implementations import IMPLEMENTATIONS, fused
from mha_viz.lessons.plain_layer import plain_layer


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the layer: what its line is for, and what a user's line for it begins with."""

    name: str
    why: str
    given: tuple[str, ...]  # tensors that the user's line may name, the main one first
    line: str  # a line that does it
    others: tuple[str, ...] = ()  # lines that do not


STEPS = (
    Step(
        "x",
        "A row of C numbers for each of T tokens, for B texts at once. No head owns any of them.",
        ("x",),
        "x",
    ),
    Step(
        "q k v",
        "One product makes q, k and v of all heads: W_QKV holds 3 H matrices side by side.",
        ("x", "W_QKV", "b_QKV"),
        "x @ W_QKV.T + b_QKV",
        ("x @ W_QKV + b_QKV",),
    ),
    Step(
        "split",
        "q, k and v are three windows on the same rows, so the next token is 3 C numbers away.",
        ("qkv",),
        "qkv.split(C, dim=-1)",
        ("qkv.view(B, T, 3, C)[:, :, 1]",),
    ),
    Step(
        "view",
        "Column c gets two names: head h and number i, with c = h · d_h + i.",
        ("q", "k", "v"),
        "q.view(B, T, H, d_h)",
        ("q.view(B, T, d_h, H)",),
    ),
    Step(
        "transpose",
        "The head axis moves in front, where “@” treats it as one more batch axis.",
        ("q", "k", "v"),
        "q.view(B, T, H, d_h).transpose(1, 2)",
        ("q.view(B, H, T, d_h)", "q.reshape(B, H, T, d_h)"),
    ),
    Step(
        "scores",
        "“@” works on the last two axes and repeats over those before: one line for all heads.",
        ("q", "k"),
        "q @ k.mT / d_h**0.5",
        ("q @ k / d_h**0.5", "q @ k.transpose(1, 2) / d_h**0.5"),
    ),
    Step(
        "mask",
        "Scores of later keys become −∞. As e^−∞ = 0, the softmax gives these keys no weight.",
        ("s", "later", "lowest"),
        "s.masked_fill(later, -torch.inf)",
        ("s * ~later", "s.masked_fill(~later, -torch.inf)"),
    ),
    Step(
        "softmax",
        "Each row becomes weights that add up to 1. Dropout acts on them, in training only.",
        ("s",),
        "s.softmax(dim=-1)",
        ("s.softmax(dim=-2)",),
    ),
    Step(
        "z",
        "Each row of weights sums the rows of v; again one line for all heads.",
        ("w", "v"),
        "w @ v",
        ("w.mT @ v",),
    ),
    Step(
        "merge",
        "The heads of a token end up side by side. No strides can express that order of the memory "
        "as one axis, so reshape copies.",
        ("z",),
        "z.transpose(1, 2).reshape(B, T, C)",
        ("z.transpose(1, 2).view(B, T, C)", "z.reshape(B, T, C)"),
    ),
    Step(
        "output",
        "Until here each column belongs to one head; W_O mixes them.",
        ("z", "W_O", "b_O"),
        "z @ W_O.T + b_O",
        ("z @ W_O + b_O",),
    ),
    Step(
        "+ x",
        "The layer adds to the residual stream and replaces nothing in it.",
        ("resid", "out"),
        "resid + out",
        ("out",),
    ),
)
NAMES = tuple(step.name for step in STEPS)
_FUSED = IMPLEMENTATIONS[0]


@dataclass(frozen=True, slots=True, eq=False)
class ModuleRun:
    """One run of the fused form: the shapes of its lines, and each step's names and result."""

    shapes: Mapping[int, str]  # line of the code -> the shapes that it gave
    names: Mapping[str, Names] = field(repr=False)  # step -> what a user's line may name
    results: Mapping[str, Result] = field(repr=False)  # step -> its expression, call by call
    changes: tuple[str, ...]  # how the layer was made a plain one

    @property
    def code(self) -> Code:
        """The code that ran."""
        return _FUSED.code

    def target(self, step: str) -> tuple[Tensor, ...]:
        """What a user's line should give: the tensors of the step, for view and transpose q."""
        return self.results[step].tensors


@torch.inference_mode()
def run_module(attention: MultiHeadAttention, x: Tensor, resid: Tensor) -> ModuleRun:
    """Runs the fused form with the weights of `attention` on x and resid, both `[B, T, C]`.

    Raises ShapeError for heads that do not fit into C channels.
    """
    layer = plain_layer(attention)
    module = fused(layer)
    _, lines = traced(forms, lambda: forms.add_to_stream(resid, module(x)))
    B, T, C = x.shape
    H, d_h = module.H, module.d_h
    always: Names = {
        "B": B, "T": T, "C": C, "H": H, "d_h": d_h, "self.H": H, "self.d_h": d_h,
        "self.W_QKV": module.W_QKV, "self.W_O": module.W_O, "self.dropout": module.dropout,
    }  # fmt: skip
    weights: Names = {
        "W_QKV": layer.W_QKV, "b_QKV": layer.b_QKV, "W_O": layer.W_O, "b_O": layer.b_O,
    }  # fmt: skip
    names, results = {}, {}
    for step in STEPS:
        expression = _FUSED.expressions[step.name]
        ran = _FUSED.code.executed(lines, *_FUSED.code.statement(_FUSED.code.span(expression)[0]))
        assert ran is not None, step.name
        before = {n: v for n, v in ran.before.items() if isinstance(v, Tensor)}
        before |= {"t": before["q"]} if step.name in ("view", "transpose") else {}
        if step.name == "x":
            before, expression = {"x": x}, "x"
        if step.name == "split":
            qkv = evaluate("self.W_QKV(x)", {**always, "x": x}).tensors[0]
            before, expression = {"qkv": qkv}, "qkv.split(C, dim=-1)"
        results[step.name] = evaluate(expression, {**before, **always})
        lowest = torch.finfo(x.dtype).min
        everything: Mapping[str, Tensor | float | nn.Module] = {
            **weights, **before, "lowest": lowest,
        }  # fmt: skip
        names[step.name] = {**{n: everything[n] for n in step.given}, **always}
    return ModuleRun(_FUSED.code.results(lines), names, results, layer.changes)

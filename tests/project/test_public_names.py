"""What the README imports keeps its name, its arguments and what it returns."""

import re
from importlib import import_module
from importlib.util import find_spec
from inspect import Parameter, signature
from pathlib import Path

import pytest

from mha_viz.model import Model

# Arguments in order; those after * are keyword-only. New ones may be added, none may be removed.
CALLS = {
    "mha_viz.checkpoints.load": "source * device dtype tokenizer allow_pickle on_progress",
    "mha_viz.attention.MultiHeadAttention": (
        "d_model n_heads * n_kv_heads d_head bias causal dropout scale"
    ),
    "mha_viz.reference.multi_head_attention": "q k v num_heads mask *",
    "mha_viz.heads.measure": "model text * seeds on_step",
    "mha_viz.pruning.ablate_each_head": "model text * method gate first on_progress",
    "mha_viz.pruning.gradient_importance": "model text * normalize gate replacement on_progress",
    "mha_viz.pruning.curve": "model texts order * method every",
    "mha_viz.figures.notebook.all_heads": "trace * scale theme size",
    "mha_viz.figures.notebook.one_head": "trace layer head * window scale theme size",
    "mha_viz.figures.notebook.head_view": "trace heads * most threshold upright theme size",
    "mha_viz.model.Model.trace": "self text * cut on_layer",
}
TRACE = (
    "model text details q k v logits scales cut left_out replaced n_layers n_heads n_tokens "
    "tokens token_ids token_bytes pattern patterns thumbnails"
)
CHANGELOG = (Path(__file__).resolve().parents[2] / "CHANGELOG.md").read_text(encoding="utf-8")
MOVED = re.findall(r"^ *\| `(mha_viz[\w.]+)` \| `(mha_viz[\w.]+)` \|$", CHANGELOG, re.MULTILINE)


@pytest.mark.parametrize(("name", "arguments"), CALLS.items(), ids=CALLS)
def test_a_public_name_imports_and_keeps_its_arguments(name: str, arguments: str) -> None:
    place, _, last = name.rpartition(".")
    home = Model if place.endswith(".Model") else import_module(place)
    parameters = signature(getattr(home, last)).parameters.values()
    by_order = [p.name for p in parameters if p.kind is Parameter.POSITIONAL_OR_KEYWORD]
    by_name = {p.name for p in parameters if p.kind is Parameter.KEYWORD_ONLY}
    order, names = (part.split() for part in arguments.split("*"))
    assert by_order[: len(order)] == order
    assert by_name >= set(names)


def test_a_trace_keeps_its_attributes(bundled: Model) -> None:
    trace = bundled.trace("The cat sat on the mat.")
    missing = [name for name in TRACE.split() if not hasattr(trace, name)]
    assert not missing
    L, H, T = trace.n_layers, trace.n_heads, trace.n_tokens
    assert trace.q.shape == trace.k.shape == trace.v.shape == (L, H, T, trace.q.shape[-1])
    assert trace.pattern(0, 0).shape == (T, T)
    assert trace.patterns(0).shape == (H, T, T)
    assert len(trace.tokens) == len(trace.token_ids) == len(trace.token_bytes) == T


@pytest.mark.parametrize(("before", "now"), MOVED)
def test_a_moved_module_is_where_the_changelog_says(before: str, now: str) -> None:
    assert find_spec(now) is not None
    assert find_spec(before) is None

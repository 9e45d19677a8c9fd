"""What exercises may name: each name is in the README, and the sizes are those of the layer."""

import re

import pytest
import torch

from mha_viz.lessons.bugs import BUGS, attention_with_bug
from mha_viz.lessons.exercises.answers import FOLDER
from mha_viz.lessons.exercises.layer import FACTS, MAX_TOKENS, layer_of, random_layer
from mha_viz.model import Model


def test_the_readme_lists_every_group_of_facts() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    for name in FACTS:
        group, *_, last = name.split(".")
        if group in ("bug", "ahead"):
            assert f"`{group}.NAME" in text
        else:
            assert f"`{group}." in text, name
            assert re.search(rf"\b{last}\b", text), name


def test_the_sizes_of_the_random_layer_all_differ() -> None:
    layer = random_layer()
    names = layer.names("")
    sizes = [names[name] for name in ("B", "T", "C", "H", "d_h", "L", "V")]
    assert len(set(sizes)) == len(sizes)
    assert layer.plain


def test_a_long_text_is_cut(bundled: Model) -> None:
    ids = torch.arange(100)[None]
    layer = layer_of(bundled.network, ids, 1)
    assert layer.x.shape[1] == MAX_TOKENS
    assert bundled.config.n_layers == layer.L
    assert bundled.config.vocab_size == layer.V


@pytest.mark.parametrize("bug", BUGS)
def test_facts_about_bugs_are_those_of_the_package(bug: str) -> None:
    layer, key = random_layer(), re.sub(r"\W+", "_", bug)
    out = layer.names(f"bug.{key}.out")[f"bug.{key}.out"]
    torch.testing.assert_close(out, attention_with_bug(layer.attention, layer.x, bug).out)
    if not BUGS[bug].reads_ahead:
        assert layer.names(f"ahead.{key}")[f"ahead.{key}"] is False


def test_at_the_crossover_both_parts_cost_the_same() -> None:
    names = random_layer().names("flops.equal_at")
    assert names["flops.equal_at"] == 2 * names["C"]


def test_a_fact_is_computed_only_if_it_is_named() -> None:
    assert "module.out" not in random_layer().names("module.output + a_module.out")

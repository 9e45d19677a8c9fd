"""The operands on the walkthrough: captions, figures and files hold the numbers of the layer."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest
from support.script import ROOT, charts, finished, html, lines, opened

from mha_viz.app.work import models
from mha_viz.checkpoints import save
from mha_viz.head import Head
from mha_viz.lessons.operands import Operands, operands_of_layer
from mha_viz.lessons.why import why
from mha_viz.model import Model
from mha_viz.pruning.surgery import prune

CASES = [
    ("The king gave the princess a golden ring", "L3H5", "6"),
    ("one two three four five one two three", "L2H3", "4"),
    ("a", "L0H0", "0"),
    ('A "#" and a <b>: the cat sat.', "L1H2", "3"),
]
every_case = pytest.mark.parametrize(("text", "at", "token"), CASES, ids=[c[1] for c in CASES])


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def page(step: str, **link: str) -> AppTest:
    test = finished(opened("shapes", shapes="Walkthrough", step=step, **link))
    assert not test.exception
    return test


def found(model: Model, text: str, at: str) -> tuple[Operands, int]:
    ids = torch.tensor([model.trace(text).token_ids])
    return operands_of_layer(model.network, ids, int(at[1])), int(at[3])


def caption(test: AppTest, title: str) -> str:
    """The caption of that title, as text."""
    (line,) = [line for line in lines(test) if f"<b>{title}</b>" in line]
    return re.sub("<[^>]*>", "", line).replace("−", "-")


@every_case
def test_the_projection_names_the_sizes_of_the_layer(
    bundled: Model, text: str, at: str, token: str
) -> None:
    test = page("q k v", text=text, at=at, token=token)
    of, head = found(bundled, text, at)
    said = caption(test, "x @ W_QKV")
    H, C = of.attention.n_heads, of.x.shape[1]
    assert (
        f"W is {3 * H} matrices (q, k and v of {H} heads) of [{C}, {of.attention.d_head}]" in said
    )
    assert f"in head {head}" in said
    assert f"c_attn, [{C}, {3 * C}]" in said
    assert any("times W_QKV" in alt for _, alt in charts(test))


@every_case
def test_the_score_and_what_becomes_of_it(bundled: Model, text: str, at: str, token: str) -> None:
    test = page("scores", text=text, at=at, token=token)
    of, head = found(bundled, text, at)
    query = int(token)
    key = int(of.pattern[head, query].argmax())
    score, weights = of.score(head, query, key), of.pattern[head, query]
    said = caption(test, "q @ kᵀ")
    assert f"The score {score.score:.2f} will become the weight {weights[key]:.2f}" in said
    assert ("it is negative, yet the largest" in said) == (score.score < 0 and query > 0)
    assert f"divided by √{of.attention.d_head}" in said
    (alt,) = [alt for _, alt in charts(test) if "add up to" in alt]
    assert f"add up to {score.total:.2f}" in alt


def test_a_key_after_the_query_is_said_to_be_hidden() -> None:
    link = {"text": CASES[0][0], "at": "L3H5", "token": "2", "key": "5"}
    assert "the mask will hide it" in caption(page("scores", **link), "q @ kᵀ")


@every_case
def test_z_is_called_a_mean_of_the_rows_of_v(
    bundled: Model, text: str, at: str, token: str
) -> None:
    test = page("z", text=text, at=at, token=token)
    of, head = found(bundled, text, at)
    assert "The weights add up to 1, so z is a weighted mean" in caption(test, "w @ v")
    assert of.pattern[head, int(token)].sum() == pytest.approx(1, abs=1e-5)
    length = np.linalg.norm(of.z[head, int(token)])
    assert any(f"z has the length {length:.2f}" in alt for _, alt in charts(test))


@pytest.mark.parametrize("step", ["output", "+ x"])
@every_case
def test_the_stream_gets_longer_or_shorter_as_it_does(
    bundled: Model, text: str, at: str, token: str, step: str
) -> None:
    test = page(step, text=text, at=at, token=token)
    of, _ = found(bundled, text, at)
    added = of.contributions(int(token))
    before, after = np.linalg.norm(added.before), np.linalg.norm(added.after)
    said = caption(test, "z @ W_O")
    assert f"from {before:.1f} to {after:.1f}" in said
    assert ("it gets longer" in said) == (after > before)
    assert f"c_proj, [{of.attention.d_model}, {of.attention.d_model}]" in said


def test_random_input_has_operands_too() -> None:
    test = page("scores", tensors="random", size_T="5", size_C="24", size_H="4")
    assert "6 products, one sum, divided by √6" in caption(test, "q @ kᵀ")


def test_steps_without_a_product_draw_no_operands() -> None:
    for step in ("split", "view", "transpose", "mask", "softmax", "merge"):
        test = page(step)
        titles = ("x @ W_QKV", "q @ kᵀ", "w @ v", "z @ W_O")
        assert not any(f"<b>{title}</b>" in html(test) for title in titles)


def differences(test: AppTest) -> Iterator[str]:
    (line,) = [line for line in lines(test) if "with n_heads = 1" in line]
    return (found for found in re.findall("<b>([^<]*)</b>", line))


@every_case
def test_why_says_the_differences_that_were_measured(
    bundled: Model, text: str, at: str, token: str
) -> None:
    test = page("transpose", text=text, at=at, token=token)
    ids = torch.tensor([bundled.trace(text).token_ids])
    layer, head = int(at[1]), int(at[3])
    x = bundled.network.attention_input(ids, layer)
    measured = why(bundled.network.blocks[layer].attn, x, head)
    wanted = (measured.z, measured.every_z, measured.one_of_all, measured.one_in_module)
    shown = list(differences(test))
    assert shown == [f"{one:.1e}" if one else "0 (identical)" for one in wanted]
    (both,) = [line for line in lines(test) if 'class="whyloop"' in line]
    assert both.count("same line") == 3
    assert both.count('class="added"') == 2
    assert 'class="more"' not in both, "which stage mode hides"
    T = len(ids[0])
    assert f"[<b>6</b>, {T}, {T}]" in both


def test_why_counts_the_heads_of_its_code_also_where_some_are_pruned(
    bundled: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pruned = replace(bundled, network=prune(bundled, [Head(3, 0), Head(3, 4)]))
    save(pruned, tmp_path / "pruned")
    monkeypatch.setitem(models.TITLES, str(tmp_path / "pruned"), "Pruned")
    test = page("transpose", model=str(tmp_path / "pruned"), text=CASES[0][0], at="L3H2")
    assert "runs all 6 heads" in caption(test, "Why")
    (both,) = [line for line in lines(test) if 'class="whyloop"' in line]
    assert "[<b>6</b>, 8, 8]" in both
    notes = " ".join(text.value for text in (*test.markdown, *test.caption))
    assert "2 heads of this layer are pruned; here their weights are 0." in notes

"""The Many heads page as a script: its race is run, and its counts are those of torch."""

import re

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from support.script import ROOT, alts, finished, html, lines, opened, said

from mha_viz.app.pages.many_heads import a_list, cost, measured
from mha_viz.attention import MultiHeadAttention
from mha_viz.lessons.counting import attention_flops, crossover
from mha_viz.lessons.kernel_times import PartTimes
from mha_viz.lessons.race import (
    BATCH_FUSED,
    BATCH_PLAIN,
    LIST_FUSED,
    LIST_PLAIN,
    WAYS,
    Spread,
    Timing,
)
from mha_viz.model import Model
from mha_viz.trace import Trace


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(a_list, "RACE", {"d_model": 96, "T": 16})


def page(part: str, **link: str) -> AppTest:
    test = finished(opened("many_heads", many=part, **link))
    assert not test.exception
    return test


def words(test: AppTest) -> str:
    return " ".join([html(test), *(text.value for text in test.markdown)])


def test_the_race_is_run_and_a_sentence_says_who_wins_and_why() -> None:
    test = page("A list of heads")
    assert said(test) == ""
    assert "Measure again" in [button.label for button in test.button]
    assert alts(test)
    shown = words(test)
    assert all(f"**{way}**" in shown for way in WAYS)
    verdicts = ["here one batch is **slower**", "the batch is **faster**", "**do not show**"]
    assert sum(text in shown for text in verdicts) == 1


@pytest.mark.parametrize(("listed", "batch"), [(2.0, 3.0), (3.0, 2.0)])
@pytest.mark.parametrize("wide", [False, True])
def test_the_verdict_agrees_with_the_times(listed: float, batch: float, wide: bool) -> None:
    edge = 5.0 if wide else 0.1
    times = {LIST_PLAIN: listed, BATCH_PLAIN: batch, LIST_FUSED: 1.0, BATCH_FUSED: 1.0}
    ms = {way: Spread(t, max(t - edge, 0.1), t + edge) for way, t in times.items()}
    text = a_list.verdict(Timing(96, ms, 0.0), 256)
    assert ("**slower**" in text) == (batch > listed and not wide)
    assert ("**faster**" in text) == (batch < listed and not wide)
    assert ("**do not show**" in text) == wide
    assert ("avoids this: 1.0 ms" in text) == ("**slower**" in text)
    assert "24 MiB" in text  # 96 x 256 x 256 scores of 4 bytes
    assert "256 KiB" in text


def test_the_list_says_what_a_python_list_would_hide(bundled: Model) -> None:
    C = bundled.config.d_model
    shown = words(page("A list of heads"))
    assert f"all **{4 * C * C + 4 * C:,}**" in shown
    assert f"**{C * C + C:,}**, those of W_O" in shown


def test_the_reach_of_each_head_is_drawn_with_and_without_the_output_projection() -> None:
    assert len(alts(page("Output projection"))) == 2


@pytest.mark.parametrize("C", [48, 768])
def test_the_parameters_are_those_of_a_layer(C: int) -> None:
    layer = MultiHeadAttention(C, 6)
    n_weights = sum(p.numel() for p in layer.parameters() if p.dim() == 2)
    n_all = sum(p.numel() for p in layer.parameters())
    shown = words(page("Cost", count_C=str(C), count_H="6"))
    assert f"**{n_weights:,}** weights" in shown
    assert f"With biases: {n_all:,}." in shown


def test_heads_that_do_not_divide_the_width_are_refused_and_others_offered() -> None:
    test = page("Cost", count_C="48", count_H="5")
    assert "48" in said(test)
    (fitting,) = [button for button in test.button if button.label == "H = 6, d_h = 8"]
    fitting.click().run()
    assert said(test) == ""
    assert test.number_input(key="count_H").value == 6


def test_the_loaded_model_is_in_the_table_of_the_family(bundled: Model) -> None:
    test = page("Cost")
    family = next(frame.value for frame in test.dataframe if "model" in frame.value)
    assert list(family["model"])[:-1] == [size.name for size in cost.GPT2_SIZES]
    attention = sum(p.numel() for b in bundled.network.blocks for p in b.attn.parameters())
    assert list(family["attention"])[-1] == attention
    assert list(family["total"])[-1] == bundled.description.n_parameters
    assert list(family["d_h"])[-1] == bundled.config.d_head


# --- costs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("link", [{}, {"count_H": "12", "count_C": "768", "count_G": "4"}])
@pytest.mark.parametrize("T", [64, 100_000])
def test_the_crossover_is_stated_as_it_is_drawn(link: dict[str, str], T: int) -> None:
    C, H, G = (int(link.get(key, first)) for key, first in
               (("count_C", 512), ("count_H", 8), ("count_G", 8)))  # fmt: skip
    shown = words(page("Cost", count_T=str(T), **link))
    at = crossover(C, H, n_kv_heads=G)
    flops = attention_flops(T, C, H, n_kv_heads=G)
    assert f"The crossover lies at T = {at:,.0f}" in shown
    assert f"**{flops.quadratic / flops.total:.0%}** of all FLOPs" in shown
    lengths, linear, quadratic = cost.growth(C, H, G, T)
    for n, one, other in zip(lengths, linear, quadratic, strict=True):
        assert (other > one) == (n > at)
    assert lengths[0] < at < lengths[-1]
    assert lengths[-1] >= T


def test_shared_keys_shrink_the_cache_and_the_weights_but_no_scores() -> None:
    own, shared = (words(page("Cost", count_G=G)) for G in ("H", "1"))
    assert "KV cache, 2 · T · G · d_h</dt><dd>4 MiB" in own  # 2 x 1024 x 512 x 4 bytes
    assert "KV cache, 2 · T · G · d_h</dt><dd>512 KiB" in shared
    for shown in (own, shared):
        assert "<dd>32 MiB; none with the fused kernel" in shown  # 8 x 1024 x 1024 x 4 bytes


def test_times_are_measured_after_a_click() -> None:
    test = page("Cost", count_C="24", count_H="4", count_T="64")
    (button,) = [button for button in test.button if button.label == "Measure"]
    test = finished(button.click().run())
    assert not test.exception
    assert "At T = 64: projections" in words(test)


@pytest.mark.parametrize(
    ("explicit", "said"),
    [
        ((1, 3, 3), "Explicit attention takes longer than the projections from T = 64 on."),
        ((3, 3, 3), "Explicit attention takes longer than the projections from T = 32 on."),
        ((3, 1, 1), "Explicit attention takes less time than the projections, up to the last"),
        ((3, 1, 3), "Explicit attention takes longer than the projections from T = 128 on."),
    ],
)
def test_the_crossing_of_measured_times_is_the_last_one(
    explicit: tuple[float, ...], said: str
) -> None:
    times = [
        PartTimes(T, Spread(2, 2, 2), Spread(ms, ms, ms), Spread(1, 1, 1))
        for T, ms in zip((32, 64, 128), explicit, strict=True)
    ]
    assert said in measured.times_sentence(times)
    assert "fused kernel takes less time" in measured.times_sentence(times)


def test_a_layer_too_large_to_time_is_not_timed() -> None:
    assert measured.measurable(65536, 4096, 4096, 1_000_000) == []
    lengths = measured.measurable(768, 12, 12, 1_000_000)
    assert lengths[0] == measured.FIRST
    assert 12 * 12 * lengths[-1] ** 2 <= measured.MAX_SCORE_BYTES


def favourites(trace: Trace, layer: int, query: int) -> list[tuple[str, float]]:
    """What each head of a layer looks at most, from the trace."""
    rows = [trace.pattern(layer, head)[query] for head in range(trace.n_heads)]
    return [(trace.tokens[int(row.argmax())], float(row.max())) for row in rows]


@pytest.mark.parametrize(
    "text", ["The king gave the princess a golden ring", "One day, a cat sat."]
)
@pytest.mark.parametrize("layer", [0, 3])
def test_the_sentence_says_what_the_heads_look_at_and_what_their_mean_does(
    text: str, layer: int, bundled: Model
) -> None:
    test = page("Why several heads", text=text, at=f"L{layer}H1")
    (sentence,) = [line for line in lines(test) if 'class="opinions"' in line]
    trace = bundled.trace(text)
    (token,) = [int(box.value) for box in test.selectbox if box.key.startswith("opinions_token")]
    patterns = np.stack([trace.pattern(layer, head) for head in range(trace.n_heads)])
    mean = patterns.mean(axis=0)
    apart = np.abs(patterns - mean).sum(axis=2).mean(axis=0)
    assert apart[token] == pytest.approx(apart.max(), abs=1e-4)
    assert f"<b>{trace.tokens[token]}</b>" in sentence
    found = favourites(trace, layer, token)
    assert f"look most at {len({key for key, _ in found})} different tokens" in sentence
    key, weight = max(found, key=lambda favourite: favourite[1])
    assert f"head {found.index((key, weight))} at {key} {weight:.2f}" in sentence
    top = int(mean[token].argmax())
    assert f"looks most at {trace.tokens[top]} {mean[token, top]:.2f}" in sentence


def test_a_pinned_token_is_the_one_whose_rows_are_shown() -> None:
    test = page("Why several heads", text="The king gave a golden ring", token="3")
    (box,) = [box for box in test.selectbox if box.key.startswith("opinions_token")]
    assert box.value == 3
    box.set_value(2).run()
    assert test.session_state["token"] == 2
    assert "<b>·gave</b>" in html(test)


def test_one_token_has_one_opinion() -> None:
    test = page("Why several heads", text="a")
    assert "One token can only look at itself" in said(test)
    assert "all heads look most at a" in html(test)


def test_one_product_equals_one_product_for_each_matrix(bundled: Model) -> None:
    test = page("One product")
    C, H = bundled.config.d_model, bundled.config.n_heads
    assert f"Each of the {3 * H} matrices" in words(test)
    assert f"One product of [17, {C}] and [{C}, {3 * C}]" in words(test)
    assert f"In GPT-2, W_QKV is <code>c_attn</code>, [{C}, {3 * C}]." in html(test)
    found = re.search(r"<b>(\S+)</b> (?:largest )?difference", words(test))
    assert found
    assert float(found[1]) < 1e-4
    assert any("x @ W + b" in code.value for code in test.code)

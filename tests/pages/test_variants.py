"""The Variants page: shared keys, cache, tiles and masks, as a user sees them from a link."""

import base64
import json
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit as st
import torch
from streamlit.testing.v1 import AppTest
from support.models import everything
from support.patience import PATIENCE
from support.script import ROOT, finished, html, opened, said
from torch.nn import functional as F

from mha_viz import checkpoints
from mha_viz.analysis.reference_texts import evaluation_texts
from mha_viz.app.pages.variants import (
    PARTS,
    attention_times,
    cache_contents,
    decoding,
    grouped_query,
    kv_cache,
    loss_by_groups,
    masks,
    memory_traffic,
    recovery,
)
from mha_viz.app.widgets import stepper
from mha_viz.app.widgets.reference_text import Reference
from mha_viz.app.work import jobs, progress
from mha_viz.app.work.progress import Reporter
from mha_viz.attention import MultiHeadAttention, causal_mask
from mha_viz.figures.text import format_bytes
from mha_viz.lessons.counting import GPT2_SIZES, KNOWN_MODELS
from mha_viz.lessons.flash import fitting_block
from mha_viz.lessons.grouped_query import grouped_gpt2
from mha_viz.lessons.kernel_times import PartTimes
from mha_viz.lessons.race import Spread
from mha_viz.lessons.recovery import Recovery, read_recoveries
from mha_viz.model import Model
from mha_viz.pruning.surgery import pruned_model

GQA = "Grouped-query attention"
FIGURES = {GQA: 6, "KV cache": 4, "FlashAttention": 4, "Masks": 2}


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(jobs, "background", jobs.Queue())
    monkeypatch.setattr(kv_cache, "ENOUGH_SECONDS", 0.0)  # times are measured once
    yield
    jobs.stop_all(patience=PATIENCE)  # what a page started takes no time from the next test
    st.cache_data.clear()


@pytest.fixture
def _nothing_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forgets the losses that other tests measured."""
    monkeypatch.setattr(loss_by_groups, "_measured", OrderedDict())


def page(part: str, **link: str) -> AppTest:
    return opened("variants", **{"variants": part, **link})


def figure(test: AppTest, key: str) -> dict[str, Any]:
    (found,) = [c for c in test.get("plotly_chart") if c.proto.id.endswith(f"-{key}")]
    return json.loads(found.proto.spec)


def numbers(values: Any) -> np.ndarray:
    """What Plotly packed: typed arrays travel as base64."""
    if not isinstance(values, dict):
        return np.array(values, dtype=float)
    flat = np.frombuffer(base64.b64decode(values["bdata"]), dtype=values["dtype"])
    shape = [int(n) for n in values.get("shape", str(len(flat))).split(",")]
    return flat.reshape(shape).astype(float)


def words(test: AppTest) -> str:
    texts = [*(m.value for m in test.markdown), *(c.value for c in test.caption)]
    return " ".join([html(test), *texts])


@pytest.fixture
def small(checkpoint: Callable[..., Path], gpt2: Callable[..., Any]) -> Path:
    """A folder with a model of 2 layers, 4 heads and 64 positions."""
    return checkpoint(gpt2(7))


# --- every part -----------------------------------------------------------------------------------


@pytest.mark.parametrize("part", list(PARTS))
def test_a_part_is_drawn_from_a_link_with_captions_and_sources(part: str) -> None:
    test = page(part)
    assert not test.exception
    assert said(test) == ""
    charts = test.get("plotly_chart")
    assert len(charts) == FIGURES[part]
    assert all(chart.proto.alt for chart in charts)
    assert words(test).count('class="caption"') >= 2
    assert "20" in words(test)  # a source with its year


@pytest.mark.parametrize("part", list(PARTS))
def test_one_token_and_a_full_context_are_drawn(part: str, small: Path) -> None:
    for text in ("a", "a" * 200):
        test = page(part, model=str(small), text=text, at="L1H2")
        assert not test.exception
        assert not test.error


@pytest.mark.parametrize("part", list(PARTS))
def test_nothing_of_a_text_or_a_name_becomes_markup(part: str) -> None:
    test = page(part, text="<b>x</b> **bold** $x$ :red[y] <img src=x>")
    assert not test.exception
    assert "<img" not in words(test)
    for chart in test.get("plotly_chart"):
        spec = json.loads(chart.proto.spec)
        shown = json.dumps([spec["layout"].get("xaxis", {}).get("ticktext"), spec["data"]])
        assert "<b>" not in shown
        assert "$" not in shown


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        (GQA, "kv_heads", "5"), (GQA, "variants", "Nothing"),
        ("KV cache", "new", "9999"), ("KV cache", "made", "77"), ("KV cache", "cache_of", "a king"),
        ("FlashAttention", "block", "3"), ("FlashAttention", "tile", "-4"),
        ("Masks", "mask", "none"),
    ],
)  # fmt: skip
def test_a_bad_value_in_a_link_falls_back_with_a_message(part: str, name: str, value: str) -> None:
    test = page(part, **{name: value})
    assert not test.exception
    assert f"The link's value {name} = {value}" in said(test)


@pytest.mark.parametrize("part", list(PARTS))
def test_a_pruned_model_gets_a_clear_message(
    part: str, tiny: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    fewer = pruned_model(tiny, [(0, 1), (1, 2)])
    monkeypatch.setattr(checkpoints, "load", lambda *_, **__: fewer)
    st.cache_resource.clear()
    test = page(part, at="L1H2", text="the cat", new="5")
    st.cache_resource.clear()
    assert not test.exception
    assert re.search(r"value at = L1H2 is not available; showing L[01]H[01]\.", said(test))
    if part == GQA:
        assert "heads have been pruned" in said(test)
    if part == "KV cache":
        assert "are the same" in words(test)


# --- shared keys ----------------------------------------------------------------------------------


def loss_of(network: Any, pieces: list[list[int]]) -> float:
    total = n = 0.0
    for piece in pieces:
        ids = torch.tensor([piece])
        with torch.inference_mode():
            logits = network(ids)[0, :-1].double()
        total += float(F.cross_entropy(logits, ids[0, 1:], reduction="sum"))
        n += len(piece) - 1
    return total / n


def test_the_losses_are_those_of_the_pooled_models(bundled: Model) -> None:
    test = finished(page(GQA))
    drawn = figure(test, "loss_by_G")
    assert drawn["layout"]["xaxis"]["ticktext"] == ["6", "3", "2", "1"]
    pieces = [bundled.encode(text)[0] for text in evaluation_texts()]
    expected = [loss_of(grouped_gpt2(bundled.network, G), pieces) for G in (6, 3, 2, 1)]
    # Two ways to add up float32 logits.
    np.testing.assert_allclose(drawn["data"][0]["y"], expected, rtol=0, atol=1e-4)
    assert "without further training" in words(test)


def test_a_measured_loss_is_shared_with_the_next_user(monkeypatch: pytest.MonkeyPatch) -> None:
    finished(page(GQA))
    monkeypatch.setattr(loss_by_groups, "loss_with", lambda *_: pytest.fail("measured again"))
    monkeypatch.setattr(grouped_query, "MULTIPLY_ADDS", 0.0)
    again = page(GQA)
    keys = [str(button.key) for button in again.button]
    assert not [key for key in keys if key.startswith(("stop loss", "start loss"))]
    assert len(figure(again, "loss_by_G")["data"][0]["y"]) == 4


@pytest.mark.usefixtures("_nothing_measured")
def test_a_long_measurement_waits_for_a_click(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouped_query, "MULTIPLY_ADDS", 0.0)
    test = page(GQA)
    (button,) = [b for b in test.button if str(b.key).startswith("start loss")]
    assert button.label == "Measure"
    assert figure(test, "loss_by_G")["data"][0]["y"] == []
    assert "4 values of G on 3,170 tokens" in words(test)
    monkeypatch.setattr(loss_by_groups, "loss_with", lambda _, __, G, ___: float(G))
    test = finished(button.click().run())
    assert len(figure(test, "loss_by_G")["data"][0]["y"]) == 4


@pytest.mark.usefixtures("_nothing_measured")
def test_a_stopped_measurement_keeps_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(_: Any, __: Any, G: int, report: Reporter) -> float:
        while G < 6:
            report(0.5)
            time.sleep(0.01)
        return 1.0

    monkeypatch.setattr(loss_by_groups, "loss_with", slow)
    test = page(GQA)
    (stop,) = [button for button in test.button if button.label == "Stop"]
    test = finished(stop.click().run())
    assert not test.exception
    assert figure(test, "loss_by_G")["data"][0]["y"] == [1.0]
    assert "Stopped after 1 of 4 values of G" in words(test)


def test_the_arithmetic_is_that_of_the_weights(bundled: Model) -> None:
    shown = words(page(GQA, kv_heads="2"))
    few = grouped_gpt2(bundled.network, 2)
    before, after = (
        sum(w.numel() for w in network.blocks[0].attn.parameters())
        for network in (bundled.network, few)
    )
    assert f"{before:,} → {after:,} " in shown
    ids = torch.ones(1, 10, dtype=torch.long)
    kept = few.empty_cache()
    with torch.inference_mode():
        few(ids, cache=kept)
    assert sum(layer.n_bytes for layer in kept) == 10 * 2 * 1024
    assert "6 KiB → 2 KiB (33%)" in shown


def test_an_uploaded_text_is_measured_chunk_by_chunk(bundled: Model) -> None:
    test = page(GQA)
    parts = ["one chooses", "the cat sat on the mat", "one chooses", "the dog ran"]
    content = "\n\n".join(parts).encode()
    test.file_uploader[0].upload("<mine>.txt", content, "text/plain")
    test = finished(test.run())
    assert not test.exception
    pieces = [bundled.encode(part)[0] for part in parts[1::2]]
    expected = [loss_of(grouped_gpt2(bundled.network, G), pieces) for G in (6, 3, 2, 1)]
    found = figure(test, "loss_by_G")["data"][0]["y"]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)
    assert "&lt;mine&gt;.txt" in words(test)
    assert "2 chunks" in words(test)


def test_a_text_beyond_the_limit_is_truncated_with_a_message(tiny: Model) -> None:
    text = Reference("a text", ("a",), ("a" * 20_000,))
    token_ids, message = grouped_query._evaluation_chunks("tiny", text, _model=tiny)
    assert sum(map(len, token_ids)) <= grouped_query.MAX_TOKENS
    assert message == ("a text has 20,000 tokens for evaluation; only the first 8,192 are used.")


def test_a_card_for_each_g_shows_its_cache_its_layer_and_its_losses(bundled: Model) -> None:
    test = finished(page(GQA))
    shown = words(test)
    runs = {run.n_kv_heads: run for run in read_recoveries(recovery.STORED)}
    drawn = dict(zip((6, 3, 2, 1), figure(test, "loss_by_G")["data"][0]["y"], strict=True))
    for G in (6, 3, 2, 1):
        few = grouped_gpt2(bundled.network, G)
        layer = sum(w.numel() for w in few.blocks[0].attn.parameters())
        assert f"layer <b>{layer:,}</b>" in shown
        assert f"cache per token <b>{G} KiB</b>" in shown
        # The stored runs begin at the loss that the page measures.
        assert runs[G].converted == pytest.approx(drawn[G], abs=2e-3)
        if G != 6:
            losses = f"<b>{drawn[G]:.2f}</b> → trained further <b>{runs[G].trained_on:.2f}</b>"
            assert losses in shown
    assert f"takes its loss from {drawn[6]:.2f} to {drawn[2]:.2f}" in shown
    assert f"bring it to {runs[2].trained_on:.2f}" in shown


def test_the_sentence_on_recovery_is_that_of_its_curves() -> None:
    runs = read_recoveries(recovery.STORED)
    own = next(run for run in runs if run.n_kv_heads == 6)
    text = recovery.share_sentence(runs)
    for run in runs:
        if run is not own:
            cost, left = run.converted - own.converted, run.trained_on - own.converted
            assert f"{1 - left / cost:.0%}" in text
    assert ("rises" in text) == (own.trained_on > own.converted)
    falling = [Recovery(2, (5.0, 4.0)), Recovery(1, (6.0, 4.5))]
    assert "falls from 5.00 to 4.00" in recovery.share_sentence(falling)
    assert "**150%**" in recovery.share_sentence(falling)


def test_another_model_has_no_stored_curves_and_says_so(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "QUICK", PATIENCE)  # AppTest cannot rerun with a typed folder
    test = page(GQA, model=str(small), text="the cat")
    assert not [button for button in test.button if button.label == "Stop"]
    assert "Only the bundled model has stored curves" in words(test)
    assert "trained further" not in words(test).split("Recovery")[0]
    assert not [button for button in test.button if button.label.startswith("Train")]


def test_a_live_run_is_trained_after_a_click_and_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "LIVE_STEPS", 5)
    monkeypatch.setattr(recovery, "held_out_loss", lambda network, chunks: 6.543)
    monkeypatch.setattr(recovery.TrainingOn, "advance", lambda run: 0.0)
    test = finished(page(GQA))
    (button,) = [button for button in test.button if button.label == "Train G = 2 for 5 steps"]
    test = finished(button.click().run())
    assert not test.exception
    kept = next(r for r in read_recoveries(recovery.STORED) if r.n_kv_heads == 2).losses[1]
    assert f"is at 6.543 after 5 steps; the stored one was at {kept:.3f}" in words(test)
    live = figure(test, "recovery")["data"][-1]
    assert live["customdata"] == [0, 5]
    assert live["y"] == [6.543, 6.543]


def test_decoding_is_timed_after_a_click(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("REPEATS", 2), ("N_NEW", 2), ("CONTEXT", 8)):
        monkeypatch.setattr(decoding, name, value)
    test = finished(page(GQA))
    button = next(b for b in test.button if b.key and b.key.startswith("start decoding"))
    test = finished(button.click().run())
    assert not test.exception
    table = next(frame.value for frame in test.dataframe if "tokens per second" in frame.value)
    assert list(table["G"]) == [6, 2, 1]
    assert (table["from"] <= table["tokens per second"]).all()
    assert (table["tokens per second"] <= table["to"]).all()
    assert "G = 1 decodes **" in words(test)


@pytest.mark.parametrize(
    ("most", "least", "said"),
    [
        ([10.0, 11.0], [20.0, 22.0], "**2.00×** as fast as G = 6 (medians); the ranges do not"),
        ([10.0, 30.0], [20.0, 40.0], "the ranges overlap"),
        ([20.0, 22.0], [10.0, 11.0], "**0.50×** as fast as G = 6 (medians); the ranges do not"),
    ],
)
def test_speeds_are_compared_with_their_spread(
    most: list[float], least: list[float], said: str
) -> None:
    assert said in decoding.comparison({6: most, 3: [1.0], 1: least})


# --- the cache ------------------------------------------------------------------------------------


def test_the_states_are_what_a_cache_does(tiny: Model) -> None:
    ids, n_new = [5, 17, 201, 5], 3
    kept = tiny.network.empty_cache(16)
    given = list(ids)
    for step in range(n_new):
        with_cache, without = kv_cache.states(len(ids), step, len(ids) + n_new)
        held = kept[0].length
        with torch.inference_mode():
            tiny.network(torch.tensor([given[held:]]), cache=kept)
        computed, there = kept[0].length - held, kept[0].length
        assert with_cache.count("read") == held
        assert with_cache.count("computed") == computed
        assert with_cache[held] == "computed"
        assert without.count("computed") == there
        assert with_cache[there:] == without[there:] == ["not yet"] * (len(ids) + n_new - there)
        given.append(step)


def test_generation_with_and_without_the_cache_is_the_same_and_shown(bundled: Model) -> None:
    test = page("KV cache", text="The king", new="5")
    assert "all 5 tokens are the same" in words(test)
    ids = bundled.encode("The king")[0]
    with torch.inference_mode():
        for _ in range(5):
            ids = [*ids, int(bundled.network(torch.tensor([ids]))[0, -1].argmax())]
    assert bundled.tokenizer.decode(ids[-5:]).replace("'", "&#x27;") in words(test)
    times = figure(test, "token_times")["data"]
    assert [line["name"] for line in times] == ["with the cache", "without the cache"]
    assert all(len(line["y"]) == 5 and min(line["y"]) > 0 for line in times)


def test_a_difference_between_the_two_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def parting(network: Any, ids: Any, n: int, *, cached: bool = True) -> Iterator[int]:
        yield from ([7] * n if cached else [*[7] * (n - 1), 8])

    monkeypatch.setattr(kv_cache, "generate", parting)
    test = page("KV cache", text="Once upon a time there was", new="3")
    assert "token 3 differs" in said(test)
    assert "are the same" not in words(test)


def test_the_steps_go_on_and_back_within_their_limits() -> None:
    test = page("KV cache", new="4", made="3", text="The king")
    assert "Position 4 becomes" in words(test)
    test.button(key="made_next").click().run()
    assert test.slider(key="made").value == 4
    assert test.button(key="made_next").disabled
    test.button(key="made_back").click().run()
    assert test.slider(key="made").value == 3
    test.number_input(key="new").set_value(2).run()
    assert test.slider(key="made").value == 2


@pytest.mark.parametrize("G", [6, 2, 1])
@pytest.mark.parametrize("text", ["The king", "The king gave the princess a ring. The king gave"])
def test_the_cells_show_the_weights_of_the_selected_head(bundled: Model, G: int, text: str) -> None:
    test = page("KV cache", text=text, new="5", made="3", at="L2H4", cache_G=str(G))
    assert not test.exception
    drawn = figure(test, "cache_contents")
    keys, _, others, empty = drawn["data"]
    few = cache_contents.with_groups(bundled, G)
    ids = bundled.encode(text)[0]
    n_written = len(ids) + 2
    with torch.inference_mode():
        for _ in range(5):
            ids = [*ids, int(few.network(torch.tensor([ids]))[0, -1].argmax())]
    pattern = few.trace_ids(ids).pattern(2, 4)
    expected = [f"{w:.2f}".removeprefix("0") if w >= 0.005 else "" for w in pattern[n_written - 1]]
    assert keys["text"] == expected[:n_written]
    assert len(numbers(others["x"])) == 2 * (G - 1) * n_written
    assert len(numbers(empty["x"])) == 2 * G * (len(ids) - n_written)
    shown = words(test)
    assert f"This step writes {2 * G} cells in this layer" in shown
    assert f"none of the other {2 * G * (n_written - 1)} again" in shown
    kept = few.network.empty_cache()
    with torch.inference_mode():
        few.network(torch.tensor([ids[:n_written]]), cache=kept)
    total = sum(layer.n_bytes for layer in kept)
    assert f"<dt>G = {G} ←</dt><dd>{format_bytes(total)}</dd>" in shown
    if G == 2:
        assert "q3 and q5 read the same cells as q4" in shown
    if G == 6:
        assert "No other query head reads the cells of q4" in shown


def test_a_long_text_draws_the_newest_positions_and_some_empty_ones() -> None:
    for written in (1, 20, 24, 60, 100):
        shown = cache_contents.drawn_positions(100, written)
        assert len(shown) == cache_contents.MAX_DRAWN
        assert written - 1 in shown
    assert cache_contents.drawn_positions(10, 3) == range(10)


def test_the_group_of_the_selected_head_is_among_those_drawn() -> None:
    for head in range(25):
        groups = cache_contents.drawn_groups(25, range(25), head)
        assert len(groups) == cache_contents.MAX_GROUPS
        assert any(head in group.readers for group in groups)
    assert [g.readers for g in cache_contents.drawn_groups(2, [0, 2, 3, 5], 3)] == [[0, 2], [3, 5]]


def test_playing_moves_on_by_itself_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stepper, "TICK", 0.0)
    test = page("KV cache", new="4", text="The king")
    test.button(key="made_play").click().run()
    seen = [test.slider(key="made").value]
    while seen[-1] < 4 and len(seen) < 9:
        test.run()
        seen.append(test.slider(key="made").value)
    assert seen == sorted(seen)
    assert seen[-1] == 4
    test.run()
    assert test.button(key="made_play").label == "Play"


def test_a_text_too_long_to_be_continued_is_truncated_at_its_start(small: Path) -> None:
    test = page("KV cache", model=str(small), text="a" * 200, new="10")
    assert not test.exception
    assert "Continuing only the last 54 of 64 tokens" in said(test)


def test_long_generation_waits_for_a_click(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "MULTIPLY_ADDS", 0.0)
    test = page("KV cache", text="The king", new="2")
    (button,) = [button for button in test.button if button.label == "Generate"]
    assert "are the same" not in words(test)
    assert "are the same" in words(button.click().run())


def written_bytes(text: str) -> float:
    number, unit = text.replace(",", "").split()
    return float(number) * {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}[unit]


def test_each_known_model_has_its_cache_and_its_source() -> None:
    test = page("KV cache", cache_of="full context")
    table = test.dataframe[0].value
    sources = "\n".join(text.value for text in test.text).splitlines()
    for size in (*GPT2_SIZES, *KNOWN_MODELS):
        (row,) = table[table["Model"] == size.name].to_dict("records")
        assert f"{size.name}: {size.source}" in sources
        sizes = (size.n_layers, size.n_heads, size.n_kv_heads, size.d_head, size.n_positions)
        assert tuple(row[name] for name in ("L", "H", "G", "d_h", "Context")) == sizes
        assert row["Window"] == (f"{size.window:,}" if size.window else "")
        # The formula beside the table, with the columns of the table: 2 L G d_h T b.
        T = min(row["Context"], int(row["Window"].replace(",", "") or row["Context"]))
        n_bytes = 2 * row["L"] * row["d_h"] * T * 2
        groups = max(n for n in range(1, 9) if row["H"] % n == 0)
        columns = {"Own, full context": row["G"], "MHA": row["H"], "GQA": groups, "MQA": 1}
        for name, G in columns.items():
            assert written_bytes(row[name]) == pytest.approx(G * n_bytes, rel=5e-3)
    (llama,) = table[table["Model"] == "Llama 2 70B"].to_dict("records")
    # 80 layers, 2 x 8 x 128 values of 2 bytes, 4,096 tokens: 1.25 GiB; 64 heads: eight times that.
    assert llama["Own, full context"] == "1.25 GiB"
    assert llama["MHA"] == "10 GiB"


# --- FlashAttention -------------------------------------------------------------------------------


def test_the_memory_is_drawn_with_its_two_slopes() -> None:
    lines = {
        line["name"]: line["y"]
        for line in figure(page("FlashAttention"), "attention_memory")["data"]
    }
    explicit, fused = lines["explicit"], lines["fused kernel"]
    assert explicit[-1] / explicit[0] == pytest.approx(32**2, rel=0.02)
    assert fused[-1] / fused[0] < 60
    assert lines["slope of T²"][-1] / lines["slope of T²"][0] == 32**2
    assert lines["slope of T"][-1] / lines["slope of T"][0] == 32


@pytest.mark.parametrize(("H", "d_h"), [(6, 32), (12, 64), (1, 128), (2, 4096)])
def test_the_bytes_moved_are_stated_as_they_are_counted(H: int, d_h: int) -> None:
    block = fitting_block(memory_traffic.FAST_BYTES, d_h)
    rows = memory_traffic.traffic(H, d_h, block)
    T, explicit, tiled = rows[-1]
    text = memory_traffic.traffic_sentence(rows)
    assert f"{format_bytes(explicit)} and tiles {format_bytes(tiled)}" in text
    assert ("tiles move" in text) == (tiled < explicit)
    assert f"**{max(explicit, tiled) / min(explicit, tiled):.1f}×** less" in text
    assert explicit == H * 4 * (T * T + T * d_h) * 2


def test_the_bytes_drawn_are_those_of_the_model(bundled: Model) -> None:
    config = bundled.config
    lines = {line["name"]: line for line in figure(page("FlashAttention"), "bytes_moved")["data"]}
    block = fitting_block(memory_traffic.FAST_BYTES, config.d_head)
    rows = memory_traffic.traffic(config.n_heads, config.d_head, block)
    np.testing.assert_array_equal(numbers(lines["explicit"]["y"]), [row[1] for row in rows])
    np.testing.assert_array_equal(numbers(lines["tiles"]["y"]), [row[2] for row in rows])


def test_attention_is_timed_after_a_click(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_times, "LENGTHS", (8, 16))
    test = page("FlashAttention")
    (button,) = [b for b in test.button if str(b.key).startswith("start attention times")]
    test = finished(button.click().run())
    assert not test.exception
    assert "At T = 16 explicit attention takes" in words(test)
    assert [line["name"] for line in figure(test, "attention_times")["data"]] == [
        "explicit", "fused kernel"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("explicit", "fused", "said"),
    [
        ((4, 4, 5), (2, 1, 3), "the fused kernel is **2.0×** faster"),
        ((2, 1, 3), (4, 4, 5), "explicit attention is **2.0×** faster"),
        ((2, 1, 3), (3, 2, 4), "the ranges overlap"),
    ],
)
def test_times_are_compared_with_their_spread(
    explicit: tuple[float, ...], fused: tuple[float, ...], said: str
) -> None:
    times = [PartTimes(8, Spread(1, 1, 1), Spread(*explicit), Spread(*fused))]
    assert said in attention_times.times_sentence(times)


def test_the_last_tile_equals_explicit_attention() -> None:
    test = page("FlashAttention", block="8", tile="6")
    assert "Tile 6 of 6" in words(test)
    worst = float(words(test).split("explicit attention is **")[1].split("**")[0])
    assert worst < 1e-5
    running = figure(test, "running")["data"]
    assert numbers(running[-1]["x"]).max() < 1e-5


def test_a_tile_depends_only_on_the_keys_so_far(bundled: Model) -> None:
    text = "The cat sat on the mat. The cat sat"
    trace = bundled.trace(text)
    test = page("FlashAttention", block="4", tile="2", text=text, at="L0H3")
    queries, keys = slice(4, 8), slice(0, 4)
    scores = trace.q[0, 3, queries] @ trace.k[0, 3, keys].T * trace.scales[0]
    m, total, distance = figure(test, "running")["data"]
    np.testing.assert_allclose(numbers(m["x"]), scores.max(1), rtol=0, atol=1e-5)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    np.testing.assert_allclose(numbers(total["x"]), weights.sum(1), rtol=0, atol=1e-5)
    so_far = weights @ trace.v[0, 3, keys] / weights.sum(1, keepdims=True)
    end = (trace.pattern(0, 3) @ trace.v[0, 3])[queries]
    np.testing.assert_allclose(
        numbers(distance["x"]), np.linalg.norm(so_far - end, axis=1), rtol=0, atol=1e-5
    )


def test_a_long_text_is_tiled_as_far_as_it_is_shown() -> None:
    test = page("FlashAttention", text=" the" * 100)
    assert "first 64 of 100 tokens" in said(test)
    assert len(figure(test, "tiles")["layout"]["yaxis"]["tickvals"]) == 32  # every second of 64


# --- masks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(masks.MASKS))
def test_a_mask_and_the_pattern_under_it(name: str, bundled: Model) -> None:
    test = page("Masks", mask=name, at="L1H4")
    assert not test.exception
    mask = numbers(figure(test, "mask_map")["data"][0]["z"]) == 1
    pattern = numbers(figure(test, "masked_map")["data"][0]["customdata"])
    np.testing.assert_array_equal(np.isnan(pattern), ~mask)
    sums = np.nansum(pattern, axis=1)
    np.testing.assert_allclose(sums, mask.any(axis=1).astype(float), rtol=0, atol=1e-5)
    assert masks.MASKS[name].code in " ".join(code.value for code in test.code)
    assert "trained only with the causal mask" in words(test)


@pytest.mark.parametrize("name", [name for name in masks.MASKS if name != "cross-attention"])
def test_the_line_on_the_page_makes_the_mask_that_is_drawn(name: str) -> None:
    test = page("Masks", mask=name, text="The cat sat on the mat.", reach="2")
    drawn = figure(test, "mask_map")
    ticks = drawn["layout"]["yaxis"]["ticktext"]
    known = {"torch": torch, "T": len(ticks), "n": len(ticks) - ticks.count("pad"), "w": 2}
    exec(masks.MASKS[name].code, known)
    np.testing.assert_array_equal(numbers(drawn["data"][0]["z"]) == 1, known["mask"])


def test_the_line_of_cross_attention_takes_queries_from_the_second_half() -> None:
    x = torch.randn(1, 7, 8)
    known = {"attention": MultiHeadAttention(8, 2, causal=False), "x": x, "half": 3}
    exec(masks.MASKS["cross-attention"].code, known)
    assert known["out"].shape == (1, 4, 8)


def test_under_the_causal_mask_a_head_does_what_it_does_in_gpt2(bundled: Model) -> None:
    text = "The cat sat on the mat. The cat sat"
    test = page("Masks", text=text, at="L2H1")
    found = numbers(figure(test, "masked_map")["data"][0]["customdata"])
    expected = bundled.trace(text).pattern(2, 1)
    np.testing.assert_allclose(np.nan_to_num(found), expected, rtol=0, atol=1e-5)


def test_a_row_of_padding_gives_zeros() -> None:
    test = page("Masks", mask="padding", text="The cat sat on the mat.")
    ticks = figure(test, "mask_map")["layout"]["yaxis"]["ticktext"]
    n = ticks.count("pad")
    assert n >= 2
    assert f"{n}; largest weight 0, |z| 0" in words(test)


def test_a_window_lets_each_query_see_so_many_keys() -> None:
    test = page("Masks", mask="sliding window", reach="3", text="a b c d e f")
    mask = numbers(figure(test, "mask_map")["data"][0]["z"]) == 1
    i, j = np.indices(mask.shape)
    np.testing.assert_array_equal(mask, (i - j >= 0) & (i - j < 3))


def test_the_second_half_looks_at_the_first(bundled: Model) -> None:
    text = "The cat sat on the mat. The cat sat"
    trace, half = bundled.trace(text), bundled.trace(text).n_tokens // 2
    found = figure(page("Masks", mask="cross-attention", text=text, at="L0H0"), "masked_map")
    pattern = numbers(found["data"][0]["customdata"])
    scores = trace.q[0, 0, half:] @ trace.k[0, 0, :half].T * trace.scales[0]
    weights = np.exp(scores - scores.max(1, keepdims=True))
    expected = weights / weights.sum(1, keepdims=True)
    np.testing.assert_allclose(pattern, expected, rtol=0, atol=1e-5)


def test_one_token_has_no_second_half() -> None:
    test = page("Masks", mask="cross-attention", text="a")
    assert "two halves of the text" in said(test)


def test_a_model_under_other_masks_stays_as_it_is() -> None:
    torch.manual_seed(0)
    attention = MultiHeadAttention(8, 2)
    before, x = everything(attention), torch.randn(1, 5, 8)
    free = masks.without_causal_mask(attention)
    assert free.explicit(x).pattern[0, 0, 0, -1] > 0
    assert everything(attention) == before
    assert attention.causal
    held = causal_mask(5, 5)
    torch.testing.assert_close(free(x, mask=held), attention(x), atol=1e-6, rtol=0)
    assert free.W_QKV.weight is attention.W_QKV.weight

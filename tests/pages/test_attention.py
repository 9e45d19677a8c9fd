"""The page as a script: inputs, links, messages. What needs a browser is in test_browser.py."""

import base64
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest
from support.script import ROOT, component, figures, html, lines, opened, said

from mha_viz import checkpoints, devices
from mha_viz.app.messages import plain
from mha_viz.app.samples import DEFAULT, SAMPLES
from mha_viz.app.widgets.token_strip import pack
from mha_viz.checkpoints import hub

app = partial(opened, "attention")
CASES = [
    case
    for case in json.loads((ROOT / "tests" / "cases" / "texts.json").read_text(encoding="utf-8"))
    if case["text"] and case["name"] != "full context"  # these two have tests of their own
]


@pytest.fixture(autouse=True)
def _fresh_caches(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(ROOT)
    yield
    st.cache_data.clear()


def lead(test: AppTest) -> str:
    return next(line for line in lines(test) if 'class="lead"' in line)


def test_the_first_page_shows_the_bundled_model_on_a_sample() -> None:
    test = app()
    assert not test.exception
    assert said(test) == ""
    grid, heatmap = figures(test)
    assert grid["data"][0]["type"] == "bar"
    assert heatmap["data"][0]["type"] == "heatmap"
    assert "<b>L3 H0</b>" in lead(test)
    assert test.text_area(key="text").value == DEFAULT


@pytest.mark.parametrize("at", ["L0H0", "L2H5", "L3H1"])
def test_a_link_restores_head_token_window_and_colour(at: str) -> None:
    test = app(at=at, token="5", window="4-9-2-7", colour="weight", sink="true", text="a b c d e f")
    assert not test.exception
    assert component(test, "strip")["at"] == at
    assert component(test, "strip")["token"] == 5
    assert component(test, "strip")["window"] == [4, 9, 2, 7]
    assert component(test, "strip")["scale"] == "weight"
    assert test.text_area(key="text").value == "a b c d e f"
    assert test.toggle(key="sink").value


@pytest.mark.parametrize(
    "link",
    [
        {"at": "L99H0"}, {"at": "nonsense"}, {"colour": "nope"}, {"at": "L3H4<b>"},
        {"token": "99999"}, {"token": "-3"}, {"token": "²"}, {"window": "9-1-9-1"},
        {"window": "1-2"}, {"sink": "🙂"}, {"stage": "maybe"},
    ],
)  # fmt: skip
def test_a_bad_value_in_a_link_falls_back_with_a_word(link: dict[str, str]) -> None:
    test = app(**link)
    assert not test.exception
    (name,) = link
    assert "The link's value" in said(test)
    assert name in said(test)
    assert len(figures(test)) == 2


@pytest.mark.parametrize(
    "link",
    [{"token": "x" * 500}, {"token": "99999999999"}, {"cut": "middle"}, {"unknown": "1"}],
)  # fmt: skip
def test_an_odd_link_never_breaks_the_page(link: dict[str, str]) -> None:
    test = app(**link)
    assert not test.exception
    assert len(figures(test)) == 2


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["name"])
def test_every_case_is_drawn_with_a_row_for_each_token(case: dict[str, str]) -> None:
    test = app(text=case["text"].encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    assert not test.exception
    data = component(test, "strip")
    assert len(data["tokens"]) == len(figures(test)[1]["layout"]["yaxis"]["tickvals"]) or (
        len(data["tokens"]) > 60
    )


def test_an_empty_text_asks_for_one_and_keeps_what_was_shown() -> None:
    test = app()
    before = component(test, "strip")["tokens"]
    test.text_area(key="text").set_value("").run()
    assert not test.exception
    assert "Type a sentence" in said(test)
    assert component(test, "strip")["tokens"] == before
    test.button[0].click().run()
    assert "Type a sentence" not in said(test)
    assert test.text_area(key="text").value == next(iter(SAMPLES.values()))


def test_an_empty_text_at_the_start_is_no_error() -> None:
    test = app(text="")
    assert not test.exception
    assert "Type a sentence" in said(test)


def test_one_token_looks_at_itself() -> None:
    test = app(text="a")
    assert not test.exception
    assert "1 token<" in lead(test).replace(" · <b>", "<")
    assert "at least two tokens" in html(test)


@pytest.mark.parametrize("extra", [0, 1, 9216])
def test_a_text_over_the_limit_is_cut_with_a_word(extra: int) -> None:
    text = " the" * (1024 + extra)
    test = app(text=text)
    assert not test.exception
    assert len(component(test, "strip")["tokens"]) == 1024
    if extra:
        assert f"the last {extra:,} are dropped" in said(test)
        test.session_state["cut"] = "start"
        test.run()
        assert f"the first {extra:,} are dropped" in said(test)
    else:
        assert said(test) == ""
    assert test.text_area(key="text").value == text


def test_a_model_that_is_not_here_is_offered_and_the_picture_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hub, "is_cached", lambda _: False)
    test = app()
    test.selectbox(key="model").set_value("gpt2").run()
    assert not test.exception
    assert "not on this machine yet" in said(test)
    assert len(figures(test)) == 2
    assert "Bundled" in lead(test)


def test_a_link_to_a_model_that_is_fetched_later_keeps_its_head(
    monkeypatch: pytest.MonkeyPatch, gpt2: Callable[..., Any], checkpoint: Callable[..., Path]
) -> None:
    folder = checkpoint(gpt2(n_layer=12, n_head=8, n_embd=32))
    here: list[str] = []
    load = checkpoints.load
    monkeypatch.setattr(hub, "is_cached", lambda name: name in here)
    monkeypatch.setattr(
        checkpoints, "load", lambda source, **kw: load(folder if source == "gpt2" else source, **kw)
    )
    test = app(model="gpt2", at="L11H7", token="2")
    assert "not on this machine yet" in said(test)
    assert "The link asks" not in said(test)
    here.append("gpt2")
    test.run()
    assert not test.exception
    assert said(test) == ""
    assert "<b>L11 H7</b>" in lead(test)
    assert component(test, "strip")["token"] == 2


@pytest.mark.parametrize("name", ["a sentence.", "<img src=x>", "x" * 300, "a//b"])
def test_what_is_no_name_is_refused_at_once(name: str) -> None:
    test = app(model=name)
    assert not test.exception
    assert "is not a name on the Hugging Face Hub" in said(test).replace("\\", "")
    assert not [button for button in test.button if "Fetch" in button.label]
    assert len(figures(test)) == 2


def test_a_folder_that_is_not_there_is_named_and_the_picture_stays(tmp_path: Path) -> None:
    test = app(model=f"{tmp_path}/nothing")
    assert not test.exception
    assert "There is no folder" in said(test)
    assert len(figures(test)) == 2
    assert test.text_area(key="text").value == DEFAULT


def test_a_device_that_fails_gives_way_to_the_cpu_with_a_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(devices, "available", lambda: ["cuda", "cpu"])
    test = app(device="cuda")
    assert not test.exception
    about = " ".join(text.value for text in test.text)
    assert "the CPU is used" in about
    assert "float32 on cpu" in about
    assert len(figures(test)) == 2


def test_what_a_visitor_typed_is_never_markdown() -> None:
    assert plain("![i](p.png) :red[x] $x$") == r"\!\[i\]\(p\.png\) \:red\[x\] \$x\$"
    for address in ("https://e.invalid", "HTTP://e.invalid", "www.e.invalid", "a@e.invalid"):
        assert "\u2060" in plain(address)  # else Markdown makes a link of it


def test_dark_is_drawn_in_dark_colours() -> None:
    test = app(theme="dark")
    assert figures(test)[1]["data"][0]["colorscale"][0][1] == "#23252F"


def test_a_text_beyond_all_reason_gets_a_word_and_the_picture_stays() -> None:
    test = app()
    before = component(test, "strip")["tokens"]
    test.text_area(key="text").set_value("a" * 1_000_000).run()
    assert not test.exception
    assert "1,000,000 characters" in said(test)
    assert component(test, "strip")["tokens"] == before
    assert len(test.text_area(key="text").value) == 1_000_000


def test_the_strip_is_sent_the_weights_to_three_digits() -> None:
    pattern = np.tril(np.random.default_rng(0).random((5, 5))).astype(np.float32)
    pattern[0, 0] = 1.0
    raw = np.frombuffer(base64.b64decode(pack(pattern)), dtype=np.uint8).astype(int).reshape(-1, 3)
    first = raw[:, 0] | (raw[:, 1] & 15) << 8
    second = raw[:, 1] >> 4 | raw[:, 2] << 4
    found = np.stack([first, second], axis=1).ravel()[:15] / 4095
    np.testing.assert_allclose(found, pattern[np.tril_indices(5)], atol=0.5 / 4095 + 1e-7)

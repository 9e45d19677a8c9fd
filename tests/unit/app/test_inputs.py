"""The inputs of every page: texts of every kind, models and devices, available or not."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from support.script import ROOT, component, figures, lead, opened, said

from mha_viz import checkpoints, devices
from mha_viz.app.samples import DEFAULT, SAMPLES
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


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["name"])
def test_every_kind_of_text_is_drawn_with_a_row_for_each_token(case: dict[str, str]) -> None:
    test = app(text=case["text"].encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    assert not test.exception
    data = component(test, "strip")
    assert len(data["tokens"]) == len(figures(test)[1]["layout"]["yaxis"]["tickvals"]) or (
        len(data["tokens"]) > 60
    )


def test_with_an_empty_text_the_page_asks_for_one_and_keeps_its_tokens() -> None:
    test = app()
    before = component(test, "strip")["tokens"]
    test.text_area(key="text").set_value("").run()
    assert not test.exception
    assert "Type a sentence" in said(test)
    assert component(test, "strip")["tokens"] == before
    test.button[0].click().run()
    assert "Type a sentence" not in said(test)
    assert test.text_area(key="text").value == next(iter(SAMPLES.values()))


def test_a_link_with_an_empty_text_is_no_error() -> None:
    test = app(text="")
    assert not test.exception
    assert "Type a sentence" in said(test)


@pytest.mark.parametrize("extra", [0, 1, 9216])
def test_a_text_over_the_limit_is_truncated_with_a_warning(extra: int) -> None:
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


def test_a_text_of_a_million_characters_is_rejected_and_the_figures_stay() -> None:
    test = app()
    before = component(test, "strip")["tokens"]
    test.text_area(key="text").set_value("a" * 1_000_000).run()
    assert not test.exception
    assert "1,000,000 characters" in said(test)
    assert component(test, "strip")["tokens"] == before
    assert len(test.text_area(key="text").value) == 1_000_000


def test_a_model_that_is_not_on_this_machine_is_offered_and_the_figures_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hub, "is_cached", lambda _: False)
    test = app()
    test.selectbox(key="model").set_value("gpt2").run()
    assert not test.exception
    assert "not on this machine yet" in said(test)
    assert len(figures(test)) == 2
    assert "Bundled" in lead(test)


def test_a_link_keeps_its_head_until_its_model_is_downloaded(
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
    assert ">L11 H7</b>" in lead(test)
    assert component(test, "strip")["token"] == 2


@pytest.mark.parametrize("name", ["a sentence.", "<img src=x>", "x" * 300, "a//b"])
def test_a_malformed_model_name_is_rejected_at_once(name: str) -> None:
    test = app(model=name)
    assert not test.exception
    assert "is not a name on the Hugging Face Hub" in said(test).replace("\\", "")
    assert not [button for button in test.button if "Fetch" in button.label]
    assert len(figures(test)) == 2


def test_a_missing_folder_is_named_and_the_figures_stay(tmp_path: Path) -> None:
    test = app(model=f"{tmp_path}/nothing")
    assert not test.exception
    assert "There is no folder" in said(test)
    assert len(figures(test)) == 2
    assert test.text_area(key="text").value == DEFAULT


def test_a_device_that_fails_is_replaced_by_the_cpu_with_a_note(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(devices, "available", lambda: ["cuda", "cpu"])
    test = app(device="cuda")
    assert not test.exception
    about = " ".join(text.value for text in test.text)
    assert "the CPU is used" in about
    assert "float32 on cpu" in about
    assert len(figures(test)) == 2

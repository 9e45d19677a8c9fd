"""The checkpoints of a training run, stepped through on a page."""

from collections.abc import Iterator
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub import constants
from streamlit.testing.v1 import AppTest
from support.hub_server import HubServer, commit_of
from support.script import button, opened, said

from mha_viz.app.work import models
from mha_viz.checkpoints import hub

NAMES = ["my/run", "my/run@step-900", "my/run@step-1000"]


@pytest.fixture
def server(gpt2, checkpoint, tmp_path, monkeypatch) -> Iterator[HubServer]:
    """A hub on this machine with a run of three checkpoints, all of them in the cache."""
    folders: list[Path] = [checkpoint(gpt2(seed), f"step{seed}") for seed in range(3)]
    for name in ("HF_HOME", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    for name in NAMES:
        monkeypatch.setitem(models.TITLES, name, name)  # the simulated box takes no other option
    huggingface_hub.close_session()
    found = HubServer(
        repos={"my/run": folders[0]},
        branches={"my/run": {"step-900": folders[1]}},
        tags={"my/run": {"step-1000": folders[2]}},
    )
    with found.running():
        monkeypatch.setenv("HF_ENDPOINT", found.url)
        for name in NAMES:
            hub.fetch(name)
        found.requests.clear()
        yield found
        huggingface_hub.close_session()


def revision(test: AppTest) -> str:
    return str(test.session_state["view"].about.revision)


def test_a_run_is_stepped_through_when_its_revisions_are_asked_for(server):
    commits = [commit_of(folder) for folder in server.revisions("my/run").values()][:3]
    test = opened("attention", model="my/run", text="the dog")
    assert not test.exception
    assert server.requests == [], "nothing is asked for by itself"
    assert revision(test) == commits[0]
    button(test, "List revisions").click().run()
    assert test.selectbox(key="revision").options == ["main", "step-900", "step-1000"]
    for commit in commits[1:]:
        test.button(key="revision_next").click().run()
        assert not test.exception
        assert revision(test) == commit
    assert test.button(key="revision_next").disabled
    assert test.session_state["model"] == "my/run@step-1000"
    test.selectbox(key="revision").select("main").run()
    assert test.session_state["model"] == "my/run"
    assert revision(test) == commits[0]


def test_a_hub_that_does_not_answer_is_reported(server):
    test = opened("attention", model="my/run", text="the dog")
    server.status = 500
    button(test, "List revisions").click().run()
    assert "returned error 500" in said(test)


@pytest.mark.parametrize("model", ["bundled", "./folder"])
def test_other_models_have_no_revisions(model):
    test = opened("attention", model=model, text="the dog")
    assert not [one for one in test.button if one.label == "List revisions"]

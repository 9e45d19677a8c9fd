"""The real client against a Hub on 127.0.0.1, with and without failures."""

import json
import os
import re
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import pytest
import torch
from huggingface_hub import constants, hf_hub_download, scan_cache_dir
from safetensors.torch import save_file
from support.hub_server import HubServer, commit_of
from support.patience import PATIENCE

from mha_viz.checkpoints import hub
from mha_viz.checkpoints.hub import Progress, fetch, fetch_tokenizer
from mha_viz.errors import Cancelled, CheckpointError, MhaVizError, NotGPT2, SourceError

WEIGHTS = "model.safetensors"
CONFIG = {"model_type": "gpt2", "n_layer": 1, "n_head": 2, "n_embd": 4, "vocab_size": 300}
MB = 1 << 20


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[None]:
    """A session of the client for these tests alone, past any proxy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_PROXY", "127.0.0.1")
        huggingface_hub.close_session()
        yield
        huggingface_hub.close_session()


@pytest.fixture(autouse=True)
def only_here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No address but 127.0.0.1 is ever connected to."""
    elsewhere = []
    connect = socket.create_connection

    def guarded(address: tuple[str, int], *args: Any, **kwargs: Any) -> socket.socket:
        if address[0] != "127.0.0.1":
            elsewhere.append(address)
            raise ConnectionRefusedError(address)
        return connect(address, *args, **kwargs)

    monkeypatch.setattr(socket, "create_connection", guarded)
    yield
    assert elsewhere == []


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    """A hub without any model, and an empty cache."""
    for name in ("HF_HOME", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_TELEMETRY", True)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_IMPLICIT_TOKEN", True)
    monkeypatch.setattr(hub, "PAUSE", 0.01)
    with HubServer().running() as running:
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        yield running


@pytest.fixture
def publish(server: HubServer, tmp_path: Path) -> Callable[..., Path]:
    """`publish(name, size=..., shards=..., config=...)`: a model on the hub, and its folder."""

    def write(
        name: str = "some/model",
        *,
        size: int = 1000,
        shards: int = 1,
        config: dict[str, Any] = CONFIG,
        tokenizer: bool = True,
    ) -> Path:
        folder = tmp_path / "hub" / name
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "README.md").write_text("not asked for")
        (folder / "pytorch_model.bin").write_bytes(b"not asked for")
        if tokenizer:
            (folder / "tokenizer.json").write_text('{"version": "1.0"}')
            (folder / "vocab.json").write_text('{"!": 0}')
            (folder / "merges.txt").write_text("#version: 0.2\n")
        names = [WEIGHTS]
        if shards > 1:
            names = [f"model-{i + 1:05}-of-{shards:05}.safetensors" for i in range(shards)]
            index = {"weight_map": {f"tensor.{i}": file for i, file in enumerate(names)}}
            (folder / f"{WEIGHTS}.index.json").write_text(json.dumps(index))
        for i, file in enumerate(names):
            generator = torch.Generator().manual_seed(i)
            noise = torch.randint(256, (size,), dtype=torch.uint8, generator=generator)
            save_file({f"tensor.{i}": noise}, folder / file)
        server.repos[name] = folder
        return folder

    return write


def assert_says(error: BaseException, *parts: str) -> None:
    text = str(error)
    assert all(part in text for part in parts), text
    assert re.search(r"https?:|127\.0\.0\.1|huggingface|Error\b|httpx|/tmp", text) is None, text
    assert text.endswith("."), text


def same(one: Path, other: Path) -> bool:
    return one.read_bytes() == other.read_bytes()


# What is downloaded, and what is not.


def test_one_file_of_weights(server: HubServer, publish: Callable[..., Path]) -> None:
    folder = publish()
    fetched = fetch("some/model")
    wanted = {"config.json", "tokenizer.json", "vocab.json", "merges.txt", WEIGHTS}
    assert {file.name for file in fetched.folder.iterdir()} == wanted
    assert all(same(fetched.folder / name, folder / name) for name in wanted)
    assert fetched.revision == fetched.folder.name == commit_of(folder)
    assert not fetched.from_cache
    assert set(server.served) == wanted


def test_shards(server: HubServer, publish: Callable[..., Path]) -> None:
    folder = publish(shards=3)
    fetched = fetch("some/model")
    shards = sorted(folder.glob("*.safetensors"))
    assert len(shards) == 3
    assert all(same(fetched.folder / shard.name, shard) for shard in shards)
    assert "pytorch_model.bin" not in server.served


def test_an_index_with_a_missing_shard(publish: Callable[..., Path]) -> None:
    folder = publish(shards=3)
    next(folder.glob("*-00002-*")).unlink()
    with pytest.raises(SourceError) as caught:
        fetch("some/model")
    assert_says(caught.value, "some/model", "model-00002-of-00003.safetensors")


def test_an_index_cannot_reach_out_of_the_folder(publish: Callable[..., Path]) -> None:
    folder = publish(shards=2)
    index = {"weight_map": {"a": "../../secret.safetensors"}}
    (folder / f"{WEIGHTS}.index.json").write_text(json.dumps(index))
    with pytest.raises(CheckpointError):
        fetch("some/model")


@pytest.mark.parametrize("name", ["gpt2", "owner/name", "a-b/c.d_e"])
def test_names(publish: Callable[..., Path], name: str) -> None:
    publish(name)
    assert (fetch(name).folder / WEIGHTS).is_file()


def test_the_other_libraries_find_what_was_fetched(
    server: HubServer, publish: Callable[..., Path], tmp_path: Path
) -> None:
    publish()
    fetched = fetch("some/model")
    server.requests.clear()
    cache = tmp_path / "cache"
    theirs = hf_hub_download("some/model", WEIGHTS, cache_dir=cache, local_files_only=True)
    assert Path(theirs) == fetched.folder / WEIGHTS
    report = scan_cache_dir(cache)
    assert not report.warnings
    assert [repo.repo_id for repo in report.repos] == ["some/model"]
    assert server.requests == []


def test_what_the_other_libraries_cached_is_found(
    server: HubServer, publish: Callable[..., Path], tmp_path: Path
) -> None:
    publish()
    for name in ("config.json", WEIGHTS, "tokenizer.json"):
        arguments = {"endpoint": server.url, "cache_dir": tmp_path / "cache"}
        theirs = Path(hf_hub_download("some/model", name, **arguments))
    server.requests.clear()
    assert fetch("some/model").folder == theirs.parent
    assert fetch("some/model").from_cache
    assert server.requests == []


def test_cached_weights_without_their_tokenizer_are_completed(
    server: HubServer, publish: Callable[..., Path], tmp_path: Path
) -> None:
    publish()
    for name in ("config.json", WEIGHTS):
        hf_hub_download("some/model", name, endpoint=server.url, cache_dir=tmp_path / "cache")
    server.served.clear()
    assert (fetch("some/model").folder / "tokenizer.json").is_file()
    assert WEIGHTS not in server.served


def test_a_model_that_never_had_a_tokenizer(
    server: HubServer, publish: Callable[..., Path]
) -> None:
    publish(tokenizer=False)
    fetch("some/model")
    server.requests.clear()
    assert fetch("some/model").from_cache
    assert server.requests == []


def test_the_snapshot_of_main_comes_first_and_any_complete_one_next(
    publish: Callable[..., Path],
) -> None:
    publish()
    fetched = fetch("some/model")
    newer = fetched.folder.with_name("f" * 40)
    shutil.copytree(fetched.folder, newer)
    os.utime(newer, (2**32, 2**32))
    assert fetch("some/model").revision == fetched.revision
    (newer / "config.json").unlink()
    (fetched.folder.parents[1] / "refs" / "main").write_text(newer.name)
    assert fetch("some/model").revision == fetched.revision


def test_tokenizer_alone(server: HubServer, publish: Callable[..., Path]) -> None:
    folder = publish(config={"model_type": "llama"})
    assert same(fetch_tokenizer("some/model") / "tokenizer.json", folder / "tokenizer.json")
    assert set(server.served) == {"tokenizer.json", "vocab.json", "merges.txt"}
    server.requests.clear()
    fetch_tokenizer("some/model")
    assert server.requests == []


def test_tokenizer_alone_where_there_is_none(publish: Callable[..., Path]) -> None:
    publish(tokenizer=False)
    with pytest.raises(SourceError) as caught:
        fetch_tokenizer("some/model")
    assert_says(caught.value, "some/model", "no tokenizer")


def test_the_token_goes_to_the_hub_and_no_further(
    server: HubServer, publish: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    publish()
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_IMPLICIT_TOKEN", False)
    fetch("some/model")
    for request in server.requests:
        to_the_store = request.path.startswith("/store/")
        assert request.authorization == (None if to_the_store else "Bearer hf_secret")


def test_progress_rises_to_the_total(
    publish: Callable[..., Path], capfd: pytest.CaptureFixture[str]
) -> None:
    folder = publish(size=MB)
    seen: list[Progress] = []
    fetched = fetch("some/model", on_progress=seen.append)
    done = [progress.done for progress in seen]
    assert done == sorted(done)
    assert len(set(done)) > 10
    size = sum((folder / file.name).stat().st_size for file in fetched.folder.iterdir())
    assert seen[-1] == Progress(size, size, WEIGHTS)
    assert {progress.total for progress in seen} == {0, size}
    assert capfd.readouterr() == ("", "")


# What is rejected before any weights are requested.


@pytest.mark.parametrize("shards", [1, 2])
def test_another_architecture(server: HubServer, publish: Callable[..., Path], shards: int) -> None:
    publish(config={"model_type": "llama"}, shards=shards)
    with pytest.raises(NotGPT2, match="llama"):
        fetch("some/model")
    assert not server.asked_for(".safetensors")
    assert set(server.served) == {"config.json"}


def test_a_config_that_is_no_json(server: HubServer, publish: Callable[..., Path]) -> None:
    (publish() / "config.json").write_text("{")
    with pytest.raises(CheckpointError):
        fetch("some/model")
    assert not server.asked_for(".safetensors")


def test_no_config(server: HubServer, publish: Callable[..., Path]) -> None:
    (publish() / "config.json").unlink()
    with pytest.raises(SourceError) as caught:
        fetch("some/model")
    assert_says(caught.value, "some/model", "config.json")


def test_only_pickled_weights(server: HubServer, publish: Callable[..., Path]) -> None:
    (publish() / WEIGHTS).unlink()
    with pytest.raises(SourceError) as caught:
        fetch("some/model")
    assert_says(caught.value, "some/model", "pytorch_model.bin", "safetensors", "folder")
    assert set(server.served) == {"config.json"}


def test_a_full_disk(
    server: HubServer, publish: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(size=2 * MB)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=MB))
    with pytest.raises(SourceError) as caught:
        fetch("some/model")
    assert_says(caught.value, "some/model", "2 MB", "1 MB")
    assert not server.served[WEIGHTS]


MALFORMED = ["", "../x", "a/b/c", "gpt2\x00", "gpt2\n", "https://example.org/gpt2", "/etc/passwd"]
MALFORMED += ["a//b", "a b", ".gpt2", "a--b", "a..b", "a.git", "é", "~", "a/", "x" * 97, "a\\b"]


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_names_are_never_sent(server: HubServer, name: str) -> None:
    for ask in (fetch, fetch_tokenizer):
        with pytest.raises(SourceError, match="owner/name"):
            ask(name)
    assert server.requests == []


# Failures.


def test_unknown(server: HubServer) -> None:
    with pytest.raises(SourceError) as caught:
        fetch("no/such")
    assert_says(caught.value, "no/such", "private", "spelling")


def test_gated(server: HubServer, publish: Callable[..., Path]) -> None:
    publish()
    server.gated.add("some/model")
    with pytest.raises(SourceError) as caught:
        fetch("some/model")
    assert_says(caught.value, "some/model", "gated", "log in")


@pytest.mark.parametrize("status", [500, 503, 429, 418])
def test_an_answer_that_is_an_error(server: HubServer, status: int) -> None:
    server.status = status
    with pytest.raises(SourceError) as caught:
        fetch("some/model")
    assert_says(caught.value, "some/model", str(status), "bundled")
    assert len(server.requests) == 1


@pytest.mark.parametrize("page", [b"<html>Please log in</html>", b"[]", b"{}", b'{"sha": 1}'])
def test_something_else_answers(server: HubServer, page: bytes) -> None:
    server.page = page
    with pytest.raises(SourceError) as caught:
        fetch("some/model")
    assert_says(caught.value, "some/model", "did not come from", "login")


def test_an_error_between_two_files(server: HubServer, publish: Callable[..., Path]) -> None:
    publish()

    def fail_later(progress: Progress) -> None:
        server.status = 503 if progress.file == "vocab.json" else None

    with pytest.raises(SourceError) as caught:
        fetch("some/model", on_progress=fail_later)
    assert_says(caught.value, "503")


@pytest.mark.parametrize("endpoint", ["closed", "http://x:abc", "nonsense"])
def test_no_network(server: HubServer, monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        closed = f"http://127.0.0.1:{free.getsockname()[1]}"
        monkeypatch.setenv("HF_ENDPOINT", closed if endpoint == "closed" else endpoint)
        with pytest.raises(SourceError) as caught:
            fetch("some/model")
    assert_says(caught.value, "some/model", "no network", "bundled")


def test_an_answer_that_does_not_come(
    server: HubServer, publish: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(SourceError) as caught:
            fetch("some/model")
    assert_says(caught.value, "some/model", "did not answer", "seconds")


def test_the_cache_cannot_be_written(
    publish: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish()
    (tmp_path / "file").touch()
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "file"))
    with pytest.raises(SourceError) as caught:
        fetch("some/model")
    assert_says(caught.value, "some/model", "HF_HUB_CACHE")


@pytest.mark.parametrize("variable", ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"])
def test_offline(
    server: HubServer,
    publish: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
) -> None:
    publish("was/cached")
    publish("not/cached")
    fetch("was/cached")
    server.requests.clear()
    monkeypatch.setenv(variable, "1")
    assert fetch("was/cached").from_cache
    with pytest.raises(SourceError) as caught:
        fetch("not/cached")
    assert_says(caught.value, "not/cached", "HF_HUB_OFFLINE", "bundled")
    assert server.requests == []


def test_cached_and_the_server_is_down(server: HubServer, publish: Callable[..., Path]) -> None:
    publish("one/file")
    publish("two/shards", shards=2)
    before = [fetch("one/file"), fetch("two/shards")]
    server.status = 500
    server.requests.clear()
    after = [fetch("one/file"), fetch("two/shards")]
    assert [now.folder for now in after] == [then.folder for then in before]
    assert all(now.from_cache for now in after)
    assert server.requests == []


def test_home_of_the_cache(
    publish: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish()
    monkeypatch.delenv("HF_HUB_CACHE")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    assert fetch("some/model").folder.is_relative_to(tmp_path / "home" / "hub")


# Interrupted and resumed.


def test_a_connection_that_breaks_once(server: HubServer, publish: Callable[..., Path]) -> None:
    folder = publish(size=2 * MB)
    server.break_at[WEIGHTS] = MB
    fetched = fetch("some/model")
    assert same(fetched.folder / WEIGHTS, folder / WEIGHTS)
    assert server.served[WEIGHTS] == (folder / WEIGHTS).stat().st_size
    got = [request for request in server.asked_for(WEIGHTS) if request.method == "GET"]
    assert [request.range for request in got] == (
        [None, None, f"bytes={MB}-", f"bytes={MB}-"]  # each time to the hub, then to its store
    )
    assert {request.encoding for request in server.requests} == {"identity"}


def test_a_connection_that_stays_broken(server: HubServer, publish: Callable[..., Path]) -> None:
    folder = publish(size=2 * MB)
    server.break_at[WEIGHTS], server.break_once = MB, False
    with pytest.raises(SourceError) as caught:
        fetch("some/model")
    assert_says(caught.value, "some/model", "broke", "resumes")
    server.break_at.clear()
    seen: list[Progress] = []
    fetched = fetch("some/model", on_progress=seen.append)
    assert same(fetched.folder / WEIGHTS, folder / WEIGHTS)
    assert server.served[WEIGHTS] == (folder / WEIGHTS).stat().st_size
    assert min(progress.done for progress in seen if progress.total) < MB
    assert not list(fetched.folder.parents[1].rglob("*.incomplete"))


@pytest.mark.parametrize("shards", [1, 3])
def test_cancel_and_go_on(server: HubServer, publish: Callable[..., Path], shards: int) -> None:
    folder = publish(size=2 * MB, shards=shards)
    cancel = threading.Event()

    def stop_halfway(progress: Progress) -> None:
        if progress.total and progress.done > progress.total / 2:
            cancel.set()

    with pytest.raises(Cancelled) as caught:
        fetch("some/model", on_progress=stop_halfway, cancel=cancel)
    assert_says(caught.value, "some/model", "resumes")
    served = server.served.copy()
    fetched = fetch("some/model")
    again = [request for request in server.asked_for(".safetensors") if request.range]
    assert len(again) == 2
    for file in folder.glob("*.safetensors"):
        size = file.stat().st_size
        assert same(fetched.folder / file.name, file)
        if served[file.name] == size and again[0].file != file.name:
            assert server.served[file.name] == size


def test_cancel_before_anything(server: HubServer, publish: Callable[..., Path]) -> None:
    publish()
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(Cancelled):
        fetch("some/model", cancel=cancel)
    assert server.requests == []


def test_resumed_on_an_almost_full_disk(
    server: HubServer, publish: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(size=2 * MB)
    server.break_at[WEIGHTS], server.break_once = MB + MB // 2, False
    with pytest.raises(SourceError):
        fetch("some/model")
    server.break_at.clear()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=MB))
    assert not fetch("some/model").from_cache


def test_a_server_that_ignores_ranges(server: HubServer, publish: Callable[..., Path]) -> None:
    folder = publish(size=2 * MB)
    server.break_at[WEIGHTS], server.ignore_ranges = MB, True
    assert same(fetch("some/model").folder / WEIGHTS, folder / WEIGHTS)


def test_damage_is_noticed(server: HubServer, publish: Callable[..., Path]) -> None:
    name = WEIGHTS
    folder = publish(size=MB)
    server.corrupt.add(name)
    with pytest.raises(SourceError) as caught:
        fetch("some/model")
    assert_says(caught.value, name, "damaged")
    server.corrupt.clear()
    assert same(fetch("some/model").folder / name, folder / name)


def test_a_longer_partial_file_is_dropped(
    server: HubServer, publish: Callable[..., Path], tmp_path: Path
) -> None:
    publish()
    server.break_at["config.json"], server.break_once = 10, False
    with pytest.raises(SourceError):
        fetch("some/model")
    server.break_at.clear()
    (partial,) = (tmp_path / "cache").rglob("*.incomplete")
    partial.write_bytes(b"x" * MB)
    with pytest.raises(SourceError, match="damaged"):
        fetch("some/model")
    fetch("some/model")


# Several users.


def run_together(*calls: Callable[[], Any]) -> list[Any]:
    answers: list[Any] = [None] * len(calls)

    def keep(i: int) -> None:
        try:
            answers[i] = calls[i]()
        except MhaVizError as error:
            answers[i] = error

    threads = [threading.Thread(target=keep, args=(i,)) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def test_two_at_once_download_once(server: HubServer, publish: Callable[..., Path]) -> None:
    folder = publish(size=MB)
    server.delay = 0.01
    one, other = run_together(lambda: fetch("some/model"), lambda: fetch("some/model"))
    assert one.folder == other.folder
    assert {one.from_cache, other.from_cache} == {True, False}
    assert server.served[WEIGHTS] == (folder / WEIGHTS).stat().st_size


def test_when_the_first_stops_the_second_goes_on(
    server: HubServer, publish: Callable[..., Path]
) -> None:
    folder = publish(size=2 * MB)
    server.delay = 0.005
    cancel, started = threading.Event(), threading.Event()

    def stop_halfway(progress: Progress) -> None:
        if progress.done:
            started.set()
        if progress.done > MB:
            cancel.set()

    def second() -> hub.Fetched:
        assert started.wait(PATIENCE)
        return fetch("some/model")

    first, other = run_together(
        lambda: fetch("some/model", on_progress=stop_halfway, cancel=cancel), second
    )
    assert isinstance(first, Cancelled)
    assert same(other.folder / WEIGHTS, folder / WEIGHTS)
    assert any(request.range for request in server.asked_for(WEIGHTS))


def test_a_waiting_user_can_leave(server: HubServer, publish: Callable[..., Path]) -> None:
    publish(size=MB)
    server.delay = 0.02
    cancel, started = threading.Event(), threading.Event()

    def second() -> hub.Fetched:
        assert started.wait(PATIENCE)
        cancel.set()
        return fetch("some/model", cancel=cancel)

    first, other = run_together(
        lambda: fetch("some/model", on_progress=lambda now: now.done and started.set()), second
    )
    assert isinstance(other, Cancelled)
    assert not first.from_cache


def test_two_models_do_not_wait_for_each_other(
    server: HubServer, publish: Callable[..., Path]
) -> None:
    publish("slow/model", size=MB)
    publish("quick/model")
    order: list[str] = []

    def quick_between(progress: Progress) -> None:
        if not order and progress.total:
            order.append(fetch("quick/model").revision)

    slow = fetch("slow/model", on_progress=quick_between)
    assert order != [slow.revision]
    assert len(order) == 1


# Revisions.


@pytest.fixture
def run(server: HubServer, publish: Callable[..., Path]) -> dict[str, Path]:
    """A training run: `main`, two steps as branches, one as a tag."""
    folders = {name: publish(f"run/{name}", size=1000 + i) for i, name in enumerate("abcd")}
    main, first, second, last = folders.values()
    server.repos = {"my/run": main}
    server.branches = {"my/run": {"step-900": first, "refs/pr/1": second}}
    server.tags = {"my/run": {"step-1000": last}}
    return {"main": main, "step-900": first, "refs/pr/1": second, "step-1000": last}


def test_each_revision_is_fetched_and_kept_apart(server: HubServer, run: dict[str, Path]) -> None:
    for revision, folder in run.items():
        name = f"my/run@{revision}"
        assert not hub.is_cached(name)
        fetched = fetch(name)
        assert fetched.revision == commit_of(folder)
        assert same(fetched.folder / WEIGHTS, folder / WEIGHTS)
    server.requests.clear()
    for revision, folder in run.items():
        assert fetch(f"my/run@{revision}").revision == commit_of(folder)
        assert fetch(f"my/run@{commit_of(folder)}").revision == commit_of(folder)
    assert fetch("my/run").revision == commit_of(run["main"])
    assert server.requests == []


def test_another_revision_is_never_taken_for_main(run: dict[str, Path]) -> None:
    fetch("my/run@step-900")
    fetch(f"my/run@{commit_of(run['step-1000'])}")
    assert not hub.is_cached("my/run")
    assert fetch("my/run").revision == commit_of(run["main"])


def test_a_revision_that_is_not_there_is_named(run: dict[str, Path]) -> None:
    with pytest.raises(SourceError) as caught:
        fetch("my/run@step-5")
    assert_says(caught.value, "my/run has no revision `step-5`", "`my/run@main`")


def test_the_revisions_of_a_run_are_listed(server: HubServer, run: dict[str, Path]) -> None:
    assert hub.revisions("my/run@step-900") == ["main", "refs/pr/1", "step-900", "step-1000"]
    with pytest.raises(SourceError) as caught:
        hub.revisions("no/such")
    assert_says(caught.value, "no/such does not exist or is private")
    server.page = b"<html>Log in</html>"
    with pytest.raises(SourceError) as caught:
        hub.revisions("my/run")
    assert_says(caught.value, "did not come from the Hugging Face Hub")


def test_weights_of_another_framework_are_named(publish: Callable[..., Path]) -> None:
    folder = publish()
    (folder / WEIGHTS).rename(folder / "flax_model.msgpack")
    with pytest.raises(SourceError) as caught:
        fetch("some/model")
    assert_says(caught.value, "only in flax_model.msgpack (Flax)")


def test_a_vocabulary_of_another_kind_is_fetched(publish: Callable[..., Path]) -> None:
    folder = publish(tokenizer=False)
    (folder / "vocab.txt").write_text("[UNK]\nthe\n")
    fetched = fetch("some/model")
    assert same(fetched.folder / "vocab.txt", folder / "vocab.txt")
    assert hub.is_cached("some/model")

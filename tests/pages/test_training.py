"""The Training page as a script: its link, a run from start to end, texts, and the one request."""

import csv
import io
import math
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from support import script
from support.script import ROOT, html, opened, said

from mha_viz.app.pages.training import comparison, corpora
from mha_viz.app.work import jobs
from mha_viz.app.work.progress import ResultSlot
from mha_viz.errors import SourceError, TextError
from mha_viz.export import table_csv
from mha_viz.lessons.char_model import MIN_CHARACTERS, Settings, train

TEXT = corpora.Text("a text", "so it goes. " * 200, 8)


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(jobs, "background", jobs.Queue())
    monkeypatch.setattr(corpora, "_fetched", ResultSlot())


page = partial(opened, "training")


def figures(test: AppTest) -> dict[str, dict]:
    """By the kind of their first trace: scatter is the chart of losses, heatmap the patterns."""
    return {
        spec["data"][0]["type"] if spec["data"] else "scatter": spec
        for spec in script.figures(test)
    }


def words(test: AppTest) -> str:
    captions = " ".join(caption.value for caption in test.caption)
    return " ".join([said(test), captions, html(test)])


def press(test: AppTest, name: str) -> AppTest:
    return test.button(key=f"train_{name}").click().run()


def finished(test: AppTest) -> AppTest:
    job = test.session_state["job training"]
    end = time.monotonic() + 60
    while job.active:
        assert time.monotonic() < end
        time.sleep(0.02)
    return test.run()


def test_the_page_opens_with_the_comparison_and_an_empty_chart() -> None:
    test = page()
    assert not test.exception
    said = words(test)
    assert "1 head of 32 against 4 heads of 8, seed 0, 5,000 steps" in said
    assert "written by the bundled model, 300," in said
    chart = figures(test)["scatter"]
    assert [note["text"] for note in chart["layout"]["annotations"]] == [
        f"guessing evenly: ln 64 = {math.log(64):.3f}"
    ]
    assert chart["layout"]["xaxis"]["range"] == [0, 5000]


def test_a_link_restores_every_setting() -> None:
    test = page(
        train_heads_a="16", train_W_O_a="true", train_heads_b="2", train_steps="1234",
        train_seed="7", train_seeds="3", train_on="Generated",
    )  # fmt: skip
    assert not test.exception
    assert "16 heads of 2, W_O against 2 heads of 16, seeds 7 to 9, 1,234 steps" in words(test)


@pytest.mark.parametrize(
    "link",
    [
        {"train_heads_a": "5"}, {"train_W_O_b": "maybe"}, {"train_steps": "0"},
        {"train_steps": "1e9"}, {"train_seed": "-1"}, {"train_seeds": "99"}, {"train_on": "<b>"},
    ],
)  # fmt: skip
def test_a_bad_value_in_a_link_falls_back_with_a_word(link: dict[str, str]) -> None:
    test = page(**link)
    assert not test.exception
    (name,) = link
    assert f"The link's value {name}" in words(test)
    assert "scatter" in figures(test)


def test_start_trains_both_models_and_shows_their_losses() -> None:
    test = press(page(train_steps="100", train_seed="3"), "start")
    test = finished(test)
    assert not test.exception
    said = words(test)
    assert "Done: 100 of 100 steps" in said
    text = corpora.generated().content
    for n_heads, name in ((1, "1 head of 32"), (4, "4 heads of 8")):
        *_, last = train(Settings(n_heads=n_heads, steps=100, seed=3), text)
        assert f"{name}</th>" in said
        assert f">{last.validation_loss:.3f}</td>" in said
        labels = [note["text"] for note in figures(test)["scatter"]["layout"]["annotations"]]
        assert any(f"{name} <b>{last.validation_loss:.3f}</b>" in label for label in labels)
    assert "heatmap" in figures(test)
    assert test.button(key="train_start")


def test_several_seeds_give_a_mean_and_a_range() -> None:
    test = finished(press(page(train_steps="50", train_seeds="3", train_heads_b="32"), "start"))
    assert not test.exception
    job = test.session_state["job training"]
    last = {which: report.validation_loss for which, report in job.results}
    ones = [last[i] for i in range(3)]
    assert f">{sum(ones) / 3:.3f}</td>" in words(test)
    assert f">{min(ones):.3f}–{max(ones):.3f}</td>" in words(test)


def test_stop_keeps_what_was_found_and_start_begins_anew() -> None:
    test = press(page(train_steps="50000"), "start")
    job = test.session_state["job training"]
    while len(job.results) < 6:
        time.sleep(0.01)
    test = press(test, "stop")
    assert job.state == "stopped"
    held = test.session_state["job training"].results
    test = test.run()
    assert not test.exception
    assert "Stopped:" in words(test)
    assert {"scatter", "heatmap"} <= set(figures(test))
    assert len(held) >= 6
    test = press(test, "start")
    assert test.session_state["job training"] is not job
    press(test, "stop")


def test_pause_and_resume() -> None:
    test = press(page(train_steps="50000"), "start")
    job = test.session_state["job training"]
    while not job.results:
        time.sleep(0.01)
    test = press(test, "pause")
    assert job.state == "paused"
    assert "Paused" in "".join(bar.proto.text for bar in test.get("progress"))
    test = press(test, "resume")
    assert job.state in ("queued", "running")
    press(test, "stop")


def test_results_and_settings_stay_across_pages() -> None:
    test = finished(press(page(train_steps="50", train_heads_b="8"), "start"))
    test = test.switch_page("attention.py").run()
    assert not test.exception
    test = test.switch_page("training.py").run()
    assert not test.exception
    assert "Done: 50 of 50 steps" in words(test)
    assert test.selectbox(key="train_heads_b").value == 8
    assert test.number_input(key="train_steps").value == 50


def test_a_queue_that_is_full_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "background", jobs.Queue(workers=0, most_waiting=0))
    test = press(page(), "start")
    assert not test.exception
    assert "waiting already" in words(test)
    assert "Start trains both" in words(test)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"too short", "9 characters"),
        (b"", "0 characters"),
        ("é".encode() * (MIN_CHARACTERS - 1), "999 characters"),
        (b"\x00\x01\x02" * 1000, "no plain text"),
    ],
)
def test_a_file_that_cannot_be_trained_on_gets_a_word(data: bytes, said: str) -> None:
    test = page(train_on="Your file", train_steps="10")
    assert test.button(key="train_start").disabled
    test = test.file_uploader(key="train_file").upload("mine.txt", data, "text/plain").run()
    assert not test.exception
    assert said in words(test).replace("\\", "")
    assert test.button(key="train_start").disabled


def test_a_file_of_the_visitors_is_trained_on() -> None:
    test = page(train_on="Your file", train_steps="10")
    content = "Straße, café\r\n" * 200
    test.file_uploader(key="train_file").upload("mine.txt", content.encode(), "text/plain").run()
    test = finished(press(test, "start"))
    assert not test.exception
    assert f"mine.txt, {13 * 200:,} characters, {len(set(content)) - 1} different" in words(test)
    assert "Done: 10 of 10 steps" in words(test)
    test = test.switch_page("attention.py").run().switch_page("training.py").run()
    assert not test.button(key="train_start").disabled


def test_a_file_that_is_taken_away_is_forgotten() -> None:
    test = page(train_on="Your file", train_steps="10")
    test.file_uploader(key="train_file").upload("mine.txt", b"a b c\n" * 200, "text/plain").run()
    assert not test.button(key="train_start").disabled
    test.file_uploader(key="train_file").clear().run()
    assert test.button(key="train_start").disabled


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("naïve\n".encode(), ("naïve\n", "utf-8-sig")),
        ("naïve".encode("utf-8-sig"), ("naïve", "utf-8-sig")),
        ("naïve 🙂".encode("utf-16"), ("naïve 🙂", "utf-16")),
        ("naïve".encode("cp1252"), ("naïve", "cp1252")),
        (b"a\r\nb\rc", ("a\nb\nc", "utf-8-sig")),
    ],
)
def test_a_file_is_read_in_its_encoding(data: bytes, expected: tuple[str, str]) -> None:
    assert corpora.decode(data) == expected


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\0\0", b"\xff\xfea", b"\x81\x8d\xff"])
def test_what_is_no_text_is_refused(data: bytes) -> None:
    with pytest.raises(TextError, match="no plain text"):
        corpora.decode(data)


@dataclass
class Answer:
    """What a server on this machine says."""

    body: bytes = b""
    status: int = 200
    pause: float = 0.0  # before each byte

    @contextmanager
    def served(self) -> Iterator[str]:
        answer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(answer.status)
                self.end_headers()
                step = 1 if answer.pause else len(answer.body) or 1
                for i in range(0, len(answer.body), step):
                    time.sleep(answer.pause)
                    try:
                        self.wfile.write(answer.body[i : i + step])
                        self.wfile.flush()
                    except OSError:
                        return

            def log_message(self, *_: object) -> None:
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever, args=(0.01,))
            thread.start()
            try:
                yield f"http://127.0.0.1:{server.server_port}/input.txt"
            finally:
                server.shutdown()
                thread.join()


def test_the_text_is_fetched_whole() -> None:
    text = "First Citizen:\n" * 500
    with Answer(text.encode()).served() as url:
        assert corpora.fetch(url, len(text)) == text


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(b"<html>log in</html>"), "19 bytes instead of 7,500"),
        (Answer(b"x" * 9_000), "more than 7,500 bytes"),
        (Answer(b"", status=404), "404"),
        (Answer(b"", status=503), "503"),
    ],
)
def test_another_answer_is_refused(answer: Answer, said: str) -> None:
    with answer.served() as url, pytest.raises(SourceError, match=said):
        corpora.fetch(url, 7_500)


def test_a_server_that_drips_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpora, "DEADLINE", 0.2)
    with (
        Answer(b"x" * 100, pause=0.05).served() as url,
        pytest.raises(SourceError, match="not finished"),
    ):
        corpora.fetch(url, 100)


def test_a_server_that_is_silent_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpora, "SILENCE", 0.1)
    with Answer(b"x", pause=1.0).served() as url, pytest.raises(SourceError, match="timed out"):
        corpora.fetch(url, 1)


def test_without_a_network_there_is_a_word_and_a_way_on() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
    with pytest.raises(SourceError, match="train on another text"):
        corpora.fetch(f"http://127.0.0.1:{port}/input.txt", 1)


def test_shakespeare_is_fetched_when_asked_for_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def fetch() -> str:
        asked.append(1)
        return "First Citizen: speak, speak.\n" * 100

    monkeypatch.setattr(corpora, "fetch", fetch)
    test = page(train_on="Tiny Shakespeare")
    assert "1.1 MB from raw.githubusercontent.com" in words(test).replace("\\", "")
    assert asked == []
    assert test.button(key="train_start").disabled
    test = test.button(key="fetch_shakespeare").click().run()
    assert "Tiny Shakespeare, 2,900 characters" in words(test)
    assert not test.button(key="train_start").disabled
    assert "Tiny Shakespeare, 2,900 characters" in words(page(train_on="Tiny Shakespeare"))
    assert asked == [1]


def test_a_failed_fetch_is_told_and_can_be_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch() -> str:
        raise SourceError("raw.githubusercontent.com did not send the text: offline.")

    monkeypatch.setattr(corpora, "fetch", fetch)
    test = page(train_on="Tiny Shakespeare")
    test = test.button(key="fetch_shakespeare").click().run()
    assert not test.exception
    assert "did not send the text" in words(test)
    assert test.button(key="fetch_shakespeare")


def test_the_file_of_losses_holds_every_report() -> None:
    plan = comparison.Plan((Settings(1, steps=50), Settings(4, steps=50)), 2, TEXT)
    reports = [(i, r) for i, s in enumerate(plan.settings) for r in train(s, TEXT.content)]
    rows = comparison.csv_rows(plan, reports)
    read = list(csv.DictReader(io.StringIO(table_csv(comparison.CSV_HEADER, rows))))
    assert [(r["heads"], r["seed"], r["step"]) for r in read] == [
        (heads, seed, step) for heads in "14" for seed in "01" for step in ("0", "50")
    ]
    assert float(read[1]["validation loss"]) == reports[1][1].validation_loss
    assert read[0]["training loss"] == ""


def test_the_patterns_are_those_of_the_first_seed() -> None:
    plan = comparison.Plan((Settings(1, steps=50), Settings(4, steps=50)), 2, TEXT)
    reports = [(i, r) for i, s in enumerate(plan.settings) for r in train(s, TEXT.content)]
    step, found = comparison.patterns(plan, reports)
    assert step == 50
    rows = comparison.weight_rows(found, "so it go")
    assert len(rows) == (1 + 4) * 36
    assert rows[-1] == ["4 heads of 8", 3, 7, "o", 7, "o", float(found[1][1][3, 7, 7])]
    assert [name for name, _ in found] == ["1 head of 32", "4 heads of 8"]
    for (_, pattern), model in zip(found, plan.models, strict=True):
        *_, last = train(model, TEXT.content)
        np.testing.assert_array_equal(pattern, last.pattern)


def test_each_model_keeps_its_losses_while_others_are_still_missing() -> None:
    plan = comparison.Plan((Settings(1, steps=50), Settings(4, steps=50)), 1, TEXT)
    begun = next(train(plan.settings[0], TEXT.content))
    one, four = comparison.curves(plan, [(0, begun)])
    assert one.last == (0, pytest.approx(begun.validation_loss, abs=1e-6))
    assert math.isnan(four.last[1])
    step, (_, *rows) = comparison.table(plan, [one, four])
    assert step == 0
    assert [row[0] for row in rows] == ["1 head of 32"]

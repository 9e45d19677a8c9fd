"""Files are complete or not there, and replace nothing unless they are told to."""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.command import Done

from mha_viz.commands import output, trace
from mha_viz.errors import OutputError
from mha_viz.export import rows_data

Command = Callable[..., Done]
TEXT = "the cat sat on the mat"


def test_a_file_is_not_overwritten_without_force(
    command: Command, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "t.npz").write_bytes(b"mine")
    done = command("trace", folder, TEXT, "-o", "t.npz")
    assert done.code == 1
    assert done.err == "mha-viz: t.npz already exists. Choose another name, or add --force.\n"
    assert (tmp_path / "t.npz").read_bytes() == b"mine"
    assert command("trace", folder, TEXT, "-o", "t.npz", "--force").code == 0
    assert (tmp_path / "t.npz").read_bytes() != b"mine"


@pytest.mark.parametrize("path", ["no/t.npz", "a_folder.npz"])
def test_where_nothing_can_be_written_is_refused_before_the_work(
    command: Command, folder: Path, tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a_folder.npz" / "inside").mkdir(parents=True)
    monkeypatch.setattr(trace.given, "model", lambda _: pytest.fail("worked"))
    done = command("trace", folder, TEXT, "-o", path, "--force")
    assert done.code == 1
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("failure", "code"),
    [(KeyboardInterrupt(), 130), (OSError(28, "No space left on device"), 1)],
)
def test_an_interrupted_or_failed_write_leaves_nothing(
    command: Command,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failure: BaseException,
    code: int,
) -> None:
    def half(_: object, file: object, **__: object) -> None:
        file.write(b"half")  # type: ignore[attr-defined]
        raise failure

    monkeypatch.setattr(trace, "write_trace", half)
    (tmp_path / "t.npz").write_bytes(b"mine")
    done = command("trace", folder, TEXT, "-o", "t.npz", "--force")
    assert done.code == code
    assert ("t.npz could not be written: No space left on device" in done.err) is (code == 1)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"t.npz": b"mine"}


def test_a_file_that_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"

    def write() -> None:
        with output.file(path, force=False) as opened:
            opened.write(b"new")
            path.write_bytes(b"mine")

    with pytest.raises(OutputError, match="already exists"):
        write()
    assert path.read_bytes() == b"mine"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_appears_when_it_is_complete(tmp_path: Path) -> None:
    place = tmp_path / "model"

    def write(folder: Path) -> None:
        assert not place.exists()
        folder.mkdir()
        (folder / "config.json").write_text("new")

    output.folder(place, write, force=False)
    assert (place / "config.json").read_text() == "new"
    with pytest.raises(OutputError, match="already exists"):
        output.folder(place, write, force=False)


def test_a_folder_is_replaced_only_by_force_and_as_a_whole(tmp_path: Path) -> None:
    place = tmp_path / "model"
    place.mkdir()
    (place / "config.json").write_text("old")

    def fail(folder: Path) -> None:
        folder.mkdir()
        raise OSError(28, "No space left on device")

    with pytest.raises(OutputError, match="No space left on device"):
        output.folder(place, fail, force=True)
    assert (place / "config.json").read_text() == "old"

    def write(folder: Path) -> None:
        folder.mkdir()
        (folder / "weights").write_text("new")

    output.folder(place, write, force=True)
    assert [path.name for path in place.iterdir()] == ["weights"]
    assert list(tmp_path.iterdir()) == [place]
    with pytest.raises(OutputError, match="holds other files than a model"):
        output.folder(place, write, force=True)


@pytest.mark.parametrize("ending", [".csv", ".json", ".npz"])
def test_numbers_keep_their_values_in_every_form(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a{ending}"
    options = argparse.Namespace(output=path, force=False)
    data = rows_data(["a", "b"], [[1, 0.1], [2, float("nan")]])
    output.data(data, options, {"Text": "“é”"})
    if ending == ".npz":
        with np.load(path) as found:
            assert found["b"][0] == 0.1
            assert np.isnan(found["b"][1])
    else:
        read = path.read_text(encoding="utf-8")
        assert "0.1" in read
        assert "é" in read or "\\u00e9" in read


def test_without_an_output_csv_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    options = argparse.Namespace(output=None, force=False)
    output.data(rows_data(["a"], [[1]]), options, {"Model": "m"})
    assert capsys.readouterr().out == '# Model: m\n"a"\n1\n'


def test_a_folder_with_other_files_is_never_replaced(tmp_path: Path) -> None:
    """A project may have a config.json of its own, and --force must not delete the rest."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "config.json").write_text("{}")
    (project / "precious.txt").write_text("work")
    with pytest.raises(OutputError, match=r"such as precious\.txt"):
        output.folder(project, lambda path: path.mkdir(), force=True)
    assert (project / "precious.txt").read_text() == "work"
    assert [path.name for path in tmp_path.iterdir()] == ["project"]


def test_a_link_to_a_folder_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.mkdir()
    link.symlink_to(target)
    output.folder(link, lambda path: path.mkdir() or (path / "config.json").touch(), force=False)
    assert link.is_symlink()
    assert (target / "config.json").is_file()
    assert {path.name for path in tmp_path.iterdir()} == {"target", "link"}


def test_a_name_that_is_too_long_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="could not be written"):
        output.check_free(tmp_path / f"{'x' * 300}.npz", force=False)


def test_the_current_folder_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OutputError, match="the current folder"):
        output.folder(Path(), lambda path: path.mkdir(), force=True)

"""What pip installs: the wheel has everything, needs no checkout, and starts the app."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
import urllib.request
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from support.browser import Tab, chromium, free_port, running

import mha_viz

ROOT = Path(__file__).resolve().parents[2]
SITE = ("app.py", "pages", "assets", ".streamlit")  # beside the package; inside it in a wheel
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
# The tests' environment provides the packages, but the checkout cannot be read.
LENT = [place for place in sys.path if Path(place).name in ("site-packages", "dist-packages")]
OPEN = tuple({sys.prefix, sys.base_prefix, *LENT})
CLOSED = f"""
import os, sys
def closed(event, given):
    if event in ("open", "os.listdir", "os.scandir") and isinstance(given[0], (str, os.PathLike)):
        path = os.path.abspath(given[0])
        if path.startswith({f"{ROOT}{os.sep}"!r}) and not path.startswith({OPEN!r}):
            raise PermissionError(path + " belongs to the checkout")
sys.addaudithook(closed)
"""


# --- one list of versions -------------------------------------------------------------------------


def pins(name: str) -> dict[str, str]:
    """package -> version, as a requirements file pins them."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith(("#", "-")))


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("requirements.txt", PROJECT["project"]["dependencies"]),
        ("requirements-dev.txt", PROJECT["project"]["optional-dependencies"]["test"]),
        ("requirements-bench.txt", PROJECT["project"]["optional-dependencies"]["bench"]),
    ],
)
def test_requirement_files_and_pyproject_agree(name: str, asked: list[str]) -> None:
    ranges = {found.name: found.specifier for found in map(Requirement, asked)}
    pinned = pins(name)
    assert ranges.keys() == pinned.keys()
    for package, version in pinned.items():
        # From the version that was tested on, through its fixes, and no further.
        assert re.fullmatch(rf"~={re.escape(version)}(\.0)?", str(ranges[package])), package


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt"])
def test_no_version_is_said_twice_and_differently(name: str) -> None:
    tested = pins("constraints.txt")
    assert {p: v for p, v in pins(name).items() if tested.get(p, v) != v} == {}


def test_the_build_backend_is_the_one_that_is_pinned() -> None:
    (backend,) = map(Requirement, PROJECT["build-system"]["requires"])
    assert backend.specifier.contains(pins("requirements-dev.txt")[backend.name])


def test_the_changelog_has_the_version() -> None:
    assert f"\n## {mha_viz.__version__} " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


# --- the wheel ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a wheel is built from, and nothing else of the checkout."""
    place = tmp_path_factory.mktemp("tree")
    for name in ("mha_viz", *SITE, "pyproject.toml", "README.md", "LICENSE"):
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, place / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, place)
    return place


@pytest.fixture(scope="module")
def wheel(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built wheel. The backend is the pinned one: a build of its own would fetch another."""
    place = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(place), str(tree))
    (found,) = place.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def venv(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel in it, which cannot read the checkout."""
    place = tmp_path_factory.mktemp("installed") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    pip("--python", str(place), "install", "--no-deps", "--no-compile", str(wheel))
    (packages,) = place.glob("lib/python*/site-packages")
    (packages / "lent.pth").write_text("\n".join(LENT), encoding="utf-8")
    (packages / "sitecustomize.py").write_text(CLOSED, encoding="utf-8")
    return place


def pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", *arguments, "--no-index", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def alone(home: Path) -> dict[str, str]:
    """The environment of a user without a checkout, who has Streamlit settings at home."""
    left_out = ("PYTHON", "STREAMLIT_", "VIRTUAL_ENV", "PYTEST_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    return {**kept, "HOME": str(home), "USERPROFILE": str(home)}


def test_the_wheel_holds_every_file_of_the_app(tree: Path, wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        for file in (path for path in tree.rglob("*") if path.is_file()):
            inside = file.relative_to(tree).as_posix()
            if inside.startswith(SITE):
                inside = f"mha_viz/_site/{inside}"
            elif not inside.startswith("mha_viz/"):
                continue
            assert inside in names
            assert archive.read(inside) == file.read_bytes(), inside
    assert "mha_viz/py.typed" in names
    assert {name.split("/")[0] for name in names} == {
        "mha_viz",
        f"mha_viz-{mha_viz.__version__}.dist-info",
    }


def test_the_installation_needs_no_checkout(venv: Path, tmp_path: Path) -> None:
    code = (
        "import importlib.util, json, mha_viz, mha_viz.assets as assets\n"
        "from importlib.metadata import version\n"
        "from mha_viz.checkpoints import load\n"
        "load('bundled').trace('a king')\n"
        "print(json.dumps([mha_viz.__file__, str(assets.APP), version('mha-viz'),"
        " importlib.util.find_spec('pages') is None]))"
    )
    done = subprocess.run(
        [venv / "bin" / "python", "-c", code],
        cwd=tmp_path, env=alone(tmp_path), capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    package, app, version, no_pages = json.loads(done.stdout)
    assert Path(package).is_relative_to(venv)
    assert Path(app).is_relative_to(venv)
    assert version == mha_viz.__version__
    assert no_pages


def test_the_installation_cannot_read_the_checkout(venv: Path, tmp_path: Path) -> None:
    code = f"open({str(ROOT / 'app.py')!r})"
    done = subprocess.run(
        [venv / "bin" / "python", "-c", code],
        cwd=tmp_path, env=alone(tmp_path), capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert "belongs to the checkout" in done.stderr


def test_the_command_starts_the_app_from_an_empty_folder(
    venv: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    home, folder = tmp_path / "home", tmp_path / "empty"
    folder.mkdir()
    (home / ".streamlit").mkdir(parents=True)
    theirs = '[server]\naddress = "0.0.0.0"\n[client]\nallowedOrigins = ["*"]\n'
    (home / ".streamlit" / "config.toml").write_text(theirs, encoding="utf-8")
    port = free_port()
    command = [str(venv / "bin" / "mha-viz"), "--no-browser", "--port", str(port)]
    with running(command, port, tmp_path / "log", cwd=folder, env=alone(home)) as process:
        address = f"http://localhost:{port}"
        settings = json.loads(fetched(f"{address}/_stcore/host-config"))
        assert settings["allowedOrigins"] == []  # the project's settings hold, not those at home
        assert f"URL: {address}" in (tmp_path / "log").read_text(encoding="utf-8")
        if chromium() or os.environ.get("MHA_VIZ_NEED_BROWSER"):
            tab = Tab(request.getfixturevalue("chrome").new_page(), address).open()
            assert tab.page.title() == "GPT-2 attention"
            assert tab.problems == []
        else:
            assert b'<div id="root">' in fetched(address)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 0
    assert list(folder.iterdir()) == []


def fetched(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return bytes(answer.read())

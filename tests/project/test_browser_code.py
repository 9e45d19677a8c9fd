"""The browser code: lint, types and unit tests, with the tools that package.json pins."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from support.browser import ROOT
from support.node import missing, program

APP = ROOT / "mha_viz" / "app"
MODULES = sorted(APP.rglob("*.js"))
TESTS = sorted((ROOT / "tests").rglob("*.test.js"))
LONGEST = 220  # lines of a module


def run(command: list[str]) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def npm() -> str:
    """npm, with the pinned packages of package-lock.json installed."""
    npm = program("npm")
    lock, installed = ROOT / "package-lock.json", ROOT / "node_modules" / ".package-lock.json"
    if installed.exists() and installed.stat().st_mtime >= lock.stat().st_mtime:
        return npm
    command = [npm, "ci", "--no-audit", "--no-fund"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    if done.returncode:
        missing(f"the packages of package-lock.json could not be installed:\n{done.stderr}")
    return npm


@pytest.mark.parametrize("check", ["lint", "types"])
def test_the_browser_code_passes(npm: str, check: str) -> None:
    run([npm, "run", "--silent", check])


def test_the_unit_tests_pass() -> None:
    assert TESTS
    run([program("node"), "--test", *map(str, TESTS)])


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(APP).as_posix())
def test_a_module_is_typed_and_short(path: Path) -> None:
    code = path.read_text(encoding="utf-8")
    assert code.startswith("// @ts-check\n// ")
    assert "@ts-ignore" not in code
    assert code.count("\n") <= LONGEST


def test_every_test_is_named_after_a_module() -> None:
    for path in TESTS:
        within = path.relative_to(ROOT / "tests" / "unit" / "app").as_posix()
        assert (APP / within.replace(".test.js", ".js")).exists(), path


def test_packages_are_pinned_and_the_lock_names_no_host() -> None:
    package = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))
    assert "dependencies" not in package
    for version in package["devDependencies"].values():
        assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    lock = json.loads((ROOT / "package-lock.json").read_text(encoding="utf-8"))
    for name, entry in lock["packages"].items():
        assert "resolved" not in entry, name
        assert not name or entry["integrity"], name

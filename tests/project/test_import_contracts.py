"""The import contracts in pyproject.toml: each is broken once on purpose, and misses no module."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import grimp
import pytest

ROOT = Path(__file__).resolve().parents[2]
IMPORT_LINTER = "from importlinter.cli import lint_imports_command; lint_imports_command()"
CONTRACTS: dict[str, dict[str, Any]] = {
    contract["name"]: contract
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "importlinter"
    ]["contracts"]
}
MODULES = {f"mha_viz.{path.stem}" for path in (ROOT / "mha_viz").glob("[!_]*.py")} | {
    f"mha_viz.{path.parent.name}" for path in (ROOT / "mha_viz").glob("*/__init__.py")
}
COMMAND = {"mha_viz.app", "mha_viz.cli"}

# (contract, file that gets one more line, that line); the file is new where there is none.
BREAKS = [
    ("Pages stand on top", "mha_viz/errors.py", "import pages.head"),
    ("Imports point down", "mha_viz/assets.py", "import mha_viz.attention"),
    ("Imports point down", "mha_viz/figures/theme.py", "import mha_viz.pruning.curves"),
    ("Imports point down", "mha_viz/newcomer.py", "import math"),
    ("Inside the app", "mha_viz/app/widgets/caption.py", "import mha_viz.app.pages.compare"),
    ("Inside the app", "mha_viz/app/work/models.py", "import mha_viz.app.widgets.caption"),
    ("Inside the app", "mha_viz/app/newcomer.py", "import math"),
    ("No circles", "mha_viz/figures/theme.py", "import mha_viz.figures.heatmap"),
    ("No page imports another", "mha_viz/app/pages/compare.py", "import mha_viz.app.pages.shapes"),
    ("No page imports another", "pages/head.py", "import pages.heads"),
    ("Only the app and the command know Streamlit", "mha_viz/model.py", "import streamlit"),
    ("Only checkpoints and the app know transformers", "mha_viz/model.py", "import transformers"),
    ("Only figures, exports and the app know Plotly", "mha_viz/heads/roles.py", "import plotly"),
    ("Traces, measures and figures need no torch", "mha_viz/trace.py", "import torch"),
    ("Pages do not compute", "pages/head.py", "import mha_viz.model"),
]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages and their contracts, to be broken."""
    place = tmp_path_factory.mktemp("copy")
    for package in ("mha_viz", "pages"):
        shutil.copytree(
            ROOT / package, place / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    shutil.copy(ROOT / "pyproject.toml", place)
    return place


def broken(tree: Path) -> list[str]:
    """The contracts that the tree breaks."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_LINTER], cwd=tree, capture_output=True, text=True, timeout=120
    )
    assert "Contracts:" in done.stdout, done.stdout + done.stderr
    found = re.findall(r"^(.+) BROKEN", done.stdout, flags=re.MULTILINE)
    assert bool(found) == bool(done.returncode)
    return found


def test_a_copy_keeps_every_contract(copy: Path) -> None:
    assert broken(copy) == []


@pytest.mark.parametrize(("contract", "path", "line"), BREAKS)
def test_each_contract_fails_when_it_is_broken(
    copy: Path, contract: str, path: str, line: str
) -> None:
    file = copy / path
    before = file.read_text(encoding="utf-8") if file.exists() else None
    file.write_text(f"{before or ''}\n{line}\n", encoding="utf-8")
    try:
        assert any(name.startswith(contract) for name in broken(copy))
    finally:
        if before is None:
            file.unlink()
        else:
            file.write_text(before, encoding="utf-8")


def test_every_contract_is_broken_above() -> None:
    for name in CONTRACTS:
        assert any(name.startswith(contract) for contract, _, _ in BREAKS), name


@pytest.mark.parametrize(
    ("contract", "allowed"),
    [
        ("Only the app and the command know Streamlit", COMMAND),
        ("Only checkpoints and the app know transformers", COMMAND | {"mha_viz.checkpoints"}),
        (
            "Only figures, exports and the app know Plotly",
            COMMAND | {"mha_viz.figures", "mha_viz.export"},
        ),
    ],
)
def test_a_contract_forgets_no_module(contract: str, allowed: set[str]) -> None:
    assert set(CONTRACTS[contract]["source_modules"]) == MODULES - allowed


def test_pages_may_import_the_app_alone() -> None:
    forbidden = set(CONTRACTS["Pages do not compute"]["forbidden_modules"])
    assert MODULES - forbidden == {"mha_viz.app"}


def test_a_page_draws_through_the_module_of_its_name() -> None:
    graph = grimp.build_graph("mha_viz", "pages", cache_dir=None)
    for page in graph.find_children("pages"):
        imported = graph.find_modules_directly_imported_by(page)
        drawn_by = {name.split(".")[3] for name in imported if "mha_viz.app.pages." in name}
        assert drawn_by == (set() if "._" in page else {page.split(".")[1]}), page

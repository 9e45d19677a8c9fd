"""pre-commit, the workflow, CI and the documents run the same commands."""

import re
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
TEST = "pip install -r requirements-dev.txt && pytest"


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_hooks_are_the_house_rules_in_versions_of_one_place() -> None:
    (repo,) = yaml.safe_load(text(".pre-commit-config.yaml"))["repos"]
    assert repo["repo"] == "local"
    assert {hook["language"] for hook in repo["hooks"]} == {"system"}
    assert {hook["entry"] for hook in repo["hooks"]} == {
        "ruff check",
        "ruff format --check",
        "mypy",
        "lint-imports",
    }
    for tool in ("ruff", "mypy", "import-linter", "pre-commit"):
        assert re.search(rf"^{tool}==", text("requirements-dev.txt"), flags=re.MULTILINE), tool
    command = [sys.executable, "-m", "pre_commit", "validate-config"]
    assert subprocess.run(command, cwd=ROOT, timeout=60).returncode == 0


def test_the_workflow_runs_what_ci_runs_and_the_documents_say() -> None:
    job = yaml.safe_load(text(".github/workflows/ci.yml"))["jobs"]["test"]
    assert [step["run"] for step in job["steps"] if "run" in step] == ["bash .ci/run"]
    assert text(".ci/run").rstrip().endswith(f"\n{TEST}")  # so that its exit code is pytest's
    assert f"\n{TEST}\n" in text("README.md")
    assert f"`{TEST}`" in text("CONTRIBUTING.md")

"""The house rules that a machine can check: lint, format, types, imports, and the documents."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
IMPORT_LINTER = "from importlinter.cli import lint_imports_command; lint_imports_command()"


@pytest.mark.parametrize(
    "command",
    [
        ["-m", "ruff", "check", "."],
        ["-m", "ruff", "format", "--check", "."],
        ["-m", "mypy"],
        ["-c", IMPORT_LINTER],
    ],
    ids=["lint", "format", "types", "imports"],
)
def test_the_house_rules_hold(command: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_readme_names_every_page() -> None:
    frame = (ROOT / "pages" / "_frame.py").read_text(encoding="utf-8")
    titles = re.findall(r'title="([^"]+)"', frame)
    assert titles
    for title in titles:
        assert f"**{title}**" in README


def test_links_and_scripts_in_the_readme_exist() -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)", README):
        assert (ROOT / target).exists(), target
    for script in re.findall(r"python (scripts/\S+\.py)", README):
        assert (ROOT / script).exists(), script


def test_contributing_names_every_package_and_top_module_in_120_lines() -> None:
    tree = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert len(tree.splitlines()) <= 120
    for path in (ROOT / "mha_viz").glob("*.py"):
        if path.name not in ("__init__.py", "__main__.py"):
            assert path.name in tree, path
    for path in [*(ROOT / "mha_viz").glob("*/__init__.py"), *(ROOT / "mha_viz/app").glob("*/*.py")]:
        if path.name == "__init__.py":
            assert f"{path.parent.name}/" in tree, path


def test_requirements_are_pinned() -> None:
    for name in ("requirements.txt", "requirements-dev.txt", "constraints.txt"):
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
            if line and not line.startswith(("#", "-")):
                assert re.fullmatch(r"[\w.-]+==[\w.]+", line), f"{name}: {line}"


def test_the_package_itself_imports_nothing() -> None:
    code = "import sys, mha_viz.trace, mha_viz.figures.heatmap; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr


def test_the_python_of_the_readme_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    documented = dict(re.findall(r"^(trace\.\S.*?)\s+# (\(.*\))$", code, flags=re.MULTILINE))
    names: dict[str, Any] = {}
    exec(code, names)
    assert documented
    for expression, value in documented.items():
        assert eval(expression, names) == eval(value), expression

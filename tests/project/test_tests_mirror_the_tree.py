"""A person finds the tests of a module by its name.

`mha_viz/a/b.py` is tested in `tests/unit/a/test_b.py`, the package `mha_viz/a/b` in the file of
the same name, and the page `pages/b.py` in `tests/pages/test_b.py`, a part `c` of it also in
`tests/pages/b/test_c.py`.
"""

import ast
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parents[2]
SMALL = 80  # lines of a module that needs no tests of its own
OF_SEVERAL_MODULES = {
    "app/browser/parity": "computed in Python and in JavaScript alike",
    "checkpoints/kinds_of_tokenizer": "the tokenizers of other trainers, down to their labels",
    "checkpoints/mutations": "many damaged folders and many texts, each of any kind",
    "checkpoints/tensor_names": "the names that other programs give to tensors",
}
OF_EVERY_PAGE = {
    "every_page": "any text, any link, every technical word",
    "folders": "models in folders of every kind, and what pages say about them",
    "recorded_links": "links from before the app was rearranged",
    "revisions": "the checkpoints of a training run, on any page",
    "scripts": "the exported data and script of every figure",
    "waiting": "long work in front of any page",
    "parity_line": "the comparison with transformers under each page",
}
ELSEWHERE = {
    "app/frame": "tests/pages and tests/browser, on every page",
    "app/widgets": "tests/pages, and tests/browser for clicks",
    "app/work/models": "tests/unit/app/test_inputs.py",
}


def public_functions(path: Path) -> list[str]:
    """The functions of a module that others may call."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    return [name for name in found if not name.startswith("_")]


def modules() -> dict[str, Path]:
    """`checkpoints/hub` -> its file; a package has the name of its folder."""
    found = {}
    for path in (ROOT / "mha_viz").rglob("*.py"):
        within = path.relative_to(ROOT / "mha_viz")
        name = within.parent if path.name == "__init__.py" else within.with_suffix("")
        found[name.as_posix()] = path
    return found


def names_of_files(folder: str) -> set[str]:
    """What the files in a folder of tests are named after, as in `checkpoints/hub`."""
    root = ROOT / "tests" / folder
    files = (path.relative_to(root) for path in root.rglob("test_*.py"))
    return {(path.parent / path.stem.removeprefix("test_")).as_posix() for path in files}


MODULES, PAGES = modules(), {path.stem for path in (ROOT / "pages").glob("[!_]*.py")}
UNIT_TESTS, PAGE_TESTS = names_of_files("unit"), names_of_files("pages")
LARGE = sorted(
    name
    for name, path in MODULES.items()
    if path.read_text(encoding="utf-8").count("\n") > SMALL and public_functions(path)
)


def has_tests(module: str) -> bool:
    """Whether the module, a package around it or the page that it draws has a file of tests."""
    around = {module, *map(str, PurePosixPath(module).parents)}
    drawn = {f"app/pages/{page}" for page in PAGE_TESTS}
    return bool(around & (UNIT_TESTS | drawn | ELSEWHERE.keys()))


@pytest.mark.parametrize("name", sorted(UNIT_TESTS))
def test_a_file_of_unit_tests_is_named_after_a_module(name: str) -> None:
    assert name in MODULES or name in OF_SEVERAL_MODULES


@pytest.mark.parametrize("name", sorted(PAGE_TESTS))
def test_a_file_of_page_tests_is_named_after_a_page(name: str) -> None:
    assert name in PAGES or name in OF_EVERY_PAGE or f"app/pages/{name}" in MODULES


def test_every_page_has_a_file_of_tests() -> None:
    assert not PAGES - PAGE_TESTS


@pytest.mark.parametrize("module", LARGE)
def test_a_module_with_public_functions_has_a_file_of_tests(module: str) -> None:
    assert has_tests(module)


def test_the_exceptions_are_still_needed() -> None:
    assert not OF_SEVERAL_MODULES.keys() & MODULES.keys()
    assert ELSEWHERE.keys() <= MODULES.keys() - UNIT_TESTS

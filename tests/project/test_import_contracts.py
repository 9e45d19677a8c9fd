"""The import contracts in pyproject.toml: each is broken once on purpose, and misses no module."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import grimp
import pytest
from importlinter import Contract
from importlinter.api import read_configuration
from importlinter.contracts.acyclic_siblings import AcyclicSiblingsContract
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.independence import IndependenceContract
from importlinter.contracts.layers import LayersContract

ROOT = Path(__file__).resolve().parents[2]
CONFIGURATION = read_configuration(str(ROOT / "pyproject.toml"))
SESSION: dict[str, Any] = CONFIGURATION["session_options"]
CONTRACTS: dict[str, dict[str, Any]] = {
    contract["name"]: contract for contract in CONFIGURATION["contracts_options"]
}
KINDS: dict[str, type[Contract]] = {
    "acyclic_siblings": AcyclicSiblingsContract,
    "forbidden": ForbiddenContract,
    "independence": IndependenceContract,
    "layers": LayersContract,
}
MODULES = {f"mha_viz.{path.stem}" for path in (ROOT / "mha_viz").glob("[!_]*.py")} | {
    f"mha_viz.{path.parent.name}" for path in (ROOT / "mha_viz").glob("*/__init__.py")
}
COMMAND = {"mha_viz.app", "mha_viz.cli"}

# (contract, module that gets one more import, what it imports); the module may be a new one.
BREAKS = [
    ("Pages are the top layer", "mha_viz.errors", "pages.head"),
    ("Imports point down", "mha_viz.assets", "mha_viz.attention"),
    ("Imports point down", "mha_viz.figures.theme", "mha_viz.pruning.curves"),
    ("Imports point down", "mha_viz.newcomer", "math"),
    ("Inside the app", "mha_viz.app.widgets.caption", "mha_viz.app.pages.compare"),
    ("Inside the app", "mha_viz.app.work.models", "mha_viz.app.widgets.caption"),
    ("Inside the app", "mha_viz.app.newcomer", "math"),
    ("No circular imports", "mha_viz.figures.theme", "mha_viz.figures.heatmap"),
    ("No page imports another", "mha_viz.app.pages.compare", "mha_viz.app.pages.shapes"),
    ("No page imports another", "pages.head", "pages.heads"),
    ("Only the app and the command import Streamlit", "mha_viz.model", "streamlit"),
    ("Only checkpoints and the app import transformers", "mha_viz.model", "transformers"),
    ("Only figures, exports and the app import Plotly", "mha_viz.heads.roles", "plotly"),
    ("Traces, measures and figures do not import torch", "mha_viz.trace", "torch"),
    ("Pages do not compute", "pages.head", "mha_viz.model"),
]


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    """The import graph of this checkout, as `lint-imports` builds it."""
    return grimp.build_graph(
        *SESSION["root_packages"],
        include_external_packages=True,
        exclude_type_checking_imports=True,
        cache_dir=None,
    )


def broken(imports: grimp.ImportGraph) -> list[str]:
    """The contracts that these imports break."""
    contracts = [KINDS[one["type"]](name, SESSION, one) for name, one in CONTRACTS.items()]
    return [
        contract.name
        for contract in contracts
        if not contract.check(deepcopy(imports), verbose=False).kept  # it removes what it ignores
    ]


def test_the_checkout_keeps_every_contract(imports: grimp.ImportGraph) -> None:
    assert SESSION["include_external_packages"] == "True"
    assert SESSION["exclude_type_checking_imports"] == "True"
    assert broken(imports) == []


@pytest.mark.parametrize(("contract", "module", "imported"), BREAKS)
def test_each_contract_fails_when_it_is_broken(
    imports: grimp.ImportGraph, contract: str, module: str, imported: str
) -> None:
    others = deepcopy(imports)
    others.add_import(importer=module, imported=imported)
    assert any(name.startswith(contract) for name in broken(others))


def test_every_contract_is_broken_above() -> None:
    for name in CONTRACTS:
        assert any(name.startswith(contract) for contract, _, _ in BREAKS), name


@pytest.mark.parametrize(
    ("contract", "allowed"),
    [
        ("Only the app and the command import Streamlit", COMMAND),
        (
            "Only checkpoints and the app import transformers",
            COMMAND | {"mha_viz.commands", "mha_viz.checkpoints"},
        ),
        (
            "Only figures, exports and the app import Plotly",
            COMMAND | {"mha_viz.commands", "mha_viz.figures", "mha_viz.export"},
        ),
    ],
)
def test_a_contract_forgets_no_module(contract: str, allowed: set[str]) -> None:
    assert set(CONTRACTS[contract]["source_modules"]) == MODULES - allowed


def test_pages_may_import_the_app_alone() -> None:
    forbidden = set(CONTRACTS["Pages do not compute"]["forbidden_modules"])
    assert MODULES - forbidden == {"mha_viz.app"}


def test_a_page_draws_through_the_module_of_its_name(imports: grimp.ImportGraph) -> None:
    for page in imports.find_children("pages"):
        imported = imports.find_modules_directly_imported_by(page)
        drawn_by = {name.split(".")[3] for name in imported if "mha_viz.app.pages." in name}
        assert drawn_by == (set() if "._" in page else {page.split(".")[1]}), page

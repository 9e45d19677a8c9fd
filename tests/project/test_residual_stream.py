"""Only gpt2.py uses the parts of a GPT-2; everything else uses the steps of `Network`."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS = {"wte", "wpe", "ln_1", "ln_2", "ln_f", "mlp"}
ITS_OWN = ROOT / "mha_viz" / "gpt2.py"


def parts_named(source: str) -> Iterator[tuple[int, str]]:
    """(line, name) for each access to a part of GPT-2, by a dot or by getattr."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in PARTS:
            yield node.lineno, node.attr
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "getattr":
            for argument in node.args[1:2]:
                if isinstance(argument, ast.Constant) and argument.value in PARTS:
                    yield node.lineno, str(argument.value)


def test_no_other_module_reaches_into_gpt2() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line} names {name}"
        for folder in ("mha_viz", "pages", "scripts")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path != ITS_OWN
        for line, name in parts_named(path.read_text(encoding="utf-8"))
    ]
    assert not found, "use the steps of mha_viz/network.py instead"


def test_the_check_sees_each_kind_of_access() -> None:
    source = "x = network.wte(ids)\ny = getattr(block, 'ln_2')\n"
    assert sorted(parts_named(source)) == [(1, "wte"), (2, "ln_2")]
    assert {name for _, name in parts_named(ITS_OWN.read_text(encoding="utf-8"))} == PARTS

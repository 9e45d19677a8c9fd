"""Browser modules are bundled into the one string that Streamlit takes."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from support.node import program

from mha_viz.app import browser
from mha_viz.app.browser import component_code, script_code, without_comments

APP = Path(browser.__file__).parents[1]
ENTRIES = [
    path
    for path in sorted(APP.rglob("*.js"))
    if re.search(r"^export default ", path.read_text(encoding="utf-8"), re.MULTILINE)
]
A = """import { twice, ONE as first } from "./b.js";
import {
  Box,
} from "./c.js";
const name = "a";
export default [name, first, twice(4), new Box().content];
"""
B = """import { Box } from "./c.js";
const name = "b";
export const ONE = 1;
export async function later() {}
export function twice(n) {
  return [name, 2 * n, new Box().content];
}
"""
C = 'const name = "c";\nexport class Box {\n  content = name;\n}\n'


def write(folder: Path, **modules: str) -> Path:
    """Writes modules into a folder and returns where the first one is."""
    for name, code in modules.items():
        (folder / f"{name}.js").write_text(code, encoding="utf-8")
    return folder / f"{next(iter(modules))}.js"


def run(code: str, folder: Path) -> str:
    """What Node prints for a module."""
    file = folder / "joined.mjs"
    file.write_text(code, encoding="utf-8")
    done = subprocess.run([program("node"), file], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_modules_are_joined_once_each_and_keep_their_names_apart(tmp_path: Path) -> None:
    code = component_code(write(tmp_path, a=A, b=B, c=C))
    assert code.count('modules["c.js"] =') == 1
    shown = code.replace("export default ", "console.log(JSON.stringify(").replace(
        ".default;\n", ".default));\n"
    )
    assert json.loads(run(shown, tmp_path)) == ["a", 1, ["b", 8, "c"], "c"]


def test_a_script_calls_the_default_export_with_its_arguments(tmp_path: Path) -> None:
    entry = write(tmp_path, a="export default function (...all) {\n  console.log(all);\n}\n")
    assert run(script_code(entry, 0.25, "a'b\n"), tmp_path) == '[ 0.25, "a\'b\\n" ]\n'
    with pytest.raises(ValueError, match="cannot contain"):
        script_code(entry, "</script>")


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        ({"a": 'import { b } from "./b.js";\n', "b": 'import { a } from "./a.js";\n'},
         "a.js imports b.js imports a.js"),
        ({"a": 'import * as b from "./b.js";\n', "b": ""}, "import * as b"),
        ({"a": 'import b from "./b.js";\n', "b": ""}, "import b from"),
        ({"a": 'import { b } from "package";\n'}, "package"),
        ({"a": 'import "./b.js";\n', "b": ""}, "./b.js"),
        ({"a": "const a = 1;\nexport { a };\n"}, "export { a }"),
        ({"a": "export let a = 1;\n"}, "export let a"),
    ],
    ids=["circle", "namespace", "default", "package", "effect", "list", "let"],
)  # fmt: skip
def test_an_empty_list_cannot_be_joined(
    tmp_path: Path, modules: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        component_code(write(tmp_path, **modules))


def test_a_missing_module_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="gone"):
        component_code(write(tmp_path, a='import { b } from "./gone.js";\n'))


def test_comments_and_types_are_left_out() -> None:
    code = """// what it is
/**
 * @param {string} a
 */
function f(a) { /** @type {number[]} */
  const b = /** @type {any} */ (a), c = "// kept /* kept */"; // kept
  /** @type {string | null} */
  return b + c;

}
"""
    assert (
        without_comments(code)
        == """function f(a) {\x20
  const b = (a), c = "// kept /* kept */"; // kept
  return b + c;
}
"""
    )


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda path: path.name)
def test_every_module_of_the_app_that_is_an_entry_can_be_joined(
    entry: Path, tmp_path: Path
) -> None:
    code = component_code(entry)
    assert code.count("\nexport ") == 1
    assert "/**" not in code
    run(code, tmp_path)


def test_the_app_has_entries() -> None:
    assert {path.name for path in ENTRIES} >= {"token_strip.js", "lines.js", "link.js"}

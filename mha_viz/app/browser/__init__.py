"""JavaScript that several parts of the page share, and how a module becomes code for Streamlit.

The browser code is written as ES modules, so that lint, type check and unit tests work on the files
as they are. Streamlit takes the code of a component as one string; the functions here join a module
and everything it imports into that string. Users need neither Node nor a build step.
"""

import json
import re
from functools import cache
from pathlib import Path

import streamlit as st

_APP = Path(__file__).resolve().parents[1]
_IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.[^"]*)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async function|function|class|const) (\w+))", re.MULTILINE)
_DEFAULT = re.compile(r"^export default ", re.MULTILINE)
_TYPE = re.compile(r"/\*\* @type .*?\*/ ?")
_NOT_JOINED = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


def component_code(entry: Path) -> str:
    """The code for `st.components.v2.component(js=...)`: a module with all that it imports.

    Raises FileNotFoundError if a module is missing, and ValueError where modules import one
    another in a cycle or use a form of import or export that cannot be joined.
    """
    return f"{_joined(entry)}export default {_reference(entry)}.default;\n"


def run_script(entry: Path, *arguments: object) -> None:
    """Calls the default export of a module in the page, now and whenever the arguments change.

    The arguments are passed as JSON. Errors as in `component_code`.
    """
    name = entry.stem.replace("_", " ")
    with st.container(key=f"unseen {name}"):
        st.html(f"<script>{script_code(entry, *arguments)}</script>", unsafe_allow_javascript=True)


def script_code(entry: Path, *arguments: object) -> str:
    """The code of a script element that calls the default export of a module.

    Raises ValueError if the code would end its own element; other errors as above.
    """
    call = f"{_reference(entry)}.default({', '.join(map(json.dumps, arguments))});"
    code = f'(() => {{\n"use strict";\n{_joined(entry)}{call}\n}})();\n'
    if "</" in code:
        raise ValueError(f"{entry.name}: a script element cannot contain “</”.")
    return code


@cache
def _joined(entry: Path) -> str:
    modules: dict[Path, str] = {}
    _join(entry.resolve(), modules, ())
    return "const modules = {};\n" + "".join(modules.values())


def _join(path: Path, modules: dict[Path, str], above: tuple[Path, ...]) -> None:
    """Adds a module after those that it imports; each is a function with names of its own."""
    if path in above:
        circle = " imports ".join(module.name for module in (*above, path))
        raise ValueError(f"Modules cannot be joined: {circle}.")
    if path in modules:
        return
    code = without_comments(path.read_text(encoding="utf-8"))

    def imported(statement: re.Match[str]) -> str:
        source = (path.parent / statement[2]).resolve()
        _join(source, modules, (*above, path))
        names = statement[1].replace(" as ", ": ")
        return f"const {{{names}}} = {_reference(source)};"

    code = _IMPORT.sub(imported, code)
    names = _EXPORT.findall(code)
    code = _EXPORT.sub("", code)
    if _DEFAULT.search(code):
        names.append("default: $default")
        code = _DEFAULT.sub("const $default = ", code)
    if left := _NOT_JOINED.search(code):
        raise ValueError(f"{path.name}: “{left[0]}” cannot be joined.")
    exported = f"return {{ {', '.join(names)} }};"
    modules[path] = f"{_reference(path)} = (() => {{\n{code}{exported}\n}})();\n"


def _reference(path: Path) -> str:
    """A joined module as an expression."""
    path = path.resolve()
    name = path.relative_to(_APP).as_posix() if path.is_relative_to(_APP) else path.name
    return f"modules[{json.dumps(name)}]"


def without_comments(code: str) -> str:
    """The code without types and full-line comments.

    Streamlit sends a component's code in every run of the page, and they make up a third of it.
    """
    kept, inside = [], False
    for line in _TYPE.sub("", code).splitlines():
        text = line.strip()
        if inside or text.startswith("/*"):
            inside = not text.endswith("*/")
        elif text and not text.startswith("//"):
            kept.append(line)
    return "\n".join(kept) + "\n"

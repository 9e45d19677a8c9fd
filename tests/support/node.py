"""Node.js for tests of the browser code; without it they are skipped with a message."""

import json
import os
import shutil
import subprocess
from typing import Any, NoReturn

import pytest

from support.browser import ROOT

NEEDED = any(os.environ.get(name) for name in ("MHA_VIZ_NEED_NODE", "MHA_VIZ_NEED_BROWSER"))


def program(name: str) -> str:
    """Where `node` or `npm` is; without it the test is skipped, or fails in CI."""
    return shutil.which(name) or missing(f"no {name} on this machine (apt install nodejs npm)")


def missing(what: str) -> NoReturn:
    """Skips the test that needs it; fails the test where Node is required."""
    if NEEDED:
        pytest.fail(what)
    pytest.skip(what)


def evaluate(code: str, data: object) -> Any:
    """The result of a JavaScript module: `code` is its body, reads `data` and assigns `result`."""
    module = f"""import {{ readFileSync }} from "node:fs";
const data = JSON.parse(readFileSync(0, "utf8"));
let result;
{code}
console.log(JSON.stringify(result));"""
    done = subprocess.run(
        [program("node"), "--input-type=module", "--eval", module],
        cwd=ROOT, input=json.dumps(data), capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)

"""A whole trace as npz: what it holds, its size, and patterns computed from it again."""

import io
import json
import tracemalloc

import numpy as np
import pytest

from mha_viz.export import trace_size, write_trace
from mha_viz.export.trace_file import COMPUTE_PATTERNS
from mha_viz.model import Model
from mha_viz.trace import Trace


@pytest.fixture(scope="module")
def trace(bundled: Model) -> Trace:
    return bundled.trace("The king gave the princess a golden ring. " * 20)


@pytest.mark.parametrize("patterns", [None, "float16", "float32"])
def test_a_file_holds_the_trace_and_has_the_size_that_was_announced(trace: Trace, patterns) -> None:
    file = io.BytesIO()
    write_trace(trace, file, patterns=patterns, origin={"Model": "bundled"})
    file.seek(0)
    size = trace_size(trace, patterns)
    assert size <= len(file.getvalue()) < size + 20_000
    with np.load(file, allow_pickle=False) as read:
        for name in ("q", "k", "v", "logits"):
            np.testing.assert_array_equal(read[name], getattr(trace, name))
        np.testing.assert_allclose(read["scales"], trace.scales)
        assert read["tokens"].tolist() == list(trace.tokens)
        assert read["token_ids"].tolist() == trace.token_ids
        assert json.loads(str(read["provenance"])) == {"Model": "bundled"}
        assert ("patterns" in read) == (patterns is not None)
        if patterns:
            assert read["patterns"].dtype == patterns
            tolerance = 1e-3 if patterns == "float16" else 0
            np.testing.assert_allclose(
                read["patterns"][3, 4], trace.pattern(3, 4), atol=tolerance, rtol=0
            )


def test_the_code_beside_the_file_computes_its_patterns(trace: Trace, tmp_path) -> None:
    path = tmp_path / "trace.npz"
    with path.open("wb") as file:
        write_trace(trace, file)
    names: dict = {}
    exec(COMPUTE_PATTERNS.format(name=path.as_posix()), names)
    with names["file"]:
        np.testing.assert_allclose(names["pattern"](3, 4), trace.pattern(3, 4), atol=1e-6)


def test_one_pattern_is_in_memory_at_a_time(trace: Trace, tmp_path) -> None:
    one = trace.n_tokens**2 * 4
    with (tmp_path / "trace.npz").open("wb") as file:
        tracemalloc.start()
        write_trace(trace, file, patterns="float32")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < trace.q.nbytes + 6 * one < trace_size(trace, "float32") / 2

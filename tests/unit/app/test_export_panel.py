"""The export panel: what it offers for each figure, for the page and for the whole trace."""

import json

from streamlit.testing.v1 import AppTest
from support.script import ROOT, component, opened

from mha_viz.app import export_panel
from mha_viz.app.export_panel import _file_name, _write_it, _written
from mha_viz.export import trace_size


def panel(**link: str) -> AppTest:
    test = opened("attention", **link)
    test.session_state["export"] = True
    return test.run()


def buttons(test: AppTest) -> dict[str, str]:
    found = [part.proto for part in test.get("download_button")]
    return {proto.label: proto.id for proto in found}


def test_each_figure_is_offered_by_its_title_in_every_format(monkeypatch) -> None:
    monkeypatch.chdir(ROOT)
    test = panel(at="L3H4")
    figure = next(box for box in test.selectbox if box.key == "export_figure")
    assert figure.options == ["All heads", "Pattern of L3 H4"]
    wanted = {"HTML", "CSV", "JSON", "npz", "Python", "Whole page as one HTML file"}
    assert wanted <= set(buttons(test))
    sent = component(test, "mha_viz_save")
    assert sent["name"] == "all-heads-l3h4"
    origin = json.loads(sent["origin"])
    assert sent["origin"].isascii()
    assert {"Link", "Model", "Weights", "Text", "Text, SHA-256", "Created"} <= set(origin)


def test_the_size_of_a_whole_trace_is_shown_before(monkeypatch) -> None:
    monkeypatch.chdir(ROOT)
    test = panel()
    patterns = next(box for box in test.selectbox if box.key == "export_patterns")
    assert [option.split(" ")[0] for option in patterns.options] == ["none", "float16", "float32"]
    assert "Download npz" in buttons(test)
    assert any("def pattern(layer, head)" in block.value for block in test.code)
    monkeypatch.setattr(export_panel, "LARGEST_DOWNLOAD", 1)
    monkeypatch.setattr(export_panel, "LARGEST_DOWNLOAD_OF_MANY", 1)
    too_large = test.run()
    assert "Download npz" not in buttons(too_large)
    assert any("write_trace(trace, file, patterns=None)" in block.value for block in too_large.code)


def test_the_file_of_a_trace_is_on_disk(monkeypatch) -> None:
    monkeypatch.chdir(ROOT)
    view = panel().session_state["view"]
    with _written(view, "float16", {}) as file:
        assert len(file.read()) > trace_size(view.trace, "float16")
    compile(_write_it(view, "trace.npz", "float16"), "script", "exec")


def test_file_names_are_readable() -> None:
    assert _file_name("Pattern of L3 H4", "L3H4") == "pattern-of-l3-h4-l3h4"
    assert _file_name("Ré / sumé.") == "ré-sumé."

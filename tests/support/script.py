"""Runs a page as a script, without a browser, and reads its messages, figures and inputs."""

import json
import time
from pathlib import Path

from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 300  # seconds, for machines that are busy
INPUTS = (
    "selectbox", "multiselect", "button_group", "slider", "number_input", "text_input", "text_area",
    "checkbox", "toggle", "file_uploader",
)  # fmt: skip


def opened(page: str, *, theme: str = "light", **link: str | list[str]) -> AppTest:
    """The page of that name ("head"), run once, as a link with these parameters opens it."""
    test = AppTest.from_file(str(ROOT / "pages" / "_frame.py"), default_timeout=120)
    test.context["theme"] = theme
    for name, value in link.items():
        test.query_params[name] = value
    if page != "attention":
        test.switch_page(f"{page}.py")
    return test.run()


def finished(test: AppTest) -> AppTest:
    """The page once no computation is running."""
    end = time.monotonic() + PATIENCE
    while any(button.label == "Stop" for button in test.button):
        assert time.monotonic() < end
        time.sleep(0.1)
        test.run()
    return test


def said(test: AppTest) -> str:
    """The texts of errors, warnings and infos, without Markdown escapes."""
    boxes = [box.value for kind in (test.error, test.warning, test.info) for box in kind]
    return " ".join(boxes).replace("\\", "")


def html(test: AppTest) -> str:
    """The lines of HTML, in the order of the page."""
    return " ".join(lines(test))


def lines(test: AppTest, of: tuple[str, ...] = ("html", "markdown")) -> list[str]:
    """The lines of HTML one by one: those without help, and those with a question mark."""
    found = [part.proto.body for part in test._tree if part.type in of]
    return [body for body in found if body.startswith("<")]


def texts_with_help(test: AppTest) -> list[tuple[str, str]]:
    """Each visible caption, text, input label and column header, with its help."""
    found: list[tuple[str, str]] = []
    for part in test._tree:
        proto = getattr(part, "proto", None)
        if part.type in ("markdown", "caption"):
            found.append((proto.body, proto.help))
        elif part.type == "arrow_data_frame":
            columns = json.loads(proto.columns or "{}")
            found += [(name, columns.get(name, {}).get("help") or "") for name in part.value]
        elif part.type in INPUTS and proto.label_visibility.value == proto.label_visibility.VISIBLE:
            found.append((proto.label, proto.help))
    return found


def lead(test: AppTest) -> str:
    """The sentence under the title."""
    return next(line for line in lines(test) if 'class="lead"' in line)


def component(test: AppTest, name: str) -> dict:
    """The data passed to the component of that name."""
    return next(data for found, data in _components(test) if found.endswith(name))


def charts(test: AppTest) -> list[tuple[dict, str]]:
    """Each figure with its alt text: Streamlit's charts, then those that stay on the page."""
    drawn = [(chart.proto.spec, chart.proto.alt) for chart in test.get("plotly_chart")]
    stay = [(data["spec"], data["alt"]) for name, data in _components(test) if "steady" in name]
    return [(json.loads(spec), alt) for spec, alt in drawn + stay]


def figures(test: AppTest) -> list[dict]:
    return [figure for figure, _ in charts(test)]


def alts(test: AppTest) -> list[str]:
    return [alt for _, alt in charts(test)]


def button(test: AppTest, label: str):  # type: ignore[no-untyped-def]  # Streamlit's is not public
    return next(button for button in test.button if button.label == label)


def _components(test: AppTest) -> list[tuple[str, dict]]:
    """Those whose data is JSON, by name; others are sent bytes."""
    found = [part.proto for part in test.get("bidi_component")]
    return [(proto.component_name, json.loads(proto.json)) for proto in found if proto.json]

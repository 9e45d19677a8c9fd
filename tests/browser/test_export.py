"""Figures are saved as pictures that say where they come from; a trace is saved whole."""

import json
import re
from html import unescape
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Download, expect
from support.browser import Tab


def saved(tab: Tab, button: str, to: Path) -> Path:
    with tab.page.expect_download() as taken:
        tab.page.get_by_role("button", name=button, exact=True).click()
    download: Download = taken.value
    to.mkdir(exist_ok=True)
    download.save_as(to / download.suggested_filename)
    return to / download.suggested_filename


def provenance(file: Path) -> dict[str, object]:
    if file.suffix == ".png":
        with Image.open(file) as picture:
            picture.load()
            return json.loads(picture.text["Provenance"])
    found = re.search(r"<metadata>(.*?)</metadata>", file.read_text(encoding="utf-8"))
    assert found is not None
    return json.loads(unescape(found[1]))


def test_a_figure_whose_key_has_blanks_is_saved_as_a_picture(tab: Tab, tmp_path: Path) -> None:
    tab.open("compare", at="L3H0")
    tab.page.get_by_text("Export", exact=True).click()
    figure = tab.page.get_by_role("combobox", name="Figure")
    expect(figure).to_be_visible()
    figure.click()
    figure.fill("this text")
    figure.press("Enter")
    tab.settle()
    for form, begins in {"PNG": b"\x89PNG", "SVG": b"<svg"}.items():
        file = saved(tab, form, tmp_path)
        assert file.name.startswith("pattern-of-l3-h0-this-text-l3h0.")
        assert file.read_bytes().startswith(begins)
        origin = provenance(file)
        assert str(origin["Model"]).startswith("bundled")
        assert {"Link", "Weights", "Text", "torch", "Created"} <= set(origin)
    assert "The" in file.read_text(encoding="utf-8")


def test_a_trace_is_saved_whole(tab: Tab, tmp_path: Path) -> None:
    tab.open()
    tab.page.get_by_text("Export", exact=True).click()
    tab.page.get_by_text("Whole trace", exact=True).click()
    tab.settle()
    with np.load(saved(tab, "Download npz", tmp_path)) as file:
        assert file["q"].shape == file["k"].shape == file["v"].shape == (4, 6, 17, 32)
        assert json.loads(str(file["provenance"]))["Weights"]

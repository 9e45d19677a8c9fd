"""A model is downloaded from a hub while the page shows how far it is."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import expect
from support.browser import AttentionTab, Pages, served
from support.hub_server import HubServer

from mha_viz.app.samples import DEFAULT


def test_a_download_shows_its_progress_can_be_stopped_and_ends_with_the_model(
    pages: Pages, tmp_path: Path, gpt2: Callable[..., Any], checkpoint: Callable[..., Path]
) -> None:
    folder = checkpoint(gpt2(n_embd=256, n_layer=3, vocab_size=2000))
    server = HubServer(repos={"some/tiny": folder}, delay=0.03)
    with (
        server.running() as hub,
        served(
            tmp_path / "log", HF_ENDPOINT=hub.url, HF_HUB_CACHE=str(tmp_path / "cache"), HF_TOKEN=""
        ) as address,
        pages.lend() as page,
    ):
        one = AttentionTab(page, address).open(model="some/tiny")
        expect(one.page.get_by_text("not on this machine yet")).to_be_visible()
        assert hub.requests == []
        one.page.get_by_role("button", name="Download").click()
        one.page.get_by_role("button", name="Stop").click()
        one.page.get_by_role("button", name="Try again").click()
        expect(one.page.get_by_text(re.compile("Downloading some/tiny"))).to_be_visible()
        expect(one.page.locator(".lead")).to_contain_text("some/tiny · 3 layers", timeout=60_000)
        assert one.page.get_by_label("Text", exact=True).input_value() == DEFAULT
        assert one.end() == []

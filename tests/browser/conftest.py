"""Pages of a browser for tests that need one."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Browser
from support.browser import AttentionTab, Pages, Tab


@pytest.fixture(scope="session")
def pages(chrome: Browser) -> Pages:
    """Pages that tests borrow one after the other."""
    return Pages(chrome)


@pytest.fixture
def tab(pages: Pages, address: str, request: pytest.FixtureRequest) -> Iterator[Tab]:
    """The app in a page that looks as the indirect parameter says; nothing went wrong in it."""
    with pages.lend(**getattr(request, "param", {})) as page:
        one = Tab(page, address)
        yield one
        assert one.end() == []


@pytest.fixture
def visit(pages: Pages, address: str) -> Iterator[Callable[..., AttentionTab]]:
    """`visit(**options)`: the Attention page, each time in a page of its own."""
    with ExitStack() as lent:
        tabs: list[AttentionTab] = []

        def begin(**options: Any) -> AttentionTab:
            tabs.append(AttentionTab(lent.enter_context(pages.lend(**options)), address))
            return tabs[-1]

        yield begin
        assert [problem for one in tabs for problem in one.end()] == []

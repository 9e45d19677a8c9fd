"""The entry point of `streamlit run app.py`."""

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import streamlit as st

from mha_viz.app import messages


def warm_up() -> None:
    """Imports torch and loads the bundled model while the browser is still opening."""
    from mha_viz.app.work import models

    models.warm_up()


@asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[dict[str, Any]]:
    """Starts the warm-up in a thread, so that the server can already answer."""
    threading.Thread(target=warm_up, daemon=True).start()
    yield {}


app = st.App("pages/_frame.py", lifespan=lifespan, on_script_error=messages.unexpected)

"""Published roles of GPT-2 small's heads, and whether our measurements agree with them."""

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from mha_viz.analysis import logit_attribution
from mha_viz.app.pages.heads.measures import (
    ENDINGS,
    rounded,
    table_without_empty_columns,
)
from mha_viz.app.view import View
from mha_viz.app.widgets.caption import caption
from mha_viz.app.work.progress import Reporter, ResultSlots, wait_for
from mha_viz.head import Head
from mha_viz.heads.interval import crossed_interval
from mha_viz.heads.roles import LOGIT_DIFFERENCE, Role, Verdict, check, roles_for

if TYPE_CHECKING:
    import pandas as pd

CHECKS = {True: "consistent", False: "not consistent", None: "not measured here"}
_direct_effects = ResultSlots[NDArray[np.float64]](4)


def show(view: View, frame: "pd.DataFrame") -> None:
    """The table of published roles; nothing for models other than GPT-2 small."""
    published = list(roles_for(view.about, view.model.config).values())
    if not published:
        return
    caption(
        "Published roles",
        "Roles published for GPT-2 small, with sources. The papers established them by intervening "
        "on heads; here they are only compared with our measurements.",
    )
    st.button("Check on this model", key="check_roles", on_click=_check_from_now_on)
    verdicts = _verdicts(view, published, frame) if st.session_state.get("roles") else {}
    rows = [
        [
            Head(role.layer, role.head).label,
            role.name,
            role.because,
            CHECKS[verdicts[role].confirmed] if role in verdicts else "",
            rounded(verdicts[role].value) if role in verdicts else None,
            role.source,
        ]
        for role in published
    ]
    header = ["head", "role", "what it does", "check", "value", "source"]
    table_without_empty_columns(header, rows, height=320)


def _check_from_now_on() -> None:
    st.session_state["roles"] = True


def _verdicts(view: View, published: list[Role], frame: "pd.DataFrame") -> dict[Role, Verdict]:
    """How each role compares with the measurements; empty while these are computed."""

    def work(report: Reporter) -> NDArray[np.float64]:
        return logit_attribution.ioi_direct_effects(view.model, on_progress=report)

    slot = _direct_effects(view.model.key)
    effects = wait_for(slot, "Measuring direct effects", work, lane="roles")
    if effects is None:
        return {}
    columns = {
        f"{LOGIT_DIFFERENCE}{ending}": part.ravel()
        for ending, part in zip(ENDINGS, crossed_interval(effects), strict=True)
    }
    measured = frame.assign(**columns)
    return {role: check(role, measured) for role in published}

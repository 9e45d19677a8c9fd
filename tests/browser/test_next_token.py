"""The Next token page on a screen that is narrower than its grid."""

import pytest
from support.browser import Tab

NARROW = [{"viewport": {"width": 390, "height": 844}}, {"viewport": {"width": 1280, "height": 720}}]


@pytest.mark.parametrize("tab", NARROW, indirect=True, ids=["phone", "1280"])
@pytest.mark.parametrize("token", ["0", "9", "20"])
def test_the_pinned_column_is_in_sight(tab: Tab, token: str) -> None:
    text = (
        "The king gave the princess a golden ring and a silver cup, and all the people of the town"
    )
    tab.open("next_token", text=text + " were glad of it.", token=token)
    seen = tab.page.evaluate(
        """() => {
          const box = document.querySelector(".st-key-tokens_box").getBoundingClientRect();
          const gd = document.querySelector(".st-key-positions .js-plotly-plot");
          const { xaxis } = gd._fullLayout;
          const pinned = xaxis.tickvals[xaxis.ticktext.findIndex((label) => label.includes("<b>"))];
          const at = (x) => gd.getBoundingClientRect().left + xaxis._offset + xaxis.l2p(x);
          return at(pinned - 0.5) >= box.left - 1 && at(pinned + 0.5) <= box.right + 1;
        }"""
    )
    assert seen

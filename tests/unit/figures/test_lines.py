"""Line charts of measurements."""

from mha_viz.figures.lines import Line, Ticks, line_chart
from mha_viz.figures.theme import DARK, LIGHT


def test_a_line_that_is_still_measured_ends_early() -> None:
    figure = line_chart([0, 1, 2], [Line("loss", [3.0, 2.0], "#000000")], LIGHT, x_title="G",
                        y_title="nats", marked=1)  # fmt: skip
    assert list(figure.data[0].x) == [0, 1]
    assert list(figure.data[0].y) == [3.0, 2.0]
    (mark,) = figure.layout.shapes
    assert (mark.x0, mark.x1, mark.line.color) == (1, 1, LIGHT.query)


def test_a_guide_is_no_measurement() -> None:
    lines = [Line("a", [1, 4], "#000000"), Line("slope", [1, 2], "#000000", guide=True)]
    figure = line_chart([1, 2], lines, DARK, x_title="T", y_title="", log=True,
                        x_ticks=Ticks([1, 2], ["1", "2"]))  # fmt: skip
    measured, guide = figure.data
    assert "markers" in measured.mode
    assert (guide.mode, guide.hoverinfo, guide.line.dash) == ("lines", "skip", "dot")
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"
    assert list(figure.layout.xaxis.ticktext) == ["1", "2"]

"""The marks that figures share lie where they are said to lie."""

import base64
import io

import numpy as np
from PIL import Image

from mha_viz.figures import marks


def test_a_square_is_centred_on_its_point() -> None:
    square = marks.squares([2], [5.0], 0.8)
    assert (square["x"], square["width"]) == ([2], 0.8)
    np.testing.assert_allclose([square["base"], square["base"] + square["y"]], [[4.6], [5.4]])


def test_a_pooled_cell_covers_its_block() -> None:
    cells = marks.heatmap(np.zeros((2, 3)), 0, 1, [], origin=(10, 20), block=4)
    for axis, first in (("x", 10), ("y", 20)):
        centre, width = cells[f"{axis}0"], cells[f"d{axis}"]
        assert (centre - width / 2, centre + width / 2) == (first - 0.5, first + 3.5)


def test_only_small_heatmaps_have_gaps_between_their_cells() -> None:
    assert marks.gaps(np.zeros((3, marks.GAPS_UP_TO))) == {"xgap": 1, "ygap": 1}
    assert marks.gaps(np.zeros((3, marks.GAPS_UP_TO + 1))) == {"xgap": 0, "ygap": 0}


def test_a_frame_surrounds_its_cell() -> None:
    frame = marks.frame(3, 4, "#123456")
    assert [frame[side] for side in ("x0", "x1", "y0", "y1")] == [2.5, 3.5, 3.5, 4.5]


def test_an_image_in_a_uri_is_read_back_pixel_by_pixel() -> None:
    sent = np.random.default_rng(0).integers(0, 256, (4, 5, 4), dtype=np.uint8)
    kind, _, data = marks.png_uri(Image.fromarray(sent)).partition(",")
    assert kind == "data:image/png;base64"
    np.testing.assert_array_equal(Image.open(io.BytesIO(base64.b64decode(data))), sent)

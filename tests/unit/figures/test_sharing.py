"""Lines lead from query heads to the key/value head they share."""

import numpy as np
import pytest
import torch

from mha_viz.attention import repeat_heads
from mha_viz.figures.sharing import sharing_figure
from mha_viz.figures.theme import LIGHT


@pytest.mark.parametrize(("H", "G"), [(12, 12), (12, 4), (12, 1), (25, 5), (1, 1)])
def test_a_line_leads_to_the_head_that_attention_reads(H: int, G: int) -> None:

    figure = sharing_figure(H, G, LIGHT, selected=H - 1)
    queries, shared, values = figure.data
    assert (len(queries.x), len(shared.x)) == (H, G)
    assert list(values.x) == list(shared.x)
    names = torch.arange(G).view(1, G, 1, 1)
    reads = repeat_heads(names, H).flatten().tolist()
    lines = [shape for shape in figure.layout.shapes if shape.type == "line"]
    assert [list(shared.x).index(line.x1) for line in lines] == reads
    assert [line.x0 for line in lines] == list(range(H))
    for g in range(G):  # in the middle of its readers
        assert shared.x[g] == np.mean([h for h in range(H) if reads[h] == g])
    frames = [shape for shape in figure.layout.shapes if shape.type == "rect"]
    assert [(f.x0 + f.x1) / 2 for f in frames] == pytest.approx([H - 1, shared.x[-1]])

"""Cache sizes of known models."""

from mha_viz.figures.cache_sizes import KINDS, SYMBOLS, CacheSize, cache_sizes_figure
from mha_viz.figures.theme import LIGHT


def test_the_actual_size_has_the_symbol_of_its_kind() -> None:
    models = [
        CacheSize("<b>A</b>", (64, 8, 1), 64, KINDS[0]),
        CacheSize("B", (64, 8, 1), 1, KINDS[2]),
    ]
    figure = cache_sizes_figure(models, LIGHT)
    own = figure.data[-1]
    assert list(own.x) == [64, 1]
    assert list(own.marker.symbol) == [SYMBOLS[0], SYMBOLS[2]]
    assert [list(trace.x) for trace in figure.data[1:4]] == [[64, 64], [8, 8], [1, 1]]
    assert "<" not in figure.layout.yaxis.ticktext[0]

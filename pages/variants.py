"""Variants: grouped-query attention, KV cache, FlashAttention and masks."""

from mha_viz.app import frame
from mha_viz.app.pages import variants
from mha_viz.app.widgets import path

view = frame.view()
with path.part_of(view, "variants", "Variants"):
    variants.show(view)

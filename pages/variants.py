"""Variants: grouped-query attention, KV cache, FlashAttention and masks."""

from mha_viz.app import frame
from mha_viz.app.pages import variants
from mha_viz.app.widgets.caption import title_line

view = frame.view()
title_line(view, "Variants")
variants.show(view)

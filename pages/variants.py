"""Variants: what shared keys, a cache, tiles and masks change in the same layer."""

from mha_viz.app import frame
from mha_viz.app.pages import attention, variants

view = frame.view()

attention.lead(view, "Variants")
variants.show(view, variants.choose())

"""The Variants page: what shared keys, a cache, tiles and masks change in the same layer."""

from mha_viz.app.pages.variants.cache import show as show_cache
from mha_viz.app.pages.variants.flash import show as show_flash
from mha_viz.app.pages.variants.masks import show as show_masks
from mha_viz.app.pages.variants.sharing import show as show_sharing
from mha_viz.app.view import View
from mha_viz.app.widgets.choices import choose_part

PARTS = {
    "Shared keys": show_sharing,
    "KV cache": show_cache,
    "FlashAttention": show_flash,
    "Masks": show_masks,
}


def show(view: View) -> None:
    """The chosen lesson."""
    PARTS[choose_part(PARTS, "variants")](view)

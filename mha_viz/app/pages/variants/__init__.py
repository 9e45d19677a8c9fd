"""The Variants page: shared keys and values, a KV cache, FlashAttention's tiles, and masks."""

from mha_viz.app.pages.variants.flash_attention import show as show_flash_attention
from mha_viz.app.pages.variants.grouped_query import show as show_grouped_query
from mha_viz.app.pages.variants.kv_cache import show as show_kv_cache
from mha_viz.app.pages.variants.masks import show as show_masks
from mha_viz.app.view import View
from mha_viz.app.widgets.choices import choose_part

PARTS = {
    "Grouped-query attention": show_grouped_query,
    "KV cache": show_kv_cache,
    "FlashAttention": show_flash_attention,
    "Masks": show_masks,
}


def show(view: View) -> None:
    """The selected part."""
    PARTS[choose_part(PARTS, "variants")](view)

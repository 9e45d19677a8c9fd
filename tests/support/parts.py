"""The parts of every page, with the key of the choice between them in links."""

PARTS = {
    "attention": ("", [""]),
    "head": ("look", ["Why this weight", "Lines", "Values", "Sink"]),
    "next_token": ("expects", ["Every position", "Logit lens", "Generate"]),
    "heads": ("numbers_of", ["Head profiles", "Combined heads", "Several texts"]),
    "compare": ("against", ["one word changed", "another text", "another model", "ablated heads"]),
    "pruning": ("lab", ["Ablation", "Tasks", "Importance", "Curves", "Prune"]),
    "shapes": ("shapes", ["Walkthrough", "Memory layout", "The module", "Bugs"]),
    "many_heads": (
        "many",
        ["Why several heads", "A list of heads", "One product", "Output projection", "Cost"],
    ),
    "variants": ("variants", ["Grouped-query attention", "KV cache", "FlashAttention", "Masks"]),
    "training": ("", [""]),
}
EVERY = [(page, key, part) for page, (key, parts) in PARTS.items() for part in parts]
SMALL_WORK = {
    "off": "L3H4",
    "curve_texts": "1",
    "curve_every": "12",
    "orders": "gradient",
    "bugs_on": "this text",
}

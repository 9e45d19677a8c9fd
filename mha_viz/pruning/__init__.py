"""Ablation and pruning: how much each head matters, and how many heads a model can lose.

    from mha_viz.checkpoints import load
    from mha_viz import pruning
    model = load("bundled")
    pruning.ablate_each_head(model, "The cat sat on the mat.")      # [L, H], nats per token
    full = pruning.Pass.of(model, "The cat sat on the mat.")
    pruning.next_tokens(full, full.without([(3, 4), (0, 1)]))

No function changes a model: the ablated heads are an argument, and results are returned.
"""

from mha_viz.head import Head
from mha_viz.pruning.ablation import (
    Scores,
    ablate_each_head,
    ablate_each_head_by_token,
    ablation_effects,
    losses,
)
from mha_viz.pruning.curves import Band, Point, band, curve, heads_within, heads_within_interval
from mha_viz.pruning.effect import Candidate, divergence, next_tokens, pattern_change
from mha_viz.pruning.estimates import (
    Estimate,
    estimate,
    over_texts,
    rank_correlation,
    stretches,
)
from mha_viz.pruning.importance import (
    confidence,
    gradient_importance,
    random_importance,
    value_importance,
)
from mha_viz.pruning.inputs import Text, all_heads, chunks, gate_without, numbered_chunks
from mha_viz.pruning.orders import STRATEGIES, Strategy, greedy_passes, order, removal_order
from mha_viz.pruning.passes import ZERO, Pass, Replacement
from mha_viz.pruning.replacements import METHODS, Method, draws, make_replacement
from mha_viz.pruning.surgery import Size, forward_seconds, prune, pruned_config, pruned_model, size
from mha_viz.pruning.tasks import (
    Prompt,
    induction_effects,
    induction_loss,
    ioi_prompts,
    logit_differences,
    repeated_tokens,
)

__all__ = [
    "METHODS",
    "STRATEGIES",
    "ZERO",
    "Band",
    "Candidate",
    "Estimate",
    "Head",
    "Method",
    "Pass",
    "Point",
    "Prompt",
    "Replacement",
    "Scores",
    "Size",
    "Strategy",
    "Text",
    "ablate_each_head",
    "ablate_each_head_by_token",
    "ablation_effects",
    "all_heads",
    "band",
    "chunks",
    "confidence",
    "curve",
    "divergence",
    "draws",
    "estimate",
    "forward_seconds",
    "gate_without",
    "gradient_importance",
    "greedy_passes",
    "heads_within",
    "heads_within_interval",
    "induction_effects",
    "induction_loss",
    "ioi_prompts",
    "logit_differences",
    "losses",
    "make_replacement",
    "next_tokens",
    "numbered_chunks",
    "order",
    "over_texts",
    "pattern_change",
    "prune",
    "pruned_config",
    "pruned_model",
    "random_importance",
    "rank_correlation",
    "removal_order",
    "repeated_tokens",
    "size",
    "stretches",
    "value_importance",
]

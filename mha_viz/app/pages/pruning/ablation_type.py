"""Which heads are ablated, what replaces their output, and the texts that this needs."""

from dataclasses import dataclass

import torch

from mha_viz import pruning
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.chart import record_settings
from mha_viz.app.widgets.choices import segmented_control
from mha_viz.app.widgets.reference_text import Reference
from mha_viz.app.work.progress import Reporter, ResultSlots, wait_for
from mha_viz.head import Head
from mha_viz.pruning import METHODS, ZERO, Method, Replacement, make_replacement

EXPLANATIONS: dict[Method, str] = {
    "zero": "Zero ablation: the head's z is set to zero before W_O; the bias b_O stays. Literally "
    "“without this head”, but later layers never saw such an input in training.",
    "mean": "Mean ablation: z is replaced by its mean over the reference text and all positions. "
    "The head's constant contribution stays; everything that depends on the input is lost.",
    "position-wise mean": "Position-wise mean ablation: z is replaced by its mean over the "
    "reference text at the same position.",
    "resample": "Resample ablation: z comes from another text, so it is a realistic value with "
    "unrelated content.",
}
_replacements = ResultSlots[Replacement](16)


@dataclass(frozen=True, slots=True)
class Ablation:
    """The ablated heads, the type of ablation, and the reference text for replacement values."""

    heads: tuple[Head, ...]
    method: Method
    reference: Reference

    def gate(self, view: View) -> torch.Tensor:
        """`[L, H]`: 0 for the ablated heads, 1 for the others."""
        return pruning.gate_without(view.model.config, self.heads)

    def replacement(self, view: View, length: int) -> Replacement | None:
        """What replaces an ablated head's z in texts of up to `length` tokens.

        None after the page has said why: the reference text may be shorter than `length`.
        """
        if self.method == "zero":
            return ZERO
        method, texts = self.method, self.reference.selection

        def work(report: Reporter) -> Replacement:
            return make_replacement(view.model, method, length, texts, on_progress=report)

        slot = _replacements(view.about.weights_hash, self.reference.key, method, length)
        return wait_for(slot, "Running the reference text", work, lane="replacement")


def select_type() -> Method:
    """The selected type of ablation, with its explanation."""
    method: Method = segmented_control("Ablation type", METHODS, "zero", "way")
    explained.note(EXPLANATIONS[method])
    record_settings(Ablation_type=method)
    return method

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
    "mean": "Mean ablation: z is replaced by its mean over all positions of the reference text. "
    "The mean uses at most the first 4,096 tokens of the selection half, in windows as long as the "
    "text. The head's constant contribution stays; everything that depends on the input is lost.",
    "position-wise mean": "Position-wise mean ablation: z is replaced by its mean at the same "
    "position over windows of the reference text that are as long as the text. At most 4,096 "
    "tokens of its selection half are used, so for a long text, only a few windows are averaged.",
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

        None if the reference text is too short for it, for example; the page then says why.
        """
        if self.method == "zero":
            return ZERO
        method, texts = self.method, self.reference.selection

        def work(report: Reporter) -> Replacement:
            return make_replacement(view.model, method, length, texts, on_progress=report)

        slot = _replacements(view.model.key, self.reference.key, method, length)
        return wait_for(slot, "Running the reference text", work, lane="replacement")


def select_type() -> Method:
    """The selected type of ablation, with its explanation."""
    method: Method = segmented_control("Ablation type", METHODS, "zero", "way")
    explained.note(EXPLANATIONS[method])
    record_settings(Ablation_type=method)
    return method

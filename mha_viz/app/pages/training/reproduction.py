"""What the page reproduces: published losses, those measured with this code, and the run's own."""

import math
from collections.abc import Sequence

from mha_viz.app.pages.training.plan import Plan, model_name
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.tables import table
from mha_viz.figures.loss_curves import LossCurve
from mha_viz.lessons.char_model import Settings

TEXT = "Tiny Shakespeare"
STEPS = 5_000
PUBLISHED = {1: 2.40, 4: 2.29}  # validation losses by number of heads
# With seeds 0 and 1: python scripts/train_heads.py --corpus tinyshakespeare.txt --seeds 2, and the
# same with --projection for W_O.
MEASURED = {
    (1, False): (2.397, 2.403),
    (4, False): (2.260, 2.274),
    (1, True): (2.402, 2.407),
    (4, True): (2.275, 2.286),
}


def show(plan: Plan, curves: Sequence[LossCurve]) -> None:
    """The published losses, how near the run came, and why W_O is off."""
    caption(
        "What this reproduces",
        f"Validation loss on {TEXT} after {STEPS:,} steps, in nats per character.",
    )
    rows = [
        [
            model_name(Settings(n_heads, projection=W_O)),
            f"{PUBLISHED[n_heads]:.2f}" if not W_O else "",
            " and ".join(f"{loss:.3f}" for loss in losses),
        ]
        for (n_heads, W_O), losses in MEASURED.items()
    ]
    table(["Model", "Published", "Measured, two seeds"], rows, key="reproduction")
    explained.paragraph(nearness(plan, curves))
    explained.note(
        "Published: Karpathy 2023, “Let's build GPT: from scratch, in code, spelled out”, in the "
        "notes to the lecture's code, for one head of 32 and four heads of 8. Measured: "
        "scripts/train_heads.py."
    )
    explained.paragraph(
        "**Why W_O is off.** The published model concatenates its heads at this stage and adds W_O "
        "later. Here W_O cannot help either: between it and $W_U$ there is nothing, so $W_O W_U$ "
        "is one matrix, which $W_U$ could learn alone. In a deep model, W_O writes into the "
        "residual stream, where other layers read it. Switch it on to see that the loss hardly "
        "moves."
    )


def nearness(plan: Plan, curves: Sequence[LossCurve]) -> str:
    """How near a run came to the published losses, or how to make one that can be compared."""
    compared = [
        (model, curve.last[1])
        for model, curve in zip(plan.models, curves, strict=True)
        if reproduces(plan, model) and curve.last[0] == STEPS and not math.isnan(curve.last[1])
    ]
    if not compared:
        return (
            f"To compare, train one head and four heads for {STEPS:,} steps on {TEXT}, without "
            "W_O. Losses on another text cannot be compared."
        )
    near = [
        f"{model_name(model)} reached {loss:.3f}, {loss - PUBLISHED[model.n_heads]:+.3f} from the "
        f"published {PUBLISHED[model.n_heads]:.2f}".replace("-", "−")
        for model, loss in compared
    ]
    seeds = f"mean of {plan.n_seeds} seeds" if plan.n_seeds > 1 else "one seed"
    return f"**This run:** {'; '.join(near)} ({seeds})."


def reproduces(plan: Plan, model: Settings) -> bool:
    """Whether the model is trained as the published one was."""
    published = Settings(model.n_heads, seed=model.seed)
    return plan.text.name == TEXT and model.n_heads in PUBLISHED and model == published

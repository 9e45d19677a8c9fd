"""What a training run compares: models, seeds and a text."""

from dataclasses import dataclass, replace

from mha_viz.app.pages.training.texts import TrainingText
from mha_viz.lessons.char_model import Settings


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Each model is trained with each of several consecutive seeds, on one text."""

    models: tuple[Settings, ...]  # with the first seed
    n_seeds: int
    text: TrainingText
    sample: str = ""  # the characters on which patterns are drawn, once the text has been read

    @property
    def settings(self) -> list[Settings]:
        """The settings of all training runs: those of the first model, then those of the next."""
        seeds = range(self.n_seeds)
        return [replace(model, seed=model.seed + seed) for model in self.models for seed in seeds]

    @property
    def steps(self) -> int:
        """The number of steps of each training run."""
        return self.models[0].steps

    @property
    def n_reports(self) -> int:
        """The number of reports of all training runs together."""
        return len(self.settings) * len(self.models[0].report_steps)

    @property
    def title(self) -> str:
        """The comparison in words, for example "1 head × 32 versus 4 heads × 8, seed 0"."""
        first, n = self.models[0].seed, self.n_seeds
        seeds = f"seed {first}" if n == 1 else f"seeds {first} to {first + n - 1}"
        return f"{' versus '.join(map(model_name, self.models))}, {seeds}"


def same_results(one: Plan, other: Plan) -> bool:
    """Whether two plans train the same models on the same text."""
    return (one.models, one.n_seeds, one.text) == (other.models, other.n_seeds, other.text)


def model_name(model: Settings) -> str:
    """The number and the width of the heads, for example "4 heads × 8"."""
    H, d_h = model.n_heads, model.width // model.n_heads
    return f"{H} head{'s' * (H > 1)} × {d_h}{', W_O' * model.projection}"

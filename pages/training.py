"""Training: one head or several, two character-level models trained side by side."""

from mha_viz.app import frame
from mha_viz.app.pages import training
from mha_viz.app.widgets import path

view = frame.view()
with path.part_of(view, "training", "Training", instead="Two character-level models, side by side"):
    training.show(view)

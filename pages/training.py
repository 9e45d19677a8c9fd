"""Training: one head or several, two character-level models trained side by side."""

from mha_viz.app import frame
from mha_viz.app.pages import training

view = frame.view()
training.show(view)

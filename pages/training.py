"""Training: one head or several, trained side by side while one looks on."""

from mha_viz.app import frame
from mha_viz.app.pages import training

view = frame.view()
training.show(view)

"""Training: one head or several, trained side by side while one looks on."""

from mha_viz.session import frame, training

view = frame.view()

training.lead()
plan = training.choices()
training.controls(plan)
training.board(view, plan)

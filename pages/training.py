"""Training: one head or several, trained side by side while one looks on."""

from mha_viz.app import frame
from mha_viz.app.pages.training import page

view = frame.view()

page.lead()
plan = page.choices()
page.controls(plan)
page.board(view, plan)

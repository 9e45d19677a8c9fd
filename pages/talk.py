"""Talk: scenes of the app, each with a title and a sentence, played over the whole window."""

from mha_viz.app import frame
from mha_viz.app.pages import talk

talk.show(frame.view())

"""Shapes: one attention layer step by step, its memory, and what each line is good for."""

from mha_viz.app import frame
from mha_viz.app.pages import attention
from mha_viz.app.pages.shapes import bugs, memory, walk

view = frame.view()

attention.lead(view, "Shapes")
part, source = walk.choices()
if part == "Walk":
    walked = walk.tensors(view, source)
    if walked is not None:
        at = walk.choose_step()
        walk.ladder(walked, at)
        walk.drawing(view, walked, at)
        walk.facts(walked, at)
        walk.numbers(view, walked, at)
elif part == "Memory":
    T, H, d_h = memory.sizes()
    memory.lesson(view, T, H, d_h)
    memory.refusal(T, H, d_h)
else:
    bugs.show(view, bugs.choose())

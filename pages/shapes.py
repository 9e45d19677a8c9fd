"""Shapes: one attention layer step by step, its memory, and what each line is good for."""

from mha_viz.session import attention, frame, memory, mistakes, shapes

view = frame.view()

attention.lead(view, "Shapes")
part, source = shapes.choices()
if part == "Walk":
    walked = shapes.tensors(view, source)
    if walked is not None:
        at = shapes.choose_step()
        shapes.ladder(walked, at)
        shapes.drawing(view, walked, at)
        shapes.facts(walked, at)
        shapes.numbers(view, walked, at)
elif part == "Memory":
    T, H, d_h = memory.sizes()
    memory.lesson(view, T, H, d_h)
    memory.refusal(T, H, d_h)
else:
    mistakes.show(view, mistakes.choose())

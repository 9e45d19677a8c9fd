"""Opens GPT-2's attention: load a checkpoint, trace a text, look at every head.

    from mha_viz.checkpoints import load
    trace = load("bundled").trace("The cat sat on the mat.")
    trace.pattern(layer=2, head=5)      # [T, T] float32

Import from the modules; this one imports nothing, so that `mha_viz.trace` costs no torch.
"""

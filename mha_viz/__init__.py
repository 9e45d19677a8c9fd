"""Opens GPT-2's attention: load a checkpoint, trace a text, look at every head.

    from mha_viz.checkpoints import load
    trace = load("bundled").trace("The cat sat on the mat.")
    trace.pattern(layer=2, head=5)      # [T, T] float32

Import from the modules; this one imports none of them, so that `mha_viz.trace` costs no torch.
"""

import os

__version__ = "0.1.0"  # the only place: pyproject.toml reads it here

# torch's threads spin while they wait for each other. Where anything else wants the processor, a
# browser for one, a pass through a small model then took fifty times longer. torch reads this once.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

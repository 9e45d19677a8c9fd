"""Opens up GPT-2's attention: load a checkpoint, trace a text, look at every head.

    from mha_viz.checkpoints import load
    trace = load("bundled").trace("The cat sat on the mat.")
    trace.pattern(layer=2, head=5)      # [T, T] float32

Import from the submodules. The package itself imports none of them, so importing `mha_viz.trace`
does not load torch.
"""

import os

__version__ = "0.1.0"  # the single source: pyproject.toml reads it from here

# By default, torch's threads busy-wait for each other. With another program on the CPU, such as a
# browser, a pass through a small model took fifty times longer. torch reads this setting only once.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

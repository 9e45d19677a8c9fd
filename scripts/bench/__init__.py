"""The measurements of `scripts/bench.py`: one module per subject; `common` is shared."""

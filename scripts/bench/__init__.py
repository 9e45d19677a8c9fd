"""The measurements of `scripts/bench.py`: one module a subject, `common` for what they share."""

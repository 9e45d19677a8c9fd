"""`python -m mha_viz` runs the command `mha-viz`."""

import sys


def run() -> int:
    """The exit code of the command, also if it is interrupted while its modules are imported."""
    try:
        from mha_viz.cli import INTERRUPTED, main
    except KeyboardInterrupt:
        return 130
    try:
        return main()
    except KeyboardInterrupt:  # between two statements of `main`
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(run())

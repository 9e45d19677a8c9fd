"""`python -m mha_viz` is `mha-viz`."""

import sys

from mha_viz.cli import main

sys.exit(main())

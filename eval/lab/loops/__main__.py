"""Let `python -m eval.lab.loops` close the loops."""

import sys

from .run import main

sys.exit(main())

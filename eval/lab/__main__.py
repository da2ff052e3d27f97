"""Let `python -m eval.lab` run the experiments."""

import sys

from .run import main

sys.exit(main())

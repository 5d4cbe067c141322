"""`python -m freewheel` is the command `freewheel`."""

import sys

from ._cli import main

sys.exit(main())

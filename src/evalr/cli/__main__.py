"""`python -m evalr.cli`."""

import sys

from evalr.cli import main

sys.exit(main())

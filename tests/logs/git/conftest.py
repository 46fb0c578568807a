"""What the tests of this folder share is the module `repositories`, which lies beside them."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

"""A part of a log that takes for ever, for tests of what ends the process that reads it."""

from __future__ import annotations

import os
import time
from typing import IO, Any, ClassVar


class Waits:
    """Says which process it is in, and then reads on and on."""

    answers: ClassVar[int] = 2

    def read(self, say: Any, file: IO[bytes]) -> None:
        """See `evalr.bulk.worker.Part`."""
        say(os.getpid())
        time.sleep(600)

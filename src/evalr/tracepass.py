"""The door to passes over traces. Sending them to a service, and keeping results, needs `evalr[tracepass]`."""

import evalr_tracepass
from evalr_tracepass import *  # noqa: F403

__all__ = evalr_tracepass.__all__

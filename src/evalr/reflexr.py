"""reflexr: rules, runs and causal chains, measured from its event log; a PostgreSQL store needs `evalr[reflexr]`."""

from evalr_reflexr import *  # noqa: F403
from evalr_reflexr import __all__ as __all__

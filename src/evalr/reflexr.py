"""reflexr: rules, runs and causal chains, measured from its event log; a PostgreSQL store needs `evalr[reflexr]`."""

import evalr_reflexr
from evalr_reflexr import *  # noqa: F403

__all__ = evalr_reflexr.__all__

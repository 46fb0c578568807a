"""The door to Reflexio's logs. Reading needs no extra; fetching them over HTTP needs `reflexio`, and says so."""

import evalr_reflexio
from evalr_reflexio import *  # noqa: F403

__all__ = evalr_reflexio.__all__

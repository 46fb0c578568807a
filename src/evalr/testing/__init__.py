"""What every reader must hold to, as tests that other packages run on their own."""

from evalr.testing.readers import ReaderContract

__all__ = ["ReaderContract"]

"""Git repositories: what people did with what coding agents wrote in them."""

from evalr.logs.git.reader import GitReader, reader

__all__ = ["GitReader", "reader"]

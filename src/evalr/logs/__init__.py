"""Logs: what applications keep, read into inputs and results.

Text from a log is whatever somebody wrote: it is quoted where a message shows it, and never run or formatted with.
"""

from evalr.logs.assignments import read_assignments
from evalr.logs.blocks import Block, Card, Cards, Cell, Figure, Notice, Numbers, Table, Tile, Tiles
from evalr.logs.finding import find_reader, installed_readers, read
from evalr.logs.frames import read_frame
from evalr.logs.further import Further, FurtherLine, ReportTerms, estimate_cell, estimate_line, figure, lift_line
from evalr.logs.jsonl import to_line
from evalr.logs.log import Item, LeftOut, Log, Reader, Stored
from evalr.logs.schemas import schemas
from evalr.quoting import quoted

__all__ = [
    "Block",
    "Card",
    "Cards",
    "Cell",
    "Figure",
    "Further",
    "FurtherLine",
    "Item",
    "LeftOut",
    "Log",
    "Notice",
    "Numbers",
    "Reader",
    "ReportTerms",
    "Stored",
    "Table",
    "Tile",
    "Tiles",
    "estimate_cell",
    "estimate_line",
    "figure",
    "find_reader",
    "installed_readers",
    "lift_line",
    "quoted",
    "read",
    "read_assignments",
    "read_frame",
    "schemas",
    "to_line",
]

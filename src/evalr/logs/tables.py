"""What a frame is to its reader: columns by name, and their values at some rows, whatever library made it.

A frame is known by what it offers, so that no library is imported that its owner has not imported already.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

from evalr.errors import InputError, LogError

if TYPE_CHECKING:
    from numpy import int64
    from numpy.typing import NDArray


class Table(NamedTuple):
    """A frame of any library.

    Attributes:
        what: what it is, as messages call it.
        names: of its columns, in order.
        rows: how many it has.
        take: the values of the column at a place, at some rows, as objects of Python (or of pandas).
        keys: names of what identifies its rows beside the columns.
    """

    what: str
    names: tuple[Hashable, ...]
    rows: int
    take: Callable[[int, NDArray[int64]], list[Any]]
    keys: tuple[Hashable, ...] = ()


def table_of(frame: Any) -> Table:
    """The table that a frame, or an iterable of mappings, is.

    Raises:
        InputError: it is neither.
        LogError: it has no rows.
    """
    table = _table(frame)
    if not table.rows:
        raise LogError(f"{table.what}: there are no rows in it")
    return table


def _table(frame: Any) -> Table:
    if hasattr(frame, "iloc") and hasattr(frame, "columns"):
        return _of_pandas(frame)
    if hasattr(frame, "iter_slices"):
        return _of_polars(frame)
    if hasattr(frame, "num_rows") and hasattr(frame, "schema"):
        return _of_arrow(frame)
    if hasattr(frame, "fetchall") and hasattr(frame, "columns"):
        rows = frame.fetchall()
        return Table("duckdb relation", tuple(frame.columns), len(rows), lambda place, at: [rows[i][place] for i in at])
    for method, kind in (("collect_schema", "collect"), ("read_next_batch", "read_all"), ("to_pandas", "to_pandas")):
        if hasattr(frame, method):
            raise InputError(f"read_frame reads no {_name_of(frame)}: pass what its .{kind}() returns")
    if isinstance(frame, str | bytes | PathLike):
        raise InputError("read_frame reads a frame, not a file: pass a path to evalr.logs.read or evalr.report")
    if isinstance(frame, Mapping) or not isinstance(frame, Iterable):
        raise InputError(
            f"read_frame reads a frame of pandas or polars, a table of pyarrow, a relation of DuckDB, or mappings that "
            f"are a row each, not {_name_of(frame)}"
        )
    return _of_mappings(frame)


def _name_of(frame: Any) -> str:
    return f"{type(frame).__module__.partition('.')[0]}.{type(frame).__name__}"


def _of_pandas(frame: Any) -> Table:
    index = tuple(name for name in frame.index.names if name is not None)
    return Table(
        "pandas frame",
        tuple(frame.columns),
        len(frame),
        # By place, since several columns may have one name.
        lambda place, rows: frame.iloc[:, place].iloc[rows].tolist(),
        index,
    )


def _of_polars(frame: Any) -> Table:
    return Table(
        "polars frame",
        tuple(frame.columns),
        frame.height,
        lambda place, rows: frame.to_series(place).gather(rows).to_list(),
    )


def _of_arrow(table: Any) -> Table:
    def take(place: int, rows: NDArray[int64]) -> list[Any]:
        values = table.column(place).take(rows)
        kind = str(values.type)
        if kind.startswith("timestamp[ns"):  # which Python's own times cannot hold
            pa: Any = sys.modules["pyarrow"]
            values = values.cast(pa.timestamp("us", values.type.tz), safe=False)
        found: list[Any] = values.to_pylist()
        return found

    return Table("pyarrow table", tuple(table.schema.names), table.num_rows, take)


def _of_mappings(given: Iterable[Any]) -> Table:
    # They cannot be asked for in another order, so they are held; a row that is no mapping has nothing in it.
    rows: list[Mapping[Any, Any]] = [row if isinstance(row, Mapping) else {} for row in given]
    names: dict[Hashable, None] = {}
    for row in rows:
        names.update(dict.fromkeys(row))
    if rows and not names:
        raise InputError("read_frame reads rows that are mappings from a column's name to its value, and none is")
    order = tuple(names)
    return Table("rows", order, len(rows), lambda place, at: [rows[row].get(order[place]) for row in at])

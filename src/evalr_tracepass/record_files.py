"""Files of records: results of passes as JSON Lines, CSV or Parquet, written here or exported from ClickHouse."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from os import PathLike
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from evalr.errors import InputError, LogError, MissingExtraError
from evalr.logs.lines import BYTE_ORDER_MARK, unpacked
from evalr.logs.log import Log
from evalr.logs.reasons import Reason
from evalr.logs.sqlite import is_sqlite, open_database
from evalr.quoting import safe_text
from evalr_tracepass.record_rows import COLUMNS, SIGNS, FiresOn, Read, fires_on_of, read_row, to_row
from evalr_tracepass.records import Result

PARQUET = b"PAR1"
NO_PYARROW = "Parquet needs pyarrow: pip install pyarrow"
TAIL = 1 << 18


def read_records(path: str | PathLike[str], *, fires_on: Iterable[str] = ()) -> list[Result]:
    """The records of a file: JSON Lines, CSV or Parquet with the columns of a result, or a store's database.

    Columns that are not there are made up for where they can be: see `evalr report --help` for a log of passes. Rows
    that repeat one another are all there: see `latest_records`.

    Args:
        path: of the file.
        fires_on: for models that do not come with evalr, where the file has no column `fired`: "model=label".

    Raises:
        LogError: there is no such file, it is something else, or a row of it cannot be used.
    """
    place = Path(path)
    log = Log(str(place), "tracepass", lambda _: iter(()), strict=True)
    return [each.record for each in rows_of(place, log, fires_on_of(tuple(fires_on)))]


def rows_of(path: Path, log: Log, fires_on: FiresOn) -> Iterator[Read]:
    """The records of a file, with an account of the rows that cannot be used."""
    for number, row in enumerate(_rows(path, log), start=1):
        log.records += 1
        try:
            if isinstance(row, Reason):
                raise row
            yield read_row(row, fires_on)
        except Reason as reason:
            log.skip(str(reason), f"row {number}")
    if not log.records:
        raise LogError(f"{log.path}: there are no records in it")


GLANCE = 0.2
"""Seconds to wait for a database that is locked, only to see whether it holds records."""


def is_record_file(path: Path, head: bytes) -> bool:
    """Whether a file holds records, by the names of its columns."""
    if head.startswith(PARQUET):
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL))
            tail = file.read()
        return all(name.encode() in tail for name in SIGNS)
    if is_sqlite(head):
        database = open_database(path, wait=GLANCE)
        try:
            return _table(database.connection) is not None
        finally:
            database.close()
    first = next((line for line in head.removeprefix(BYTE_ORDER_MARK).split(b"\n") if line.strip()), b"")
    return _names(first) >= SIGNS


def _names(line: bytes) -> set[str]:
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return set()
    if text.startswith("{"):
        try:
            return set(json.loads(text))
        except ValueError:
            return set()
    return set(next(csv.reader([text.strip()]), []))


def _rows(path: Path, log: Log) -> Iterator[Mapping[str, Any] | Reason]:
    try:
        with path.open("rb") as file:
            head = file.read(64)
    except OSError as error:
        raise LogError(f"{safe_text(str(path), longest=200)}: cannot be read: {error.strerror}") from error
    if head.startswith(PARQUET):
        return _parquet(path)
    if is_sqlite(head):
        return _database(path)
    return _lines(path)


def _lines(path: Path) -> Iterator[Mapping[str, Any] | Reason]:
    with path.open("rb", buffering=0) as raw, unpacked(raw) as file:
        first = next(file, b"").removeprefix(BYTE_ORDER_MARK)
        lines = chain((first,), file)
        if not first.lstrip().startswith(b"{"):
            yield from csv.DictReader(line.decode("utf-8", "replace") for line in lines)
            return
        for line in lines:
            if not line.strip():
                continue
            try:
                found = json.loads(line)
            except ValueError:
                yield Reason("not JSON")
                continue
            yield found if isinstance(found, dict) else Reason("no object")


def _parquet(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        from pyarrow import ArrowInvalid
        from pyarrow.parquet import ParquetFile
    except ModuleNotFoundError as error:
        raise MissingExtraError(NO_PYARROW) from error
    try:
        with ParquetFile(path) as file:
            for batch in file.iter_batches():
                yield from batch.to_pylist()
    except ArrowInvalid as error:
        raise LogError(f"{safe_text(str(path), longest=200)}: it cannot be read as Parquet: {error}") from error


def _table(connection: Connection) -> str | None:
    """The table of a database that has the columns of records."""
    names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for name in names:
        columns = {row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (name,))}
        if columns >= SIGNS:
            return str(name)
    return None


def _database(path: Path) -> Iterator[Mapping[str, Any]]:
    database = open_database(path)
    try:
        name = _table(database.connection)
        if name is None:
            raise LogError(f"{safe_text(str(path), longest=200)}: no table in it has the columns of a pass's results")
        quoted_name = name.replace('"', '""')
        found = database.connection.execute(f'SELECT * FROM "{quoted_name}"')
        columns = [each[0] for each in found.description]
        for row in found:
            yield dict(zip(columns, row, strict=True))
        database.check_unchanged()
    finally:
        database.close()


# ---------------------------------------------------------------------------------------------------------------------
# Writing
# ---------------------------------------------------------------------------------------------------------------------


def write_records(path: str | PathLike[str], records: Iterable[Result]) -> int:
    """Write records to a file, by its ending: `.jsonl`, `.csv` or `.parquet`. Returns how many.

    It holds scores, labels and ids, and none of what was said.

    Raises:
        InputError: another ending.
        MissingExtraError: Parquet without pypa.
        LogError: the file cannot be written.
    """
    place = Path(path)
    writer = _WRITERS.get(place.suffix.lower())
    if writer is None:
        raise InputError(f"{safe_text(str(place), longest=200)}: write to a file that ends in {', '.join(_WRITERS)}")
    try:
        return writer(place, records)
    except OSError as error:
        raise LogError(f"{safe_text(str(place), longest=200)}: cannot be written: {error.strerror}") from error


def _write_lines(path: Path, records: Iterable[Result]) -> int:
    count = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for count, record in enumerate(records, 1):  # noqa: B007  how many there were
            file.write(json.dumps(to_row(record), ensure_ascii=False) + "\n")
    return count


def _write_csv(path: Path, records: Iterable[Result]) -> int:
    count = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for count, record in enumerate(records, 1):  # noqa: B007  how many there were
            row = to_row(record)
            row["selected_labels"] = json.dumps(row["selected_labels"], ensure_ascii=False)
            writer.writerow([_cell(row[name]) for name in COLUMNS])
    return count


def _cell(value: Any) -> Any:
    """A cell that no spreadsheet takes for a formula."""
    if isinstance(value, bool):
        return int(value)
    return value


def _write_parquet(path: Path, records: Iterable[Result]) -> int:
    try:
        import pyarrow as pa
        from pyarrow.parquet import ParquetWriter
    except ModuleNotFoundError as error:
        raise MissingExtraError(NO_PYARROW) from error
    kinds = {
        **dict.fromkeys(COLUMNS, pa.string()),
        **dict.fromkeys(("turn_index", "transform_version", "attempt"), pa.int32()),
        **dict.fromkeys(("top_score", "threshold"), pa.float64()),
        **dict.fromkeys(("fired", "truncated"), pa.bool_()),
        "selected_labels": pa.list_(pa.string()),
    }
    schema = pa.schema([(name, kinds[name]) for name in COLUMNS])
    rows = [to_row(record) for record in records]
    with ParquetWriter(path, schema) as writer:
        writer.write_table(pa.Table.from_pylist(rows, schema=schema))
    return len(rows)


_WRITERS = {".jsonl": _write_lines, ".csv": _write_csv, ".parquet": _write_parquet}

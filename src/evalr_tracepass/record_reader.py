"""The reader of records: results of passes, exported or in a store, as a log that reports and gates read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from evalr.errors import LogError
from evalr.logs.further import Further, ReportTerms
from evalr.logs.log import Item, Log, Stored
from evalr.quoting import quoted, safe_text

if TYPE_CHECKING:
    from evalr_tracepass.records import Result

NAME = "tracepass"


@dataclass(frozen=True)
class RecordReader:
    """Reads the results of passes over traces."""

    name: str = NAME
    describes: str = "results of passes over traces (JSON Lines, CSV, Parquet, SQLite)"
    settings: Mapping[str, Any] = field(
        default_factory=lambda: MappingProxyType(
            {"passes": "latest", "fires_on": (), "account_user": None, "account_org": None}
        )
    )

    def claim(self, path: Path, head: bytes) -> float:
        """Sure where the columns are those of results."""
        from evalr_tracepass.record_files import is_record_file

        if path.is_dir() or not head:
            return 0.0
        return float(is_record_file(path, head))

    def open(
        self,
        path: Path,
        *,
        strict: bool = False,
        passes: str = "latest",
        fires_on: tuple[str, ...] = (),
        account_user: str | None = None,
        account_org: str | None = None,
    ) -> Log:
        """The log; nothing is read before it is iterated over.

        Args:
            path: of the file.
            strict: see `Log`.
            passes: "latest" for the last that read a conversation, or the id of one.
            fires_on: labels at which models count as fired, as in `bad-handoff=dropped`, where the log does not say.
            account_user: only this user's rows.
            account_org: only this organisation's rows.
        """
        from evalr_tracepass.catalogue import titles
        from evalr_tracepass.record_rows import fires_on_of

        wanted = (account_user, account_org)
        items = partial(_items, path=path, passes=passes, fires_on=fires_on_of(fires_on), wanted=wanted)
        return RecordLog(
            str(path), self.name, items, strict=strict, noun="reading", holds_results=False, titles=titles()
        )


@dataclass
class RecordLog(Log):
    """A log of results, which adds a section on its signals where a page is asked for."""

    terms: ReportTerms | None = field(default=None, init=False, repr=False)
    counted: Sequence[Result] = field(default=(), init=False, repr=False)

    def prepare(self, terms: ReportTerms) -> None:
        """See `Log.prepare`."""
        self.terms = terms

    def further(self) -> Sequence[Further]:
        """See `Log.further`."""
        if self.terms is None or not self.terms.details:
            return ()
        from evalr_tracepass.record_section import pass_section

        return pass_section(self.counted, self.terms)


reader = RecordReader()


def _items(
    log: Log, *, path: Path, passes: str, fires_on: Any, wanted: tuple[str | None, str | None]
) -> Iterator[Item]:
    from evalr_tracepass.measures.fired import NAME as FIRED
    from evalr_tracepass.measures.fired import fired_results, latest_records
    from evalr_tracepass.record_files import rows_of

    user, org = wanted
    found, accounts = [], set()
    for number, each in enumerate(rows_of(path, log, fires_on), start=1):
        account = each.account
        if account is not None:
            if user not in (None, account.user) or org not in (None, account.org):
                log.leave_out("other account", f"row {number}")
                continue
            accounts.add(account)
        found.append(each.record)
    if len(accounts) > 1 and len({each.org for each in accounts if each.org}) != 1:
        names = ", ".join(sorted(quoted(each.org or each.user) for each in accounts)[:5])
        raise LogError(
            f"{safe_text(log.path, longest=200)}: it holds the results of several accounts ({names}), which are never "
            "put together: name one with --set account_org=NAME or --set account_user=NAME"
        )
    counted = latest_records(found, passes=passes)
    if len(counted) < len(found):
        log.notes.append(f"{len(found) - len(counted):,} readings were repeated, or are of earlier passes")
    if isinstance(log, RecordLog):
        log.counted = counted
    for result in fired_results(counted):
        yield Stored(FIRED, result)

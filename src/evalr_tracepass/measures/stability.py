"""Stability: does a signal say the same of the same text when it is asked again?"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from evalr.estimates.estimate import Groups
from evalr.inputs import About
from evalr.summaries import Rate
from evalr.summaries.keys import UnitOf
from evalr.summaries.summary import PENDING
from evalr.verdicts import Verdict
from evalr_tracepass.measures.fired import Fired, fired_results
from evalr_tracepass.records import Result


def _text_of(about: About) -> Hashable:
    return about.user, about.session, about.id


text_read = UnitOf("text", _text_of)

flip_rate = Rate(
    "flips",
    of=Fired,
    hits=lambda value: int(bool(value.fired)),
    leaves_out=lambda value: PENDING if value.fired is None else None,
    per=text_read,
    fold="flip",
    title="texts whose reading flipped",
    noun="reading",
    parent="conversation",
)
"""The share of texts, of those that were read twice or more, on which a signal fired in one pass and not in another."""


def flips(records: Iterable[Result], *, level: float = 0.95, mix_versions: bool = False) -> Groups:
    """The flip rate of each signal over several passes that read the same texts with it.

    Where texts have an `input_hash`, only readings of the same text are compared: a turn that was edited in between is
    another one.

    Args:
        records: of every pass: `latest_records(records, passes="all")`.
        level: of the intervals.
        mix_versions: also between versions of the model, or other thresholds: that is no longer how stable a signal is,
            but how far two of them differ.
    """
    found = _read_once(records)
    runs = {run: place for place, run in enumerate(dict.fromkeys(each.run_id for each in found), 1)}
    results = []
    for record, result in zip(found, fired_results(found), strict=True):
        about = result.about
        if about is not None and isinstance(result, Verdict):
            own = f"{about.id} {record.input_hash}"
            results.append(_repeated(result, own, runs[record.run_id]))
    return flip_rate.by(results, "signal", level=level, mix_versions=mix_versions)


def _read_once(records: Iterable[Result]) -> list[Result]:
    """Records without those that a pass took over from an earlier one: they are no second reading."""
    found = list(records)
    read = {_moment(each) for each in found if each.batch_id}
    return [each for each in found if each.batch_id or _moment(each) not in read]


def _moment(record: Result) -> Hashable:
    return record.signal_id, record.user, record.request_id, record.created_at


def _repeated(result: Verdict[Fired], own: str, time: int) -> Verdict[Fired]:
    about = result.about
    return Verdict(
        result.value,
        result.evaluator,
        result.version,
        None if about is None else about._replace(id=own, repeat=time),
        as_of=result.as_of,
    )

"""Releases: did a signal fire in more conversations after a release than before it?"""

from __future__ import annotations

from collections.abc import Iterable

from evalr.errors import InputError, MixedVersionsError
from evalr.estimates.lift import Lift
from evalr.quoting import safe_text
from evalr_tracepass.measures.fired import fired_conversations, fired_results
from evalr_tracepass.records import Pass, Result


def before_after(
    records: Iterable[Result],
    *,
    before: str,
    after: str,
    signal: str | None = None,
    passes: Pass | Iterable[Pass] = (),
    level: float = 0.95,
) -> Lift:
    """The share of conversations flagged under one release compared with that under an earlier one.

    It is observational: whatever else changed between them is in it. What must not have changed is the instrument.

    Args:
        records: of passes, one of a signal for each text; see `latest_records`.
        before: the earlier release.
        after: the later one.
        signal: which, where the records are of several.
        passes: as in `fired_results`.
        level: of the intervals, clustered by user where users are known.

    Raises:
        MixedVersionsError: the model, the transform or a threshold differs: a difference could be that of the
            instrument.
        InputError: the records are of several signals and none is named, or there are none of a release.
    """
    found = [each for each in records if each.release in (before, after)]
    found = [each for each in found if signal is None or each.signal_id == signal]
    names = sorted({each.signal_id for each in found})
    if len(names) > 1:
        raise InputError(f"the records are of these signals: {safe_text(', '.join(names))}; say which with signal=")
    for release in (before, after):
        if not any(each.release == release for each in found):
            raise InputError(f"no record is of the release {safe_text(release)!r}")
    _check_alike(found)
    results = fired_results(found, passes=passes)
    versions = sorted({each.version or "" for each in results})
    if len(versions) > 1 and _thresholds_differ(versions):
        raise MixedVersionsError(
            f"{safe_text(names[0])} had other thresholds in one release than in the other "
            f"({safe_text(' and '.join(each.rpartition(':')[2] for each in versions))}): read both with the same"
        )
    return fired_conversations.lift(results, by="release", treatment=after, control=before, level=level)


def _check_alike(found: list[Result]) -> None:
    parts = {
        "model": {each.reflex_model for each in found},
        "version of the model": {each.model_version for each in found if each.status == "completed"},
        "transform": {f"{each.transform_id}@{each.transform_version}" for each in found},
    }
    for name, values in parts.items():
        if len(values) > 1:
            raise MixedVersionsError(
                f"the {name} differs: {safe_text(', '.join(sorted(values)))}. A difference between releases could be "
                "the instrument's own: read both with the same"
            )


def _thresholds_differ(versions: list[str]) -> bool:
    return len({each.rpartition(":")[2] for each in versions}) > 1

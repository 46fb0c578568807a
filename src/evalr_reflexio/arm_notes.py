"""What a report says of arms: how many sessions each has, which are in none, and how else they could be split."""

from __future__ import annotations

import re
import shlex

from evalr.quoting import quoted
from evalr_reflexio.arm_checks import checked_by, checked_words
from evalr_reflexio.arms import ArmCounts, Arms, ExperimentArms, SourceArms
from evalr_reflexio.assigning import AssignmentRule
from evalr_reflexio.store import Store

_SPELLED = re.compile(r"\w[\w.:/@+-]{0,127}")
"""Request sources that an option can name as they are: those that newer releases take, and most others."""

NO_TERMS = (
    "no configuration says when the experiment ran, and how many were held out: name Reflexio's with --config FILE"
)
ONE_SET = (
    "one set of request sources has nothing to be compared with; two are 'request-source:A=x;B=y', in quotes, as a ; "
    "ends a shell's command"
)


def ways_to_split(store: Store, taken: Arms | None) -> list[str]:
    """How sessions could be put into arms, where nobody asked for any; beside those that were taken."""
    ways = [f"experiment:{quoted(name)[1:-1]}" for name in store.experiments_seen()]
    if store.keeps_metadata:
        ways.append("tag")
    sources = [name for name, _ in store.request_sources_seen().most_common() if _SPELLED.fullmatch(name)]
    if len(sources) > 1:  # which of them is the control, nobody has said
        ways.append(f"request-source:A={sources[0]};B={sources[1]}")
    asked = ", ".join(f"--arms {shlex.quote(way)}" for way in ways if taken is None or way != taken.name)
    if taken is None:
        return [f"sessions could be compared in arms: {asked}"] if asked else []
    others = f"; sessions could also be compared by {asked}" if asked else ""
    return [f"no arms were asked for, and these are the ones that sessions carry{others}"]


def arm_sentences(counts: ArmCounts, arms: Arms, rule: AssignmentRule | None = None) -> list[str]:
    """Sessions by arm, those in none by cause, and how many of the arms a hash would give again."""
    by_arm = ", ".join(f"{quoted(arm)[1:-1]} {counts.sessions[arm]:,}" for arm in sorted(counts.sessions)) or "none"
    found = [f"sessions by arm ({quoted(arms.name, longest=80)[1:-1]}): {by_arm}"]
    if counts.untagged:
        causes = ", ".join(
            f"{cause} {count:,}{_values(counts, cause)}" for cause, count in counts.untagged.most_common()
        )
        found.append(f"sessions in no arm: {causes}")
    if counts.checked:
        by = checked_by(arms, rule)
        found.append(checked_words(counts.checked, counts.disagreeing, by, counts.disagreeing_sessions))
    if isinstance(arms, ExperimentArms):
        found += arms.notes
        if arms.experiment.started_at is None:
            found.append(NO_TERMS)
    elif not arms.randomised:
        if isinstance(arms, SourceArms) and len(arms.labels) == 1:
            found.append(ONE_SET)
        found.append("who assigned these arms is not known here: their difference is an observation")
    return found


def _values(counts: ArmCounts, cause: str) -> str:
    values = counts.seen.get(cause)
    return "" if not values else " (" + ", ".join(f"{value} {count:,}" for value, count in values.most_common(5)) + ")"

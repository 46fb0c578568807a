"""The answers as sections of a report: a screen that a person reads, with everything beside it as data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from evalr.estimates.estimate import Estimate, number_line
from evalr.estimates.lift import OBSERVATIONAL, Lift
from evalr.estimates.words import count_words, interval_words, p_words, value_words
from evalr.logs.further import Further, FurtherLine, estimate_line
from evalr.measures.drop_off import drop_off_share
from evalr.quoting import quoted
from evalr_reflexio.answers.arm_answer import ArmAnswer, ArmPair, ArmsAnswer, Coverage
from evalr_reflexio.answers.customers import CustomerAnswer
from evalr_reflexio.answers.health import Health
from evalr_reflexio.answers.impact import Impact
from evalr_reflexio.answers.learnings import LearningAnswer, LearningRecord
from evalr_reflexio.answers.measured import SUCCESS
from evalr_reflexio.answers.shadows import Compared, ShadowAnswer
from evalr_reflexio.answers.words import (
    AGREEMENT,
    SAID_ONCE,
    health_counts,
    health_kinds,
    power_words,
    sampling_words,
    titled,
)
from evalr_reflexio.arm_checks import checked_words
from evalr_reflexio.stored import CONTROLS

if TYPE_CHECKING:
    from evalr.logs.blocks import Block
    from evalr_reflexio.blocks.beside import Beside

BUCKETS_SHOWN = 10
LEARNINGS_SHOWN = 5
LEARNING_TEXT = 60
"""Characters of what a learning says."""
COMPARISONS_SHOWN = 3
RECENT_SHOWN = 5

_SHADOW = "answers with Reflexio beside answers without it"
_CUSTOMERS = "the judge beside what customers reported"

Lines = Iterator[FurtherLine | str]


def sections(impact: Impact, beside: Beside | None = None) -> tuple[Further, ...]:
    """The sections that an impact adds to a report; with what a page shows, where what stands beside it is given."""
    parts: list[tuple[str, str, Lines, Mapping[str, Any]]] = []
    if impact.arms is not None:
        parts.append(("arms", _arms_title(impact.arms), _arms(impact, impact.arms), impact.arms.to_dict()))
    parts.append(("trend", f"success by {impact.bucket}", _trend(impact), _trend_data(impact)))
    if impact.shadow is not None:
        parts.append(("shadow", _SHADOW, _shadow(impact.shadow), impact.shadow.to_dict()))
    if impact.learnings is not None:
        parts.append(("learnings", "learnings", _learnings(impact.learnings), impact.learnings.to_dict()))
    if impact.customers is not None:
        parts.append(("customers", _CUSTOMERS, _customers(impact.customers), impact.customers.to_dict()))
    parts.append(("recent", "the newest verdicts on sessions", _recent(impact), _recent_data(impact)))
    parts.append(("health", "what was evaluated", _health(impact.health), impact.health.to_dict()))
    if beside is None:
        return tuple(_further(*part) for part in parts)
    from evalr_reflexio.blocks.page import blocks_of, further_pages  # for pages alone

    blocks = blocks_of(impact, beside)
    found = [_further(*part, blocks[part[0]]) for part in parts]
    last = found.pop()
    return (*found, *further_pages(impact, beside), last)


def _further(name: str, title: str, lines: Lines, data: Mapping[str, Any], blocks: tuple[Block, ...] = ()) -> Further:
    return Further(name=name, title=title, lines=tuple(lines), data=data, leads=name == "arms", blocks=blocks)


# ---------------------------------------------------------------------------------------------------------------------
# Arms
# ---------------------------------------------------------------------------------------------------------------------


def _arms_title(arms: ArmsAnswer) -> str:
    pairs = ", ".join(f"{pair.treatment} v {pair.control}" for pair in arms.pairs) or "arms"
    return f"impact of Reflexio: {pairs} · {arms.name}"


def _arms(impact: Impact, arms: ArmsAnswer) -> Lines:
    if not arms.randomised:
        yield OBSERVATIONAL
    if not any(answer.coverage.whole for arm, answer in arms.by_arm.items() if arm is not None):
        yield "no session of this log is in any of these arms: what sessions carry stands beside 'in no arm'"
    elif not arms.pairs:
        yield "one arm alone is compared with nothing: name a second one"
    for pair in arms.pairs:
        yield from _pair(pair, impact, several=len(arms.pairs) > 1)
    for arm, answer in arms.by_arm.items():
        yield FurtherLine(_arm_words(arm), *_coverage(answer.coverage), _arm_notes(answer))
    attributed = arms.attributed
    yield FurtherLine("judged sessions in the split", *_coverage(attributed), [_of(attributed, "judged session")])
    for cause, count in arms.untagged.items():
        seen = ", ".join(f"{value} ({each:,})" for value, each in arms.seen.get(cause, {}).items())
        yield FurtherLine(f"in no arm: {cause}", f"{count:,}", notes=[seen] if seen else [])
    if arms.checked:
        yield checked_words(arms.checked, arms.disagreeing, arms.checked_by, arms.disagreeing_sessions)
    yield from arms.notes


def _pair(pair: ArmPair, impact: Impact, *, several: bool) -> Lines:
    if several:
        yield FurtherLine(f"{pair.treatment} v {pair.control}")
    for name, lift in pair.lifts.items():
        yield _lift(titled(name, impact), lift, always_valid=impact.always_valid, within=several,
                    whole=name == SUCCESS)  # fmt: skip
    yield from pair.allocation.notes()


def _lift(title: str, lift: Lift, *, always_valid: bool, within: bool, whole: bool) -> FurtherLine:
    shown = lift.always_valid if always_valid else lift.difference
    if shown.value is None and shown.reason is not None:
        return FurtherLine(title, value_words(None, shown.unit), notes=[shown.reason], within=within)
    arms = {lift.treatment_arm: lift.treatment, lift.control_arm: lift.control}
    notes = [" v ".join(f"{arm} {_with_count(estimate)}" for arm, estimate in arms.items())]
    notes += [flag.replace("_", " ") for flag in lift.flags if flag not in SAID_ONCE]
    if shown.reason is not None:
        notes.append(shown.reason)
    p = lift.always_valid_p if always_valid else lift.p
    if p is not None:
        notes.append(p_words(p))
    if whole:
        notes.append(_told(shown, lift))
    if lift.relative.value is not None:
        # Its interval holds for one look alone.
        alone = f"relative {value_words(lift.relative.value, lift.relative.unit)}"
        notes.append(alone if always_valid else number_line("relative", lift.relative))
    power = power_words(lift) if whole and not always_valid else None
    if power is not None:
        notes.append(power)
    if lift.name == drop_off_share.name:
        notes.append("who spoke last, as no session is marked as closed")
    if lift.difference.left_out:
        notes.append("left out: " + _counts(lift.difference.left_out))
    value, interval = value_words(shown.value, shown.unit), interval_words(shown.low, shown.high, shown.unit)
    return FurtherLine(title, value, interval, notes, within)


def _told(shown: Estimate, lift: Lift) -> str:
    """What a person who has to decide may take from it, and no more."""
    if shown.low is None or shown.high is None:
        return "one number without an interval decides nothing"
    if shown.low <= 0 <= shown.high:
        return "0 is in the interval: this log does not tell which arm does better"
    better = lift.treatment_arm if shown.low > 0 else lift.control_arm
    cause = "" if lift.randomised else ", whatever the cause"
    return f"0 is not in the interval: {better} does better{cause}"


def _with_count(estimate: Estimate) -> str:
    return f"{value_words(estimate.value, estimate.unit)} ({count_words(estimate.n, estimate.noun)})"


def _arm_words(arm: str | None) -> str:
    return "in no arm, evaluated" if arm is None else f"{arm}, evaluated"


def _arm_notes(answer: ArmAnswer) -> list[str]:
    notes = [_of(answer.coverage, "published session"), count_words(answer.users, "user")]
    if answer.evaluation_only:
        notes.append(f"{answer.evaluation_only:,} for evaluation only")
    if answer.failure_types:
        named = {name or "no type": count for name, count in answer.failure_types.items()}
        notes.append(f"failures: {_counts(named)}")
    return notes


def _coverage(coverage: Coverage) -> tuple[str, str]:
    return value_words(coverage.share, "share"), ""


def _of(coverage: Coverage, noun: str) -> str:
    return f"{coverage.part:,} of {count_words(coverage.whole, noun)}"


def _counts(counts: Mapping[str, float]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items())


# ---------------------------------------------------------------------------------------------------------------------
# Trends
# ---------------------------------------------------------------------------------------------------------------------


def _curves(impact: Impact) -> dict[str | None, ArmAnswer]:
    return {"all": impact.everyone} if impact.arms is None else dict(impact.arms.by_arm)


def _trend(impact: Impact) -> Lines:
    curves = _curves(impact)
    names = sorted({name for each in curves.values() for name in each.trend if name is not None})
    for name in names[-BUCKETS_SHOWN:]:
        points = [
            f"{'in no arm' if arm is None else arm} {value_words(point.value, 'share')} of {point.n:,}"
            for arm, each in curves.items()
            if (point := each.trend.get(name)) is not None and point.n
        ]
        overall = impact.everyone.trend.get(name)
        if overall is None or not overall.n:
            yield FurtherLine(name, "—", notes=["no verdict"])
        elif impact.arms is None:
            yield estimate_line(name, overall)
        else:
            interval = interval_words(overall.low, overall.high, "share")
            yield FurtherLine(name, value_words(overall.value, "share"), interval, [", ".join(points)])
    if len(names) > BUCKETS_SHOWN:
        yield f"and {count_words(len(names) - BUCKETS_SHOWN, f'earlier {impact.bucket}')}; --json for all"


def _trend_data(impact: Impact) -> dict[str, Any]:
    curves = [{"arm": arm, "trend": each.trend.to_dicts()} for arm, each in _curves(impact).items()]
    return {"bucket": impact.bucket, "everyone": impact.everyone.trend.to_dicts(), "arms": curves}


# ---------------------------------------------------------------------------------------------------------------------
# Two answers
# ---------------------------------------------------------------------------------------------------------------------


def _shadow(shadow: ShadowAnswer) -> Lines:
    yield estimate_line("won with Reflexio", shadow.wins)
    yield estimate_line("net win", shadow.net)
    yield estimate_line("won where decided", shadow.decided)
    for arm, estimate in shadow.arms.items() if len(shadow.arms) > 1 else ():
        yield estimate_line("in no arm" if arm is None else arm, estimate, within=True)
    notes = [f"{shadow.judged:,} of {count_words(shadow.with_shadow, 'answer')} with a shadow judged"]
    notes.append(f"won by far {shadow.by_far['wins']:,}, lost by far {shadow.by_far['losses']:,}")
    if shadow.test.p is not None:
        notes.append(f"{p_words(shadow.test.p)}, were wins and losses as frequent")
    yield " · ".join(notes)
    whose = {"served": "the served answer", "shadow": "the shadow", "arm": "the served one, but in the control"}
    controls = [arm for arm in shadow.arms if arm is not None and arm.casefold() in CONTROLS]
    if shadow.which == "served" and controls:
        yield f"in {controls[0]} the served answer has no Reflexio: --shadow arm says so"
    version = "" if shadow.version is None else f" · prompt version {quoted(shadow.version)}"
    yield f"with Reflexio is taken to be {whose[shadow.which]}{version}"
    if shadow.left_out:
        yield f"left out: {_counts(shadow.left_out)}"
    yield from _listed("lost by far, newest first", shadow.disagreements, shadow.lost_by_far)


def _listed(title: str, rows: Iterable[Compared], count: int) -> Lines:
    shown = list(rows)[:COMPARISONS_SHOWN]
    if shown:
        yield FurtherLine(title, f"{count:,}")
    for each in shown:
        of_user = "" if each.user is None else f" of {each.user}"
        yield FurtherLine(
            f"answer {each.interaction} in {each.session}{of_user}", notes=[each.reason or "no reason"], within=True
        )


# ---------------------------------------------------------------------------------------------------------------------
# Learnings
# ---------------------------------------------------------------------------------------------------------------------


def _learnings(learnings: LearningAnswer) -> Lines:
    parts = {"responses": learnings.responses, "learnings": learnings.verdicts}
    for noun, found in parts.items():
        yield estimate_line(f"{noun} helped" if noun == "responses" else "learnings that helped", found.helped)
        yield estimate_line(f"{noun} hurt" if noun == "responses" else "learnings that hurt", found.hurt)
        if found.mixed is not None:
            yield estimate_line("responses helped and hurt", found.mixed)
        relevant = "responses with a relevant learning" if noun == "responses" else "learnings relevant"
        yield estimate_line(relevant, found.relevant)
        if noun == "learnings":
            for use, estimates in learnings.by_use.items():
                net = number_line("net", estimates.net)
                yield estimate_line(f"helped, {use}", estimates.helped, within=True, notes=[net])
    yield f"{learnings.judged:,} of {count_words(learnings.attached, 'learning')} given to answers judged"
    if learnings.diagnoses:
        yield f"negative verdicts by diagnosis: {_counts(learnings.diagnoses)}"
    if learnings.left_out:
        yield f"left out: {_counts(learnings.left_out)}"
    yield from _some("harming most", learnings.harming)
    yield from _some("helping most", learnings.helping)
    yield from _some("to be revised (3 harmed, 2 helped)", learnings.marked)
    rules = list(learnings.cited_rules[:LEARNINGS_SHOWN])
    if rules:
        yield FurtherLine("sessions that cite it (an association)")
    for each in rules:
        words = f"{each.successes_with:,} succeeded, {each.failures_with:,} failed"
        yield FurtherLine(_name(each), f"{each.net_sessions:+,}", notes=[*_says(each), words], within=True)


def _some(title: str, records: Iterable[LearningRecord]) -> Lines:
    shown = list(records)[:LEARNINGS_SHOWN]
    if shown:
        yield FurtherLine(title)
    for each in shown:
        notes = [*_says(each), f"{each.positive:,} helped, {each.neutral:,} neutral, {each.negative:,} hurt"]
        if each.diagnoses:
            notes.append(_counts(each.diagnoses))
        association = each.association
        if association is not None and association.difference.low is not None:
            notes.append(number_line("success with it: association", association.difference))
        yield FurtherLine(_name(each), notes=notes, within=True)


def _says(record: LearningRecord) -> list[str]:
    return [] if record.text is None else [quoted(" ".join(record.text.split()), longest=LEARNING_TEXT)]


def _name(record: LearningRecord) -> str:
    return f"{record.kind.replace('_', ' ')} {record.id}"


# ---------------------------------------------------------------------------------------------------------------------
# Customers, the newest, health
# ---------------------------------------------------------------------------------------------------------------------


def _customers(customers: CustomerAnswer) -> Lines:
    if customers.agreement is not None:
        for name in ("accuracy", "kappa", "tpr", "tnr"):
            yield estimate_line(AGREEMENT[name], customers.agreement["success"][name])
    yield f"{customers.compared:,} of {count_words(customers.reported, 'reported session')} also judged"
    if customers.left_out:
        yield f"left out: {_counts(customers.left_out)}"


def _recent(impact: Impact) -> Lines:
    for source, outcomes in impact.recent_by_source().items():
        successes = sum(each.success for each in outcomes)
        name = "request gone" if source is None else f"request source {source}"
        yield FurtherLine(name, f"{successes:,} of {len(outcomes):,}", notes=["succeeded"])
    for each in impact.recent[:RECENT_SHOWN]:
        ended = "success" if each.success else each.failure_type or "failure"
        of_user = "" if each.user is None else f" of {each.user}"
        notes = [f"{each.at:%Y-%m-%d %H:%M}", *([each.arm or "in no arm"] if impact.arms else [])]
        yield FurtherLine(f"{each.session}{of_user}", ended, notes=notes)
    hidden = len(impact.recent) - RECENT_SHOWN
    if hidden > 0:
        of = count_words(impact.recent_of, "verdict")
        yield f"and {hidden:,} more of {of}; --json for the newest {len(impact.recent):,}"


def _recent_data(impact: Impact) -> dict[str, Any]:
    return {"of": impact.recent_of, "outcomes": [each.to_dict() for each in impact.recent]}


def _health(health: Health) -> Lines:
    pairs = [
        ("sessions evaluated", Coverage(health.evaluated, health.published), "published session"),
        ("shadow answers judged", Coverage(health.shadow_judged, health.answers_with_shadow), "answer"),
        ("learnings judged", Coverage(health.learnings_judged, health.learnings_attached), "learning"),
    ]
    for title, coverage, noun in pairs:
        if coverage.whole:
            yield FurtherLine(title, *_coverage(coverage), [_of(coverage, noun)])
    for title, count in health_counts(health).items():
        yield FurtherLine(title, f"{count:,}")
    for title, counts in health_kinds(health).items():
        yield FurtherLine(title, f"{sum(counts.values()):,}", notes=[_counts(counts)])
    if health.sampling is not None:
        yield f"judged by the configuration: {sampling_words(health.sampling)}"

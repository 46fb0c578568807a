"""One pass over a log: everything in it as inputs and stored verdicts, or counted where a report asks for no more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalr.errors import LogError
from evalr.estimates.words import count_words
from evalr.inputs import Input, Side, Transcript
from evalr.logs.further import ReportTerms
from evalr.logs.log import Item, Log, Stored
from evalr.quoting import quoted
from evalr_reflexio.answers.gathering import NO_ARMS, Gathering
from evalr_reflexio.answers.impact import answers_of, fewer_collections, gathering_for
from evalr_reflexio.arm_checks import check_rule, computed_arm
from evalr_reflexio.arm_notes import arm_sentences, ways_to_split
from evalr_reflexio.arms import ArmReading, Arms, SourceArms, arms_of
from evalr_reflexio.arms_seen import arms_seen
from evalr_reflexio.blocks.beside import beside_of
from evalr_reflexio.compat import compat_figures
from evalr_reflexio.config import Config
from evalr_reflexio.controls import controls_of
from evalr_reflexio.conversations import (
    GONE,
    NO_MESSAGE,
    NO_SIDE_EXCHANGE,
    exchanges_of,
    learning_uses_of,
    references_in,
    session_of,
    transcript_of,
)
from evalr_reflexio.corrections import corrections_in
from evalr_reflexio.log import Options, ReflexioLog
from evalr_reflexio.noticed import irregularities
from evalr_reflexio.parts import PartsElsewhere
from evalr_reflexio.places import config_for, open_store
from evalr_reflexio.rows import LearningRow, OutcomeRow, Reference, SessionRecord, ShadowRow
from evalr_reflexio.speaking import Spoken
from evalr_reflexio.splits import Splits
from evalr_reflexio.store import Placed, Span, Store
from evalr_reflexio.stored import OUTCOME as OUTCOME_MEASURE
from evalr_reflexio.stored import Told, customer_verdict, learnings_told, outcomes_told, shadows_told, treatment_side
from evalr_reflexio.turns import JudgedTurns, judged_turns, said_by

if TYPE_CHECKING:
    from evalr_reflexio.counting import ReportSums

DUPLICATE = "duplicate verdict"
OTHER_PROMPT = "shadow verdict of another prompt version"
NO_SIDE = "shadow verdict of a session without an arm"
NO_ANSWER = "learning verdict that names no answer"
NOTHING_SAID = "session without interactions"
ALL_PROMPTS = "all"
SOUND = frozenset((DUPLICATE, OTHER_PROMPT, NO_SIDE, NO_SIDE_EXCHANGE, NO_ANSWER, NO_MESSAGE, GONE, NOTHING_SAID))
"""Why sound records are left out."""
NO_FIGURES = "answers of the HTTP API are Reflexio's own figures, which are computed anew of its database alone"

_BATCH = 64
_KNOWN_TEXTS = 4096
"""Of how many learnings it is known at a time whether their texts are there."""


def items_of(path: Path, options: Options, log: Log) -> Iterator[Item]:
    """What a log holds, with what was noticed told to it; a report's own sections are made when all is read.

    Raises:
        LogError: it cannot be read, or holds nothing.
        InputError: it has no such arms.
    """
    if not isinstance(log, ReflexioLog):
        raise LogError(f"{path}: this reader's items are counted in a log of its own")
    with open_store(path, watched=log.reading is not None) as store:
        log.config = config = config_for(store, options.config)
        if config.path is not None and options.config is None:
            log.notes.append(f"its configuration is read from {config.path}")
        arms = options.arms
        if arms is None and log.terms is not None:
            arms = arms_seen(store, config, since=log.terms.since, until=log.terms.until)
        if arms is not None:
            randomised = log.terms is not None and log.terms.randomised
            given, unit = options.registry, options.unit
            arms = arms_of(arms, config=config, store=store, randomised=randomised, unit=unit, registry=given)
        check_rule(arms, options.assigned)
        log.randomised = arms is not None and arms.randomised
        reading = LogPass(store, options, arms, config, log, Placed())
        with PartsElsewhere(reading) as elsewhere:
            yield from reading.items(elsewhere)
            if reading.gathering is not None and log.terms is not None:
                found = answers_of(reading.gathering, store, log, randomised=log.terms.randomised, sound=SOUND)
                log.impact = found if options.arms is not None or found.has_arms else replace(found, arms=None)
                if reading.splits is not None:
                    log.beside = beside_of(store, log.impact, reading.splits)
            if options.compat is not None and log.terms is not None:
                if store.over_http:
                    log.notes.append(NO_FIGURES)
                else:
                    log.own = elsewhere.own_figures(log.terms)


class LogPass:
    """One pass over a log."""

    def __init__(
        self, store: Store, options: Options, arms: Arms | None, config: Config, log: ReflexioLog, placed: Placed
    ) -> None:
        self.store, self.options, self.arms, self.config, self.log = store, options, arms, config, log
        self.controls = controls_of(arms, options.shadow)
        wanted = options.shadow_version or config.shadow_prompt_version
        self.prompt_version = None if wanted == ALL_PROMPTS else wanted
        self.corrections = corrections_in(store)
        self.notes: Counter[str] = Counter()
        self.placed = placed
        self._texts: dict[Reference, bool] = {}
        self.gathering: Gathering | None = None
        if log.terms is not None:
            self.gathering = gathering_for(store, options.asked(log.terms), arms, config)
        self.splits: Splits | None = None
        if self.gathering is not None and log.terms is not None and log.terms.details:
            self.splits = Splits(store, options.asked(log.terms), arms, config)

    def items(self, elsewhere: PartsElsewhere) -> Iterator[Item]:
        """What the log holds; where a report reads it, what is out of the ordinary, as the rest is counted.

        Raises:
            LogError: there is no record in it.
        """
        with fewer_collections():
            for span in elsewhere.spans():
                yield from self.items_in(span)
            yield from self._items_of(self.store.rest(self.log, self.placed))
            if self.log.sums is not None:
                self.log.sums.fill()
            elsewhere.fill()
        self._tell()
        if not self.log.records:
            raise self.store.empty()

    def items_in(self, span: Span) -> Iterator[Item]:
        """The same of the sessions of a span of time."""
        now = None if self.log.sums is None else self.log.sums.now
        return self._items_of(self.store.sessions_in(span, self.log, self.placed, now=now))

    def _items_of(self, records: Iterator[SessionRecord]) -> Iterator[Item]:
        return self._each(records) if self.log.sums is None else self._uncounted(records, self.log.sums)

    def _each(self, records: Iterator[SessionRecord]) -> Iterator[Item]:
        while batch := list(islice(records, _BATCH)):
            texts = self.store.learning_texts(references_in(batch))
            for record in batch:
                if self.gathering is not None:
                    self.gathering.see(record)
                if self.splits is not None:
                    self.splits.see(record)
                yield from self._of(record, texts)

    def _uncounted(self, records: Iterator[SessionRecord], sums: ReportSums) -> Iterator[Item]:
        """The items of sessions that are out of the ordinary; the others are counted without any."""
        while batch := list(islice(records, _BATCH)):
            for record in batch:
                said = said_by(record.interactions, sums.now)
                reading = NO_ARMS if self.arms is None else self.arms.read(record)
                odd = irregularities(record)
                turns = judged_turns(record)
                if self.gathering is not None:
                    self.gathering.see(record, said=said, reading=reading, odd=odd, turns=turns)
                if self._is_ordinary(record):
                    if odd:
                        self.log.noticed.see(record, odd)
                    self._count(record, said, turns, self._count_arm(record, reading), sums)
                else:
                    yield from self._of(record, self.store.learning_texts(references_in([record])))
            if self.log.progress is not None:
                self.log.progress(self.log.records, self.log.bytes_read / max(1, self.log.bytes_total or 0))

    def gatherings(self) -> list[Gathering]:
        """What was summed up for answers."""
        splits = [] if self.splits is None else self.splits.gatherings
        return splits if self.gathering is None else [self.gathering, *splits]

    def own_figures(self, terms: ReportTerms) -> Mapping[str, Any]:
        """What Reflexio computes of the same log and period."""
        sets = self.arms.sets if isinstance(self.arms, SourceArms) else None
        return compat_figures(
            self.store, since=terms.since, until=terms.until, source_sets=sets, config=self.config, now=terms.now
        )

    def _is_ordinary(self, record: SessionRecord) -> bool:
        if not record.user or not record.requests or record.customer_outcome is not None:
            return False
        return self.options.compat is None or all(row.interaction is not None for row in record.learning_verdicts)

    def _count(
        self, record: SessionRecord, said: Spoken, turns: JudgedTurns, arm: str | None, sums: ReportSums
    ) -> None:
        """What `_of` does with a session, without an object for each thing."""
        log = self.log
        if record.requests[0].evaluation_only:
            self.notes["for evaluation only"] += 1
        log.records += 1
        side = treatment_side(self.options.shadow, arm, self.controls)
        if record.interactions:
            log.derived += 1
            sums.conversation(record, said)
            self._count_parts(record, said if said.is_all else said_by(record.interactions), side, sums)
        else:
            log.leave_out(NOTHING_SAID, f"session {quoted(record.session)}")
        if record.outcomes:
            self._count_outcomes(record, sums)
        if record.shadow_verdicts:
            self._count_shadows(record, side, turns, sums)
        if record.learning_verdicts:
            self._count_learnings(record, turns, sums)

    def _count_parts(self, record: SessionRecord, said: Spoken, side: Side | None, sums: ReportSums) -> None:
        for row, has_message in said.with_shadow:
            if side is not None and has_message:
                self.log.derived += 1
                sums.exchange(record, row.at)
            else:
                self._leave_out(NO_MESSAGE if side else NO_SIDE_EXCHANGE, f"interaction {row.interaction_id}")
        for row in said.given:
            there = 0
            for learning in row.learnings or ():
                if self._has_text(learning):
                    there += 1
                else:
                    self._leave_out(GONE, f"{learning.kind} {quoted(learning.id)}")
            if there:
                self.log.derived += there
                sums.learning_uses(record, row.at, there, tell_use=row.citations is not None)

    def _has_text(self, learning: Reference) -> bool:
        """Whether a learning's text is in the log; those of whom it was asked last are known."""
        found = self._texts.get(learning)
        if found is None:
            if len(self._texts) >= _KNOWN_TEXTS:
                self._texts.clear()
            found = self._texts[learning] = bool(self.store.learning_texts([learning]))
        return found

    def _count_outcomes(self, record: SessionRecord, sums: ReportSums) -> None:
        rows = record.outcomes
        last = {row.evaluator: row.result_id for row in rows} if len(rows) > 1 else {}
        for row in rows:
            corrections = self._corrections(record, row)
            if self.options.compat is None and last and last[row.evaluator] != row.result_id:
                self._leave_out(DUPLICATE, f"result {row.result_id}")
            else:
                self.log.records += 1
                sums.outcome(record, row, corrections)

    def _count_shadows(self, record: SessionRecord, side: Side | None, turns: JudgedTurns, sums: ReportSums) -> None:
        rows = self._of_prompt(record)
        last = {(row.interaction, row.prompt_version): row.verdict_id for row in rows}
        for row in rows:
            named = row.interaction is not None
            if side is None:
                self._leave_out(NO_SIDE, f"shadow verdict {row.verdict_id}")
            elif self.options.compat is None and named and last[row.interaction, row.prompt_version] != row.verdict_id:
                self._leave_out(DUPLICATE, f"shadow verdict {row.verdict_id}")
            else:
                self.log.records += 1
                turn = None if row.interaction is None else turns.get(row.interaction)
                sums.shadow(record, row, row.at if turn is None else turn.at, side)

    def _count_learnings(self, record: SessionRecord, turns: JudgedTurns, sums: ReportSums) -> None:
        rows = record.learning_verdicts
        last = {(row.interaction, row.kind, row.learning): row.result_id for row in rows} if len(rows) > 1 else {}
        by_response: dict[int, list[tuple[LearningRow, bool]]] = {}
        for row in rows:
            if row.interaction is None:
                self._leave_out(NO_ANSWER, f"learning result {row.result_id}")
            elif (
                self.options.compat is None and last and last[row.interaction, row.kind, row.learning] != row.result_id
            ):
                self._leave_out(DUPLICATE, f"learning result {row.result_id}")
            else:
                self.log.records += 1
                turn = turns.get(row.interaction)
                tells_use = turn is not None and turn.citations is not None
                by_response.setdefault(row.interaction, []).append((row, tells_use))
        for judged in by_response.values():
            sums.learnings(record, judged)

    def _of(self, record: SessionRecord, texts: Mapping[Reference, str]) -> Iterator[Item]:
        arm = self._arm(record)
        self.log.noticed.see(record)
        if record.requests:
            if record.first is not None and record.first.evaluation_only:
                self.notes["for evaluation only"] += 1
            self.log.records += 1
            if record.interactions:
                transcript = transcript_of(record, arm=arm)
                yield transcript
                yield from self._derived([session_of(record, arm=arm)])
                yield from self._parts(record, transcript, texts, arm)
            else:
                self.log.leave_out(NOTHING_SAID, f"session {quoted(record.session)}")
        outcomes = [row._replace(corrections=self._corrections(record, row)) for row in record.outcomes]
        yield from self._stored(outcomes_told(replace(record, outcomes=outcomes), arm=arm))
        yield from self._shadows(record, arm)
        yield from self._stored(learnings_told(record, arm=arm))
        if record.customer_outcome is not None:
            self.log.records += 1
            yield Stored(OUTCOME_MEASURE, customer_verdict(record, record.customer_outcome, arm=arm))

    def _arm(self, record: SessionRecord) -> str | None:
        return None if self.arms is None else self._count_arm(record, self.arms.read(record))

    def _count_arm(self, record: SessionRecord, reading: ArmReading) -> str | None:
        if self.arms is None:
            return None
        self.log.arms.see(reading)
        if reading.arm is not None:
            computed = computed_arm(record, self.arms, org=self.config.org, rule=self.options.assigned)
            if computed is not None:
                self.log.arms.check(record, reading.arm, computed)
        return reading.arm

    def _derived(self, inputs: Iterable[Input]) -> Iterator[Input]:
        for each in inputs:
            self.log.derived += 1
            yield each

    def _parts(
        self, record: SessionRecord, transcript: Transcript, texts: Mapping[Reference, str], arm: str | None
    ) -> Iterator[Input]:
        side = treatment_side(self.options.shadow, arm, self.controls)
        for exchange in exchanges_of(record, treatment=side or "served", arm=arm):
            if side is not None and exchange.message:
                yield from self._derived([exchange])
            else:
                self._leave_out(NO_MESSAGE if side else NO_SIDE_EXCHANGE, f"interaction {exchange.id}")
        for use in learning_uses_of(record, texts, turns=transcript.turns, arm=arm):
            if isinstance(use, Reference):
                self._leave_out(GONE, f"{use.kind} {quoted(use.id)}")
            else:
                yield from self._derived([use])

    def _shadows(self, record: SessionRecord, arm: str | None) -> Iterator[Stored]:
        record.shadow_verdicts = self._of_prompt(record)
        yield from self._stored(shadows_told(record, which=self.options.shadow, arm=arm, controls=self.controls))

    def _of_prompt(self, record: SessionRecord) -> list[ShadowRow]:
        """The verdicts on two answers but for those of other prompt versions, which are left out."""
        rows = record.shadow_verdicts
        if self.prompt_version is None:
            return rows
        for row in rows:
            if row.prompt_version != self.prompt_version:
                self._leave_out(OTHER_PROMPT, f"shadow verdict {row.verdict_id}")
        return [row for row in rows if row.prompt_version == self.prompt_version]

    def _stored(self, told: Iterable[Told | ShadowRow]) -> Iterator[Stored]:
        times: Counter[Any] = Counter()
        for each in told:
            if isinstance(each, ShadowRow):
                self._leave_out(NO_SIDE, f"shadow verdict {each.verdict_id}")
                continue
            is_of_learning = isinstance(each.row, LearningRow)
            counts_rows = self.options.compat is not None and self.log.terms is None  # a report counts answers
            if is_of_learning and each.row.interaction is None and not counts_rows:
                # Nothing could be counted of whole answers with it among them.
                self._leave_out(NO_ANSWER, each.place)
                continue
            stored = each.stored
            if self.options.compat is not None:
                stored = _repeated(stored, times)
            elif each.is_earlier:
                self._leave_out(DUPLICATE, each.place)
                continue
            self.log.records += 1
            yield stored

    def _corrections(self, record: SessionRecord, row: OutcomeRow) -> int | None:
        """What a verdict counts of corrections: not the number that meant something else in older releases."""
        found = self.corrections.of(record, row)
        self.notes["corrections"] += found is None and row.corrections is not None
        return found

    def _leave_out(self, reason: str, place: str) -> None:
        self.log.records += 1
        self.log.leave_out(reason, place)

    def _tell(self) -> None:
        notes = self.log.notes
        notes += self.store.notes
        only = self.notes["for evaluation only"]
        if only:
            notes.append(
                f"for evaluation only, often the control: {count_words(only, 'session')}; --by evaluation_only"
            )
        if self.notes["corrections"]:
            verdicts = count_words(self.notes["corrections"], "verdict")
            notes.append(f"corrections are not read of {verdicts}: before 0.2.30 that number was one of playbooks")
        if self.prompt_version is not None:
            notes.append(f"shadow verdicts are those of prompt version {quoted(self.prompt_version)}")
        if self.options.shadow != "served":
            whose = "the shadow" if self.options.shadow == "shadow" else "the served one, except in the control"
            notes.append(f"of two answers, {whose} is taken for the one with Reflexio")
        notes += self.log.noticed.sentences()
        if self.arms is not None:
            notes += arm_sentences(self.log.arms, self.arms, self.options.assigned)
        if self.options.arms is None:
            notes += ways_to_split(self.store, self.arms)


def _repeated(stored: Stored, times: Counter[Any]) -> Stored:
    about = stored.result.about
    if about is None:
        return stored
    # Judges of several names count as one there.
    key = (about.subject, stored.measure)
    times[key] += 1
    repeat = times[key] if times[key] > 1 else None
    return Stored(stored.measure, replace(stored.result, about=about._replace(repeat=repeat)))

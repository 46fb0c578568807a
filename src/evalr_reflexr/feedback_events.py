"""Feedback in the log as verdicts, each with what there was to know when its target ended, and never the feedback."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Generic, Literal, NamedTuple

from pydantic import BaseModel, ValidationError

from evalr.inputs import About, Role, Subject, Transcript
from evalr.labels.examples import Example
from evalr.logs.log import Log
from evalr.logs.reasons import fault
from evalr.quoting import quoted
from evalr.verdicts import PEOPLE, V, Verdict
from evalr_reflexr.envelopes import Actor, Envelope, participant
from evalr_reflexr.runs import STEPS, run_of, workspace_attributes
from evalr_reflexr.sessions import SessionRules
from evalr_reflexr.transcripts import FEEDBACK, Words, event_words, transcript_of

Target = Literal["run", "firing", "chain"]
TARGETS: Mapping[Target, str] = {"run": "run_id", "firing": "firing_id", "chain": "correlation_id"}
"""What feedback can be on, and the field that names which."""

Givers = Literal["people", "evaluators", "others"]


class Feedback(NamedTuple, Generic[V]):
    """One verdict that somebody gave on a run, a firing or a chain. A report reads it as it reads a stored result.

    Attributes:
        measure: the measure that it is of.
        result: the verdict. It is about the target, belongs to who gave it, and is as of when that was.
        id: of the event.
        seq: of the event.
        target: what it is on.
        given_by: who gave it, as `user:ada` or `evaluator:judge@3`.
        context: the envelopes of the chain until the target ended, without any feedback: what a judge may know.
        rules: how they become turns.
    """

    measure: str
    result: Verdict[V]
    id: str
    seq: int
    target: Target
    given_by: str
    context: Sequence[Envelope]
    rules: SessionRules

    @property
    def subject(self) -> Subject | None:
        """What it is on, as results name it."""
        return None if self.result.about is None else self.result.about.subject

    def transcript(self, *, words: Words = event_words) -> Transcript:
        """The context as a transcript for a judge.

        Args:
            words: the text of an event.
        """
        about = self.result.about
        return transcript_of(self.context, self.rules, words=words, name=None if about is None else about.id)

    def example(self, *, words: Words = event_words) -> Example[V]:
        """The context and the verdict as an example of a dataset, under the event's id; those of a chain are one group.

        Args:
            words: the text of an event.
        """
        first = self.context[0]
        return Example(
            self.transcript(words=words),
            first.workspace.key(self.id),
            expected=self.result.value,
            author=self.given_by,
            group=first.key,
        )


class FeedbackWanted(NamedTuple, Generic[V]):
    """Which feedback is asked for, and what it becomes.

    Attributes:
        feedback_type: as the events name it.
        verdict_type: of the verdicts.
        measure: that they belong to.
        targets: what it is on.
        givers: who gave it.
        latest: only the last by one giver on one target.
    """

    feedback_type: str
    verdict_type: type[V]
    measure: str
    targets: Collection[Target]
    givers: Collection[Givers]
    latest: bool


def giver(actor: Actor, role: Callable[[Actor], Role]) -> Givers:
    """Whether a person gave it, an evaluator, or another system or agent."""
    if actor["kind"] == "evaluator":
        return "evaluators"
    return "people" if role(actor) == "person" else "others"


def feedback_in(
    chain: Sequence[Envelope],
    wanted: FeedbackWanted[V],
    *,
    rules: SessionRules,
    role: Callable[[Actor], Role],
    log: Log,
) -> Iterator[Feedback[V]]:
    """The feedback in one chain, in the order of the log.

    Args:
        chain: its envelopes in the order of the log.
        wanted: which.
        rules: how envelopes become turns.
        role: of an actor.
        log: counts what is left out.
    """
    found: list[Feedback[V]] = []
    for envelope in chain:
        if envelope.fact != FEEDBACK or envelope.event.get("feedback_type") != wanted.feedback_type:
            continue
        log.records += 1
        place = envelope.workspace.place(envelope.seq)
        target = _target(envelope)
        if target is None:
            log.skip("feedback on nothing that is known", place)
            continue
        kind = giver(envelope.actor, role)
        if target[0] not in wanted.targets:
            log.leave_out(f"feedback on a {target[0]}", place)
            continue
        if kind not in wanted.givers:
            log.leave_out(f"feedback by {kind}", place)
            continue
        context = _until_end(chain, envelope, *target)
        if not context:
            log.skip(f"feedback on a {target[0]} that is not in its chain", place)
            continue
        try:
            value = wanted.verdict_type.model_validate(envelope.event.get("value"))
        except ValidationError as error:
            log.skip(f"feedback that is no {wanted.verdict_type.__name__}: {fault(error, 'value')}", place)
            continue
        found.append(_feedback(envelope, target, value, context, kind, wanted, rules))
    last = {(each.given_by, each.subject): each.seq for each in found}
    for each in found:
        if wanted.latest and last[each.given_by, each.subject] != each.seq:
            log.leave_out("feedback that its giver gave anew", chain[0].workspace.place(each.seq))
        else:
            yield each


def _target(envelope: Envelope) -> tuple[Target, str] | None:
    target = envelope.event.get("target")
    if not isinstance(target, Mapping):
        return None
    for kind, field in TARGETS.items():
        name = target.get(field)
        if target.get("kind") == kind and isinstance(name, str) and name:
            return kind, name
    return None


def _until_end(chain: Sequence[Envelope], feedback: Envelope, target: Target, name: str) -> list[Envelope]:
    """The chain until the target ended: a run with its last step before the feedback, a firing with itself."""
    before = [each for each in chain if each.seq < feedback.seq and each.fact != FEEDBACK]
    if target == "chain":
        return before if name == feedback.chain else []
    ends = [
        each.seq
        for each in before
        if (each.fact == "rule_fired" if target == "firing" else each.fact in STEPS) and run_of(each) == name
    ]
    return [each for each in before if each.seq <= ends[-1]] if ends else []


def _feedback(
    envelope: Envelope,
    target: tuple[Target, str],
    value: V,
    context: Sequence[Envelope],
    kind: Givers,
    wanted: FeedbackWanted[V],
    rules: SessionRules,
) -> Feedback[V]:
    by = participant(envelope.actor)
    evaluator, version = PEOPLE, "1"
    if kind == "evaluators":
        evaluator, version = str(envelope.actor.get("name")), str(envelope.actor.get("version"))
    elif kind == "others":
        evaluator = by
    workspace = envelope.workspace
    attributes = {"feedback_type": wanted.feedback_type, "given_by": by, **workspace_attributes(workspace)}
    rule = context[-1].text_field("rule")
    if target[0] != "chain" and rule is not None:
        attributes["rule"] = rule
    about = About(
        kind=target[0],
        id=workspace.key(target[1]),
        user=by if kind == "people" else None,
        session=None if target[0] == "chain" else envelope.key,
        at=context[0].at if target[0] == "chain" else context[-1].at,
        attributes=attributes,
    )
    verdict = Verdict(value, evaluator, version, about=about, as_of=envelope.at)
    return Feedback(wanted.measure, verdict, envelope.id, envelope.seq, target[0], by, context, rules)


def feedback_choice(text: str, verdict_types: Mapping[str, type[BaseModel]]) -> FeedbackWanted[Any]:
    """`resolution=completion`: feedback of a type as verdicts of an installed measure.

    Raises:
        InputError: it is not written so, or no measure is named so.
    """
    from evalr.errors import InputError
    from evalr.estimates.words import choice_words

    name, equals, measure = text.rpartition("=")
    if not equals or not name:
        raise InputError(f"feedback={quoted(text)}: write TYPE=MEASURE, as in resolution=completion")
    if measure not in verdict_types:
        raise InputError(f"no installed measure is named {quoted(measure)}; {choice_words(measure, verdict_types)}")
    givers: tuple[Givers, ...] = ("people", "evaluators", "others")
    return FeedbackWanted(name, verdict_types[measure], measure, tuple(TARGETS), givers, latest=True)

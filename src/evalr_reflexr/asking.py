"""What people ask of a reflexr log: runs, chains, sessions, transcripts, histories and feedback, each as a stream."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from os import PathLike
from types import MappingProxyType
from typing import Any, NamedTuple, get_args

from pydantic import BaseModel

from evalr.errors import InputError
from evalr.inputs import Input, Role
from evalr.logs.log import Item, Log
from evalr.quoting import quoted
from evalr_reflexr.envelopes import Actor, Envelope, Roles, Workspace, fact_of, is_own, role_reader
from evalr_reflexr.feedback_events import TARGETS, FeedbackWanted, Givers, Target, feedback_in
from evalr_reflexr.histories import Field, HistoryRules, field_reader, histories_of
from evalr_reflexr.matching import Matcher, Matches, of_application
from evalr_reflexr.reading import Found, NeededLog, Wanted, begins, every_type, log_of, until_end
from evalr_reflexr.resolution import chain_of
from evalr_reflexr.runs import RULE_FACTS, STEPS, RuleRun, runs_in
from evalr_reflexr.sessions import SessionRules
from evalr_reflexr.stores import Store, TypeFilter
from evalr_reflexr.transcripts import Words, event_words, transcript_of

RESOLVES: Matches = ("*.resolved",)
REOPENS: Matches = ("*.reopened",)
PROPOSES: Matches = ("*.proposed",)
DECIDES: Matches = ("*.approved", "*.rejected")
ACCEPTS: Matches = ("*.approved",)
REF = "proposal_id"


class Whose(NamedTuple):
    """Whose events are read, and which roles their actors have: the options that everything here takes."""

    tenant: str | None
    workspace: str | None
    roles: Roles | None

    @property
    def role(self) -> Callable[[Actor], Role]:
        """The role of an actor."""
        return role_reader(self.roles)

    def wanted(self, types: TypeFilter, named: Mapping[str, Matcher] = MappingProxyType({})) -> Wanted:
        """What is to be read of a store."""
        return Wanted(self.tenant, self.workspace, types, named)

    def settings(self, **others: Any) -> dict[str, Any]:
        """What a log was told, these options first."""
        return {**self._asdict(), **others}


BEGIN_CHAINS = RULE_FACTS | {"tick"}
"""The facts that begin a chain; every other that is known joins one."""


def may_begin(type_name: str) -> bool:
    """Whether an event of this type may be the first of its chain."""
    fact = fact_of(type_name)
    return fact is None or fact in BEGIN_CHAINS


def starts_of(starts: Matches) -> Matcher:
    """The events that begin eligible chains: where none are named, those of applications."""
    return Matcher(starts, name="starts", none=of_application)


def rule_runs(
    path: str | PathLike[str],
    *,
    tenant: str | None = None,
    workspace: str | None = None,
    roles: Roles | None = None,
    strict: bool = False,
) -> Log:
    """The runs of every rule, as `RuleRun` inputs. Only facts about runs and rules are read.

    Args:
        path: of a SQLite store or of envelopes as JSON Lines, or the address of a PostgreSQL store.
        tenant: only this tenant's. A wire log does not say whose it is, and is then read as this one's.
        workspace: only this one; all of them otherwise, kept apart by their keys.
        roles: which role an actor has; see `actor_role` for the default. Persons are who intervenes.
        strict: raise RecordError at the first record that cannot be used, rather than count it.

    Raises:
        LogError: there is no such store. What is in it is said when it is iterated over.
    """
    whose = Whose(tenant, workspace, roles)
    role = whose.role

    def items(found: Found, log: Log) -> Iterator[Item]:
        for chain in found.chains:
            for run in runs_in(chain, found.rules, role, partial(skip, log)):
                log.records += 1
                yield until_end(run, chain[0].workspace, found.ends)

    wanted = whose.wanted(of_runs)
    straight = partial(runs_straight, wanted=wanted, role=role)
    return log_of(path, items, wanted, strict=strict, settings=whose.settings(), straight=straight)


def runs_straight(
    store: Store, log: NeededLog, reading: Any, *, wanted: Wanted, role: Callable[[Actor], Role]
) -> Collection[type[Input]]:
    """Count runs into a report's reading without making inputs of them, where that can be."""
    from evalr_reflexr.straight import Asked, count_runs

    asked = Asked(wanted.tenant, wanted.workspace, role)
    return (RuleRun,) if log.needs(RuleRun) and count_runs(store, log, reading, asked) else ()


def of_runs(type_name: str) -> bool:
    """Whether such events are facts about runs, or about their rules."""
    fact = fact_of(type_name)
    return fact in STEPS or fact in RULE_FACTS


def skip(log: Log, reason: str, place: str) -> None:
    """Count one record that cannot be used."""
    log.records += 1
    log.skip(reason, place)


def _of_chains(
    path: str | PathLike[str],
    make: Callable[[list[Envelope]], Input],
    wanted: Wanted,
    starts: Matcher,
    *,
    strict: bool,
    settings: Mapping[str, Any],
) -> Log:
    """A log of what one makes of each eligible chain."""

    def items(found: Found, log: Log) -> Iterator[Item]:
        for chain in found.chains:
            if begins(chain, starts, log):
                log.records += 1
                yield until_end(make(chain), chain[0].workspace, found.ends)

    return log_of(path, items, wanted, strict=strict, settings=settings)


def chains(
    path: str | PathLike[str],
    *,
    starts: Matches = (),
    resolves: Matches = RESOLVES,
    reopens: Matches = REOPENS,
    tenant: str | None = None,
    workspace: str | None = None,
    roles: Roles | None = None,
    strict: bool = False,
) -> Log:
    """Every eligible chain with the events that resolved it, as `Chain` inputs. Only what may matter is read.

    Args:
        path: as for `rule_runs`.
        starts: the first events of eligible chains; by default those of applications, so that ticks do not count.
        resolves: the events that resolve a chain.
        reopens: the events that open it again.
        tenant: as for `rule_runs`.
        workspace: as for `rule_runs`.
        roles: as for `rule_runs`.
        strict: as for `rule_runs`.

    Raises:
        LogError: as for `rule_runs`.
        InputError: a choice of events that names none.
    """
    first, resolving, reopening = (
        starts_of(starts),
        Matcher(resolves, name="resolves"),
        Matcher(reopens, name="reopens"),
    )

    def types(type_name: str) -> bool:
        return may_begin(type_name) or resolving.could_be(type_name) or reopening.could_be(type_name)

    whose = Whose(tenant, workspace, roles)
    make = partial(chain_of, resolves=resolving, reopens=reopening, role=whose.role)
    wanted = whose.wanted(types, named_events(first, resolving, reopening, reopens))
    settings = whose.settings(starts=starts, resolves=resolves, reopens=reopens)
    return _of_chains(path, make, wanted, first, strict=strict, settings=settings)


def named_events(starts: Matcher, resolves: Matcher, reopens: Matcher, asked: Matches) -> dict[str, Matcher]:
    """Those that a log of chains is expected to have; it need not have chains that were opened again."""
    found = {"starts": starts, "resolves": resolves}
    return found if asked == REOPENS else {**found, "reopens": reopens}


def chain_sessions(
    path: str | PathLike[str],
    *,
    starts: Matches = (),
    resolves: Matches = RESOLVES,
    proposes: Matches = PROPOSES,
    decides: Matches = DECIDES,
    ref: str = REF,
    failures: bool = True,
    tenant: str | None = None,
    workspace: str | None = None,
    roles: Roles | None = None,
    strict: bool = False,
) -> Log:
    """Every eligible chain as a `Session`, for drop-off and waits.

    Args:
        path: as for `rule_runs`.
        starts: as for `chains`.
        resolves: the events that close a session.
        proposes: the events that ask a person to decide.
        decides: the events that decide.
        ref: the field that names what is proposed.
        failures: whether failed attempts of runs count as what the agent did, rather than as the system's.
        tenant: as for `rule_runs`.
        workspace: as for `rule_runs`.
        roles: which role an actor has; see `actor_role` for the default.
        strict: as for `rule_runs`.

    Raises:
        LogError, InputError: as for `chains`.
    """
    rules = session_rules(resolves, proposes, decides, ref, roles, failures=failures)
    whose = Whose(tenant, workspace, roles)
    settings = whose.settings(starts=starts, **rules.settings)
    return _of_chains(
        path, rules.session, whose.wanted(every_type), starts_of(starts), strict=strict, settings=settings
    )


def session_rules(
    resolves: Matches = RESOLVES,
    proposes: Matches = PROPOSES,
    decides: Matches = DECIDES,
    ref: str = REF,
    roles: Roles | None = None,
    *,
    failures: bool = True,
) -> SessionRules:
    """How events become activities, by a caller's choices."""
    return SessionRules(
        resolves=Matcher(resolves, name="resolves"),
        proposes=Matcher(proposes, name="proposes"),
        decides=Matcher(decides, name="decides"),
        ref=ref,
        role=role_reader(roles),
        failures=failures,
    )


def chain_transcripts(
    path: str | PathLike[str],
    *,
    words: Words = event_words,
    starts: Matches = (),
    resolves: Matches = RESOLVES,
    proposes: Matches = PROPOSES,
    decides: Matches = DECIDES,
    ref: str = REF,
    failures: bool = True,
    tenant: str | None = None,
    workspace: str | None = None,
    roles: Roles | None = None,
    strict: bool = False,
) -> Log:
    """Every eligible chain as a `Transcript`, for judges. Feedback is not in it: a judge does not read labels.

    Args:
        path: as for `rule_runs`.
        words: the text of an event; by default its own text, or its type and its plain fields.
        starts: as for `chains`.
        resolves: the events whose last is the result.
        proposes: as for `chain_sessions`.
        decides: as for `chain_sessions`.
        ref: as for `chain_sessions`.
        failures: as for `chain_sessions`.
        tenant: as for `rule_runs`.
        workspace: as for `rule_runs`.
        roles: as for `chain_sessions`.
        strict: as for `rule_runs`.

    Raises:
        LogError, InputError: as for `chains`.
    """
    rules = session_rules(resolves, proposes, decides, ref, roles, failures=failures)
    make = partial(transcript_of, rules=rules, words=words)
    whose = Whose(tenant, workspace, roles)
    settings = whose.settings(starts=starts, **rules.settings)
    return _of_chains(path, make, whose.wanted(every_type), starts_of(starts), strict=strict, settings=settings)


def artifact_histories(
    path: str | PathLike[str],
    *,
    artifact: Field,
    text: Field = "text",
    proposes: Matches = PROPOSES,
    accepts: Matches = ACCEPTS,
    ref: str = REF,
    tenant: str | None = None,
    workspace: str | None = None,
    roles: Roles | None = None,
    strict: bool = False,
) -> Log:
    """Every artifact whose texts events carry, as a `History`, for rewrites and retention.

    A proposal is a version once it is accepted, by who proposed it. Where the acceptance carries another text, that is
    one more version, by who accepted.

    Args:
        path: as for `rule_runs`.
        artifact: the field that names the artifact, dotted where nested, or a function of the envelope.
        text: the field with its text after the event, or a function of the envelope.
        proposes: the events whose text is only proposed.
        accepts: the events that accept a proposal.
        ref: the field that names a proposal.
        tenant: as for `rule_runs`.
        workspace: as for `rule_runs`.
        roles: as for `chain_sessions`.
        strict: as for `rule_runs`.

    Raises:
        LogError, InputError: as for `chains`; and for a field that is none.
    """
    whose = Whose(tenant, workspace, roles)
    rules = HistoryRules(
        field_reader(artifact, "artifact"),
        field_reader(text, "text"),
        Matcher(proposes, name="proposes"),
        Matcher(accepts, name="accepts"),
        ref,
        whose.role,
    )

    def items(found: Found, log: Log) -> Iterator[Item]:
        for of_artifact in found.chains:
            for history in histories_of(of_artifact, rules):
                log.records += 1
                yield until_end(history, of_artifact[0].workspace, found.ends)

    wanted = whose.wanted(lambda type_name: not is_own(type_name))
    settings = whose.settings(artifact=artifact, text=text, proposes=proposes, accepts=accepts, ref=ref)
    return log_of(path, items, wanted, strict=strict, settings=settings, chain=_Artifacts(rules))


class _Artifacts:
    """Under which artifact an event is kept: its own, or that of the proposal that it accepts; None for no artifact."""

    def __init__(self, rules: HistoryRules) -> None:
        self._rules = rules
        self._proposed: dict[tuple[Workspace, str], str] = {}

    def __call__(self, envelope: Envelope) -> str | None:
        artifact, ref = self._rules.artifact(envelope), envelope.text_field(self._rules.ref)
        if ref is not None and artifact is not None and self._rules.proposes(envelope):
            self._proposed[envelope.workspace, ref] = artifact
        if ref is not None and artifact is None and self._rules.accepts(envelope):
            return self._proposed.pop((envelope.workspace, ref), None)
        return artifact


def feedback(
    path: str | PathLike[str],
    verdict_type: type[BaseModel],
    *,
    feedback_type: str,
    measure: str | None = None,
    targets: Collection[Target] = tuple(TARGETS),
    givers: Givers | Collection[Givers] = "people",
    latest: bool = True,
    tenant: str | None = None,
    workspace: str | None = None,
    roles: Roles | None = None,
    strict: bool = False,
) -> Log:
    """The feedback of one type as verdicts, each with its context as of its target's end: a log of `Feedback`.

    Args:
        path: as for `rule_runs`.
        verdict_type: what the values of the feedback are.
        feedback_type: as the events name it.
        measure: the measure that the verdicts belong to; by default named as the feedback type.
        targets: feedback on what: "run", "firing", "chain".
        givers: whose: "people", "evaluators" or "others" (systems and unattended agents), or several of them.
        latest: only the last by one giver on one target.
        tenant: as for `rule_runs`.
        workspace: as for `rule_runs`.
        roles: as for `chain_sessions`.
        strict: as for `rule_runs`.

    Raises:
        LogError: as for `rule_runs`.
        InputError: targets or givers that there are none of.
    """
    whose = (givers,) if isinstance(givers, str) else tuple(givers)
    for name, given, known in (("targets", targets, tuple(TARGETS)), ("givers", whose, get_args(Givers))):
        for each in given:
            if each not in known:
                raise InputError(f"{name} has {quoted(str(each))}; there are {', '.join(known)}")
    wanted = FeedbackWanted(feedback_type, verdict_type, measure or feedback_type, tuple(targets), whose, latest)
    of = Whose(tenant, workspace, roles)
    role = of.role
    rules = session_rules(roles=roles)

    def items(found: Found, log: Log) -> Iterator[Any]:
        for chain in found.chains:
            yield from feedback_in(chain, wanted, rules=rules, role=role, log=log)

    settings = of.settings(
        measure=wanted.measure, feedback_type=feedback_type, targets=targets, givers=whose, latest=latest
    )
    return log_of(path, items, of.wanted(every_type), strict=strict, settings=settings, holds_results=True)

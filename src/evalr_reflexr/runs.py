"""Runs of rules, as the facts of reflexr's log tell of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from evalr.input_fields import Name, Time
from evalr.inputs import Input, Role
from evalr_reflexr.envelopes import Actor, Envelope, Workspace

StepKind = Literal["fired", "started", "retrying", "succeeded", "dead_lettered", "requeued", "skipped", "cancelled"]

STEPS: Mapping[str, StepKind] = {
    "rule_fired": "fired",
    "run_started": "started",
    "run_retrying": "retrying",
    "run_succeeded": "succeeded",
    "run_dead_lettered": "dead_lettered",
    "run_requeued": "requeued",
    "run_skipped": "skipped",
    "run_cancelled": "cancelled",
}
"""The facts that change what becomes of a run, and what each is called as a step of it."""

RULE_FACTS = frozenset(("rule_installed", "rule_archived", "rule_reset"))
"""The facts that change rules."""

ARCHIVED = "its rule was archived"
"""What reflexr gives as the reason where a run is cancelled because its rule is archived."""

EXCEPTION = "exception"
"""The reason of a failure for which the log gives none, as it does for plain exceptions."""


class RunStep(BaseModel):
    """One thing that happened to a run.

    Attributes:
        at: when.
        kind: what.
        by: the role of who did it.
        actor: the kind of who did it, in the log's words.
        reason: of a failed attempt, a skip or a cancellation.
        with_rule: for a cancellation, whether the whole rule was archived.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    at: Time
    kind: StepKind
    by: Role = "system"
    actor: Name = "system"
    reason: str | None = None
    with_rule: bool = False


def _in_time_order(steps: list[RunStep]) -> list[RunStep]:
    return sorted(steps, key=lambda step: step.at)


class RuleRun(Input):
    """One run of a rule: a part of the chain named by `chain`.

    Its attributes are what rates are grouped by: `rule`, `rule_version` and `generation` (of the rule's definition, as
    it was when it fired), `scope`, `reason` (of its failed attempts), `tenant`, `workspace`.

    Attributes:
        chain: the key of its chain.
        rule: the rule's name.
        steps: what happened to it, in the order of the times.
        refired: whether it repeats an occurrence that an earlier generation of the rule had fired for.
    """

    kind: ClassVar[str] = "run"

    id: Name
    chain: Name
    rule: Name
    steps: Annotated[list[RunStep], AfterValidator(_in_time_order)] = Field(default_factory=list)
    refired: bool = False

    def first_event(self) -> datetime | None:
        """When the rule fired."""
        return self.steps[0].at if self.steps else None

    def _parent(self) -> str | None:
        return self.chain


class _Installed(NamedTuple):
    seq: int
    version: str


class _Archived(NamedTuple):
    seq: int
    until: int


class RuleFacts:
    """What the log says of the rules themselves: few facts, which every run is read beside."""

    def __init__(self) -> None:
        self._installed: dict[tuple[Workspace, str], list[_Installed]] = {}
        self._archived: dict[tuple[Workspace, str], list[_Archived]] = {}
        self._generations: dict[tuple[Workspace, str], list[_Installed]] = {}

    def take(self, envelope: Envelope) -> None:
        """Take note of a fact about a rule; of anything else, nothing."""
        fact = envelope.fact
        if fact not in RULE_FACTS:
            return
        rule = envelope.text_field("rule")
        if rule is None:
            return
        key = (envelope.workspace, rule)
        if fact == "rule_reset":
            self._put(self._generations, key, envelope, "generation")
        else:
            self._put(self._installed, key, envelope, "version")
        cancelled = envelope.event.get("cancelled")
        if fact == "rule_archived" and isinstance(cancelled, int):
            self._archived.setdefault(key, []).append(_Archived(envelope.seq, envelope.seq + cancelled))

    @staticmethod
    def _put(
        into: dict[tuple[Workspace, str], list[_Installed]], key: tuple[Workspace, str], envelope: Envelope, field: str
    ) -> None:
        found = envelope.event.get(field)
        if isinstance(found, int | str) and not isinstance(found, bool) and found != "":
            into.setdefault(key, []).append(_Installed(envelope.seq, str(found)))

    def version(self, fired: Envelope, rule: str) -> str | None:
        """The version of a rule that was installed when it fired; None for one that is defined in code."""
        return _latest(self._installed.get((fired.workspace, rule)), fired.seq)

    def generation(self, fired: Envelope, rule: str) -> str:
        """The generation of a rule's definition when it fired, 0 before its first change or replay."""
        return _latest(self._generations.get((fired.workspace, rule)), fired.seq) or "0"

    def cancelled_with_rule(self, envelope: Envelope, rule: str) -> bool:
        """Whether a cancellation came of the rule being archived: such facts stand right behind that one."""
        return envelope.event.get("reason") == ARCHIVED or self.archived(envelope.workspace, rule, envelope.seq)

    def archived(self, workspace: Workspace, rule: str, seq: int) -> bool:
        """Whether a fact is one of those that stand right behind that of the rule being archived."""
        return any(each.seq < seq <= each.until for each in self._archived.get((workspace, rule), ()))

    def versions_since(self) -> dict[tuple[Workspace, str], int]:
        """From which fact on rules have versions, by workspace and rule."""
        return {key: min(each.seq for each in found) for key, found in self._installed.items()}


def _latest(found: list[_Installed] | None, seq: int) -> str | None:
    before = [each for each in found or () if each.seq < seq]
    return max(before).version if before else None


def run_of(envelope: Envelope) -> str | None:
    """The id of the run that a fact is about: the firing's own."""
    return envelope.text_field("run_id") or envelope.text_field("firing_id")


def runs_in(
    chain: Iterable[Envelope], rules: RuleFacts, role: Callable[[Actor], Role], left_out: Callable[[str, str], None]
) -> Iterator[RuleRun]:
    """The runs of one chain, in the order in which their rules fired.

    Args:
        chain: its envelopes in the order of the log.
        rules: what the log says of the rules.
        role: of an actor.
        left_out: told of each run that cannot be read, with the reason and the place.
    """
    facts: dict[str, list[Envelope]] = {}
    for envelope in chain:
        fact = envelope.fact
        if fact in STEPS:
            run = run_of(envelope)
            if run is None:
                left_out("fact without a run", envelope.workspace.place(envelope.seq))
            else:
                facts.setdefault(run, []).append(envelope)
    occurrences: set[tuple[str, str, tuple[Any, ...]]] = set()
    for run, found in facts.items():
        fired = found[0]
        if fired.fact != "rule_fired":
            left_out("run whose firing is missing", fired.workspace.place(fired.seq))
            continue
        rule = fired.text_field("rule")
        if rule is None:
            left_out("firing without a rule", fired.workspace.place(fired.seq))
            continue
        occurrence = (rule, str(fired.event.get("scope_key")), _matched(fired))
        refired = bool(occurrence[2]) and occurrence in occurrences
        occurrences.add(occurrence)
        yield _run(run, rule, found, rules, role, refired=refired)


def _matched(fired: Envelope) -> tuple[Any, ...]:
    found = fired.event.get("matched")
    return tuple(map(str, found)) if isinstance(found, list) else ()


def _run(
    run: str,
    rule: str,
    found: list[Envelope],
    rules: RuleFacts,
    role: Callable[[Actor], Role],
    *,
    refired: bool,
) -> RuleRun:
    fired = found[0]
    workspace = fired.workspace
    steps = [_step(envelope, rule, rules, role) for envelope in found]
    attributes: dict[str, str | list[str]] = {"rule": rule, "generation": rules.generation(fired, rule)}
    version = rules.version(fired, rule)
    if version is not None:
        attributes["rule_version"] = version
    scope = scope_words(fired.event.get("scope"))
    if scope:
        attributes["scope"] = scope
    failed = ("retrying", "dead_lettered")
    reasons = dict.fromkeys(step.reason or EXCEPTION for step in steps if step.kind in failed)
    if reasons:
        attributes["reason"] = next(iter(reasons)) if len(reasons) == 1 else list(reasons)
    attributes |= workspace_attributes(workspace)
    return RuleRun.model_construct(
        id=workspace.key(run),
        user=None,
        arm=None,
        at=None,
        read_at=None,
        attributes=attributes,
        weight=None,
        chain=fired.key,
        rule=rule,
        steps=steps,
        refired=refired,
    )


def _step(envelope: Envelope, rule: str, rules: RuleFacts, role: Callable[[Actor], Role]) -> RunStep:
    kind = STEPS[envelope.fact or ""]
    return RunStep.model_construct(
        at=envelope.at,
        kind=kind,
        by=role(envelope.actor),
        actor=envelope.actor["kind"],
        reason=envelope.text_field("reason"),
        with_rule=kind == "cancelled" and rules.cancelled_with_rule(envelope, rule),
    )


def scope_words(scope: object) -> str | None:
    """`service=billing`; None where a rule has no scope."""
    if not isinstance(scope, dict):
        return None
    return ", ".join(f"{name}={value}" for name, value in scope.items()) or None


def workspace_attributes(workspace: Workspace) -> dict[str, str | list[str]]:
    """What every input says of where it comes from."""
    found: dict[str, str | list[str]] = {"workspace": workspace.name}
    return found if workspace.tenant is None else {"tenant": workspace.tenant, **found}

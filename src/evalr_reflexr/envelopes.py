"""Envelopes: the rows of reflexr's event log, as its store, its wire and its exports have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from evalr.errors import InputError
from evalr.input_fields import EARLIEST, LATEST
from evalr.inputs import Role
from evalr.logs.reasons import NOT_AN_OBJECT, Reason, time_fault
from evalr.quoting import quoted, safe_text

Actor: TypeAlias = Mapping[str, Any]
"""Who published an event: its `kind` (user, agent, external_agent, system, source, evaluator) and what names it."""

Roles: TypeAlias = Callable[[Actor], Role] | Mapping[str, Role]
"""Which role an actor has: a function of it, or roles by its kind, beside which `actor_role` decides."""

NAMESPACE = "reflexr"

LARGEST_SEQ = 2**63 - 1
"""The largest that a store can have."""

FACTS = frozenset(
    (
        "feedback_given",
        "rule_archived",
        "rule_errored",
        "rule_fired",
        "rule_installed",
        "rule_reset",
        "run_cancelled",
        "run_dead_lettered",
        "run_progressed",
        "run_requeued",
        "run_retrying",
        "run_skipped",
        "run_started",
        "run_succeeded",
        "tick",
    )
)
"""The kinds of event that reflexr itself publishes."""


class Workspace(NamedTuple):
    """One workspace of a store: its name repeats across tenants. A wire log does not say the tenant."""

    tenant: str | None
    name: str

    def key(self, id: str) -> str:  # noqa: A002  the envelope's own word
        """An id that repeats in other workspaces, as one that does not: `acme/prod/evt_1`."""
        return "/".join(_escaped(part) for part in (self.tenant, self.name, id) if part is not None)

    def place(self, seq: int) -> str:
        """Where an envelope is, as messages name it: `seq 12 of acme/prod`."""
        return f"seq {seq} of {self}"

    def __str__(self) -> str:
        """As messages name it: names are whatever somebody wrote."""
        return safe_text(self.name if self.tenant is None else f"{self.tenant}/{self.name}")


def _escaped(part: str) -> str:
    return part.replace("%", "%25").replace("/", "%2F")


class Envelope(NamedTuple):
    """One event and its circumstances, as plain values.

    Attributes:
        workspace: where it happened.
        seq: its place in the log of the workspace, from 1.
        id: unique in the workspace.
        at: when it was published, in UTC.
        type: such as `oncall:incident.resolved`, or without a namespace in logs of older versions.
        actor: who published it.
        chain: the correlation id, which is the id of the chain's first event.
        causation: the firing and run that it came of, None for an event from outside.
        event: its own fields, `type` among them.
    """

    workspace: Workspace
    seq: int
    id: str
    at: datetime
    type: str
    actor: Actor
    chain: str
    causation: Mapping[str, Any] | None
    event: Mapping[str, Any]

    @property
    def fact(self) -> str | None:
        """Which of reflexr's own facts it is, such as "run_started"; None for an application's event."""
        return fact_of(self.type)

    @property
    def key(self) -> str:
        """Its chain, by a key that no other workspace has."""
        return self.workspace.key(self.chain)

    def field(self, path: str) -> Any:
        """A field of the event, dotted where it is nested (`value.completed`); None where there is none."""
        found: Any = self.event
        if path in found:
            return found[path]
        for name in path.split("."):
            if not isinstance(found, Mapping) or name not in found:
                return None
            found = found[name]
        return found

    def text_field(self, path: str) -> str | None:
        """The same, where it is a text that is not empty."""
        found = self.field(path)
        return found if isinstance(found, str) and found else None


@lru_cache(maxsize=4096)
def fact_of(type_name: str) -> str | None:
    """Which of reflexr's own facts a type is, qualified or, as in older stores, not."""
    namespace, colon, local = type_name.rpartition(":")
    return local if local in FACTS and (not colon or namespace == NAMESPACE) else None


def is_own(type_name: str) -> bool:
    """Whether reflexr itself publishes such events."""
    return type_name.startswith(f"{NAMESPACE}:") or fact_of(type_name) is not None


def read_envelope(record: object, *, tenant: str | None) -> Envelope:
    """A parsed row as an envelope.

    Raises:
        Reason: it is none; what is wrong with it is the same few words for every row with the same fault.
    """
    if not isinstance(record, dict):
        raise Reason(NOT_AN_OBJECT)
    event = record.get("event")
    if not isinstance(event, dict):
        raise Reason("envelope without an event")
    actor = record.get("actor")
    if not isinstance(actor, dict) or not isinstance(actor.get("kind"), str):
        raise Reason("envelope without an actor")
    seq = record.get("seq")
    if not isinstance(seq, int) or isinstance(seq, bool) or seq < 0:
        raise Reason("envelope without a seq")
    if seq > LARGEST_SEQ:
        raise Reason("seq beyond 64 bits")
    causation = record.get("causation")
    return Envelope(
        Workspace(tenant, _name(record, "workspace_id")),
        seq,
        _name(record, "id"),
        read_time(record.get("ts")),
        _name(event, "type"),
        actor,
        _name(record, "correlation_id"),
        causation if isinstance(causation, dict) else None,
        event,
    )


def _name(record: Mapping[str, Any], field: str) -> str:
    found = record.get(field)
    if isinstance(found, str) and found:
        return found
    raise Reason(f"missing field {quoted(field)}" if found in (None, "") else f"wrong type in {quoted(field)}")


def read_time(given: object) -> datetime:
    """A time as envelopes write it, in UTC.

    Raises:
        Reason: it is none, or has no zone.
    """
    try:
        time = datetime.fromisoformat(given) if isinstance(given, str) else None
    except ValueError:
        time = None
    if time is None or time.tzinfo is None or not EARLIEST <= time < LATEST:
        raise Reason(time_fault(given))
    return time if time.tzinfo is UTC else time.astimezone(UTC)


def actor_role(actor: Actor) -> Role:
    """A user is a person, and so is an external agent that acts for one; other agents are agents, the rest systems."""
    kind = actor["kind"]
    if kind == "external_agent":
        return "person" if actor.get("on_behalf_of") else "agent"
    return _ROLES.get(kind, "system")


_ROLES: Mapping[str, Role] = {"user": "person", "agent": "agent"}


def role_reader(roles: Roles | None) -> Callable[[Actor], Role]:
    """The function that a caller's choice of roles stands for.

    Raises:
        InputError: it is neither a function nor a mapping.
    """
    if roles is None:
        return actor_role
    if callable(roles):
        return roles
    if not isinstance(roles, Mapping):
        raise InputError(f"roles={roles!r} must be a function of an actor, or roles by the actor's kind")
    given = dict(roles)

    def read(actor: Actor) -> Role:
        role = given.get(actor["kind"])
        return actor_role(actor) if role is None else role

    return read


def participant(actor: Actor) -> str:
    """Who it is, as reflexr names them: `user:ada`, `agent:oncall:triage`, `evaluator:judge@3`."""
    kind = actor["kind"]
    if kind == "evaluator":
        return f"{kind}:{actor.get('name')}@{actor.get('version')}"
    names = {"user": "id", "agent": "rule", "external_agent": "client_id"}
    return f"{kind}:{actor.get(names.get(kind, 'name'))}"

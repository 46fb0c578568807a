"""Who was assigned to which arm, each user (or session) once, before any filter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from evalr.errors import InputError
from evalr.inputs import Assignment

Who = tuple[str | None, str | None]
"""A user, or of assignments of sessions the session, too."""


class Assigned(NamedTuple):
    """Assignments, each user (or session) once.

    Attributes:
        arm_of: the arm of each who is in one.
        in_several: who is in several, and counts for none.
        without_arm: how many are in none.
        arms: every arm that is named, also where all in it are in several.
    """

    arm_of: Mapping[Who, str]
    in_several: tuple[Who, ...]
    without_arm: int
    arms: frozenset[str]

    def sizes(self) -> dict[str, int]:
        """How many are in each arm alone, the largest first."""
        counted = Counter(self.arm_of.values())
        return {arm: counted[arm] for arm in sorted(self.arms, key=lambda arm: (-counted[arm], arm))}


def read_assigned(assignments: Iterable[Assignment]) -> Assigned:
    """Each user (or session) once, whatever order and however often assignments come.

    Raises:
        InputError: one is no assignment, or names nobody, or some are of users and some of sessions.
    """
    found: dict[Who, set[str]] = {}
    kinds = set()
    for each in assignments:
        if not isinstance(each, Assignment):
            raise InputError(f"assignments are Assignment(user=..., arm=...), not {type(each).__name__}")
        if each.user is None and each.session is None:
            raise InputError("an assignment names neither a user nor a session")
        kinds.add(each.session is None)
        found.setdefault(each.assigned, set()).update([] if each.arm is None else [each.arm])
    if len(kinds) > 1:
        raise InputError("some assignments are of users and some of sessions: pass one kind")
    return Assigned(
        arm_of={who: next(iter(arms)) for who, arms in found.items() if len(arms) == 1},
        in_several=tuple(who for who, arms in found.items() if len(arms) > 1),
        without_arm=sum(not arms for arms in found.values()),
        arms=frozenset().union(*found.values()),
    )

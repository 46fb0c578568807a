"""Which arm a user or session is in, by a hash: the same at each call, on each machine, as Reflexio computes it."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Literal, get_args

from evalr.errors import InputError
from evalr_reflexio.config import DEFAULT_ORG

TAG = "reflexio_retrieval_enabled"
"""The key of a request's metadata that says whether it was in the treatment."""

TREATMENT, CONTROL, HOLDOUT = "treatment", "control", "holdout"

_SCHEME = "retrieval-ab:v1"
_RANGE = 1 << 256


def assign_arm(name: str, *, holdout: float, experiment: str = TAG, org: str = DEFAULT_ORG) -> bool:
    """Whether a session or a user is in the treatment: the boolean to stamp on its requests.

    Call it with the session's id for a split of sessions, with the user's for one of users; the second is stronger,
    as nobody then sees both. With an experiment's id and the user's it is Reflexio's own assignment, digit for digit.

    Args:
        name: the id of the session or user, the same at each request.
        holdout: the share that is held out, above 0 and below 1, such as 0.1.
        experiment: what is split; another name gives another, independent split.
        org: the organisation.

    Returns:
        True for the treatment, False for the holdout.

    Raises:
        InputError: `name` is empty, `experiment` or `org` is no text, or `holdout` is no such share.

    Example:
        `metadata={"reflexio_retrieval_enabled": assign_arm(session_id, holdout=0.1)}`
    """
    if not isinstance(name, str) or not name:
        raise InputError(f"name={name!r} must be the id of a session or user, a text that is not empty")
    if isinstance(holdout, bool) or not isinstance(holdout, int | float) or not 0 < holdout < 1:
        hint = f"; {holdout} percent is {holdout / 100}" if isinstance(holdout, int | float) and holdout >= 1 else ""
        raise InputError(f"holdout={holdout!r} must be a share above 0 and below 1, such as 0.1{hint}")
    for what, given in (("experiment", experiment), ("org", org)):
        if not isinstance(given, str):
            raise InputError(f"{what}={given!r} must be a text")
    return not hash_fraction(org, experiment, name) < holdout


Unit = Literal["user", "session"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentRule:
    """How an application assigned arms with `assign_arm`, so that the arms of a log can be checked against it.

    Attributes:
        by: whose id it gave: the user's or the session's.
        holdout: the share that is held out.
        experiment, org: as it gave them.

    Raises:
        InputError: `by` is neither, or `holdout` is no share above 0 and below 1.
    """

    by: Unit
    holdout: float
    experiment: str = TAG
    org: str = DEFAULT_ORG

    def __post_init__(self) -> None:
        if self.by not in get_args(Unit):
            raise InputError(f"by={self.by!r} must be 'user' or 'session'")
        self.is_treatment("-")  # which refuses what makes no sense

    def is_treatment(self, name: str) -> bool:
        """Whether the user or session of this id is in the treatment."""
        return assign_arm(name, holdout=self.holdout, experiment=self.experiment, org=self.org)


def rule_of(text: str) -> AssignmentRule:
    """The rule that a text says: `user:10%` or `session:0.1`, and after commas `experiment=NAME` and `org=NAME`.

    Raises:
        InputError: it says none.
    """
    by, colon, rest = text.partition(":")
    share, *options = rest.split(",")
    given = {name.strip(): value.strip() for name, _, value in (option.partition("=") for option in options)}
    if by not in get_args(Unit) or not colon or len(given) < len(options) or not given.keys() <= {"experiment", "org"}:
        raise InputError(
            f"assigned={text!r} must be 'user:10%' or 'session:10%', the share that assign_arm held out; after it may "
            "stand ',experiment=NAME' and ',org=NAME', where assign_arm was given them"
        )
    return AssignmentRule(by=by, holdout=share_of(share), **given)  # type: ignore[arg-type]  # it is one of them


def share_of(text: str) -> float:
    """A share as people write it: `10%` or `0.1`."""
    number, percent, rest = text.strip().partition("%")
    try:
        share = float(number)
    except ValueError:
        share = math.nan
    if rest or not math.isfinite(share):
        raise InputError(f"{text!r} is no share: write 10% or 0.1")
    return share / 100 if percent else share


def hash_fraction(org: str, experiment: str, user: str) -> float:
    """Where the hash of a user falls, from 0 to 1: below the holdout's share it is held out."""
    try:
        text = "\0".join((_SCHEME, org, experiment, user)).encode()
    except UnicodeEncodeError as error:
        raise InputError("an id with a lone surrogate, which no log can keep, cannot be assigned") from error
    return int.from_bytes(hashlib.sha256(text).digest(), "big") / _RANGE


def experiment_arm(org: str, experiment: str, user: str, holdout_percentage: float) -> str:
    """The arm that a retrieval experiment gives a user: "treatment" or "holdout"."""
    held_out = hash_fraction(org, experiment, user) < holdout_percentage / 100
    return HOLDOUT if held_out else TREATMENT


def sampling_fraction(org: str, user: str, session: str) -> float:
    """Where a session falls in Reflexio's sampling, from 0 to 1: below the rate it is judged.

    The same for each family of judges, so that the sessions of a lower rate are among those of a higher one.
    """
    digest = hashlib.sha256("\0".join((org, user, session)).encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:8], "big") / (1 << 64)

"""Keys: into which group, cluster and unit a result goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evalr.errors import InputError
from evalr.inputs import About
from evalr.quoting import safe_text
from evalr.tallies.moments import Exact
from evalr.verdicts import LABELLED_BY, describe

Key = str | Callable[[About], str | Sequence[str] | None]
"""What to group or cluster by: "user", "session", "arm", "kind", an attribute's name, or a function of `About`."""

Per = str | Sequence[str] | Callable[[About], Hashable]
"""What a folded row stands for: as `Key`, or several names that identify it together.

"id" is the input itself, by its whole subject: what several verdicts on one input (repeats) are folded by.
"""


@dataclass(frozen=True)
class UnitOf:
    """What a folded row stands for, read by a function and with a word for it: to be given as `per`.

    Args:
        noun: what one is called.
        read: what identifies it, from `About`; None where a result belongs to none, which is an error.
    """

    noun: str
    read: Callable[[About], Hashable]

    def __call__(self, about: About) -> Hashable:
        """What identifies the unit of a result."""
        return self.read(about)


class Place(NamedTuple):
    """Where one result counts, and as how many. No cluster and no unit: it is its own."""

    cluster: Hashable | None
    unit: Hashable | None
    weight: Exact


ClusterReader = Callable[[About, object], Hashable]
UnitReader = Callable[[About, object], Hashable]
GroupReader = Callable[[About], Sequence[str | None]]

_OWN_FIELDS = ("user", "session", "arm", "kind")
_THE_WHOLE = (None,)


def _reader(key: Key) -> Callable[[About], str | Sequence[str] | None]:
    if callable(key):
        return key
    if not isinstance(key, str):
        raise InputError(f"{key!r} is no key: give one name, or a function of About that gives a text or several")
    if key == "session":
        return lambda about: about.session or about.id
    if key == "id":
        return lambda about: about.id
    if key in _OWN_FIELDS:
        return lambda about: getattr(about, key)
    return lambda about: (about.attributes or {}).get(key)


def group_reader(by: Key | None) -> GroupReader:
    """The groups that a result is in; the one group None where there is no grouping, or nothing is known."""
    if by is None:
        return lambda about: _THE_WHOLE
    read = _reader(by)

    def groups_of(about: About) -> Sequence[str | None]:
        found = read(about)
        if found is None or isinstance(found, str):
            return (found,)
        if isinstance(found, list | tuple) and all(isinstance(text, str) for text in found):
            return tuple(dict.fromkeys(found)) or _THE_WHOLE
        raise InputError(f"a group is a text, several texts or None, not {safe_text(repr(found))}")

    return groups_of


def cluster_reader(cluster: Key | None, by: Key | None = None) -> ClusterReader:
    """The cluster that a result is in: by default its user, else what it is a part of, else (None) itself.

    A group that is itself a user or a session is of one cluster by that rule, which tells nothing of how it varies: the
    default is then the next one down.
    """
    if cluster is None:
        return {"user": _parent_or_itself, "session": _itself}.get(by if isinstance(by, str) else "", _default_cluster)
    read = _reader(cluster)
    named = f"cluster={cluster!r}" if isinstance(cluster, str) else "the cluster function"

    def cluster_of(about: About, result: object) -> Hashable:
        found = _one_text(read(about), named, result)
        # Session ids alone repeat across users in real logs.
        return ("named", about.user, found) if cluster == "session" else ("named", found)

    return cluster_of


def _default_cluster(about: About, result: object) -> Hashable:
    if about.user is not None:
        return about.user
    return _parent_or_itself(about, result)


def _parent_or_itself(about: About, result: object) -> Hashable:
    if about.session is not None:
        return (about.session,)
    return _itself(about, result)


def _itself(about: About, result: object) -> Hashable:
    # Several verdicts on one input are no more independent than those on the parts of one session.
    several = about.repeat is not None or LABELLED_BY in (about.attributes or ())
    return ("repeated", *(about.subject or ())) if several and about.id is not None else None


def cluster_kinds(keys: Iterable[Hashable], own: int) -> Counter[str]:
    """How many clusters are users, parents, named by the caller, inputs judged again and again, or rows themselves."""
    kinds: Counter[str] = Counter(own=own)
    known = list(keys)
    users = list(map(type, known)).count(str)  # as most are
    if users:
        kinds["user"] += users
    if users < len(known):
        kinds.update(_cluster_kind(key) for key in known if type(key) is not str)
    return kinds


def _cluster_kind(key: Hashable) -> str:
    if isinstance(key, str):
        return "user"
    if isinstance(key, tuple) and key[0] == "repeated":
        return "repeated"
    return "parent" if isinstance(key, tuple) and len(key) == 1 else "named"


def unit_reader(per: Per | None) -> UnitReader:
    """The unit that a result is folded into; None where results are not folded."""
    if per is None:
        return lambda about, result: None
    if callable(per):
        read, named = per, f"per={per.noun!r}" if isinstance(per, UnitOf) else "the per function"

        def unit_from_function(about: About, result: object) -> Hashable:
            found = read(about)
            if found is None:
                raise InputError(f"{named}: {describe(result)} has none; every result needs one")
            return found

        return unit_from_function
    names = (per,) if isinstance(per, str) else tuple(per)
    readers = [(f"per={name!r}", _reader(name)) for name in names]

    def unit_of(about: About, result: object) -> Hashable:
        parts = tuple([_one_text(read(about), named, result) for named, read in readers])
        # Session ids alone repeat across users in real logs, and ids of parts across sessions.
        if "id" in names:
            return (*(about.subject or ()), *parts)
        return (about.user, *parts) if "session" in names else parts

    return unit_of


def _one_text(found: object, named: str, result: object) -> str:
    if isinstance(found, str):
        return found
    if found is None:
        what = "none"
    else:
        what = "several" if isinstance(found, list | tuple) else f"{safe_text(repr(found))}, which is no text"
    raise InputError(f"{named}: {describe(result)} has {what}; every result needs exactly one text")


def key_words(key: Hashable) -> str:
    """A key, or the fingerprint of a function, as a message names it."""
    return "a function" if isinstance(key, tuple) else repr(key)

"""Which inputs are judged: by a hash of what they are about, so that every process chooses the same ones.

Whoever is chosen stands for others, and carries how many in its `weight`. So rates of a sample are those of the whole,
whatever the strata and however much of each was taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from hashlib import blake2b
from heapq import heappush, heapreplace
from typing import Any, Generic, TypeVar, get_args

from evalr.errors import DuplicateError, InputError
from evalr.estimates.buckets import Bucket, TimeBucket
from evalr.estimates.shown import Printed
from evalr.inputs import About, Input
from evalr.quoting import safe_text
from evalr.runs.jobs import content_hash
from evalr.summaries.keys import GroupReader, Key, group_reader
from evalr.verdicts import Failure, describe

I = TypeVar("I", bound=Input)  # noqa: E741

Name = tuple[str | None, ...]

Strata = str | Sequence[str] | Callable[[Any], str | tuple[str | None, ...] | None]
"""What puts an input into a stratum: names of keys, or a function.

A name is "hour", "day", "week", "month" (of when it happened), "user", "session", "arm", "kind" or an attribute's name;
several together make a stratum of each combination. Inputs without one, such as those that no arm is known of, are a
stratum as well. A function takes the input and returns the stratum's name, or None for an input that is left out.
"""

NO_STRATUM = "no stratum"


# ---------------------------------------------------------------------------------------------------------------------
# By key
# ---------------------------------------------------------------------------------------------------------------------


def sampled(key: str, rate: float, *, seed: str = "") -> bool:
    """Whether a key, such as a user's id, is in a sample of this rate.

    The answer is the same in any process, on any machine and in any version of Python. Keys that are in at one rate are
    in at every higher one.

    Args:
        key: what is in or out, as a whole.
        rate: the share of all keys that is in, from 0 to 1.
        seed: another seed draws another sample.

    Raises:
        InputError: the rate is not from 0 to 1, or the key is no text.
    """
    check_rate(rate)
    if not isinstance(key, str):
        raise InputError(f"a key to sample by is a text, not {safe_text(repr(key))}")
    return is_in(key, rate, seed)


def sample(inputs: Iterable[I], rate: float, *, key: Key | None = None, seed: str = "") -> Iterator[I]:
    """The inputs that are in a sample, each with a `weight` of how many it stands for.

    That is 1 / rate, times the weight that it had.

    Args:
        inputs: any iterable; it is read as the sample is.
        rate: the share that is in, from 0 to 1.
        key: by default each input is in or out by itself. With "user" all those of a person are, or none; likewise
            with "session", an attribute's name, or a function of an input's `About`.
        seed: another seed draws another sample.

    Raises:
        InputError: the rate is not from 0 to 1; and, while it is read, an input without the key.
    """
    check_rate(rate)
    return _sample(inputs, rate, key_reader(key), seed)


def _sample(inputs: Iterable[I], rate: float, key_of: Callable[[Input], str], seed: str) -> Iterator[I]:
    for given in inputs:
        if is_in(key_of(given), rate, seed):
            yield weighed(given, 1 / rate)


def is_in(key: str, rate: float, seed: str) -> bool:
    """As `sampled`, for a rate that has been checked."""
    # The first 53 bits are a fraction below 1 that a float holds exactly.
    return (_place(key, seed) >> 75) * 2.0**-53 < rate


def _place(text: str, seed: str) -> int:
    """A number of 128 bits: where a text stands in the order in which a seed draws."""
    spelled = f"{len(seed)}:{seed}{text}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(spelled, digest_size=16, person=b"evalr sample").digest())


def check_rate(rate: object) -> None:
    """Refuse what is no share."""
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= 1:
        raise InputError(f"rate={rate!r} must be from 0 to 1, as it is the share of all that is in the sample")


def key_reader(key: Key | None) -> Callable[[Input], str]:
    """What reads the text by which an input is in or out of a sample."""
    if key is None:
        return own_key
    read = group_reader(key)
    named = f"key={key!r}" if isinstance(key, str) else "the key function"

    def key_of(given: Input) -> str:
        about = given.about()
        found = read(about)
        if len(found) != 1 or found[0] is None:
            what = "none" if found == (None,) else "several"
            raise InputError(f"{named}: {describe(Failure('', about=about))} has {what}; each input needs exactly one")
        # Session ids alone repeat across users in real logs.
        return spelled((about.user, found[0])) if key == "session" else found[0]

    return key_of


def own_key(given: Input) -> str:
    """What tells an input from every other one: its subject, or its content where it has no id."""
    about = given.about()
    return content_hash(given).hex() if about.subject is None else spelled(about.subject)


def own_digest(given: Input) -> bytes:
    """16 bytes that stand for what `own_key` gives."""
    return _place(own_key(given), "").to_bytes(16)


def spelled(texts: Iterable[str | None]) -> str:
    """Several texts as one, each with its length in front, so that none can run into the next."""
    return "".join("-" if text is None else f"{len(text)}:{text}" for text in texts)


def weighed(given: I, factor: float) -> I:
    """The input, standing for `factor` times as many; itself where it stands for no more than before."""
    if factor == 1:
        return given
    weight = factor * (1 if given.weight is None else given.weight)
    if not math.isfinite(weight):
        who = describe(Failure("", about=given.about()))
        raise InputError(f"{who} would stand for more inputs than a number can count")
    return given.model_copy(update={"weight": weight})


# ---------------------------------------------------------------------------------------------------------------------
# By stratum
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stratum(Printed):
    """One stratum of a sample.

    Attributes:
        name: by the keys that it was made with, such as ("2026-11-30", "treatment"); None where an input has none.
        seen: inputs that are in it.
        taken: those of them that are in the sample.
    """

    name: Name
    seen: int
    taken: int

    @property
    def weight(self) -> float:
        """How many inputs of the stratum each one that was taken stands for."""
        return self.seen / self.taken

    def __str__(self) -> str:
        named = " · ".join("none" if part is None else safe_text(part) for part in self.name)
        return f"{named}: {self.taken:,} of {self.seen:,}, each for {self.weight:.4g}"


@dataclass(frozen=True, slots=True)
class Sample(Printed, Generic[I]):
    """The inputs of a stratified sample, in the order in which they came, and how they were chosen.

    Iterate over it, or pass it to `evaluate_all`, for the inputs; `str()` says how they were chosen.

    Attributes:
        inputs: those that are in it, each with its weight.
        strata: what there was and what was taken, in the order of their names.
        left_out: inputs that are in no stratum, by the reason.
        n: the most that was taken of a stratum.
        seed: what it was drawn with.
    """

    inputs: tuple[I, ...] = field(repr=False)
    strata: tuple[Stratum, ...]
    left_out: dict[str, int]
    n: int
    seed: str = ""

    @property
    def seen(self) -> int:
        """The inputs that there were, without those that were left out."""
        return sum(stratum.seen for stratum in self.strata)

    def __iter__(self) -> Iterator[I]:
        return iter(self.inputs)

    def __len__(self) -> int:
        return len(self.inputs)

    def to_dict(self) -> dict[str, Any]:
        """How it was chosen, as JSON has it; without the inputs."""
        return {
            "n": self.n,
            "seed": self.seed,
            "seen": self.seen,
            "taken": len(self),
            "left_out": dict(self.left_out),
            "strata": [
                {"name": list(each.name), "seen": each.seen, "taken": each.taken, "weight": each.weight}
                for each in self.strata
            ],
        }

    def __str__(self) -> str:
        noun = "stratum" if len(self.strata) == 1 else "strata"
        head = f"{len(self):,} of {self.seen:,} inputs, at most {self.n:,} of each of {len(self.strata):,} {noun}"
        left_out = [f"left out: {count:,} {reason}" for reason, count in self.left_out.items()]
        return "\n".join([head, *(f"  {stratum}" for stratum in self.strata), *left_out])


def stratified_sample(
    inputs: Iterable[I], stratum: Strata, *, n: int, seed: str = "", tz: str | tzinfo = "UTC"
) -> Sample[I]:
    """At most `n` inputs of each stratum, each with a `weight` of how many of its stratum it stands for.

    So a quiet day, or a small arm, is judged as closely as a busy one, while rates over all strata stay those of the
    whole: each weight is the size of the stratum over the number taken, times the weight that the input had
    (Horvitz and Thompson 1952, https://doi.org/10.1080/01621459.1952.10483446).

    Those with the lowest hash of their subject are taken. So the sample is the same in any process and whatever the
    order of the inputs; a larger `n` only adds to it, and inputs that come later replace few. It takes one pass, and
    holds `n` inputs for each stratum.

        stratified_sample(sessions, ["day", "arm"], n=50)

    Args:
        inputs: any iterable, each subject once, as readers give them.
        stratum: see `Strata`.
        n: the most to take of a stratum, from 1.
        seed: another seed draws another sample.
        tz: the time zone of "hour", "day", "week" and "month".

    Raises:
        InputError: an argument cannot be used, or a stratum's name is no text.
        DuplicateError: two inputs that would be in the sample have one subject.
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise InputError(f"n={n!r} must be a whole number from 1, as it is the most to take of a stratum")
    name_of = _name_reader(stratum, tz)
    drawn: dict[Name, _Drawn[I]] = {}
    left_out: dict[str, int] = {}
    for position, given in enumerate(inputs):
        name = name_of(given)
        if name is None:
            left_out[NO_STRATUM] = left_out.get(NO_STRATUM, 0) + 1
            continue
        if name not in drawn:
            drawn[name] = _Drawn(n)
        drawn[name].see(_place(own_key(given), seed), position, given)
    chosen: list[tuple[int, I]] = []
    strata: list[Stratum] = []
    for name in sorted(drawn, key=_in_order):
        account = Stratum(name, drawn[name].seen, len(drawn[name].held))
        strata.append(account)
        chosen += [(-position, weighed(given, account.weight)) for _, position, given in drawn[name].held]
    chosen.sort(key=lambda each: each[0])
    return Sample(tuple(given for _, given in chosen), tuple(strata), left_out, n, seed)


def _in_order(name: Name) -> tuple[tuple[bool, str], ...]:
    return tuple((part is None, part or "") for part in name)


class _Drawn(Generic[I]):
    """The first `n` of a stratum, in the order in which they are drawn: a heap with the last of them on top."""

    def __init__(self, n: int) -> None:
        self.seen = 0
        self.held: list[tuple[int, int, I]] = []
        self._n = n
        self._named: dict[int, int] = {}

    def see(self, place: int, position: int, given: I) -> None:
        self.seen += 1
        if place in self._named:
            raise DuplicateError(
                f"inputs {self._named[place]} and {position} are both {describe(Failure('', about=given.about()))}: "
                "a sample needs each subject once, or it would count one of them twice"
            )
        # The position settles it between inputs without an id that are equal, so that two of them are never compared.
        entry = (-place, -position, given)
        if len(self.held) < self._n:
            heappush(self.held, entry)
        elif entry[:2] > self.held[0][:2]:
            last = heapreplace(self.held, entry)
            self._named.pop(-last[0], None)
        else:
            return
        if given.id is not None:
            self._named[place] = position


def _name_reader(stratum: Strata, tz: str | tzinfo) -> Callable[[Any], Name | None]:
    if callable(stratum):
        return _from_function(stratum)
    names = (stratum,) if isinstance(stratum, str) else tuple(stratum)
    if not names:
        raise InputError("a stratum needs at least one key, such as 'day'")
    readers = [(name, _reader(name, tz)) for name in names]

    def name_of(given: Input) -> Name:
        about = given.about()
        return tuple([_one_part(name, read, about) for name, read in readers])

    return name_of


def _reader(name: object, tz: str | tzinfo) -> GroupReader:
    if not isinstance(name, str):
        raise InputError(f"a stratum is made of names of keys, or is one function of the input, not {name!r}")
    return group_reader(TimeBucket(name, tz) if name in get_args(Bucket) else name)  # type: ignore[arg-type]


def _one_part(name: str, read: GroupReader, about: About) -> str | None:
    found = read(about)
    if len(found) > 1:
        subject = describe(Failure("", about=about))
        raise InputError(
            f"stratum {name!r}: {subject} has several, and an input is in one stratum: pass a function that says which"
        )
    return found[0]


def _from_function(read: Callable[[Any], str | Name | None]) -> Callable[[Any], Name | None]:
    def name_of(given: Input) -> Name | None:
        found: object = read(given)
        if found is None:
            return None
        parts = (found,) if isinstance(found, str) else found
        if not isinstance(parts, tuple) or not all(isinstance(part, str | None) for part in parts):
            raise InputError(
                f"the stratum function gave {safe_text(repr(found))}: a stratum's name is a text or a tuple of texts; "
                "None leaves an input out"
            )
        return parts

    return name_of

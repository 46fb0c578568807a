"""Judge families: under one name, who is asked, and of what part of an input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from evalr.errors import InputError, error_words
from evalr.evaluators import Evaluator
from evalr.inputs import Input
from evalr.quoting import safe_text
from evalr.runs.jobs import Job, Planner
from evalr.verdicts import Failure, Skip, describe

Evaluators: TypeAlias = Evaluator[Any, Any] | Sequence[Evaluator[Any, Any]]


@dataclass(frozen=True)
class Family:
    """Evaluators that are asked of the parts of an input, rather than of the whole.

        Family(shadow_judge, parts=exchanges_with_a_shadow, none="no turn with a shadow answer")

    Args:
        evaluators: who is asked, one or several.
        parts: splits an input into what they read. It may also return a `Skip`, whose reason then says why there is
            nothing to ask.
        none: the reason where it finds no parts.
        input_type: what `parts` reads, one type or several; another type of input is an error. None is any.
    """

    evaluators: Evaluators
    parts: Callable[[Any], Iterable[Input] | Skip]
    none: str = field(default="no parts to judge", kw_only=True)
    input_type: type[Input] | tuple[type[Input], ...] | None = field(default=None, kw_only=True)


Judges: TypeAlias = Mapping[str, Evaluators | Family]
"""Who is asked, by the name of the family: evaluators that read the input as it is, or a `Family` that splits it."""


class Work(NamedTuple):
    """What there is to judge of one input: its parts by family, or the reason why a family has none."""

    given: Input
    parts: dict[str, tuple[Input, ...]]
    skipped: dict[str, str]


class _Named(NamedTuple):
    name: str
    evaluators: tuple[Evaluator[Any, Any], ...]
    family: Family | None

    def reads(self) -> list[type | tuple[type, ...] | None]:
        """The types that it reads, one for each that must fit."""
        if self.family is not None:
            return [self.family.input_type]
        return [getattr(each, "input_type", None) for each in self.evaluators]

    def unread_by(self, given: Input) -> type | tuple[type, ...] | None:
        """The types of which the input is none, where it is none of them."""
        return next((types for types in self.reads() if types is not None and not isinstance(given, types)), None)


class Families:
    """The families of one request or run. `split` says what there is to judge of an input."""

    def __init__(self, judges: Judges) -> None:
        if not isinstance(judges, Mapping) or not judges:
            raise InputError(
                "judges is a map with at least one family, such as {'outcome': judge}, from its name to who is asked"
            )
        self.families = tuple(_named(name, asked) for name, asked in judges.items())
        self._family_of: dict[tuple[str, str], str] = {}
        for named in self.families:
            for each in named.evaluators:
                before = self._family_of.setdefault((each.name, each.version), named.name)
                if before != named.name or named.evaluators.count(each) > 1:
                    raise InputError(
                        f"families {before!r} and {named.name!r} both ask evaluator {each.name!r}, version "
                        f"{each.version!r}: their results would mix"
                    )

    @property
    def names(self) -> tuple[str, ...]:
        """Their names, in the order given."""
        return tuple(named.name for named in self.families)

    @property
    def evaluators(self) -> list[Evaluator[Any, Any]]:
        """Those of all families."""
        return [each for named in self.families for each in named.evaluators]

    def family_of(self, job: Job) -> str:
        """The name of the family whose job it is."""
        return self._family_of[job.evaluator.name, job.evaluator.version]

    def jobs_of(self, work: Work) -> int:
        """How many jobs there are in it."""
        return sum(len(work.parts.get(named.name, ())) * len(named.evaluators) for named in self.families)

    def reads(self, given: Input) -> bool:
        """Whether any of them reads inputs of this type."""
        return any(named.unread_by(given) is None for named in self.families)

    def split(self, given: Input) -> Work:
        """What there is to judge of an input.

        Raises:
            InputError: a family does not read it, or cannot split it.
        """
        work = Work(given, {}, {})
        for named in self.families:
            types = named.unread_by(given)
            if types is not None:
                raise InputError(_unread(named, types, given))
            if named.family is None:
                work.parts[named.name] = (given,)
            elif isinstance(found := _parts(named.name, named.family, given), Skip):
                work.skipped[named.name] = found.reason
            elif found:
                work.parts[named.name] = found
            else:
                work.skipped[named.name] = named.family.none
        return work


class FamilyPlan:
    """Makes the jobs of all families. It is the plan of a run over what `Families.split` gives."""

    def __init__(self, families: Families, duplicates: Literal["error", "first"]) -> None:
        whole = [each for named in families.families if named.family is None for each in named.evaluators]
        # Without evaluators it still tells inputs that came before.
        self._whole = Planner(whole, 1, duplicates)
        self._split = {
            named.name: (len(named.evaluators), Planner(named.evaluators, 1, duplicates))
            for named in families.families
            if named.family is not None
        }
        self._families = families
        self.equal_parts: Counter[str] = Counter()
        """Parts that were left out, since an equal one of the same subject had come before, by family."""
        self.unmade = 0
        """Jobs that were not made, since the input or the part had come before."""

    def jobs(self, position: int, given: Work) -> list[Job] | None:
        """The jobs of one input's families, or None where its subject has come before."""
        jobs = self._whole.jobs(position, given.given)
        if jobs is None:
            self.unmade += self._families.jobs_of(given)
            return None
        for name, (evaluators, planner) in self._split.items():
            for part in given.parts.get(name, ()):
                found = planner.jobs(position, part)
                if found is None:
                    self.equal_parts[name] += 1
                    self.unmade += evaluators
                else:
                    jobs += found
        return jobs


def _named(name: object, asked: object) -> _Named:
    if not isinstance(name, str) or not name:
        raise InputError(f"the name of a judge family must be a text, not {name!r}")
    family = asked if isinstance(asked, Family) else None
    evaluators: object = asked if family is None else family.evaluators
    several = tuple(evaluators) if isinstance(evaluators, Sequence) else (evaluators,)
    if not several:
        raise InputError(f"family {name!r} needs at least one evaluator")
    for each in several:
        if not isinstance(each, Evaluator):
            raise InputError(
                f"family {name!r}: {each!r} is no evaluator: it needs a name, a version, a verdict_type and evaluate()"
            )
    pinned = tuple(pin() if (pin := getattr(each, "pinned", None)) is not None else each for each in several)
    return _Named(name, pinned, family)


def _unread(named: _Named, types: type | tuple[type, ...], given: Input) -> str:
    names = " or ".join(each.__name__ for each in (types if isinstance(types, tuple) else (types,)))
    way_out = (
        "leave the family out for such inputs, or give a Family with parts=, which splits one into what it reads"
        if named.family is None
        else "leave the family out for such inputs"
    )
    kind = safe_text(type(given).__name__)
    return f"family {named.name!r} reads {names}, and {_subject(given)} is a {kind}: {way_out}"


def _parts(name: str, family: Family, given: Input) -> tuple[Input, ...] | Skip:
    try:
        found: object = family.parts(given)
        if isinstance(found, Skip):
            return found
        if not isinstance(found, Iterable):
            raise TypeError(f"it gave {type(found).__name__} where parts were promised")
        parts = tuple(found)
    except Exception as error:  # a person's function may raise anything
        raise InputError(f"family {name!r} cannot split {_subject(given)}: {error_words(error)}") from error
    for part in parts:
        if not isinstance(part, Input):
            kind = safe_text(type(part).__name__)
            raise InputError(
                f"family {name!r}: of {_subject(given)}, parts() gave {kind}, which is no input: it must give inputs"
            )
    return tuple(_weighed_as(given, part) for part in parts)


def _weighed_as(given: Input, part: Input) -> Input:
    """A part stands for as many as the whole does."""
    if given.weight is None or part.weight is not None:
        return part
    return part.model_copy(update={"weight": given.weight})


def _subject(given: Input) -> str:
    if given.id is None:
        return f"a {safe_text(given.kind)} without an id"
    return describe(Failure("", about=given.about()))

"""Pairing: what a judge and what people said of the same subjects, and what of either has no counterpart."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

from pydantic import BaseModel

from evalr.errors import DuplicateError, InputError, MixedVersionsError
from evalr.labels.datasets import Dataset
from evalr.labels.examples import GROUP
from evalr.labels.people import Labels, labeller
from evalr.labels.subjects import OfSubject, subject_of
from evalr.quoting import quoted, safe_text
from evalr.summaries.keys import Key, cluster_reader
from evalr.verdicts import (
    NO_VERDICT,
    NO_VERDICT_WORDS,
    Duplicates,
    Result,
    Verdict,
    about_of,
    describe,
    is_trained_on,
    one_per_subject,
)

Exclude = Dataset[Any] | Iterable[OfSubject | str]
"""What a judge was made with: a dataset (a training split), or examples, inputs, results, subjects or ids."""

TRAINED_ON_WORDS = "trained on"
EXCLUDED_WORDS = "excluded"


class Judged(NamedTuple):
    """One result of a judge, with what people say of its subject."""

    result: Result[Any]
    labels: tuple[Verdict[Any], ...]
    cluster: Hashable | None
    """None where it is one by itself."""

    @property
    def value(self) -> Any | None:
        """The judge's; None where it gave no verdict."""
        return self.result.value if isinstance(self.result, Verdict) else None


class Unjudged(NamedTuple):
    """What people say of a subject that the judge has no result of."""

    labels: tuple[Verdict[Any], ...]
    cluster: Hashable | None


class Excluded(NamedTuple):
    """What was left out because the judge was made with it."""

    results: int = 0
    labels: int = 0
    unmatched: int = 0
    """How many were named to be left out, and were in neither: a name that matches nothing protects from nothing."""
    trained_on: int = 0
    """Results that nobody named, and whose verdict says that the judge was made with their input."""


class Pairs(NamedTuple):
    """A judge's results beside people's labels."""

    judged: Sequence[Judged]
    """All results, labelled or not."""
    unjudged: Sequence[Unjudged]
    unanswered: Counter[str]
    """What people were asked and gave no verdict of, by why."""
    excluded: Excluded
    verdict_type: type[BaseModel] | None
    """None where nobody gave a verdict."""
    evaluator: str | None
    versions: Counter[tuple[str, str]]
    """Of the judge's verdicts."""
    label_versions: Counter[tuple[str, str]]
    labellers: Counter[str]
    mixed: bool
    """Whether several versions of the judge, or of the question to people, are among them."""
    near: int
    """How many labels without a result have the id of one whose kind, user or session differs."""

    @property
    def trained_on(self) -> dict[str, int]:
        """The results that are left out since the judge was trained on them, as estimates say it."""
        return {TRAINED_ON_WORDS: self.excluded.trained_on} if self.excluded.trained_on else {}

    @property
    def labelled(self) -> list[Judged]:
        """Results with a label."""
        return [each for each in self.judged if each.labels]


def pair(
    results: Iterable[Result[Any]],
    labels: Labels,
    *,
    cluster: Key | None,
    duplicates: Duplicates,
    mix_versions: bool,
    exclude: Exclude,
) -> Pairs:
    """Pair a judge's results with people's labels by subject.

    Raises:
        InputError: results are by several evaluators, of several verdict types, or are no results.
        DuplicateError: several results, or labels by one person, are of one subject, and `duplicates` is "error".
        MixedVersionsError: several versions, and `mix_versions` is not set.
    """
    judged = _results(results, "results")
    evaluator = _one_evaluator(judged)
    said: list[Result[Any]] = list(labels.labels()) if isinstance(labels, Dataset) else _results(labels, "labels")
    named = _excluded(exclude)
    own = {subject_of(each) for each in judged if is_trained_on(each)} - {None}

    def left_out(each: Result[Any]) -> bool:
        return named(each) or is_trained_on(each) or subject_of(each) in own

    kept = [each for each in one_per_subject(judged, duplicates=duplicates) if not left_out(each)]
    answered, unanswered = _by_subject(said, left_out, duplicates)
    excluded = Excluded(
        results=sum(named(each) for each in judged),
        labels=sum(named(each) for each in said),
        unmatched=named.unmatched(),
        trained_on=sum(left_out(each) and not named(each) for each in judged),
    )
    cluster_of = _cluster_of(cluster)
    found, seen = [], set()
    for result in kept:
        about = about_of(result)
        subject = None if about is None else about.subject
        people = tuple(answered.get(subject, ())) if subject is not None else ()
        seen.add(subject)
        found.append(Judged(result, people, cluster_of(result, people)))
    unjudged = [
        Unjudged(tuple(people), cluster_of(people[0], people)) for each, people in answered.items() if each not in seen
    ]
    versions = Counter((each.evaluator, each.version) for each in kept if isinstance(each, Verdict))
    label_versions = Counter((each.evaluator, each.version) for people in answered.values() for each in people)
    mixed = [_check_versions(versions, mix_versions), _check_versions(label_versions, mix_versions)]
    ids = {_id(each) for each in kept} - {None}
    return Pairs(
        found,
        unjudged,
        unanswered,
        excluded,
        _verdict_type([each for each in kept if isinstance(each, Verdict)], answered.values()),
        evaluator,
        versions,
        label_versions,
        Counter(labeller(each) for people in answered.values() for each in people),
        any(mixed),
        sum(_id(each.labels[0]) in ids for each in unjudged),
    )


def _id(result: Result[Any]) -> str | None:
    about = about_of(result)
    return None if about is None else about.id


def _results(given: Iterable[Any], what: str) -> list[Result[Any]]:
    if isinstance(given, BaseModel | str | bytes):
        raise InputError(f"{what} is one {type(given).__name__}: pass a list of results")
    listed = list(given)
    for position, each in enumerate(listed):
        if not isinstance(each, (Verdict, *NO_VERDICT)):
            hint = "; pass the .result of each" if hasattr(each, "result") else ""
            raise InputError(
                f"{what} {position} is a {safe_text(type(each).__name__)}, which says of no subject what is so: pass "
                f"results, and feedback(input, value) for what people say{hint}"
            )
    return listed


def _one_evaluator(results: Iterable[Result[Any]]) -> str | None:
    names = list(dict.fromkeys(each.evaluator for each in results if each.evaluator is not None))
    if len(names) > 1:
        listed = ", ".join(quoted(name) for name in names[:5])
        raise InputError(
            f"results are by several evaluators: {listed}; pass those of one, as in [r for r in results if "
            f"r.evaluator == {quoted(names[0])}]"
        )
    return names[0] if names else None


def _by_subject(
    labels: list[Result[Any]], left_out: Callable[[Result[Any]], bool], duplicates: Duplicates
) -> tuple[dict[Hashable, list[Verdict[Any]]], Counter[str]]:
    """Each person's last or only word on each subject, and how many gave none."""
    by_person: defaultdict[str, list[Result[Any]]] = defaultdict(list)
    places: dict[Hashable, int] = {}
    for position, label in enumerate(labels):
        about = about_of(label)
        if about is None or about.subject is None:
            raise InputError(f"label {position} is about nothing with an id, by which a judge's result on it is found")
        if left_out(label):
            continue
        person = labeller(label)
        first = places.setdefault((person, about.subject, about.repeat), position)
        if first != position and duplicates == "error":
            raise DuplicateError(
                f"labels {first} and {position} by {quoted(person)} are both about {describe(label)}: keep one, pass "
                "duplicates='first' or duplicates='latest', or say who gave them (author=) where it was not one person"
            )
        by_person[person].append(label)
    answered: defaultdict[Hashable, list[Verdict[Any]]] = defaultdict(list)
    unanswered: Counter[str] = Counter()
    for said in by_person.values():
        for label in one_per_subject(said, duplicates=duplicates):
            if isinstance(label, Verdict):
                answered[label.about.subject].append(label)  # type: ignore[union-attr]  # checked above
            else:
                unanswered[NO_VERDICT_WORDS[label.status]] += 1
    return answered, unanswered


def _cluster_of(cluster: Key | None) -> Callable[[Result[Any], Sequence[Result[Any]]], Hashable | None]:
    """By default the group of a dataset's example, else as summaries have it: user, what it is a part of, itself."""
    read = cluster_reader(cluster)

    def cluster_of(result: Result[Any], labels: Sequence[Result[Any]]) -> Hashable | None:
        about = about_of(result)
        if cluster is None:
            for each in (about, *map(about_of, labels)):
                group = None if each is None else (each.attributes or {}).get(GROUP)
                if isinstance(group, str):
                    return ("named", group)
        if about is None:
            if cluster is not None:
                raise InputError(f"cluster: {describe(result)} has none; every result needs one")
            return None
        return read(about, result)

    return cluster_of


def _verdict_type(verdicts: Iterable[Verdict[Any]], labels: Iterable[Sequence[Verdict[Any]]]) -> type[BaseModel] | None:
    """The type that all values are of; the judge's may be a subclass of people's, or the other way around."""
    found = dict.fromkeys(type(each.value) for each in verdicts)
    found |= dict.fromkeys(type(each.value) for people in labels for each in people)
    if not found:
        return None
    for kind in found:
        if all(issubclass(other, kind) for other in found):
            return kind
    listed = " and ".join(sorted({kind.__name__ for kind in found}))
    raise InputError(f"results and labels are of different verdict types, {listed}: pass those of one measure")


def _check_versions(versions: Counter[tuple[str, str]], mix_versions: bool) -> bool:
    """Whether several versions of one evaluator are mixed.

    Raises:
        MixedVersionsError: they are, and nobody said that they may be.
    """
    by_name: defaultdict[str, list[str]] = defaultdict(list)
    for evaluator, version in sorted(versions):
        by_name[evaluator].append(version)
    for evaluator, found in by_name.items():
        if len(found) > 1:
            if not mix_versions:
                listed = ", ".join(quoted(version) for version in found[:5])
                raise MixedVersionsError(
                    f"versions {listed} of {quoted(evaluator)} would be pooled, and each may err otherwise: pass those "
                    "of one version, or mix_versions=True"
                )
            return True
    return False


class _Excluded:
    """Whether a result is of what was named to be left out, and how much of that was met."""

    def __init__(self, subjects: set[Hashable], ids: set[str]) -> None:
        self.subjects, self.ids = subjects, ids
        self.met: set[Hashable] = set()

    def __call__(self, result: Result[Any]) -> bool:
        about = about_of(result) if self.subjects or self.ids else None
        if about is None or about.id is None:
            return False
        met = {key for key, known in ((about.subject, self.subjects), (about.id, self.ids)) if key in known}
        self.met |= met
        return bool(met)

    def unmatched(self) -> int:
        return len(self.subjects) + len(self.ids) - len(self.met)


def _excluded(exclude: Exclude) -> _Excluded:
    if isinstance(exclude, str):
        raise InputError("exclude= is one text: pass a list of ids, or a dataset")
    subjects: set[Hashable] = set()
    ids: set[str] = set()
    for each in exclude:
        if isinstance(each, str):
            ids.add(each)
            continue
        subject = subject_of(each)
        if subject is None:
            raise InputError(
                f"exclude= names a {safe_text(type(each).__name__)} that has no id: pass a dataset, or examples, "
                "inputs, results, subjects or ids"
            )
        subjects.add(subject)
    return _Excluded(subjects, ids)

"""Reading runs for a comparison: what each says of each example, and which examples both have."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable
from fractions import Fraction
from typing import Any, NamedTuple

from evalr.errors import InputError
from evalr.inputs import About
from evalr.labels.examples import GROUP
from evalr.quoting import quoted
from evalr.runs.experiments import Experiment
from evalr.summaries import Key, Summary
from evalr.summaries.keys import cluster_reader
from evalr.tallies.moments import Exact, exact
from evalr.verdicts import Duplicates, Result, Skip, Verdict, about_of, describe, one_per_subject

Compared = Experiment | Iterable[Result[Any]]
"""One side of a comparison: an experiment, or the results of a run."""


class Side(NamedTuple):
    """A run, and what it is called."""

    name: str | None
    experiment: Experiment | None
    results: list[Result[Any]]

    @classmethod
    def of(cls, run: Compared) -> Side:
        """An experiment, or results that have no name."""
        if isinstance(run, Experiment):
            return cls(run.name, run, run.results)
        return cls(None, None, list(run))

    def names(self, naming: Naming) -> dict[str, None]:
        """The names of its examples, in order."""
        if self.experiment is not None:
            return dict.fromkeys(self.experiment.examples)
        return dict.fromkeys(naming.name(_about(result)) for result in self.results)

    def verdict_types(self) -> set[type]:
        """The types of its verdicts; of an experiment, those that its evaluators give."""
        if self.experiment is not None:
            return set(self.experiment.evaluators.values())
        return {type(each.value) for each in self.results if isinstance(each, Verdict)}

    def results_for(self, summary: Summary[Any]) -> list[Result[Any]]:
        """The results that a summary reads, those without a verdict among them."""
        if self.experiment is not None:
            return self.experiment.results_for(summary)
        verdicts = [each for each in self.results if isinstance(each, Verdict)]
        names = {each.evaluator for each in verdicts if isinstance(each.value, summary.of)}
        if len(names) > 1:
            listed = " and ".join(sorted(quoted(name) for name in names))
            raise InputError(f"summary {summary.name!r} would read verdicts by {listed}: pass the results of one")
        others = {each.evaluator for each in verdicts} - names
        # Of evaluators without a single verdict nobody knows the type: what failed is counted rather than dropped.
        return [each for each in self.results if each.evaluator not in others]


class Naming(NamedTuple):
    """What names an example, so that two runs pair by it, and how the name is shown.

    An id is unique in an experiment. In logs, users share ids: where neither run is an experiment, an example is named
    by its id, its session (or artifact) and its user.
    """

    by_id: bool

    @classmethod
    def of(cls, *sides: Side) -> Naming:
        """The one for those runs."""
        return cls(any(side.experiment is not None for side in sides))

    def name(self, about: About) -> str:
        """The name of what a result is about."""
        return str(about.id) if self.by_id else json.dumps([about.id, about.session, about.user])

    def shown(self, name: str) -> str:
        """A name as people read it."""
        return name if self.by_id else " of ".join(part for part in json.loads(name) if part is not None)


class Value(NamedTuple):
    """What one run says of one example: y of m, and where y / m could lie whatever its missing results were."""

    about: About
    y: Exact
    m: Exact
    bounds: tuple[Exact, Exact] | None = None
    unbounded: bool = False

    @property
    def value(self) -> Fraction:
        """The mean over its results; not to be asked where m is 0."""
        return Fraction(self.y) / self.m


class Account(NamedTuple):
    """The examples of one run, and what was read of them."""

    values: dict[str, Value]
    left_out: Counter[str]
    versions: Counter[tuple[str, str]]
    flags: Counter[str]


def account_of(
    summary: Summary[Any],
    results: Iterable[Result[Any]],
    naming: Naming,
    duplicates: Duplicates,
) -> Account:
    """What a summary reads of each example of a run.

    Raises:
        DuplicateError: several results are of one subject, and `duplicates` is "error".
        InputError: results of different users or sessions have one name.
    """
    by_example: defaultdict[str, list[Result[Any]]] = defaultdict(list)
    for result in one_per_subject(results, duplicates=duplicates):
        by_example[naming.name(_about(result))].append(result)
    for found in by_example.values():
        if len({(_about(result).user, _about(result).session) for result in found}) > 1:
            raise InputError(f"{describe(found[0])} and {describe(found[-1])} have one id, and could not be told apart")
    tally, add = summary.collector(cluster=naming.name)
    for found in by_example.values():
        for result in found:
            add(result)
    entry = tally.entries.get(None)
    if entry is None:
        return Account({}, Counter(), Counter(), Counter())
    # Where nothing is missing, one tally has the sums of each example; else each is looked at by itself.
    if summary.fold is None and not entry.left_out:
        sums = entry.cells.clusters
        values = {
            name: Value(_about(found[0]), sums["named", name][0], sums["named", name][1])
            for name, found in by_example.items()
        }
    else:
        values = {name: _one(summary, found) for name, found in by_example.items()}
    return Account(values, entry.left_out, entry.versions, entry.flags)


def _one(summary: Summary[Any], found: list[Result[Any]]) -> Value:
    """What the results of one example say, and where that could lie whatever the missing ones were."""
    tally = summary.tally(found)
    entry = tally.entries[None]
    estimate = summary.estimate(tally, mix_versions=True)
    if summary.fold is None:
        moments = entry.cells.moments()
        y, m = moments.y, moments.m
    else:
        y, m = (0, 0) if estimate.value is None else (exact(estimate.value), 1)
    low_high = None if estimate.bounds is None else (exact(estimate.bounds[0]), exact(estimate.bounds[1]))
    return Value(_about(found[0]), y, m, low_high, unbounded=bool(entry.unknown) and low_high is None)


def _about(result: Result[Any]) -> About:
    about = about_of(result)
    if about is None or about.id is None:
        raise InputError("a result is about nothing with an id, by which results of two runs are paired")
    return about


class Pair(NamedTuple):
    """One example with a value in both runs."""

    before: Value
    after: Value
    cluster: Hashable

    @property
    def weight(self) -> Exact:
        """How many examples it stands for in a sample."""
        weight = self.after.about.weight
        return 1 if weight is None else exact(weight)

    @property
    def change(self) -> Fraction:
        """After minus before."""
        return self.after.value - self.before.value


def difference_bounds(both: list[tuple[Value, Value]]) -> tuple[float, float] | None:
    """Where the mean difference could lie, whatever the results without a value were."""
    low: Exact = 0
    high: Exact = 0
    total: Exact = 0
    for before, after in both:
        if before.unbounded or after.unbounded:
            return None
        if not all(side.m or side.bounds for side in (before, after)):
            continue  # left out for a reason that no value would change
        weight = 1 if after.about.weight is None else exact(after.about.weight)
        (b_low, b_high), (a_low, a_high) = (side.bounds or (side.value, side.value) for side in (before, after))
        low += weight * (a_low - b_high)
        high += weight * (a_high - b_low)
        total += weight
    return (float(Fraction(low) / total), float(Fraction(high) / total)) if total else None


def cluster_reader_of(cluster: Key | None) -> Callable[[About], Hashable]:
    """The cluster of an example: by default its group, else its user, else itself."""
    if cluster is not None:
        read = cluster_reader(cluster)
        return lambda about: read(about, Skip("", about=about))

    def by_group(about: About) -> Hashable:
        group = (about.attributes or {}).get(GROUP)
        if isinstance(group, str):
            return (GROUP, group)
        return ("user", about.user) if about.user is not None else ("own", about.id)

    return by_group


def cluster_word(key: Hashable, cluster: Key | None) -> str:
    """What a cluster is called."""
    if cluster is not None:
        return cluster if isinstance(cluster, str) and "/" not in cluster else "cluster"
    return str(key[0]) if isinstance(key, tuple) and key[0] != "own" else "example"

"""Splits: a dataset in parts, the same ones in every process, with what belongs together on one side."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, Generic, Literal

from evalr.errors import InputError
from evalr.estimates import display
from evalr.estimates.words import choice_words, count_words
from evalr.fields import verdict_fields
from evalr.labels.datasets import Dataset, checked_dataset
from evalr.labels.examples import Example
from evalr.quoting import quoted, safe_text
from evalr.verdicts import V

By = Literal["id", "group"] | Callable[[Example[Any]], str]
"""What stays together: each example alone, the examples of a group, or those for which a function gives one text."""

Stratify = str | Callable[[Example[Any]], str | None]
"""What keeps its proportions: a field of the verdict type, an attribute, or a function of the example."""

UNLABELLED = "(none)"


class Splits(Mapping[str, Dataset[V]], Generic[V]):
    """The parts of a dataset by their names, each a dataset of its own.

    Attributes:
        counts: examples in each part.
        groups: groups in each part.
        shared: groups with examples in several parts, which then know something of each other.
        strata: of each part, the examples of each stratum; empty where the split was not stratified.
    """

    def __init__(self, parts: Mapping[str, Dataset[V]], strata: Mapping[str, Mapping[str, int]]) -> None:
        self._parts = dict(parts)
        groups = {name: {each.group for each in part if each.group is not None} for name, part in parts.items()}
        self.counts = {name: len(part) for name, part in parts.items()}
        self.groups = {name: len(found) for name, found in groups.items()}
        self.shared = sum(n > 1 for n in Counter(group for found in groups.values() for group in found).values())
        self.strata = {name: dict(found) for name, found in strata.items()}

    def __getitem__(self, name: str) -> Dataset[V]:
        return self._parts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    @property
    def empty(self) -> tuple[str, ...]:
        """The parts that no example fell into."""
        return tuple(name for name, count in self.counts.items() if not count)

    def _repr_html_(self) -> str:
        return display.printed(str(self))

    def __str__(self) -> str:
        lines = []
        for name, count in self.counts.items():
            words = f"{safe_text(name)}: {count_words(count, 'example') if count else 'empty'}"
            words += f" of {count_words(self.groups[name], 'group')}" if self.groups[name] else ""
            strata = ", ".join(f"{n:,} {safe_text(stratum)}" for stratum, n in sorted(self.strata[name].items()))
            lines.append(f"{words} ({strata})" if strata else words)
        if self.shared:
            lines.append(f"{count_words(self.shared, 'group')} in several parts: split by='group' to keep each in one")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Splits {', '.join(f'{name}={count}' for name, count in self.counts.items())}>"


def split(
    dataset: Dataset[V],
    parts: Mapping[str, float],
    *,
    by: By = "group",
    stratify: Stratify | None = None,
    seed: int = 0,
) -> Splits[V]:
    """Split a dataset in parts, such as `{"train": 0.6, "test": 0.4}`: the same way in every process.

    Each unit is put where the hash of its name says, so that examples added later move none of those before them. The
    parts have those sizes on average, and a small dataset may be far from them.

    With `stratify`, the parts have the same proportions of labels, and sizes as near to the asked ones as units allow.
    Where an example belongs then depends on the others, and examples added later may move it.

    Args:
        dataset: what to split.
        parts: the share of each part; together 1.
        by: "group" keeps the examples of a group (a user, by default) together, and takes one without a group alone;
            "id" splits groups, too; a function names what stays together.
        stratify: whose proportions the parts keep: a field of the verdict type, an attribute, or a function of the
            example. Examples without it are a stratum of their own.
        seed: another split.

    Raises:
        InputError: the shares are not above 0 or do not sum to 1, or an option cannot be used.
    """
    checked_dataset(dataset)
    _check_parts(parts)
    units = _units(dataset, by)
    if stratify is None:
        placed = {name: _part(parts, _position(name, seed)) for name in units}
        strata: dict[str, dict[str, str]] = {}
    else:
        read = _stratum_reader(dataset, stratify)
        of = {example.id: read(example) for example in dataset}
        placed = _balanced(units, parts, of, seed)
        strata = {"of": of}
    chosen: dict[str, set[str]] = {name: set() for name in parts}
    for unit, examples in units.items():
        chosen[placed[unit]].update(example.id for example in examples)
    made = {
        name: dataset._like((each for each in dataset if each.id in chosen[name]), f"{dataset.name}/{name}")
        for name in parts
    }
    counted = {
        name: Counter(strata["of"][example.id] for example in part) if strata else Counter[str]()
        for name, part in made.items()
    }
    return Splits(made, counted)


def _check_parts(parts: Mapping[str, float]) -> None:
    if not parts:
        raise InputError("a split needs parts, such as {'train': 0.6, 'test': 0.4}")
    for name, share in parts.items():
        if not (isinstance(share, int | float) and not isinstance(share, bool) and 0 < share <= 1):
            raise InputError(f"the share of part {name!r} is {share!r}: it must be above 0 and at most 1")
    total = math.fsum(parts.values())
    if abs(total - 1) > 1e-9:
        raise InputError(f"the shares {', '.join(f'{name}={share:g}' for name, share in parts.items())} sum to "
                         f"{total:g}, and must to 1")  # fmt: skip


def _units(dataset: Dataset[V], by: By) -> dict[str, list[Example[V]]]:
    """The examples that stay together, by what names them."""
    if by not in ("id", "group") and not callable(by):
        raise InputError(f"by={by!r} must be 'id', 'group' or a function of an example")
    units: defaultdict[str, list[Example[V]]] = defaultdict(list)
    for example in dataset:
        if callable(by):
            found = by(example)
            if not isinstance(found, str):
                raise InputError(f"by gave {safe_text(repr(found))} for example {quoted(example.id)}, which is no text")
            units[f"of:{found}"].append(example)
        elif by == "group" and example.group is not None:
            units[f"group:{example.group}"].append(example)
        else:
            units[f"id:{example.id}"].append(example)
    return dict(units)


def _position(name: str, seed: int) -> float:
    """From 0 to 1, by the name alone."""
    spelled = f"{seed}/{name}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(spelled, digest_size=7).digest(), "big") / 2**56


def _part(parts: Mapping[str, float], position: float) -> str:
    reached = 0.0
    for name, share in parts.items():
        reached += share
        if position < reached:
            return name
    return list(parts)[-1]


def _balanced(
    units: Mapping[str, list[Example[Any]]], parts: Mapping[str, float], strata: Mapping[str, str], seed: int
) -> dict[str, str]:
    """Each unit's part: large units first, each to where its strata are missed most."""
    totals = Counter(strata.values())
    missing = {name: {stratum: share * n for stratum, n in totals.items()} for name, share in parts.items()}
    of_units = {unit: Counter(strata[example.id] for example in examples) for unit, examples in units.items()}
    placed = {}
    for unit in sorted(units, key=lambda unit: (-len(units[unit]), _position(unit, seed))):
        counts = of_units[unit]

        def need(name: str, counts: Counter[str] = counts) -> float:
            # The fall in the sum of squared misses, with each stratum weighed by its size.
            return sum(n * (2 * missing[name][stratum] - n) / totals[stratum] for stratum, n in counts.items())

        part = max(parts, key=need)
        for stratum, n in counts.items():
            missing[part][stratum] -= n
        placed[unit] = part
    return placed


def _stratum_reader(dataset: Dataset[Any], stratify: Stratify) -> Callable[[Example[Any]], str]:
    if callable(stratify):
        chosen = stratify

        def from_function(example: Example[Any]) -> str:
            found = chosen(example)
            if found is not None and not isinstance(found, str):
                raise InputError(
                    f"stratify gave {safe_text(repr(found))} for example {quoted(example.id)}, which is no text"
                )
            return UNLABELLED if found is None else found

        return from_function
    verdict_type = dataset.verdict_type
    known = [] if verdict_type is None else [each.name for each in verdict_fields(verdict_type)]
    if stratify in known:
        return lambda example: UNLABELLED if example.expected is None else str(getattr(example.expected, stratify))
    attributes = {name for example in dataset for name in example.about().attributes or {}}
    if stratify not in attributes:
        raise InputError(
            f"stratify={stratify!r} is neither a field of the verdict type nor an attribute; "
            f"{choice_words(str(stratify), [*known, *sorted(attributes)])}"
        )

    def from_attribute(example: Example[Any]) -> str:
        found = (example.about().attributes or {}).get(stratify)
        return UNLABELLED if found is None else found if isinstance(found, str) else ", ".join(found)

    return from_attribute

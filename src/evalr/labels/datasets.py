"""Datasets: named collections of examples, kept as JSON Lines under a hash of their content."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any, Generic

from pydantic import BaseModel

from evalr.errors import DatasetError, DuplicateError, InputError
from evalr.estimates.shown import Printed
from evalr.estimates.words import count_words
from evalr.inputs import Input
from evalr.labels.examples import Example
from evalr.labels.files import Place, locked, read_bytes, real_path, replace_lines
from evalr.labels.lines import (
    FORMAT,
    HEADER,
    Types,
    check_header,
    digest,
    example_hash,
    example_line,
    example_of,
    header_line,
    input_type_named,
    numbered_lines,
    type_words,
    verdict_type_named,
)
from evalr.quoting import quoted, safe_text
from evalr.verdicts import Duplicates, V, Verdict

HASH_SHOWN = 12
"""Characters of a hash that people compare."""


class Dataset(Printed, Generic[V]):
    """A named collection of examples with ids of their own, all of one input type and one verdict type.

    It does not change: `add` and `keep` give new ones. Iterating gives the examples in order; `dataset["id"]` is one.

    Args:
        name: of the dataset.
        examples: what it holds.
        verdict_type: of the labels; by default that of the first label, and none where there are no labels.
        input_type: of the inputs; by default that of the first.

    Raises:
        DuplicateError: two examples have one id; the message names both positions.
        InputError: an example's input or label is of another type, or the input type cannot be known.
    """

    def __init__(
        self,
        name: str,
        examples: Iterable[Example[V]] = (),
        *,
        verdict_type: type[V] | None = None,
        input_type: type[Input] | None = None,
    ) -> None:
        listed = list(examples)
        if not isinstance(name, str) or not name:
            raise InputError(f"a dataset needs a name, not {safe_text(repr(name), longest=60)}")
        for position, example in enumerate(listed):
            if not isinstance(example, Example):
                raise InputError(f"example {position} is a {type(example).__name__}: pass Example(input, ...)")
        self.name = name
        self._types = _types(listed, verdict_type, input_type)
        self._examples: dict[str, Example[V]] = {}
        positions: dict[str, int] = {}
        for position, example in enumerate(listed):
            first = positions.setdefault(example.id, position)
            if first != position:
                raise DuplicateError(
                    f"dataset {quoted(name)}: examples {first} and {position} both have the id {quoted(example.id)}; "
                    "give each an id of its own"
                )
            _check_types(example, self._types)
            self._examples[example.id] = example
        self._hash: str | None = None
        self._read_from: dict[Path, bytes] = {}

    # -- what it holds ------------------------------------------------------------------------------------------------

    @property
    def input_type(self) -> type[Input]:
        """The type of its inputs."""
        return self._types.input

    @property
    def verdict_type(self) -> type[V] | None:
        """The type of its labels, None where it has none."""
        found: type[V] | None = self._types.verdict  # type: ignore[assignment]  # as it was given
        return found

    @property
    def hash(self) -> str:
        """40 hexadecimal digits that change with any input, label, id, group or attribute, and with the verdict type.

        The verdict type counts by its name and its JSON schema. The order of the examples does not count, nor does the
        dataset's name.
        """
        if self._hash is None:
            whole = blake2b(digest(f"{self.input_type.__name__} {type_words(self.verdict_type)}"), digest_size=20)
            for part in sorted(example_hash(example) for example in self):
                whole.update(part)
            self._hash = whole.hexdigest()
        return self._hash

    def __iter__(self) -> Iterator[Example[V]]:
        return iter(self._examples.values())

    def __len__(self) -> int:
        return len(self._examples)

    def __contains__(self, name: object) -> bool:
        return name in self._examples

    def __getitem__(self, name: str) -> Example[V]:
        return self._examples[name]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dataset) and (self.name, self._types, list(self)) == (
            other.name,
            other._types,
            list(other),
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Dataset {self}>"

    def __str__(self) -> str:
        labelled = sum(example.labelled for example in self)
        groups = len({example.group for example in self if example.group is not None})
        parts = [safe_text(self.name), count_words(len(self), "example")]
        parts += [f"{labelled:,} labelled {self.verdict_type.__name__}"] if self.verdict_type is not None else []
        parts += [count_words(groups, "group")] if groups else []
        return " · ".join([*parts, self.hash[:HASH_SHOWN]])

    def inputs(self) -> Iterator[Input]:
        """The inputs in order, each under its example's id, as evaluators read them."""
        return (example.given() for example in self)

    def labels(self) -> list[Verdict[V]]:
        """The labels as verdicts by `people`: what summaries and agreement with a judge read."""
        found = (example.label() for example in self)
        return [label for label in found if label is not None]

    # -- others made of it --------------------------------------------------------------------------------------------

    def add(self, *examples: Example[V], duplicates: Duplicates = "error") -> Dataset[V]:
        """The dataset with more examples. One that is there already and equal is not added again.

        Args:
            examples: what to add.
            duplicates: what becomes of one whose id is there with another content: "error"; "first" keeps the one that
                was there; "latest" puts the new one (a new label, say) in its place.

        Raises:
            DuplicateError: `duplicates` is "error", and an id is there with another content.
        """
        if duplicates not in ("error", "first", "latest"):
            raise InputError(f"duplicates={duplicates!r} must be 'error', 'first' or 'latest'")
        merged = dict(self._examples)
        # As a dataset, so that what is added is checked first, and against itself.
        for position, example in enumerate(self._like(examples)):
            before = merged.setdefault(example.id, example)
            if before == example or duplicates == "first":
                continue
            if duplicates == "error":
                raise DuplicateError(
                    f"dataset {quoted(self.name)}: added example {position} and example "
                    f"{list(merged).index(example.id)} both have the id {quoted(example.id)}, and differ; pass "
                    "duplicates='latest' to put the new one in its place, or 'first' to keep the old one"
                )
            merged[example.id] = example
        return self._like(merged.values())

    def keep(self, wanted: Callable[[Example[V]], bool]) -> Dataset[V]:
        """The dataset with those examples alone for which `wanted` is true."""
        return self._like(example for example in self if wanted(example))

    def _like(self, examples: Iterable[Example[V]], name: str | None = None) -> Dataset[V]:
        made = Dataset(
            self.name if name is None else name,
            examples,
            verdict_type=self.verdict_type,
            input_type=None if self.input_type is Input else self.input_type,
        )
        if name is None:
            made._read_from = dict(self._read_from)
        return made

    # -- files --------------------------------------------------------------------------------------------------------

    def save(self, path: Place, *, overwrite: bool = False) -> None:
        """Write it to a file, whole or not at all: a header, and one line of JSON for each example.

        A file that was changed since this dataset was loaded or saved, or that it never came from, is not written over:
        what someone else has put there would be lost.

        Args:
            path: of the file.
            overwrite: write over whatever is there.

        Raises:
            DatasetError: the file was changed by someone else, or cannot be written.
            InputError: an example would not be read back as it is.
        """
        real = real_path(path)
        lines = self._lines()
        content = "".join(f"{line}\n" for line in lines).encode()
        with locked(real):
            if not overwrite:
                self._refuse_to_lose(real, content)
            replace_lines(real, lines)
            self._read_from[real] = _mark(content)

    def _lines(self) -> list[str]:
        return [
            header_line(self.name, self._types, len(self)),
            *(example_line(example, self._types) for example in self),
        ]

    def _refuse_to_lose(self, path: Path, content: bytes) -> None:
        if not path.exists():
            return
        there = read_bytes(path)
        if there == content or self._read_from.get(path) == _mark(there):
            return
        since = "it was changed since this dataset was loaded" if path in self._read_from else "it is there already"
        raise DatasetError(
            f"{path}: {since}, and saving would lose what is in it; merge with evalr.labels.append(path, examples), or "
            "load it, add() to it and save that, or pass overwrite=True"
        )

    @classmethod
    def load(
        cls, path: Place, *, verdict_type: type[V] | None = None, input_type: type[Input] | None = None
    ) -> Dataset[V]:
        """Read a dataset from a file that `save` wrote, or that was written in its form.

        Args:
            path: of the file.
            verdict_type: of its labels; those of installed measures are known by their names.
            input_type: of its inputs; evalr's own, and others that are imported, are known by their names.

        Raises:
            DatasetError: the file is missing, damaged, cut off or something else; the message names the line.
            DuplicateError: two lines have one id.
        """
        real = real_path(path)
        return cls._read(real, read_bytes(real), verdict_type, input_type)

    @classmethod
    def _read(
        cls, path: Path, content: bytes, verdict_type: type[V] | None, input_type: type[Input] | None
    ) -> Dataset[V]:
        lines = numbered_lines(path, content.removeprefix(b"\xef\xbb\xbf"))
        header = next(lines, (1, {}))[1]
        check_header(path, header, HEADER, FORMAT)
        try:
            verdict = verdict_type_named(header.get("verdict"), verdict_type)
            types = Types(input_type_named(header.get("input"), input_type), verdict)
        except InputError as error:
            raise DatasetError(f"{path}, line 1: {error}") from None
        examples: dict[str, Example[V]] = {}
        places: dict[str, int] = {}
        for number, fields in lines:
            try:
                example = example_of(fields, types)
            except InputError as error:
                raise DatasetError(f"{path}, line {number}: {error}") from None
            first = places.setdefault(example.id, number)
            if first != number:
                raise DuplicateError(f"{path}: lines {first} and {number} both have the id {quoted(example.id)}")
            examples[example.id] = example
        stated = header.get("examples")
        if stated != len(examples):
            raise DatasetError(
                f"{path}: {count_words(len(examples), 'example')}, and its first line says {safe_text(repr(stated))}: "
                "lines are missing from it, or were written into it; put them back, or correct that number"
            )
        made = cls(
            str(header.get("name")),
            examples.values(),
            verdict_type=verdict,  # type: ignore[arg-type]  # as it was given
            input_type=types.input,
        )
        made._read_from = {path: _mark(content)}
        return made


def append(
    path: Place,
    examples: Iterable[Example[V]],
    *,
    duplicates: Duplicates = "error",
    name: str | None = None,
    verdict_type: type[V] | None = None,
    input_type: type[Input] | None = None,
) -> Dataset[V]:
    """Add examples to a dataset's file, in turn with every other process that does so: nobody's are lost.

    Args:
        path: of the file; it is made where there is none.
        examples: what to add. One that is there already and equal is not added again.
        duplicates: as in `Dataset.add`.
        name: of the dataset where the file is made; by default the file's name.
        verdict_type: as in `Dataset.load`.
        input_type: as in `Dataset.load`.

    Returns:
        The whole dataset as it now is.

    Raises:
        DatasetError: the file cannot be read or written.
        DuplicateError: as in `Dataset.add`.
        InputError: an example is of another type, or would not be read back as it is.
    """
    listed, real = list(examples), real_path(path)
    with locked(real):
        if real.exists():
            before = Dataset._read(real, read_bytes(real), verdict_type, input_type)
        else:
            types = _types(listed, verdict_type, input_type)
            before = Dataset(
                real.stem if name is None else name,
                verdict_type=types.verdict,  # type: ignore[arg-type]  # as it was given
                input_type=types.input,
            )
        merged = before.add(*listed, duplicates=duplicates)
        lines = merged._lines()
        replace_lines(real, lines)
    merged._read_from[real] = _mark("".join(f"{line}\n" for line in lines).encode())
    return merged


def checked_dataset(given: object) -> Dataset[Any]:
    """The dataset itself.

    Raises:
        InputError: it is none.
    """
    if not isinstance(given, Dataset):
        raise InputError(
            f"labels are a dataset here, not a {safe_text(type(given).__name__)}: pass Dataset(name, examples), where "
            "each Example(input, expected=value) holds what a person says of an input"
        )
    return given


def _mark(content: bytes) -> bytes:
    return blake2b(content, digest_size=20).digest()


def _types(examples: list[Example[Any]], verdict_type: type[BaseModel] | None, input_type: type[Input] | None) -> Types:
    if input_type is None:
        if not examples:
            raise InputError("an empty dataset needs input_type=, such as Transcript")
        input_type = type(examples[0].input)
    if not (isinstance(input_type, type) and issubclass(input_type, Input)):
        raise InputError(f"input_type={input_type!r} must be a type of input, such as Transcript")
    if verdict_type is None:
        labels = (example.expected for example in examples)
        verdict_type = next((type(label) for label in labels if label is not None), None)
    if verdict_type is not None:
        type_words(verdict_type)  # refuses what is no verdict type
    return Types(input_type, verdict_type)


def _check_types(example: Example[Any], types: Types) -> None:
    if type(example.input) is not types.input:
        found, wanted = type(example.input).__name__, types.input.__name__
        raise InputError(f"example {quoted(example.id)} holds a {found}, where the dataset's input type is {wanted}")
    if example.expected is not None and type(example.expected) is not types.verdict:
        wanted = "nothing" if types.verdict is None else types.verdict.__name__
        raise InputError(
            f"the label of example {quoted(example.id)} is a {type(example.expected).__name__}, and the dataset's "
            f"verdict type is {wanted}"
        )

"""Who wrote a commit: a coding agent, a person, or nobody who could be counted as either."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from importlib.resources import files
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal, get_args

from evalr.errors import InputError
from evalr.quoting import quoted

BOT = "bot"
MIXED_SQUASH = "mixed squash"
NO_AUTHOR = "commit without an author"

Kind = Literal["person", "agent", "bot"]
"""What a row of the table stands for, in the order in which the rows of one file are asked."""

SIGNS = ("names", "name_suffixes", "emails", "email_suffixes", "github_apps", "trailers")
"""The lists of signs that a row may have."""

CO_AUTHORED_BY = "co-authored-by"

LONGEST = 500
"""Characters of a name and an address that are looked at: what is remembered of a hostile one must stay small."""

KEPT = 1 << 14
"""How many identities, and how many co-authors, are remembered: few people write most of a history."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A name and an address, as a commit has them; either may be empty."""

    name: str
    email: str


@dataclass(frozen=True, slots=True)
class Wrote:
    """Who wrote a commit: the role, and which agent; without a role, why the commit is left out."""

    role: Literal["agent", "person"] | None
    agent: str | None = None
    left_out: str | None = None


_PERSON = Wrote("person")
_BOT = Wrote(None, left_out=BOT)
_MIXED_SQUASH = Wrote(None, left_out=MIXED_SQUASH)
_NO_AUTHOR = Wrote(None, left_out=NO_AUTHOR)


@dataclass(frozen=True, slots=True)
class Row:
    """An agent, a bot or a person, and what its identities and trailers look like, casefolded."""

    kind: Kind
    name: str
    names: tuple[str, ...]
    name_suffixes: tuple[str, ...]
    emails: tuple[str, ...]
    email_suffixes: tuple[str, ...]
    trailers: tuple[tuple[str, str | None], ...]
    """Keys, each with the value that is a sign, or None where any value is."""


@dataclass(frozen=True, slots=True, eq=False)
class Agents:
    """A table of agents and bots: the first row that knows an identity or a trailer says what it is.

    A place is a row's position; the number of rows is the place of what no row knows, which is taken for a person.
    """

    rows: tuple[Row, ...]
    kinds: tuple[Kind, ...]
    """What each place stands for."""
    wrote: tuple[Wrote, ...]
    """What is said of a commit that each row's agent wrote."""
    find: Callable[[str, str], int]
    """The place of a name and an address."""
    find_co_author: Callable[[str], tuple[Identity, int]]
    """Whom the value of a co-author trailer names, and the place of that identity."""
    trailers: Mapping[str, Mapping[str | None, int]]
    """The place of each trailer that is a sign: by its key, then by its value, or by None where any value is one."""


def load_agents(path: str | PathLike[str] | None = None) -> Agents:
    """The packaged table of agents and bots, after the rows of a file of your own, which win.

    Args:
        path: a TOML file of `[[person]]`, `[[agent]]` and `[[bot]]` rows in the form of the packaged one. A person's
            row says that its identities and trailers are no sign of an agent or bot, whatever a row below it says.

    Raises:
        InputError: the file cannot be read, is no TOML, or has a row that is not of this form.
    """
    own = () if path is None else _rows_of_file(fspath(path))
    return _table((*own, *_packaged_rows()))


def who_wrote(agents: Agents, *, author: Identity, subject: str, trailers: Sequence[tuple[str, str]]) -> Wrote:
    """Who wrote a commit, by its author and its trailers.

    An agent's sign makes it the agent's, whoever else is named, except that a squashed pull request with a person
    besides the author is left out: which of them wrote what is lost. The committer says nothing, since some agents
    commit people's pending edits under a name of their own.

    Args:
        agents: the table of signs.
        author: the commit's author.
        subject: the first line of its message, which may say that it is a squashed pull request.
        trailers: the keys and values of its trailers.
    """
    kinds = agents.kinds
    unknown = len(agents.rows)
    place = agents.find(author.name[:LONGEST], author.email[:LONGEST])
    agent = place if kinds[place] == "agent" else unknown
    bot = kinds[place] == "bot"
    co_authors = []
    for key, value in trailers:
        key = key.strip().casefold()
        sign = _sign_in(agents.trailers.get(key), value, unknown)
        if key == CO_AUTHORED_BY:
            co_author, known = agents.find_co_author(value[:LONGEST])
            sign = min(sign, known)
            if kinds[sign] == "person":
                co_authors.append(co_author)
        elif kinds[sign] == "bot":  # as a co-author a bot says nothing: people finish what bots began
            bot = True
        if kinds[sign] == "agent":
            agent = min(agent, sign)

    if agent != unknown:
        mixed = co_authors and _is_squash(subject) and any(_is_another(person, author) for person in co_authors)
        return _MIXED_SQUASH if mixed else agents.wrote[agent]
    if bot:
        return _BOT
    return _PERSON if author.name.strip() or author.email.strip() else _NO_AUTHOR


def identity_in(value: str) -> Identity:
    """Whom the value of a co-author trailer names: `Name <address>`, with or without brackets, or a name alone."""
    value = value.strip()
    name, bracket, rest = value.rpartition("<")
    if bracket:
        return Identity(name.rstrip("< \t"), rest.partition(">")[0].strip())
    *before, last = value.rsplit(None, 1) or [""]
    if "@" in last.strip("@"):
        return Identity("".join(before), last.strip("<>()[],;"))
    return Identity(value, "")


def _sign_in(places: Mapping[str | None, int] | None, value: str, unknown: int) -> int:
    """The place of a trailer's value among those that are signs with its key."""
    if places is None:
        return unknown
    return min(places.get(None, unknown), places.get(value.strip().casefold(), unknown))


def _is_squash(subject: str) -> bool:
    """Whether a subject ends as GitHub, GitLab and Bitbucket let that of a squashed pull request end, as in `(#12)`."""
    before, closing, after = subject.rstrip().rpartition(")")
    _, opening, reference = before.rpartition("(")
    reference = reference.casefold().removeprefix("pull request ")
    number = reference[1:]
    return bool(opening and closing and not after) and reference[:1] in ("#", "!") and _is_whole_number(number)


def _is_whole_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _is_another(co_author: Identity, author: Identity) -> bool:
    """Whether a co-author is somebody besides the author: by the address, or by the name where there is none."""
    if co_author.email:
        return co_author.email.casefold() != author.email.strip().casefold()
    return co_author.name.casefold() not in ("", author.name.strip().casefold())


# The table, by what is looked up in it


def _table(rows: tuple[Row, ...]) -> Agents:
    unknown = len(rows)
    names = _first_places((text, place) for place, row in enumerate(rows) for text in row.names)
    name_ends = _first_places((text, place) for place, row in enumerate(rows) for text in row.name_suffixes)
    emails = _first_places((text, place) for place, row in enumerate(rows) for text in row.emails)
    email_ends = _first_places((text, place) for place, row in enumerate(rows) for text in row.email_suffixes)
    trailers: dict[str, dict[str | None, int]] = {}
    for place, row in enumerate(rows):
        for key, value in row.trailers:
            trailers.setdefault(key, {}).setdefault(value, place)

    place_of_name = partial(_place, names, name_ends, tuple(name_ends), unknown)
    place_of_email = partial(_place, emails, email_ends, tuple(email_ends), unknown)

    @lru_cache(KEPT)
    def find(name: str, email: str) -> int:
        return min(place_of_name(name.strip().casefold()), place_of_email(email.strip().casefold()))

    @lru_cache(KEPT)
    def find_co_author(value: str) -> tuple[Identity, int]:
        identity = identity_in(value)
        return identity, find(identity.name, identity.email)

    return Agents(
        rows=rows,
        kinds=(*(row.kind for row in rows), "person"),
        wrote=tuple(Wrote("agent", row.name) for row in rows),
        find=find,
        find_co_author=find_co_author,
        trailers=trailers,
    )


def _first_places(places: Iterable[tuple[str, int]]) -> dict[str, int]:
    first: dict[str, int] = {}
    for text, place in places:
        first.setdefault(text, place)
    return first


def _place(whole: Mapping[str, int], ends: Mapping[str, int], any_end: tuple[str, ...], unknown: int, text: str) -> int:
    place = whole.get(text, unknown)
    if text.endswith(any_end):  # hardly anybody's does, and it is one call to find out
        place = min(place, *(at for end, at in ends.items() if text.endswith(end)))
    return place


# Rows from TOML


@cache
def _packaged_rows() -> tuple[Row, ...]:
    source = files("evalr.logs.git") / "agents.toml"
    return tuple(_rows(source.read_text(encoding="utf-8"), source.name))


def _rows_of_file(path: str) -> tuple[Row, ...]:
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is no TOML: it is not UTF-8 text; save it as UTF-8") from error
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"{path} cannot be read: {why}; name a TOML file of agents, or none for the packaged table alone"
        ) from error
    return tuple(_rows(text, path))


def _rows(text: str, where: str) -> Iterable[Row]:
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{where} is no TOML: {error}; its rows are [[person]], [[agent]] and [[bot]]") from error
    kinds: tuple[Kind, ...] = get_args(Kind)
    for key in table:
        if key not in kinds:
            raise InputError(f"{where}: unknown key {quoted(key)}; write each row as [[person]], [[agent]] or [[bot]]")
    for kind in kinds:
        rows = table.get(kind, [])
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise InputError(f"{where}: {kind!r} is not a list of rows; write each as [[{kind}]]")
        for number, row in enumerate(rows, start=1):
            yield _row(kind, row, f"{where}: [[{kind}]] {number}")


def _row(kind: Kind, row: dict[str, Any], where: str) -> Row:
    name = row.get("name", "")
    if not isinstance(name, str):
        raise InputError(f"{where}: 'name' is not a text; put it in quotes")
    if not name.strip():
        raise InputError(f'{where} has no name; add one, such as name = "claude"')
    where = f"{where} ({quoted(name)})"
    for key in row:
        if key != "name" and key not in SIGNS:
            raise InputError(f"{where}: unknown key {quoted(key)}; a row has a name and {', '.join(SIGNS)}")
    signs = {key: _texts(row.get(key, []), f"{where}: {key!r}", end=key.endswith("suffixes")) for key in SIGNS}
    if not any(signs.values()):
        raise InputError(f"{where} has no sign; add at least one of {', '.join(SIGNS)}")
    # A GitHub App's commits have its slug in their name, and its account's address with or without a number before it.
    apps = [f"{slug.removesuffix('[bot]')}[bot]" for slug in signs["github_apps"]]
    accounts = [f"{app}@users.noreply.github.com" for app in apps]
    return Row(
        kind,
        name.strip(),
        names=(*signs["names"], *apps),
        name_suffixes=signs["name_suffixes"],
        emails=(*signs["emails"], *accounts),
        email_suffixes=(*signs["email_suffixes"], *(f"+{account}" for account in accounts)),
        trailers=tuple(_trailer(text, f"{where}: 'trailers'") for text in signs["trailers"]),
    )


def _texts(texts: Any, where: str, *, end: bool) -> tuple[str, ...]:
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise InputError(f'{where} is not a list of texts; write it as ["one", "two"]')
    if not all(text.strip() for text in texts):
        raise InputError(f"{where} has an empty text, which every commit would match or none; leave it out")
    # The blank before an end is part of it: " bot" is not the end of "Abbot".
    return tuple((text.rstrip() if end else text.strip()).casefold() for text in texts)


def _trailer(text: str, where: str) -> tuple[str, str | None]:
    key, _, value = text.partition(":")
    if not key.strip():
        raise InputError(f'{where} has {quoted(text)}, which has no key; write "Key" or "Key: value"')
    return key.strip(), value.strip() or None

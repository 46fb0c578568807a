"""Retrieval experiments of teams without Reflexio's server: which there were, which one is active, and who is in it.

One SQLite file holds those of any number of organisations. Rows are added, and ended once; none is changed or taken
away, so an id is never used again. That one alone is active is the file's own rule, which holds between processes.
"""

from __future__ import annotations

import math
import os
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from evalr.errors import ExperimentConflictError, InputError, RegistryError
from evalr.estimates.words import choice_words
from evalr.inputs import Now, resolve_now, utc_now
from evalr.logs.sqlite import is_sqlite
from evalr.quoting import quoted, safe_text
from evalr_reflexio.assigning import HOLDOUT, experiment_arm, hash_fraction
from evalr_reflexio.config import DEFAULT_ORG, Config, Experiment

if TYPE_CHECKING:
    from evalr_reflexio.answers.impact import Impact

SCHEMA = 1
APPLICATION = 0x65767270  # "evrp"
PATIENCE = 30.0
"""Seconds to wait for another process that is writing. Each writes for milliseconds."""

REGISTRY = "experiments.db"
"""What the file is called, unless somebody says otherwise."""

ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")

_SCHEMA = f"""
CREATE TABLE experiments (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    org TEXT NOT NULL,
    id TEXT NOT NULL,
    holdout_percentage REAL NOT NULL CHECK (holdout_percentage > 0 AND holdout_percentage < 100),
    started_at TEXT NOT NULL,
    ended_at TEXT CHECK (ended_at >= started_at),
    UNIQUE (org, id)
);
CREATE UNIQUE INDEX one_active ON experiments (org) WHERE ended_at IS NULL;
CREATE TRIGGER kept BEFORE DELETE ON experiments BEGIN SELECT RAISE(ABORT, 'experiments are kept'); END;
CREATE TRIGGER ended_once BEFORE UPDATE ON experiments
WHEN OLD.ended_at IS NOT NULL OR NEW.ended_at IS NULL OR NEW.number <> OLD.number OR NEW.org <> OLD.org
    OR NEW.id <> OLD.id OR NEW.holdout_percentage <> OLD.holdout_percentage OR NEW.started_at <> OLD.started_at
BEGIN SELECT RAISE(ABORT, 'an experiment is only ever ended, and once'); END;
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {SCHEMA};
"""

_COLUMNS = "id, holdout_percentage, started_at, ended_at"


class UserArm(NamedTuple):
    """The arm of one user in the active experiment.

    Attributes:
        user: who.
        experiment: its id.
        arm: "treatment" or "holdout".
    """

    user: str
    experiment: str
    arm: str

    @property
    def retrieves(self) -> bool:
        """Whether the requests of this user retrieve, as the tag `reflexio_retrieval_enabled` says it."""
        return self.arm != HOLDOUT

    @property
    def stamp(self) -> dict[str, str]:
        """What to publish with each request, so that results know the arm."""
        return {"retrieval_experiment_id": self.experiment, "retrieval_experiment_arm": self.arm}


@dataclass(frozen=True)
class ExperimentRegistry:
    """The retrieval experiments of one organisation, kept in a file.

    Any number of processes may use one file, and each call sees what the others have done.

        registry = ExperimentRegistry("experiments.db", org="my-org")
        registry.start("support-agent-2026-08", holdout_percentage=10)
        registry.assign("ada")

    Args:
        path: the file; the first `start` makes it.
        org: the organisation: it has an active experiment, ids and arms of its own.

    Raises:
        InputError: `org` is empty.
    """

    path: str | os.PathLike[str]
    org: str = DEFAULT_ORG

    def __post_init__(self) -> None:
        if not isinstance(self.org, str) or not self.org or "\0" in self.org:
            raise InputError(f"org={self.org!r} must be the name of an organisation, a text that is not empty")
        hash_fraction(self.org, "", "")  # which refuses a text that no log and no file can keep

    @property
    def experiments(self) -> Sequence[Experiment]:
        """All that there ever were, newest first.

        Raises:
            RegistryError: there is no such file, or it cannot be read.
        """
        with self._reading() as connection:
            return self._all(connection)

    @property
    def active(self) -> Experiment | None:
        """The one that users are assigned to, if there is one.

        Raises:
            RegistryError: there is no such file, or it cannot be read.
        """
        with self._reading() as connection:
            return self._active(connection)

    @property
    def organisations(self) -> Sequence[str]:
        """All that the file holds experiments of, by name.

        Raises:
            RegistryError: there is no such file, or it cannot be read.
        """
        return self._texts("SELECT DISTINCT org FROM experiments ORDER BY 1")

    @property
    def active_organisations(self) -> Sequence[str]:
        """Those that have an active experiment, by name.

        Raises:
            RegistryError: there is no such file, or it cannot be read.
        """
        return self._texts("SELECT org FROM experiments WHERE ended_at IS NULL ORDER BY 1")

    @property
    def ids(self) -> Sequence[str]:
        """The ids that experiments of any organisation have, by name.

        Raises:
            RegistryError: there is no such file, or it cannot be read.
        """
        return self._texts("SELECT DISTINCT id FROM experiments ORDER BY 1")

    def organisations_with(self, experiment: str) -> Sequence[str]:
        """Those that have an experiment of this id, by name.

        Raises:
            RegistryError: there is no such file, or it cannot be read.
        """
        with self._reading() as connection:
            return self._orgs_with(connection, experiment)

    def start(self, experiment: str, *, holdout_percentage: float, now: Now = utc_now) -> Experiment:
        """Begin an experiment: from now on users are assigned to it.

        Args:
            experiment: its id, which no other one had or will have: letters, digits and `._:-`, 128 at most.
            holdout_percentage: of users who are held out, above 0 and below 100.
            now: when it begins, to the second.

        Raises:
            ExperimentConflictError: another one is active, or the id was used before.
            InputError: the id or the percentage cannot be used.
            RegistryError: the file cannot be written.
        """
        _check_id(experiment)
        percentage = _percentage(holdout_percentage)
        at = _second(now)
        with self._writing() as connection:
            active = self._active(connection)
            used = self._one(connection, experiment)
            if used is not None:
                raise ExperimentConflictError(
                    f"experiment {experiment!r} was {_times(used)}, and an id is never used again: choose another one"
                )
            if active is not None:
                raise ExperimentConflictError(
                    f"experiment {active.id!r} is active, {_times(active)}, and only one can be: stop it first"
                )
            connection.execute(
                "INSERT INTO experiments (org, id, holdout_percentage, started_at) VALUES (?, ?, ?, ?)",
                (self.org, experiment, percentage, at.isoformat()),
            )
        return Experiment(experiment, percentage, at, assigned_in=self.org)

    def stop(self, experiment: str, *, now: Now = utc_now) -> Experiment:
        """End the experiment: nobody is assigned to it any more. What was published keeps its arm, and has results.

        Args:
            experiment: its id.
            now: when it ends, to the second.

        Raises:
            ExperimentConflictError: it was stopped before.
            InputError: there is none of this id.
            RegistryError: the file cannot be written.
        """
        at = _second(now)
        with self._writing(make=False) as connection:
            found = self._known(connection, experiment)
            if found.ended_at is not None or found.started_at is None:
                raise ExperimentConflictError(f"experiment {experiment!r} was stopped before: it was {_times(found)}")
            # A clock that was put back must not keep an experiment from being stopped.
            ended = max(at, found.started_at)
            connection.execute(
                "UPDATE experiments SET ended_at = ? WHERE org = ? AND id = ?",
                (ended.isoformat(), self.org, experiment),
            )
        return replace(found, ended_at=ended)

    def get(self, experiment: str) -> Experiment:
        """The experiment of an id, active or not.

        Raises:
            InputError: there is none; the message says which there are.
            RegistryError: there is no such file, or it cannot be read.
        """
        with self._reading() as connection:
            return self._known(connection, experiment)

    def assign(self, user: str, *, experiment: str | None = None) -> UserArm | None:
        """The arm of a user: the same at each call, on each machine, and Reflexio's own.

        Args:
            user: the id of the user.
            experiment: an id that must be the active one; by default whichever is.

        Returns:
            The arm; None where no experiment is active: then everybody's requests retrieve, and none is stamped.

        Raises:
            ExperimentConflictError: the experiment that was named is not active.
            InputError: `user` is no id, or there is no such experiment.
            RegistryError: there is no such file, or it cannot be read.
        """
        if not isinstance(user, str) or not user:
            raise InputError(f"user={user!r} must be the id of a user, a text that is not empty")
        with self._reading() as connection:
            active = self._active(connection)
            if experiment is not None and (active is None or active.id != experiment):
                known = self._known(connection, experiment)
                raise ExperimentConflictError(
                    f"experiment {experiment!r} was {_times(known)}: nobody is assigned to it any more"
                )
        if active is None or active.holdout_percentage is None:
            return None
        return UserArm(user, active.id, experiment_arm(self.org, active.id, user, active.holdout_percentage))

    def results(
        self,
        log: str | os.PathLike[str],
        experiment: str,
        *,
        config: str | os.PathLike[str] | Config | None = None,
        now: Now = utc_now,
        **options: Any,
    ) -> Impact:
        """What a log says of an experiment, while it is active and ever after.

        The arm of a session is the one on its first request that carries the experiment's id; of a log in which no
        request carries it, the one that `assign` gives its user, and a note says so. Sessions count that began from the
        second of the start to that of the stop. Lifts are those of `impact`: clustered by user, beside the check that
        the arms are as large as the percentage makes likely, and the coverage of each. A log of another organisation is
        read, too, and noted.

        Args:
            log: the path of a Reflexio log.
            experiment: its id.
            config: Reflexio's configuration; by default the one that belongs to the log.
            now: the reading time.
            **options: others of `impact`, such as `level` and `always_valid`.

        Raises:
            InputError: there is no such experiment, or an option makes no sense.
            LogError: the log cannot be read, or holds nothing.
            RegistryError: there is no such registry, or it cannot be read.
        """
        from evalr_reflexio.answers.impact import impact
        from evalr_reflexio.experimenting import arms_in_log, of_another_org
        from evalr_reflexio.places import config_for, open_store

        found = self.get(experiment)
        with open_store(log) as store:
            own = config_for(store, config)
            notes = of_another_org(found, store.org or own.org, self.path)
            return impact(
                store,
                arms=arms_in_log(found, notes, store=store),
                config=replace(own, org=self.org, experiments=self.experiments),
                since=found.started_at,
                until=found.until,
                now=now,
                **options,
            )

    # -- the file -----------------------------------------------------------------------------------------------------

    def _all(self, connection: sqlite3.Connection) -> list[Experiment]:
        # By number, not by time: clocks of several machines differ.
        found = connection.execute(
            f"SELECT {_COLUMNS} FROM experiments WHERE org = ? ORDER BY number DESC", (self.org,)
        )
        return [self._read(row) for row in found]

    def _active(self, connection: sqlite3.Connection) -> Experiment | None:
        query = f"SELECT {_COLUMNS} FROM experiments WHERE org = ? AND ended_at IS NULL"
        row = connection.execute(query, (self.org,)).fetchone()
        return None if row is None else self._read(row)

    def _one(self, connection: sqlite3.Connection, experiment: str) -> Experiment | None:
        query = f"SELECT {_COLUMNS} FROM experiments WHERE org = ? AND id = ?"
        row = connection.execute(query, (self.org, experiment)).fetchone()
        return None if row is None else self._read(row)

    def _texts(self, query: str, *given: str) -> list[str]:
        with self._reading() as connection:
            return [text for (text,) in connection.execute(query, given)]

    @staticmethod
    def _orgs_with(connection: sqlite3.Connection, experiment: str) -> list[str]:
        query = "SELECT org FROM experiments WHERE id = ? ORDER BY 1"
        return [org for (org,) in connection.execute(query, (experiment,))]

    def _known(self, connection: sqlite3.Connection, experiment: str) -> Experiment:
        found = self._one(connection, experiment)
        if found is None:
            names = [each.id for each in self._all(connection)]
            others = self._orgs_with(connection, experiment)
            there = choice_words(str(experiment), names) if names else "there has been none"
            if others:
                there = f"it is one of {', '.join(map(quoted, others))}"
            raise InputError(f"no experiment {quoted(str(experiment))} of organisation {quoted(self.org)}; {there}")
        return found

    def _read(self, row: tuple[str, float, str, str | None]) -> Experiment:
        name, percentage, *texts = row
        try:
            started, ended = (None if text is None else resolve_now(datetime.fromisoformat(text)) for text in texts)
        except (TypeError, ValueError) as error:
            raise RegistryError(
                f"{self.path}: a time of experiment {quoted(str(name))} cannot be read: the file was changed by hand"
            ) from error
        return Experiment(name, percentage, started, ended, self.org)

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._told(), closing(self._opened()) as connection:
            yield connection

    def _opened(self) -> sqlite3.Connection:
        """The file open for reading; what a process left half done that was killed while it wrote is undone first."""
        try:
            return self._checked(self._connect("ro"))
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_READONLY_ROLLBACK:
                raise
        with closing(self._connect("rw")) as connection:
            connection.execute("BEGIN IMMEDIATE")  # which SQLite does not begin before it has undone the other one
            connection.rollback()
        return self._checked(self._connect("ro"))

    def _checked(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        try:
            self._check(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _writing(self, *, make: bool = True) -> Iterator[sqlite3.Connection]:
        with self._told(), closing(self._connect("rwc" if make else "rw")) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                if make and _is_new(connection):
                    for statement in _statements(_SCHEMA):
                        connection.execute(statement)
                self._check(connection)
                yield connection
            except BaseException:
                connection.rollback()
                raise
            connection.commit()

    def _connect(self, mode: str) -> sqlite3.Connection:
        path = Path(self.path)
        if "\0" in str(path):
            raise RegistryError(f"{str(path)!r} is no path of a file")
        if mode != "rwc" and not path.exists():
            raise RegistryError(
                f"{path}: there is no registry of experiments; starting an experiment makes it (evalr experiment "
                "start), or name another file. One that Reflexio keeps: evalr report LOG --arms experiment:ID"
            )
        if _is_another(path):
            # SQLite would put its -wal into it, and take it away, when all that is wanted is to look.
            raise RegistryError(f"{path} is no registry of experiments: name another file")
        return sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=PATIENCE, isolation_level=None
        )

    def _check(self, connection: sqlite3.Connection) -> None:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION:
            raise RegistryError(f"{self.path} is no registry of experiments: name another file")
        if version > SCHEMA:
            raise RegistryError(f"{self.path} was made by a later evalr: use that one")

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RegistryError(f"{self.path}: {error.strerror or error}") from error
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # the second where SQLite quotes what is damaged
            words = safe_text(str(error), longest=300) if isinstance(error, sqlite3.Error) else "it is damaged"
            raise RegistryError(f"{self.path}: the registry of experiments cannot be used: {words}") from error


def is_registry(path: Path) -> bool:
    """Whether there is a registry at this place: its first bytes say so."""
    head = _head(path)
    return is_sqlite(head) and _application(head) == APPLICATION


def _is_another(path: Path) -> bool:
    """Whether there is a database of another program. One half made by a process that was killed is none yet."""
    head = _head(path)
    return is_sqlite(head) and _application(head) != APPLICATION and not path.with_name(f"{path.name}-journal").exists()


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(72)
    except OSError:
        return b""


def _application(head: bytes) -> int:
    return int.from_bytes(head[68:72], "big")


def _statements(script: str) -> Iterator[str]:
    """Those of a script, one by one: `executescript` would end the transaction that they belong to."""
    statement = ""
    for line in script.splitlines():
        statement += f"{line}\n"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _is_new(connection: sqlite3.Connection) -> bool:
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return bool(tables == 0)


def _check_id(experiment: object) -> None:
    if not isinstance(experiment, str) or not ID.fullmatch(experiment):
        raise InputError(
            f"experiment id {quoted(str(experiment))}: write 1 to 128 letters (a to z), digits and . _ : -, the first "
            "one a letter or digit"
        )


def _percentage(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 100:
        share = isinstance(value, int | float) and math.isfinite(value)
        hint = "; to hold everybody out, or nobody, takes no experiment" if share and value in (0, 100) else ""
        raise InputError(f"holdout_percentage={value!r} must be above 0 and below 100, such as 10{hint}")
    return float(value)


def _second(now: Now) -> datetime:
    """To the second, as logs keep times: a session that began in the second of the start belongs to the experiment."""
    return resolve_now(now).replace(microsecond=0)


def _times(experiment: Experiment) -> str:
    started, ended = experiment.started_at, experiment.ended_at
    words = "" if started is None else f"started at {started:%Y-%m-%d %H:%M:%S} UTC"
    return words if ended is None else f"{words} and stopped at {ended:%Y-%m-%d %H:%M:%S} UTC"


def experiment_fields(experiment: Experiment) -> Mapping[str, object]:
    """An experiment in plain types, under the names that Reflexio gives them."""
    return {
        "experiment_id": experiment.id,
        "holdout_percentage": experiment.holdout_percentage,
        "started_at": None if experiment.started_at is None else experiment.started_at.isoformat(),
        "ended_at": None if experiment.ended_at is None else experiment.ended_at.isoformat(),
    }

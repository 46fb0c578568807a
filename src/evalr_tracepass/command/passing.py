"""Passes as the command runs them: what they come to, the question whether to go on, and how they end."""

from __future__ import annotations

import os
import shlex
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from math import isfinite
from typing import Any

from evalr.cli.judging import agreed
from evalr.errors import EvalrError, InputError
from evalr.estimates.words import count_words
from evalr.quoting import safe_text
from evalr_tracepass.catalogue import HEURISTIC_SIGNALS
from evalr_tracepass.command.choosing import Choice, OwnThings, price
from evalr_tracepass.command.grepping import Progress
from evalr_tracepass.command.places import Kept, options_of
from evalr_tracepass.command.stored import ENDED, ended_lines, pass_fields, status_lines
from evalr_tracepass.command.words import cost_words
from evalr_tracepass.hosted import ServiceReflex
from evalr_tracepass.monitors import monitor_sync
from evalr_tracepass.passes import Passes
from evalr_tracepass.planning import Plan
from evalr_tracepass.records import Account, Filters, Pass, PlanEstimate, Reflex, Rerun, Row
from evalr_tracepass.rerunning import only_new
from evalr_tracepass.running import capped
from evalr_tracepass.scopes import refusal_of
from evalr_tracepass.signals import Signal
from evalr_tracepass.sources import Source
from evalr_tracepass.storable import storable
from evalr_tracepass.traces import trace_of
from evalr_tracepass.transports.batches import BatchTransport
from evalr_tracepass.transports.live import LivePreview
from evalr_tracepass.transports.local import LocalTransport
from evalr_tracepass.transports.service import Service, key_for
from evalr_tracepass.transports.transport import Caps, Transport
from evalr_tracepass.webhooks import webhook

LOCAL, BATCH, LIVE = "local", "batch", "live"
TRANSPORTS = (LOCAL, BATCH, LIVE)

NO_PASS: dict[str, Any] = {"pass": None, "total_inputs": 0, "flagged": 0}
"""Of a monitor that has begun none, in plain types."""

WEBHOOK_SECRET = "EVALR_WEBHOOK_SECRET"

TOGETHER = 500
"""Conversations that are looked up together."""

FEW: dict[str, Any] = {"largest": 100, "together": 25}
"""Rows of a batch whose classifiers may cost something: a crash loses what one batch has brought."""


def may_cost(reflexes: Iterable[Reflex]) -> bool:
    """Whether one of them does not say that it costs nothing."""
    return any(price(each) != 0 for each in reflexes)


def begun_by(kept: Kept, found: Pass, own: OwnThings) -> str:
    """How a pass was begun: here, where all of its classifiers are, or by a service that has taken a batch of it.

    Raises:
        InputError: neither can be told. What one's own classifier was to read is not sent to a service by mistake.
    """
    models = {str(signal["model"]) for signal in found.selected_signals}
    missing = sorted(models - {*HEURISTIC_SIGNALS, *own.files})
    if not missing:
        return LOCAL
    batches = kept.store.batches(kept.account, found.id)
    if any(each.status == "prepared" or each.batch_id not in ("", each.key) for each in batches):
        return BATCH
    raise InputError(
        f"pass {found.id} is of {safe_text(', '.join(missing), longest=200)}: name each classifier with --reflex "
        "NAME=FILE, or say which way it was begun with --by batch or --by live"
    )


def transport_of(name: str, url: str | None, reflexes: Mapping[str, Reflex]) -> Transport:
    """How rows come to classifiers: those that run here, a service's batches, or its live preview.

    Raises:
        InputError: there is no such way.
    """
    if name == LOCAL:
        # A crash loses what a batch has brought, which is nothing to lose where it cost nothing.
        return LocalTransport(reflexes, **(FEW if may_cost(reflexes.values()) else {}))
    if name == BATCH:
        return BatchTransport(Service(url=url))
    if name == LIVE:
        return LivePreview(Service(url=url))
    raise InputError(f"--by {name!r} must be one of {', '.join(TRANSPORTS)}")


def hosted_by(by: str, url: str | None, account: Account) -> Callable[[Signal], ServiceReflex] | None:
    """What reads for signals that no classifier here reads for, text by text; None where nothing is sent anywhere.

    Raises:
        InputError: it is another way, or there is no key.
    """
    if by == LOCAL:
        return None
    if by != LIVE:
        raise InputError(
            f"grep reads by local or live, not by {by!r}: it keeps nothing, and what a service read in batches is paid "
            "for: evalr tracepass run --by batch"
        )
    check_key(by, account)
    service = Service(url=url)
    return lambda signal: ServiceReflex(signal.model, tuple(signal.labels or signal.fires_on), account, service)


def check_key(by: str, account: Account) -> None:
    """See that a service's key is there, before anything is counted, asked or begun for it.

    Raises:
        InputError: it is not.
    """
    if by != LOCAL:
        key_for(account, None)


@dataclass
class Shown:
    """The progress of a pass, on stderr, for whoever looks."""

    total: int

    def __post_init__(self) -> None:
        self._line = Progress(self.total)

    def __call__(self, found: Pass) -> None:
        """Say how far it is."""
        self._line.show(found.completed_inputs + found.failed_inputs)

    def clear(self) -> None:
        """Take the line away."""
        self._line.clear()


def allowed(found: PlanEstimate, *, by: str, budget: float | None, yes: bool) -> bool:
    """Whether a pass may begin: within the budget, and a person says yes where it may cost something.

    Raises:
        InputError: it would cost more than the budget, or what it would cost is not known; the budget is no amount; or
            nobody is there to ask.
    """
    if budget is not None:
        if not (isfinite(budget) and budget >= 0):
            raise InputError(f"--budget {budget!r} must be US dollars, 0 or more")
        if found.cost is None:
            raise InputError("--budget needs the price of one prediction: add --rate USD")
        if found.cost > budget:
            raise InputError(
                f"{count_words(found.predictions, 'prediction')} would cost ${found.cost:,.2f}, more than the budget "
                f"of ${budget:,.2f}: take fewer signals, or part of the traces with --sample"
            )
    if yes or not found.inputs or (by == LOCAL and found.cost == 0):
        return True
    return agreed(f"Run {count_words(found.predictions, 'prediction')}? {cost_words(found)}.")


def rerun_of(kept: Kept, made: Plan, source: Source, *, asked: Rerun | None) -> Rerun | None:
    """What to do about conversations that have results: as asked, else as a person says; None to stop.

    Where nobody is at a terminal, all of them are read again, and a line says so.
    """
    if asked is not None:
        return asked
    if not kept.store.passes(kept.account, limit=1):
        return "all"
    known, conversations = _known(kept, made, source)
    if not known:
        return "all"
    have = f"{known:,} of {conversations:,} selected conversations already have labels"
    if not (sys.stdin is not None and sys.stdin.isatty()):
        print(f"evalr: {have}, and are read again: --only-new spares them", file=sys.stderr)
        return "all"
    print("Rerun existing Reflex results?", file=sys.stderr)
    print(f"{have}.", file=sys.stderr)
    answers: dict[str, Rerun | None] = {"n": "new", "a": "all", "c": None, "": None}
    while True:
        print("[C]ancel, run only [n]ew, rerun [a]ll: ", end="", file=sys.stderr, flush=True)
        said = sys.stdin.readline().strip().lower()[:1]
        if said in answers:
            return answers[said]


def _known(kept: Kept, made: Plan, source: Source) -> tuple[int, int]:
    """How many conversations of the scope have results of a model that is to read them, and how many there are."""
    refusal, models = refusal_of(made.scope), {each.model for each in made.signals}
    known = conversations = 0
    kept_in = (storable(trace.convo_id) for trace in map(trace_of, source) if refusal(trace) is None)
    while together := list(islice(kept_in, TOGETHER)):
        conversations += len(together)
        read = kept.results.answered(kept.account, together)
        known += len({each.convo_id for each in read if each.model in models and not each.too_long})
    return known, conversations


def left_of(
    kept: Kept | None,
    made: Plan,
    source: Source,
    found: PlanEstimate,
    prices: Mapping[str, float],
    *,
    caps: Caps | None = None,
) -> PlanEstimate:
    """What is left of an estimate: inputs, predictions and their cost.

    That is, with a store only what no pass in it has read, and with caps no more than these let through.
    """
    inputs = 0
    predictions: Counter[str] = Counter()
    rows: Iterable[Row] = made.rows(source)
    if kept is not None:
        rows = only_new(rows, kept.results, kept.account)
    for row in rows if caps is None else capped(rows, caps):
        if row.error is None:
            inputs += 1
            predictions.update(row.models)
    costs = [None if (price := prices.get(model)) is None else price * n for model, n in predictions.items()]
    known = [cost for cost in costs if cost is not None]
    cost = sum(known) if len(known) == len(costs) else None
    return found.model_copy(update={"inputs": inputs, "predictions": predictions.total(), "cost": cost})


def sent_of(
    made: Plan, source: Source, found: PlanEstimate, prices: Mapping[str, float], caps: Caps | None
) -> PlanEstimate:
    """What is sent of an estimate: all of it, or as much as caps let through."""
    return found if caps is None else left_of(None, made, source, found, prices, caps=caps)


def passes_of(kept: Kept, transport: Transport, *, total: int = 0, **options: Any) -> tuple[Passes, Shown]:
    """The passes of an account, with their progress shown."""
    shown = Shown(total)
    return Passes(kept.account, kept.store, transport, kept.results, progress=shown, **options), shown


@contextmanager
def going_on(kept: Kept, log: str, by: str) -> Iterator[str]:
    """The id of a new pass. Where the pass is cut short and was kept, how it goes on is said."""
    pass_id = str(uuid.uuid4())
    try:
        yield pass_id
    except (EvalrError, KeyboardInterrupt):
        if any(each.id == pass_id for each in kept.store.passes(kept.account, limit=10)):
            where = shlex.quote(safe_text(log, longest=400))
            print(
                f"evalr: kept as far as it came: evalr tracepass resume {pass_id} {where} --by {by}"
                f"{options_of(kept.place)}",
                file=sys.stderr,
            )
        raise


def told(kept: Kept, found: Pass, log: str = "LOG") -> tuple[list[str], dict[str, Any]]:
    """How a pass stands, in lines and in plain types."""
    totals = kept.results.totals(kept.account, found.id)
    if found.status in ENDED:
        return ended_lines(kept, found, totals, log), pass_fields(found, totals)
    counts = kept.store.counts(kept.account, found.id)
    batches = kept.store.batches(kept.account, found.id)
    lines = list(status_lines(kept, found, totals, counts, batches))
    lines.append(f"Still running: evalr tracepass sync {found.id}{options_of(kept.place)}")
    return lines, pass_fields(found, totals)


def monitored(
    kept: Kept,
    choice: Choice,
    source: Source,
    transport: Transport,
    *,
    name: str,
    filters: Filters,
    settle: timedelta,
    webhooks: Sequence[str],
    now: datetime | None,
    by: str = LOCAL,
    prices: Mapping[str, float],
    budget: float | None = None,
    yes: bool = False,
) -> tuple[list[str], dict[str, Any]]:
    """One run of a monitor.

    Raises:
        InputError: there is a webhook, and no secret to sign what it is told; or it may cost something, and nobody is
            there to say yes.
    """
    stopped = False

    def agreed_to(made: Plan) -> bool:
        nonlocal stopped
        if yes and budget is None:
            return True
        ahead = left_of(kept, made, source, made.estimate(source), prices, caps=transport.caps)
        stopped = not allowed(ahead, by=by, budget=budget, yes=yes)
        return not stopped

    notify = [webhook(each, _webhook_secret()) for each in webhooks]
    options: dict[str, Any] = {} if now is None else {"now": now}
    passes, shown = passes_of(kept, transport, notify=notify, **options)
    found = monitor_sync(passes, choice.signals, source, name=name, filters=filters, settle=settle, agreed=agreed_to)
    shown.clear()
    if stopped:
        return ["nothing was run"], NO_PASS
    if found is None and kept.store.monitor(kept.account, name).pass_id is not None:
        return ["another process runs this monitor just now"], NO_PASS
    if found is None:
        return ["nothing new since the last run"], NO_PASS
    if found.status in ENDED and not found.total_inputs:
        return ["nothing new since the last run"], told(kept, found)[1]
    return told(kept, found, source.name)


def _webhook_secret() -> str:
    secret = os.environ.get(WEBHOOK_SECRET)
    if not secret:
        raise InputError(f"--webhook needs a secret to sign what it is told: set {WEBHOOK_SECRET}")
    return secret

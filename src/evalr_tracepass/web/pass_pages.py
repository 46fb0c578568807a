"""Passes: where each stands, what came of it, which inputs failed, and those that there have been."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from typing import Any, NamedTuple

from evalr.errors import StoreError
from evalr_tracepass.passes import ENDED
from evalr_tracepass.records import Pass
from evalr_tracepass.stores.store import Totals
from evalr_tracepass.web.asking import Asked
from evalr_tracepass.web.desk import Desk
from evalr_tracepass.web.kept import Kept
from evalr_tracepass.web.panel import scope_words
from evalr_tracepass.web.snapshot import key_of

FAILED_ON_A_PAGE = 100

WAITING, RUNNING, CUT, COMPLETE, PARTIAL = "waiting", "running", "cut", "complete", "partial"


class Standing(NamedTuple):
    """Where a pass stands.

    Attributes:
        state: "waiting" before it is in the store, "running", "cut" short, "complete", or "partial" where rows failed.
        found: the pass; None while it is waiting.
        done: rows that came back or failed.
        total: rows in all, as far as that is known.
        share: of these, from 0 to 1.
        batches: the names of its batches.
        error: why it stopped, where it did.
    """

    state: str
    found: Pass | None
    done: int
    total: int
    share: float
    batches: tuple[str, ...]
    error: str | None

    @property
    def is_moving(self) -> bool:
        """Whether it will look otherwise in a moment."""
        return self.state in (WAITING, RUNNING)


def pass_of(kept: Kept, pass_id: str) -> Pass | None:
    """The pass of that id, if the account has one."""
    try:
        return kept.store.get_pass(kept.account, pass_id)
    except StoreError:
        kept.passes()  # a store that cannot be read says so; one that can has no such pass
        return None


def standing_of(desk: Desk, pass_id: str) -> Standing | None:
    """Where a pass stands; None where there is none."""
    # Before the store is asked: a pass that ends in between has run until now, and was not cut short.
    running = desk.runner.running()
    job, found = desk.runner.job(pass_id), pass_of(desk.kept, pass_id)
    if found is None:
        if job is None:
            return None
        state = WAITING if pass_id in running else CUT
        return Standing(state, None, 0, 0, 0.0, (), job.error)
    # A service's own names; those of classifiers here would say nothing to anybody.
    batches = desk.kept.store.batches(desk.kept.account, pass_id) if desk.transport.durable else []
    names = tuple(dict.fromkeys(each.batch_id for each in batches if each.batch_id))
    seen = found if job is None or pass_id not in running or job.found is None else job.found
    done = seen.completed_inputs + seen.failed_inputs
    ahead = 0 if seen.planned else seen.estimate.inputs + seen.estimate.too_long
    total = max(seen.total_inputs, ahead, done)
    return Standing(
        _state(found, running),
        found,
        done,
        total,
        done / total if total else 0.0,
        names,
        (None if job is None else job.error) or found.error_message,
    )


def _state(found: Pass, running: Container[str]) -> str:
    if found.id in running:
        return RUNNING
    if found.status in ENDED:
        return COMPLETE if found.status == "complete" else PARTIAL
    return CUT


def pass_page(desk: Desk, pass_id: str, standing: Standing) -> dict[str, Any]:
    """What a pass's template shows."""
    found = standing.found
    return {
        "pass_id": pass_id,
        "standing": standing,
        "found": found,
        "failed": desk.kept.failed_inputs(found) if found is not None and standing.state == PARTIAL else 0,
        "totals": desk.kept.totals(found) if found is not None and standing.state in (COMPLETE, PARTIAL) else None,
        "scope": "" if found is None else scope_words(found.scope),
        "names": desk.names([] if found is None else [found]),
        "flagged": Asked(show="flagged", passes=pass_id).link("/"),
    }


class PassLine(NamedTuple):
    """One row of the history."""

    found: Pass
    totals: Totals
    scope: str
    state: str


def history(desk: Desk) -> list[PassLine]:
    """The passes of the account, the latest first."""
    kept, running = desk.kept, desk.runner.running()
    return [
        PassLine(
            each,
            kept.totals(each),
            scope_words(each.scope),
            _state(each, running),
        )
        for each in kept.passes()
    ]


def failed_page(desk: Desk, found: Pass, asked: Asked) -> dict[str, Any]:
    """What the template of failed inputs shows."""
    failed = list(desk.kept.results_store.results(desk.kept.account, passes=found.id, failed=True))
    kinds = Counter((each.reflex_model, each.error_type) for each in failed)
    pages = max(1, -(-len(failed) // FAILED_ON_A_PAGE))
    page = min(asked.page, pages)
    start = (page - 1) * FAILED_ON_A_PAGE
    shown = failed[start : start + FAILED_ON_A_PAGE]
    return {
        "found": found,
        "kinds": kinds.most_common(),
        "total": len(failed),
        "inputs": len({each.request_id for each in failed}),
        "lines": [(key_of(each.convo_id, each.user), each) for each in shown],
        "asked": asked._replace(page=page),
        "pages": pages,
        "first": start + 1 if failed else 0,
        "last": start + len(shown),
        "standing": standing_of(desk, found.id),
        "names": desk.names([found]),
    }

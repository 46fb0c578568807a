"""Everything that Reflexio computes of a log, in one dict: what `evalr report --compat reflexio --json` adds."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from evalr.inputs import Clock, utc_now
from evalr.logs.log import Log
from evalr_reflexio.compat.account import AskedStore
from evalr_reflexio.compat.dashboard import get_dashboard_stats, get_playbook_application_stats
from evalr_reflexio.compat.experiments import retrieval_experiment_results, retrieval_experiments
from evalr_reflexio.compat.groups import metadata_groups, overview_with_groups
from evalr_reflexio.compat.health import healthz_eval, row_counts
from evalr_reflexio.compat.listing import session_counts
from evalr_reflexio.compat.overview import SourceSets, read_page
from evalr_reflexio.compat.regenerating import regeneration_counts
from evalr_reflexio.compat.shadows import MOST, recent_shadow_comparisons, significant_shadow_comparisons
from evalr_reflexio.compat.tiles import Bucket
from evalr_reflexio.compat.verdicts import (
    get_agent_success_evaluation_results,
    get_retrieved_learning_evaluation_results,
    get_session_outcomes,
    learning_counts,
)
from evalr_reflexio.compat.windows import Moment
from evalr_reflexio.config import Config
from evalr_reflexio.store import Store

LISTED = 10_000
"""How many sessions are listed by name, so that the memory does not grow with the log."""


def compat_figures(
    store: Store,
    *,
    since: Moment | None = None,
    until: Moment | None = None,
    source_sets: SourceSets | None = None,
    config: Config | None = None,
    now: datetime | Clock = utc_now,
    listed: int | None = LISTED,
) -> dict[str, Any]:
    """Every answer that Reflexio computes of its log, by the name of its route, and what was skipped for each.

    Args:
        store: the log.
        since: begins the period of the overview, the groups by tag, the sessions to grade anew, and further
            lists of verdicts; see `overview`.
        until: ends it.
        source_sets: request sources by label, to be compared.
        config: the settings; by default those found beside the log.
        now: the reading time.
        listed: how many sessions are listed by name, for each list; None for all of them.

    Raises:
        InputError, LogError: as for `overview`.
    """
    found: dict[str, Any] = {}
    skipped: dict[str, Any] = {}
    config = AskedStore(store, None).config(config)
    period: dict[str, Any] = {"since": since, "until": until, "now": now}

    def ask(answer: Callable[..., Any], *given: Any, name: str | None = None, **options: Any) -> Any:
        account = store.account()
        said = answer(store, *given, account=account, **options)
        name = name or answer.__name__
        found[name] = said
        if account.left_out.counts:
            skipped[name] = {
                reason: {"count": count, "places": list(account.left_out.places[reason])}
                for reason, count in account.left_out.counts.items()
            }
        return said

    ask(_overviews, name="get_evaluation_overview", source_sets=source_sets, config=config, listed=listed, **period)
    if store.keeps_metadata:
        for bucket in ("week", "day"):
            name = f"get_evaluation_overview_0_2_25_{bucket}"
            ask(overview_with_groups, name=name, bucket=bucket, config=config, listed=listed, **period)
        for join in ("session", "user"):
            ask(metadata_groups, name=f"groups_by_tag_joined_by_{join}", join=join, **period)
    ask(recent_shadow_comparisons, limit=MOST, config=config, now=now)
    ask(significant_shadow_comparisons, config=config, **period)
    found["retrieval_experiments"] = retrieval_experiments(store, config=config)
    results = {
        each.id: ask(retrieval_experiment_results, each.id, config=config, now=now) for each in config.experiments
    }
    found[retrieval_experiment_results.__name__] = results
    for verdicts in (get_agent_success_evaluation_results, get_retrieved_learning_evaluation_results):
        ask(verdicts)
        if since is not None or until is not None:
            ask(verdicts, name=f"{verdicts.__name__}_of_the_period", since=since, until=until)
    for answer in (get_session_outcomes, learning_counts, healthz_eval):
        ask(answer)
    for answer in (get_dashboard_stats, get_playbook_application_stats):
        ask(answer, now=now)
    ask(regeneration_counts, name="regenerate", **period)
    return found | {"row_counts": row_counts(store), "session_counts": session_counts(store), "skipped": skipped}


def _overviews(store: Store, *, account: Log, **options: Any) -> dict[Bucket, dict[str, Any]]:
    return read_page(AskedStore(store, account), **options).answers()

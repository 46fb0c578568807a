"""Costs: what does one flagged conversation cost to find?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import isfinite

from evalr.errors import InputError
from evalr.estimates.estimate import Estimate
from evalr.quoting import safe_text
from evalr.summaries import Rate
from evalr_tracepass.measures.association import Flagged, flagged_conversations
from evalr_tracepass.records import Result

ANY = "any signal"

_flagged = Rate("flagged", of=Flagged, hits=lambda value: int(value.fired), noun="conversation")


def cost_per_flagged(records: Iterable[Result], *, rate: float | Mapping[str, float], level: float = 0.95) -> Estimate:
    """US dollars spent for each conversation in which any of the signals fired.

    What was spent is known, and what was found is one sample of what there is: the limits are those of the share of
    conversations flagged, turned around. What failed counts as paid for, since no service says that it is not.

    Args:
        records: of one pass, all of its signals.
        rate: US dollars for one prediction, or by model.
        level: of the interval.

    Raises:
        InputError: a rate is negative, or there is none for a model: an unknown cost is not 0.
    """
    found = list(records)
    spent = sum(_price(each.reflex_model, rate) for each in found)
    # One reading of a conversation, whichever signal it was that fired.
    results = flagged_conversations([each._replace(signal_id=ANY) for each in found])
    share = _flagged.estimate(results, level=level)
    made = replace(share, name="cost_per_flagged", unit="dollars", variance=None, bounds=None)
    made = replace(made, counts={**share.counts, "spent": spent})
    if not share.value:
        reason = share.reason if share.value is None else f"${spent:,.2f} was spent, and no conversation flagged"
        return replace(made, value=None, low=None, high=None, status="undefined", reason=reason)
    each = spent / share.n
    return replace(
        made,
        value=each / share.value,
        low=each / share.high if share.high else None,
        high=each / share.low if share.low else None,
        method=f"inverse of {share.method}",
    )


def _price(model: str, rate: float | Mapping[str, float]) -> float:
    price = rate.get(model) if isinstance(rate, Mapping) else rate
    if price is None:
        raise InputError(f"rate has no price for the model {safe_text(model)!r}, and an unknown cost is not 0")
    if isinstance(price, bool) or not (isfinite(price) and price >= 0):
        raise InputError(f"rate={price!r} must be US dollars for one prediction, 0 or more")
    return price

"""The texts of comparisons, looked up in the log when somebody wants to read them: answers hold none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from os import PathLike

from evalr.measures import Comparison, Comparisons, ShadowWin
from evalr.verdicts import Verdict
from evalr_reflexio.answers.shadows import Compared
from evalr_reflexio.conversations import exchanges_of
from evalr_reflexio.places import open_store
from evalr_reflexio.store import Store
from evalr_reflexio.stored import SHADOW_JUDGE

GONE = "without its exchange"


def comparison_texts(log: str | PathLike[str] | Store, compared: Iterable[Compared]) -> Comparisons:
    """Comparisons with the message and both answers, in the order given, to be read one by one.

    Args:
        log: where they come from: its path, or a store that is open.
        compared: such as `impact(...).shadow.disagreements`.

    Returns:
        Those whose answer is in the log; the others are counted as left out.

    Example:
        `print(comparison_texts("reflexio_my-org.db", found.shadow.disagreements))`
    """
    if isinstance(log, Store):
        return _texts(log, compared)
    with open_store(log) as store:
        return _texts(store, compared)


def _texts(store: Store, compared: Iterable[Compared]) -> Comparisons:
    asked = list(compared)
    found = [comparison for each in asked if (comparison := _text(store, each)) is not None]
    missing = len(asked) - len(found)
    return Comparisons(tuple(found), len(found), Counter({GONE: missing} if missing else {}))


def _text(store: Store, compared: Compared) -> Comparison | None:
    for record in store.sessions_of_id(compared.session, store.account()):
        if (record.user or None) == compared.user:
            for exchange in exchanges_of(record, treatment=compared.treatment, arm=compared.arm):
                if exchange.id == str(compared.interaction):
                    return Comparison(exchange, Verdict(_value(compared), SHADOW_JUDGE, about=exchange.about()))
    return None


def _value(compared: Compared) -> ShadowWin:
    other = "shadow" if compared.treatment == "served" else "served"
    winners = {"win": compared.treatment, "loss": other, "tie": "tie"}
    return ShadowWin(
        winner=winners[compared.outcome],  # type: ignore[arg-type]  # one of the three
        significant=compared.by_far,
        shown_first="served" if compared.served_first else "shadow",
        reason=compared.reason,
        treatment=compared.treatment,
    )

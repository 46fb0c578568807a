"""Judging exchanges with any judge of pairs: in an order that it cannot guess, or in both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from hashlib import blake2b
from json import dumps
from typing import Any, Literal, NamedTuple

from evalr.background import run_sync
from evalr.errors import InputError, error_words
from evalr.evaluators import Evaluator, calls_of, known_total
from evalr.input_fields import without_lone_surrogates
from evalr.inputs import Exchange, Pair, Side
from evalr.measures.shadow import Preference, ShadowWin, Winner
from evalr.quoting import safe_text
from evalr.summaries.keys import group_reader
from evalr.verdicts import TRAINED_ON, Failure, HandOff, Result, Verdict, is_trained_on

Orders = Literal["random", "both"]

_OTHER: Mapping[Side, Side] = {"served": "shadow", "shadow": "served"}
_LONGER = {True: "served", False: "shadow"}
_OF_WINNER = {"better": "winner", "significant": "significant", "reason": "reason"}


class _Asked(NamedTuple):
    """What the judge said with one of the answers shown first."""

    first: Side
    result: Result[Preference]


@dataclass(frozen=True)
class ShadowEvaluator:
    """See `shadow_evaluator`."""

    judge: Evaluator[Pair, Preference]
    _: KW_ONLY
    orders: Orders = "random"
    key: str | None = None
    seed: str = ""
    name: str = "shadow"

    def __post_init__(self) -> None:
        if not isinstance(self.judge, Evaluator) or not issubclass(self.judge.verdict_type, Preference):
            raise InputError("a judge of pairs is an evaluator that reads a Pair and gives a Preference")
        if self.orders not in ("random", "both"):
            raise InputError(f"orders={safe_text(repr(self.orders))} must be 'random' or 'both'")
        if self.orders == "both" and (self.key is not None or self.seed):
            raise InputError("orders='both' leaves nothing to chance: key= and seed= are for orders='random'")

    @property
    def version(self) -> str:
        """The judge's name and version, and in which order it is asked."""
        drawn = "" if self.key is None else f":key={_spelled(self.key)}"
        seeded = f":seed={_spelled(self.seed)}" if self.seed else ""
        return f"{self.judge.name}@{self.judge.version}:{self.orders}{drawn}{seeded}"

    @property
    def verdict_type(self) -> type[ShadowWin]:
        """`ShadowWin`."""
        return ShadowWin

    @property
    def input_type(self) -> type[Exchange]:
        """`Exchange`."""
        return Exchange

    def pinned(self) -> ShadowEvaluator:
        """The same evaluator with the judge's clock, where it has one, read once."""
        pin = getattr(self.judge, "pinned", None)
        return self if pin is None else replace(self, judge=pin())

    def as_of(self, given: Exchange, /) -> Any:
        """The reading time that the judge's answer depends on, None where it depends on none."""
        read = getattr(self.judge, "as_of", None)
        return None if read is None else read(_pair(given, "served"))

    @property
    def _times(self) -> int:
        """How often the judge is asked of one exchange."""
        return 2 if self.orders == "both" else 1

    def expected_calls(self, given: Exchange, /) -> int:
        """The judge's calls for one exchange: those of both orders where it is asked of both."""
        return self._times * calls_of(self.judge, _pair(given, "served"))

    def expected_tokens(self, given: Exchange, /) -> int:
        """What the judge expects of all the calls for one exchange."""
        expected = getattr(self.judge, "expected_tokens", None)
        return 0 if expected is None else self._times * expected(_pair(given, "served"))

    def expected_cost(self, given: Exchange, /) -> float | None:
        """What the judge expects all the calls for one exchange to cost, in US dollars; None where it does not know."""
        expected = getattr(self.judge, "expected_cost", None)
        cost = None if expected is None else expected(_pair(given, "served"))
        return None if cost is None else self._times * cost

    async def evaluate(self, given: Exchange, /) -> Result[ShadowWin]:
        """The result for one exchange. Its latency and cost are those of all the calls that were made."""
        if not isinstance(given, Exchange):
            raise InputError(f"evaluator {self.name!r} reads Exchange, not {type(given).__name__}: pass it exchanges")
        try:
            pairs = [(first, _pair(given, first)) for first in self._order(given)]
            longer, treatment = _longer(given), given.treatment
        except Exception as error:  # noqa: BLE001  an input that cannot be read is this input's failure
            words = without_lone_surrogates(error_words(error))
            return Failure(words, self.name, self.version, given.about(), exception=error)
        asked: list[_Asked] = []
        # One after the other: a limit on calls at a time counts this evaluator as one.
        for first, pair in pairs:
            asked.append(_Asked(first, await self.judge.evaluate(pair)))
            if not isinstance(asked[-1].result, Verdict):
                break
        stamp: dict[str, Any] = {
            "evaluator": self.name,
            "version": self.version,
            "about": given.about(),
            "latency": known_total([each.result.latency for each in asked]),
            "cost": known_total([each.result.cost for each in asked]),
            "as_of": asked[-1].result.as_of,
        }
        result = _combined(asked, {"longer": longer, "treatment": treatment}, stamp)
        if isinstance(result, Verdict) and not is_trained_on(result) and self._was_trained_on(given):
            return replace(result, flags=(*result.flags, TRAINED_ON))
        return result

    def evaluate_sync(self, given: Exchange, /) -> Result[ShadowWin]:
        """As `evaluate`, from code that cannot await, in a notebook too; see `run_sync`."""
        return run_sync(self.evaluate(given))

    def _was_trained_on(self, given: Exchange) -> bool:
        """Whether the judge was made with this exchange, or with a pair by the same names.

        The judge itself cannot tell: the pair that it is shown has no id.
        """
        own = given.about().subject
        made_with = getattr(self.judge, "made_with", ())
        return own is not None and (own in made_with or (Pair.kind, *own[1:]) in made_with)

    def _order(self, given: Exchange) -> tuple[Side, ...]:
        """The sides to show first, one for each call."""
        if self.orders == "both":
            return ("served", "shadow")
        spelled = dumps([self.seed, *self._drawn_by(given)], ensure_ascii=True).encode()
        drawn = blake2b(spelled, digest_size=8, person=b"evalr order").digest()
        return ("served" if drawn[0] & 1 else "shadow",)

    def _drawn_by(self, given: Exchange) -> list[str | None]:
        if self.key is not None:
            (found, *more) = group_reader(self.key)(given.about())
            if found is None or more:
                raise InputError(f"key={self.key!r}: an exchange needs exactly one text to draw its order by")
            # Session ids alone repeat across users in real logs.
            return [given.user, found] if self.key == "session" else [found]
        if given.id is not None:
            return [given.user, given.session, given.id]
        return [given.message, given.served, given.shadow]


def shadow_evaluator(
    judge: Evaluator[Pair, Preference],
    *,
    orders: Orders = "random",
    key: str | None = None,
    seed: str = "",
    name: str = "shadow",
) -> ShadowEvaluator:
    """An evaluator of exchanges, made of any judge of pairs.

    The judge sees the message and the two answers: neither which of them was served, nor who wrote what before. The
    verdict's version is the judge's, its prompt's included, and the order's, so that no summary pools two of them.

    Args:
        judge: reads a `Pair`, and gives a `Preference`: `evalr.dspy.pairwise_judge`, or any other evaluator.
        orders: "random" asks once, in an order that is drawn for each exchange and recorded as `shown_first`. "both"
            asks twice: a winner is one that won in both orders, a disagreement is a tie, and the verdict keeps what
            each order said. It is significant where both say so. Where one call has no verdict, there is none.
        key: what a random order is drawn by: "user", "session", or an attribute. By default it is the exchange itself,
            by user, session and id, or by its texts where it has no id. So the order is the same in every process, and
            in every repeat.
        seed: another seed draws other orders.
        name: of the evaluator.

    Raises:
        InputError: the judge is none of pairs, or the arguments do not go together.
    """
    return ShadowEvaluator(judge, orders=orders, key=key, seed=seed, name=name)


def _pair(given: Exchange, first: Side) -> Pair:
    """What the judge is shown, and no more: an id or an attribute might tell which answer is which."""
    texts: dict[Side, str] = {"served": given.served, "shadow": given.shadow}
    return Pair(message=given.message, first=texts[first], second=texts[_OTHER[first]], read_at=given.read_at)


def _spelled(text: str) -> str:
    """A text within a version: in quotes where it could be taken for another part of it."""
    return text if text.isidentifier() else dumps(text)


def _longer(given: Exchange) -> str:
    served, shadow = len(given.served), len(given.shadow)
    return "neither" if served == shadow else _LONGER[served > shadow]


def _combined(asked: list[_Asked], common: dict[str, Any], stamp: dict[str, Any]) -> Result[ShadowWin]:
    first, last = asked[-1]
    where = f"with the {first} answer first: " if len(asked) > 1 else ""
    if isinstance(last, Failure):
        return replace(last, error=where + last.error, **stamp)
    if isinstance(last, HandOff):
        return replace(last, reason=where + last.reason, verdict=None, **stamp)
    if not isinstance(last, Verdict):
        return replace(last, reason=where + last.reason, **stamp)
    verdicts = [(each.first, each.result) for each in asked if isinstance(each.result, Verdict)]
    value = _in_one_order(verdicts[0]) if len(verdicts) == 1 else _in_both(verdicts)
    flags = tuple(dict.fromkeys(flag for _, verdict in verdicts for flag in verdict.flags))
    confidence = _confidence([verdict for _, verdict in verdicts])
    return Verdict(ShadowWin(**value, **common), confidence=confidence, flags=flags, **stamp)


def _in_one_order(found: tuple[Side, Verdict[Preference]]) -> dict[str, Any]:
    first, verdict = found
    value = verdict.value
    return {
        "winner": _winner(value, first),
        "significant": value.significant,
        "shown_first": first,
        "reason": value.reason,
    }


def _in_both(found: list[tuple[Side, Verdict[Preference]]]) -> dict[str, Any]:
    winners = {first: _winner(verdict.value, first) for first, verdict in found}
    agreed = winners["served"] == winners["shadow"]
    # What a judge calls the first answer is another one in each order.
    reasons = [f"{first} shown first: {verdict.value.reason}" for first, verdict in found if verdict.value.reason]
    return {
        "winner": winners["served"] if agreed else "tie",
        "significant": agreed and all(verdict.value.significant for _, verdict in found),
        "when_served_first": winners["served"],
        "when_shadow_first": winners["shadow"],
        "reason": "; ".join(reasons) or None,
    }


def _winner(value: Preference, first: Side) -> Winner:
    if value.better == "tie":
        return "tie"
    return first if value.better == "first" else _OTHER[first]


def _confidence(verdicts: list[Verdict[Preference]]) -> dict[str, float] | None:
    """The lowest of all orders, by field, where every order says."""
    said = [verdict.confidence or {} for verdict in verdicts]
    shared = {name: min(each[name] for each in said) for name in said[0] if all(name in each for each in said)}
    return {_OF_WINNER.get(name, name): value for name, value in shared.items()} or None

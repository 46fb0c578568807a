"""Two answers to one message: how often the one with Reflexio wins, and the comparisons themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from evalr.estimates.words import count_words, interval_words, p_words, value_words
from evalr.logs.blocks import Block, Card, Cards, Notice, Numbers, Tile, Tiles
from evalr.logs.further import figure
from evalr.quoting import quoted
from evalr_reflexio.answers.shadows import Compared, ShadowAnswer
from evalr_reflexio.blocks.beside import AnswerTexts, Beside, Key
from evalr_reflexio.blocks.words import (
    account_words,
    arm_words,
    chart_width,
    counts_words,
    excerpt,
    moment,
    of_user,
    shortened,
)
from evalr_reflexio.stored import CONTROLS

_WITH, _WITHOUT = "with Reflexio", "without Reflexio"
_ENDED = {"win": "with Reflexio won", "tie": "tie", "loss": "with Reflexio lost"}
_GONE = "its text is no longer in the log"


def wins_tile(shadow: ShadowAnswer) -> Tile:
    """The headline: how often the answer with Reflexio won, as it went over time."""
    wins = shadow.wins
    counts = {name: int(wins.counts.get(name, 0)) for name in ("wins", "ties", "losses")}
    return Tile(
        title="per-turn win rate",
        value=value_words(wins.value, wins.unit) if wins.value is not None else "no estimate",
        interval=interval_words(wins.low, wins.high, wins.unit),
        lines=(
            f"{counts['wins']:,} wins · {counts['ties']:,} ties · {counts['losses']:,} losses",
            f"n={wins.n:,} · {shadow.judged:,} of {count_words(shadow.with_shadow, 'answer')} with a shadow judged",
        ),
        warning=f"low confidence: {wins.cluster_words()}" if "low_confidence" in wins.flags else None,
        spark=tuple(each.value for bucket, each in shadow.trend.items() if bucket is not None)[-60:],
        footnote=f"Wins over all that were judged; a tie is not won. {account_words(wins)} The line is the same by "
        f"{shadow.trend.by}.",
    )


def shadow_blocks(shadow: ShadowAnswer, beside: Beside) -> Iterator[Block]:
    """The section on two answers to one message."""
    yield Tiles(tiles=(wins_tile(shadow),))
    yield from _assumed(shadow)
    if not shadow.wins.n:
        text = "no answer with a shadow has a verdict that counts: evalr judge has them judged"
        yield Notice(text=text + _aside(shadow))
        return
    arms = shadow.arms if len(shadow.arms) > 1 else {}
    yield Numbers(
        title="wins, ties and losses",
        rows=(
            ("won with Reflexio", shadow.wins),
            ("net win", shadow.net),
            ("won where decided", shadow.decided),
            *((f"won with Reflexio, {arm_words(arm)}", each) for arm, each in arms.items()),
        ),
        footnote=_below(shadow),
    )
    if sum(1 for each in shadow.trend.values() if each.n) > 1:
        yield figure(
            shadow.trend,
            width=chart_width(len(shadow.trend)),
            title=f"won with Reflexio, by {shadow.trend.by}",
            footnote=f"Of the answers given on each {shadow.trend.by} (UTC); the n of each point stands above it. "
            f"{account_words(shadow.wins).partition('. ')[2]}",
        )
    if shadow.disagreements:
        yield Cards(
            title="top disagreements: the answer without Reflexio was better by far",
            cards=tuple(_cards(shadow.disagreements, beside.answers)),
            total=shadow.lost_by_far,
            footnote="Newest first: cases from which to revise learnings.",
        )
    else:
        yield Notice(text="no judged answer with Reflexio lost by far")
    yield Cards(
        title="recent comparisons",
        cards=tuple(_cards(shadow.recent, beside.answers)),
        total=shadow.wins.n,
        footnote="Newest first. The judge is shown both answers to the message alone, in an order drawn by chance.",
    )


def _assumed(shadow: ShadowAnswer) -> Iterator[Notice]:
    whose = {"served": "the served answer", "shadow": "the shadow", "arm": "the served one, but in the control"}
    version = "" if shadow.version is None else f"; verdicts are those of prompt version {quoted(shadow.version)}"
    yield Notice(text=f"with Reflexio is taken to be {whose[shadow.which]}{version}")
    controls = [arm for arm in shadow.arms if arm is not None and arm.casefold() in CONTROLS]
    if shadow.which == "served" and controls:
        text = f"in {controls[0]} the served answer has no Reflexio: --shadow arm says so"
        yield Notice(text=text, tone="warning")


def _below(shadow: ShadowAnswer) -> str:
    words = [f"won by far {shadow.by_far['wins']:,}, lost by far {shadow.by_far['losses']:,}"]
    if shadow.test.p is not None:
        words.append(f"{p_words(shadow.test.p)}, were wins and losses as frequent")
    return " · ".join(words) + _aside(shadow)


def _aside(shadow: ShadowAnswer) -> str:
    """What was left out."""
    return f" · left out: {counts_words(shadow.left_out)}" if shadow.left_out else ""


def _cards(compared: Iterable[Compared], texts: Mapping[Key, AnswerTexts]) -> Iterator[Card]:
    for each in compared:
        found = None if each.interaction is None else texts.get((each.user, each.session, each.interaction))
        served, shadow = (_WITH, _WITHOUT) if each.treatment == "served" else (_WITHOUT, _WITH)
        served, shadow = f"{served} (served)", f"{shadow} (shadow)"
        answers = {} if found is None else {served: found.served, shadow: found.shadow}
        beside = tuple(sorted(answers, key=lambda name: name.startswith(_WITHOUT)))
        chips = [_ENDED[each.outcome], *(["by far"] if each.by_far else []), f"shown first: {_first(each)}"]
        if each.arm is not None:
            chips.append(each.arm)
        message = _GONE if found is None else found.message or "no message before it"
        yield Card(
            title=f"{moment(each.at)} · {excerpt(message)}",
            chips=tuple(chips),
            texts=(
                ("session", of_user(each.session, each.user)),
                ("message", shortened(message)),
                *((name, shortened(answers[name], 1_200) or "empty") for name in beside),
                ("the judge's reason", shortened(each.reason or "none given")),
            ),
            beside=beside,
        )


def _first(each: Compared) -> str:
    with_it = (each.treatment == "served") == each.served_first
    return _WITH if with_it else _WITHOUT

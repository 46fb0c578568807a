"""How much of a text an edit changed, and whether that is at least a threshold."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import accumulate, groupby, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from evalr.errors import InputError

if TYPE_CHECKING:
    import difflib

STEPS = 300_000_000
"""What one search may cost: about 0.6 seconds with cydifflib, for which a step is about two nanoseconds."""

TOKEN_CELLS = 10_000_000_000
"""The pairs of tokens that an alignment may weigh: 100,000 tokens against as many, one to four seconds."""

BOUND_CELLS = 2_000_000_000
"""The pairs of characters that a decision's bound may weigh, up to 0.3 seconds. Never above TOKEN_CELLS."""

TOKEN = re.compile(r" ?\w{8,32}?(?<=[aeiouAEIOU02468])| ?\w{1,32}|\s{1,32}|[^\w\s]{1,32}")

Pair = tuple[Sequence[str], Sequence[str]]
Match = tuple[int, int, int]
"""Where something that is the same starts on either side, and how long it is."""


class Change(NamedTuple):
    """How much of a text changed, 0 to 1; `method` is None where that is exact, else the estimate and its version."""

    share: float
    method: str | None


class Decision(NamedTuple):
    """Whether a change reaches a threshold; `method` is None unless that took an estimate, which it then names."""

    changed: bool
    method: str | None


class Alignment(NamedTuple):
    """Which characters of two texts are the same, as matches that share none; `method` as in `Change`."""

    matches: list[Match]
    method: str | None


def share_changed(before: str, after: str, *, normalize: bool = False) -> float:
    """How much of a text an edit changed, from 0 to 1, so that a small change to a table or a checklist stays small.

    Lines, with their ends, are aligned with `difflib`, each changed run of lines is joined, and the characters inside
    it are matched with `difflib` again, both without its autojunk heuristic. With `same` characters in equal lines and
    in matches, the share is `1 - 2 * same / (len(before) + len(after))`, and 0 for two empty texts.

    That search takes cubic time at worst. So it is metered, by what it has yet to compare and never by a clock. Where
    it would take seconds for the lines, or for all the changed runs together, the share is an estimate:

    - `tokens/1` cuts the changed runs (the whole texts, where it was the lines) into tokens of at most 33 characters:
      words with the space before them, cut after the first vowel or even digit from their eighth character on, and runs
      of white space or of other signs. It aligns them with the fewest tokens inserted, deleted or replaced, which is
      Levenshtein's distance, and `same` counts the characters of the tokens that stay.
    - `overlap/1`, where that would weigh more than 10,000,000,000 pairs of tokens, aligns nothing: `same` counts the
      characters of each token that the other side holds too, followed by the same two tokens, and as often. Where it
      matters which of several they are (`align`), they are the first ones of either side.

    Both give 0 for equal texts and 1 for texts that share no token. `measure_change` tells which it was.

    Args:
        before: the text before the edit.
        after: the text after it.
        normalize: first make every line end a newline, and compose characters (Unicode's NFC).
    """
    return measure_change(before, after, normalize=normalize).share


def measure_change(before: str, after: str, *, normalize: bool = False) -> Change:
    """What `share_changed` says, and how it was found."""
    if normalize:
        before, after = normalized(before), normalized(after)
    if before == after:
        return Change(0.0, None)
    lines = _align_lines(before, after, STEPS)
    same, method = _same_inside(lines)
    return Change(_share(lines.same + same, before, after), method)


def align(before: str, after: str) -> Alignment:
    """Which characters are the same, where `share_changed` only counts them: `same` is the sum of the matches' sizes.

    Each match is (its start in `before`, its start in `after`, its size), all in characters; no two hold the same
    character of either text. They are in the order of both texts, except with `overlap/1`, which aligns nothing.
    """
    if before == after:
        return Alignment([(0, 0, len(before))], None)
    lines = _align_lines(before, after, STEPS)
    inside = _align_inside(lines)
    in_runs = inside.in_order
    if in_runs is None:
        in_runs = [_anywhere(a, b) for a, b in inside.tokens]
    inside_runs = [
        (start_a + i, start_b + j, size)
        for (start_a, start_b), found in zip(lines.starts, in_runs, strict=True)
        for i, j, size in found
        if size
    ]
    return Alignment(sorted(lines.equal + inside_runs), inside.method)


def changed_at_least(before: str, after: str, threshold: float, *, normalize: bool = False) -> Decision:
    """Whether `share_changed(before, after) >= threshold`: always the same verdict, mostly without the share.

    What bounds the exact share and the estimates alike settles most pairs: at most the shorter text can be the same, at
    least the equal lines are, and beside them at most the longest common subsequence of each changed run. A verdict
    that was settled so has no `method`.

    Args:
        before: the text before the edit.
        after: the text after it.
        threshold: a share, from 0 to 1.
        normalize: as `share_changed` has it.

    Raises:
        InputError: the threshold is not from 0 to 1.
    """
    if not 0 <= threshold <= 1:
        raise InputError(f"threshold={threshold!r} must be a share of a text, from 0 to 1")
    if normalize:
        before, after = normalized(before), normalized(after)
    if before == after:
        return Decision(threshold <= 0, None)

    def reached(same: int) -> bool:
        # More that is the same never rounds to a larger share, so a bound on `same` needs no margin.
        return _share(same, before, after) >= threshold

    if reached(min(len(before), len(after))):
        return Decision(True, None)
    lines = _align_lines(before, after, STEPS)
    if not reached(lines.same):
        return Decision(False, None)
    # Matched characters and aligned tokens are common subsequences. An overlap is not, but it comes with more cells.
    if _cells(lines.changed) <= BOUND_CELLS and reached(lines.same + _most_same_inside(lines)):
        return Decision(True, None)
    same, method = _same_inside(lines)
    return Decision(reached(lines.same + same), method)


class _Lines(NamedTuple):
    """Two texts with their lines aligned, or, where that would take too long, as one changed run."""

    same: int  # characters in equal lines
    equal: list[Match]  # the runs of equal lines, in characters
    changed: list[tuple[str, str]]  # the runs of lines that were replaced, before and after
    starts: list[tuple[int, int]]  # where each of those begins, in characters
    aligned: bool


# More than one measure compares a draft with what became of it, and one of them another pair in between. Texts may be
# large, and these stay in memory: no more than those two.
@lru_cache(maxsize=2)
def _align_lines(before: str, after: str, steps: int) -> _Lines:
    a, b = before.splitlines(keepends=True), after.splitlines(keepends=True)
    found = _matches([(a, b)], steps)
    if found is None:
        return _Lines(0, [], [(before, after)], [(0, 0)], aligned=False)
    equal, changed, starts = [], [], []
    end_a = end_b = at_a = at_b = 0  # the next line of either side, and its first character
    for start_a, start_b, size in (*found[0], (len(a), len(b), 0)):
        old, new = "".join(a[end_a:start_a]), "".join(b[end_b:start_b])
        if old and new:
            starts.append((at_a, at_b))
            changed.append((old, new))
        at_a, at_b = at_a + len(old), at_b + len(new)
        end_a, end_b = start_a + size, start_b + size
        if size:
            same = sum(map(len, a[start_a:end_a]))
            equal.append((at_a, at_b, same))
            at_a, at_b = at_a + same, at_b + same
    return _Lines(sum(same for _, _, same in equal), equal, changed, starts, aligned=True)


class _Inside(NamedTuple):
    """What is the same inside the changed runs: matches in characters, or, where those take too long, only tokens."""

    in_order: Sequence[Sequence[Match]] | None
    tokens: list[tuple[list[str], list[str]]]
    method: str | None


def _align_inside(lines: _Lines) -> _Inside:
    if lines.aligned and (found := _matches(lines.changed, STEPS)) is not None:
        return _Inside(found, [], None)
    tokens = [(TOKEN.findall(a), TOKEN.findall(b)) for a, b in lines.changed]
    if _cells(tokens) <= TOKEN_CELLS:
        return _Inside([_in_order(a, b) for a, b in tokens], tokens, "tokens/1")
    return _Inside(None, tokens, "overlap/1")


def _same_inside(lines: _Lines) -> tuple[int, str | None]:
    """The characters that are the same inside the changed runs, and the method where that is an estimate."""
    inside = _align_inside(lines)
    if inside.in_order is None:
        return sum(_same_anywhere(a, b) for a, b in inside.tokens), inside.method
    return sum(size for matches in inside.in_order for _, _, size in matches), inside.method


def _most_same_inside(lines: _Lines) -> int:
    from rapidfuzz.distance import LCSseq

    return sum(LCSseq.similarity(a, b) for a, b in lines.changed)


def _share(same: int, before: str, after: str) -> float:
    return 1 - 2 * same / (len(before) + len(after))


def _cells(pairs: Sequence[Pair]) -> int:
    return sum(len(a) * len(b) for a, b in pairs)


# --- difflib's search, metered -------------------------------------------------------------------------------------


def _matches(pairs: Sequence[Pair], steps: int) -> Sequence[Sequence[Match]] | None:
    """The matching blocks of each pair as difflib finds them, or None where all together would take over `steps`."""
    if sum(_most_steps(a, b) for a, b in pairs) <= steps:
        matcher = _fast_matcher()
        return [matcher(None, a, b, False).get_matching_blocks() for a, b in pairs]
    left, found = steps, []
    for a, b in pairs:
        matches, left = _metered_matches(a, b, left)
        if left < 0:
            return None
        found.append(matches)
    return found


def _metered_matches(a: Sequence[str], b: Sequence[str], left: int) -> tuple[list[Match], int]:
    """The matching blocks, and how many steps are left; a negative number says that the search was given up."""
    import difflib

    count_a, count_b = Counter(a), Counter(b)
    equal_pairs = sum(times * count_b[item] for item, times in count_a.items())
    # For each item of a, cydifflib clears a row as long as b. difflib does not, and wins where few pairs are equal.
    sparse = len(a) * len(b) > 8_000 * (equal_pairs + len(a))
    matcher, steps = (difflib.SequenceMatcher, _sparse_steps) if sparse else (_fast_matcher(), _steps)
    if steps(len(a), len(b), equal_pairs) > left:
        return [], -1
    pairs_before = [0, *accumulate(count_b[item] for item in a)]
    longest_match = matcher(None, a, b, False).find_longest_match
    # The steps are counted as if every window were searched, so that what settles one sooner changes no answer.
    anchored, longest_other = _anchored(a, b, {item for item in count_a if count_a[item] == count_b[item] == 1})
    found: list[Match] = []
    windows = [(0, len(a), 0, len(b), anchored)]
    while windows:
        low_a, high_a, low_b, high_b, anchored = windows.pop()
        left -= steps(high_a - low_a, high_b - low_b, pairs_before[high_a] - pairs_before[low_a])
        if left < 0:
            return [], left
        cut = (_cut(match, low_a, high_a, low_b, high_b) for match in anchored)
        anchored = [match for match in cut if match[2] > longest_other]
        if anchored:
            i, j, size = min(anchored, key=_longest_first)
        else:
            i, j, size = longest_match(low_a, high_a, low_b, high_b)
        if size:
            found.append((i, j, size))
            if low_a < i and low_b < j:
                windows.append((low_a, i, low_b, j, anchored))
            if i + size < high_a and j + size < high_b:
                windows.append((i + size, high_a, j + size, high_b, anchored))
    return sorted(found), left


def _anchored(a: Sequence[str], b: Sequence[str], once: set[str]) -> tuple[list[Match], int]:
    """The matches around each item that either side holds once, as long as they get, and the most any other can be.

    Such an item can be matched in one way only, and a match without one is no longer than the longest stretch without
    one. So where the longest of these matches in a window is longer than that, it is the one that difflib finds there.
    """
    place = {item: j for j, item in enumerate(b) if item in once}
    anchors = [i for i, item in enumerate(a) if item in once]
    longest_other = max(later - i - 1 for i, later in pairwise([-1, *anchors, len(a)]))
    found: list[Match] = []
    high = 0
    for i in anchors:
        if i < high:
            continue  # it is in the match around the one before
        across = place[a[i]] - i
        low, high = i, i + 1
        while low and low + across and a[low - 1] == b[low + across - 1]:
            low -= 1
        while high < len(a) and high + across < len(b) and a[high] == b[high + across]:
            high += 1
        found.append((low, low + across, high - low))
    return found, longest_other


def _cut(match: Match, low_a: int, high_a: int, low_b: int, high_b: int) -> Match:
    """The part of a match that is inside a window; its size is below 1 where there is none."""
    i, j, size = match
    late = max(0, low_a - i, low_b - j)
    return i + late, j + late, min(size, high_a - i, high_b - j) - late


def _longest_first(match: Match) -> tuple[int, int]:
    return -match[2], match[0]


def _steps(rows: int, width: int, equal_pairs: int) -> int:
    return equal_pairs + rows * (32 + width // 32)


def _sparse_steps(rows: int, width: int, equal_pairs: int) -> int:
    return 50 * equal_pairs + 150 * rows


def _most_steps(a: Sequence[str], b: Sequence[str]) -> int:
    # Every match opens two windows at most, and no window takes more than the widest with all its pairs equal.
    return (1 + 2 * min(len(a), len(b))) * _steps(len(a), len(b), len(a) * len(b))


@cache
def _fast_matcher() -> type[difflib.SequenceMatcher[Any]]:
    """The matcher of cydifflib or, where that is not installed, difflib's own: the same matches, many times slower."""
    try:
        import cydifflib
    except ModuleNotFoundError as error:
        if error.name != "cydifflib":
            raise
        import difflib

        return difflib.SequenceMatcher
    matcher: type[difflib.SequenceMatcher[Any]] = cydifflib.SequenceMatcher
    return matcher


# --- the estimates -------------------------------------------------------------------------------------------------


def _in_order(a: list[str], b: list[str]) -> list[Match]:
    """The tokens that stay, as matches in characters."""
    from rapidfuzz.distance import Levenshtein

    # rapidfuzz is fastest on numbers under 256: the commonest tokens get them. 0 and 1 are tokens that one side lacks.
    shared = (Counter(a) & Counter(b)).most_common()
    number = {token: place for place, (token, _) in enumerate(shared, start=2)}
    edits = Levenshtein.editops([number.get(token, 0) for token in a], [number.get(token, 1) for token in b])
    at_a, at_b = _starts(a), _starts(b)
    return [(at_a[i], at_b[j], at_a[i + size] - at_a[i]) for i, j, size in edits.as_matching_blocks()]


def _same_anywhere(a: list[str], b: list[str]) -> int:
    return sum(len(token) * times for (token, _, _), times in _shared_anywhere(a, b).items())


def _anywhere(a: list[str], b: list[str]) -> list[Match]:
    """The tokens that `_same_anywhere` counts, as matches in characters: the first ones of either side."""
    shared = _shared_anywhere(a, b)
    in_a, in_b = _first_places(a, shared), _first_places(b, shared)
    return [(i, j, len(token[0])) for token in shared for i, j in zip(in_a[token], in_b[token], strict=True)]


_Token = tuple[str, str, str]


def _shared_anywhere(a: list[str], b: list[str]) -> Counter[_Token]:
    return Counter(_with_next_two(a)) & Counter(_with_next_two(b))


def _first_places(tokens: list[str], shared: Counter[_Token]) -> dict[_Token, list[int]]:
    places: dict[_Token, list[int]] = {token: [] for token in shared}
    for token, place in zip(_with_next_two(tokens), _starts(tokens), strict=False):
        if token in places and len(places[token]) < shared[token]:
            places[token].append(place)
    return places


def _starts(tokens: list[str]) -> list[int]:
    """Where each token begins, in characters, and where the last one ends."""
    return [0, *accumulate(map(len, tokens))]


def _with_next_two(tokens: list[str]) -> Iterator[_Token]:
    return zip(tokens, [*tokens[1:], ""], [*tokens[2:], "", ""], strict=False)


# --- normalised texts ----------------------------------------------------------------------------------------------


def normalized(text: str) -> str:
    """The text with a newline at every line end, and composed characters (Unicode's NFC)."""
    return _composed(text.replace("\r\n", "\n").replace("\r", "\n"))


def _composed(text: str) -> str:
    if unicodedata.is_normalized("NFC", text):
        return text
    # unicodedata takes quadratic time to order a run of combining marks, unless it finds them in order.
    decomposed = "".join(unicodedata.normalize("NFD", sign) for sign in text)
    runs = groupby(decomposed, key=lambda sign: unicodedata.combining(sign) > 0)
    ordered = "".join("".join(sorted(run, key=unicodedata.combining)) for _, run in runs)
    return unicodedata.normalize("NFC", ordered)

"""Rankings: the groups that stand out, by sums."""

from __future__ import annotations

from datetime import timedelta

from evalr import report
from evalr.inputs import History, Revision, utc_now
from evalr.measures import Ranking, Retention
from evalr.reports.ranking import KEPT, Ranks
from evalr.verdicts import About, Failure, Verdict

RANKING = Ranking(
    title="most rewritten files",
    what="what people took out",
    by="path",
    part=lambda v: v.added - v.kept,
    whole=lambda v: v.added,
    unit="character",
    noun="draft",
)


def verdict(path: str | list[str] | None, added: int, kept: int) -> Verdict[Retention]:
    attributes = {} if path is None else {"path": path}
    return Verdict(Retention(added=added, kept=kept), "retention", about=About("draft", attributes=attributes))


def test_groups_stand_by_their_sums_the_largest_first_and_then_by_name() -> None:
    ranks = Ranks(RANKING)
    for each in (
        verdict("b", 10, 5),
        verdict("a", 10, 5),
        verdict("c", 100, 99),
        verdict("c", 10, 0),
        verdict("d", 9, 9),
    ):
        ranks.add(each)
    found = ranks.ranked()
    assert found.groups == (("c", 11, 110, 2), ("a", 5, 10, 1), ("b", 5, 10, 1))
    assert found.total == 3


def test_what_has_no_group_no_whole_or_no_verdict_has_no_part() -> None:
    ranks = Ranks(RANKING)
    ranks.add(verdict(None, 10, 0))
    ranks.add(verdict("a", 0, 0))
    ranks.add(Failure("it broke", about=About("draft", attributes={"path": "a"})))
    assert ranks.ranked().groups == ()


def test_a_result_counts_in_each_of_its_groups() -> None:
    ranks = Ranks(RANKING)
    ranks.add(verdict(["a", "b"], 4, 1))
    assert [(each.group, each.part) for each in ranks.ranked().groups] == [("a", 3), ("b", 3)]


def test_parts_merge_into_the_whole_and_only_the_first_are_kept() -> None:
    verdicts = [verdict(f"f{number:03}", 10, number % 10) for number in range(2 * KEPT)]
    whole, one, other = Ranks(RANKING), Ranks(RANKING), Ranks(RANKING)
    for number, each in enumerate(verdicts):
        whole.add(each)
        (one if number % 3 else other).add(each)
    one.merge(other)
    assert one.ranked() == whole.ranked()
    assert len(whole.ranked().groups) == KEPT
    assert whole.ranked().total == 2 * KEPT


def test_a_report_lists_the_files_that_people_rewrote_most() -> None:
    at = utc_now() - timedelta(days=30)

    def history(path: str, left: str) -> History:
        agent = Revision(at=at, role="agent", text="0123456789\n" * 10)
        person = Revision(at=at + timedelta(hours=1), role="person", text=left)
        return History(id=path, attributes={"path": path, "directory": "src"}, revisions=[agent, person])

    found = report([history("src/a.py", "0123456789\n" * 9), history("src/b.py", "")])
    files, directories = next(section.rankings for section in found.sections if section.measure == "retention")
    assert [each[:3] for each in files.groups] == [("src/b.py", 110, 110), ("src/a.py", 11, 110)]
    assert [each[:3] for each in directories.groups] == [("src", 121, 220)]
    shown = str(found)
    assert "most rewritten files: what people took out of the text that agents added\n    100.0%  110 of 110" in shown
    assert "<td>100.0%</td>" in found._repr_html_()
    assert found.to_dict()["sections"][0]["rankings"][0]["groups"][0] == {
        "group": "src/b.py",
        "part": 110,
        "whole": 110,
        "n": 1,
    }

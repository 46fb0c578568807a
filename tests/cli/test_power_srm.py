"""`evalr power` and `evalr srm`, the spellings that they take, and files of assignments."""

from __future__ import annotations

import gzip
import json
import math
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evalr
from evalr.cli import main
from evalr.cli.sample import sample_lines
from evalr.cli.shares import lifted, read_by_arm, read_counts, read_parts, read_share
from evalr.errors import EvalrError, InputError, LogError, RecordError
from evalr.inputs import Assignment
from evalr.logs import read_assignments
from evalr.measures import TaskCompletion, completion_rate
from evalr.verdicts import Verdict

NOW = "2026-11-30T09:00Z"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    out, err = capsys.readouterr()
    return code, out, err


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    code, out, err = run(capsys, *arguments, "--json")
    assert err == ""
    assert code in (0, 1)
    found: dict[str, object] = json.loads(out)
    return found


# Power


@pytest.mark.parametrize(
    ("rate", "lift", "split", "control"),
    # statsmodels 0.15.0, samplesize_proportions_2indep_onetail; at 9 to 1 by Fleiss's formula
    [("60%", "10pp", "1:1", 355.942812711), ("0.9", "5pp", "50:50", 434.432022439), ("60%", "10pp", "90:10", 192.485)],
)
def test_users_needed_are_those_of_other_implementations(
    rate: str, lift: str, split: str, control: float, capsys: pytest.CaptureFixture[str]
) -> None:
    found = answer(capsys, "power", "--rate", rate, "--lift", lift, "--split", split)
    parts = read_parts(split, "--split")
    treatment = control * parts[0] / parts[1]
    rounded = [math.ceil(treatment), math.ceil(control)]
    assert found["needed_users"] == {"treatment": rounded[0], "control": rounded[1], "altogether": sum(rounded)}


def test_the_power_of_users_is_that_of_another_implementation(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "power", "--rate", "60%", "--lift", "10pp", "--users", "356:356")
    assert found["power"] == pytest.approx(0.8000641045090079, abs=1e-9)  # statsmodels, power_proportions_2indep


def test_the_design_effect_is_stated_and_applied(capsys: pytest.CaptureFixture[str]) -> None:
    one = answer(capsys, "power", "--rate", "60%", "--lift", "10pp")
    options = ("--rate", "60%", "--lift", "10pp", "--per-user", "4", "--icc", "0.2", "--cv", "0.6")
    four = answer(capsys, "power", *options)
    assert four["design_effect"] == pytest.approx(1.888)  # Eldridge 2006, by hand
    assert four["needed_rows"]["control"] == math.ceil(355.942812711 * 1.888)  # type: ignore[index]
    assert four["needed_users"]["control"] == math.ceil(355.942812711 * 1.888 / 4)  # type: ignore[index]
    assert one["needed_users"] == one["needed_rows"]
    _, out, _ = run(capsys, "power", *options)
    assert "4 rows a user (ICC 0.2, numbers that vary by 0.6 of that): a design effect of 1.89" in " ".join(out.split())


def test_needed_as_printed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "power", "--rate", "70%", "--lift", "5pp", "--split", "90:10")
    assert (code, err) == (0, "")
    assert out == (
        "to see 75.0% in treatment v 70.0% in control (+5.0pp) with 80% power, users split 90:10\n"
        "\n"
        "                   users\n"
        "  treatment        6,130\n"
        "  control            682\n"
        "  altogether       6,812\n"
        "\n"
        "assumes a two-sided score test at the 95% level in its normal approximation, and one row a user\n"
    )


def test_an_even_split_is_said_aloud(capsys: pytest.CaptureFixture[str]) -> None:
    assert "50:50, since no --split is given" in run(capsys, "power", "--rate", "70%", "--lift", "5pp")[1]


def test_what_users_show_is_seen_by_exactly_them(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "power", "--rate", "70%", "--users", "900:100")
    assert found["power"] is None
    for sign, change in ((1, found["detectable"]["increase"]), (-1, found["detectable"]["decrease"])):  # type: ignore[index]
        power = evalr.power_of(0.7 + sign * change, 0.7, treatment_users=900, control_users=100)
        assert power == pytest.approx(0.8, abs=1e-6)


def test_users_by_their_total_are_split(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("power", "--rate", "70%", "--lift", "-5pp", "--json")
    by_total = run(capsys, *options, "--users", "1000", "--split", "90:10")
    by_arm = run(capsys, *options, "--users", "900:100")
    assert by_total == by_arm


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("--rate", "100%", "--users", "900:100"), "increase    none: there is no room beyond 100.0%"),
        (("--rate", "0%", "--users", "900:100"), "decrease    none: there is no room beyond 0.0%"),
        (("--rate", "70%", "--users", "2:3"), "increase    none: not even one to 100.0% is seen with so few users"),
        (("--rate", "99%", "--users", "900:100"), "fewer than 5 hits or misses are expected in an arm"),
    ],
)
def test_where_there_is_no_room_it_says_so(
    options: tuple[str, ...], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, "power", *options)
    assert code == 0
    assert line in out


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("logs") / "sample.jsonl"
    path.write_text("".join(f"{line}\n" for line in sample_lines(7, people=60)), encoding="utf-8")
    return str(path)


def test_a_log_knows_its_rate_and_rows(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--from", log, "--measure", "completion", "--now", NOW)
    found = answer(capsys, "power", *options, "--lift", "5pp", "--split", "90:10")
    _, out, _ = run(capsys, "report", log, "--measure", "completion", "--now", NOW, "--json")
    estimate = json.loads(out)["sections"][0]["rows"][0]["estimate"]
    rate, rows = estimate["value"], estimate["counts"]["total"]
    assert found["rate"] == rate
    assert found["rows_per_user"] == rows / estimate["clusters"]
    effect = max(1.0, estimate["variance"] * rows / (rate * (1 - rate)))
    assert found["design_effect"] == pytest.approx(effect)
    plain = evalr.users_needed(rate + 0.05, rate, ratio=9)
    assert found["needed_rows"]["control"] == math.ceil(plain.control * effect)  # type: ignore[index]


def test_a_log_of_which_all_succeeded_says_nothing_of_how_users_vary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = {"type": "result", "evaluator": "completion", "value": {"completed": True, "quality": 5, "reason": ""}}
    lines = [json.dumps({**line, "about": {"kind": "transcript", "id": f"t{n}", "user": f"u{n}"}}) for n in range(9)]
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    code, _, err = run(capsys, "power", "--from", str(path), "--measure", "completion", "--lift", "-5pp")
    assert code == 2
    assert "completion is 100.0% in this log, which does not say how users vary" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "say what is to be seen with --lift 5pp"),
        (("--lift", "5pp"), "say the rate of the control with --rate 70%"),
        (("--rate", "70", "--lift", "5pp"), "did you mean 70%?"),
        (("--rate", "nan", "--lift", "5pp"), "is not a share"),
        (("--rate", "70%", "--lift", "5%"), "may mean points or a part of the rate"),
        (("--rate", "70%", "--lift", "0.05"), "may mean points or a part of the rate"),
        (("--rate", "70%", "--lift", "-0.05"), "may mean points or a part of the rate"),
        (("--rate", "70%", "--lift", "much"), "is not a lift: write 5pp"),
        (("--rate", "98%", "--lift", "5pp"), "goes beyond 100%: there is room for +2.0pp"),
        (("--rate", "100%", "--lift", "x1.1"), "there is no room at all"),
        (("--rate", "2%", "--lift", "-5pp"), "goes beyond 0%: there is room for -2.0pp"),
        (("--rate", "70%", "--lift", "0pp"), "equal rates"),
        (("--rate", "70%", "--lift", "5pp", "--split", "90"), "is not of two arms"),
        (("--rate", "70%", "--lift", "5pp", "--split", "90:0"), "is not of two arms"),
        (("--rate", "70%", "--lift", "5pp", "--split", "80:10:10"), "is not of two arms"),
        (("--rate", "70%", "--users", "900:100", "--split", "90:10"), "leave --split out"),
        (("--rate", "70%", "--users", "90%:10%"), "is not a whole number of users"),
        (("--rate", "70%", "--users", "9.5:1"), "is not a whole number of users"),
        (("--rate", "70%", "--users", "1"), "is not a whole number of users"),
        (("--rate", "70%", "--lift", "5pp", "--per-user", "3"), "--per-user needs --icc"),
        (("--rate", "70%", "--lift", "5pp", "--icc", "0.3"), "say how many a user has"),
        (("--rate", "70%", "--lift", "5pp", "--per-user", "0.5", "--icc", "0"), "a cluster has 1 row or more"),
        (("--rate", "70%", "--lift", "5pp", "--power", "1"), "power lies between"),
        (("--rate", "70%", "--lift", "5pp", "--level", "100%"), "level must lie between 0 and 1"),
        (("--rate", "70%", "--lift", "5pp", "--measure", "completion"), "name it with --from"),
        (("--from", "LOG", "--lift", "5pp"), "--from LOG needs --measure NAME; there are: chains_reopened, completion"),
        (("--from", "LOG", "--measure", "waits_median", "--lift", "5pp"), "no rate is named 'waits_median'"),
        (("--from", "LOG", "--measure", "completion", "--rate", "7%", "--lift", "5pp"), "leave --rate, --per-user"),
        (("--from", "LOG", "--measure", "outcome", "--lift", "5pp"), "outcome has no value in this log"),
    ],
)
def test_a_plan_that_cannot_be_made(
    options: tuple[str, ...], message: str, log: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "power", *(log if each == "LOG" else each for each in options))
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


# Sample ratio

GOOD = "user,arm\n" + "".join(f"u{n},{'control' if n % 10 == 0 else 'treatment'}\n" for n in range(1000))


@pytest.mark.parametrize(
    ("treatment", "control", "weights", "p"),
    # scipy 1.18.1, chisquare; of fewer than five expected, binomtest
    [
        (5000, 5200, "1:1", 0.0476703806561615),
        (880, 120, "90:10", 0.03501498101966245),
        (905, 95, "90%:10%", 0.5981614526835279),
        (9, 0, "treatment=0.9,control=0.1", 1.0),
    ],
)
def test_a_sample_ratio_is_that_of_another_implementation(
    treatment: int, control: int, weights: str, p: float, capsys: pytest.CaptureFixture[str]
) -> None:
    found = answer(capsys, "srm", f"treatment={treatment}", f"control={control}", "--weights", weights)
    assert found["sample_ratio"]["p"] == pytest.approx(p, abs=1e-9)  # type: ignore[index]


def test_a_look_that_is_one_of_many(capsys: pytest.CaptureFixture[str]) -> None:
    counts = ("srm", "treatment=880", "control=120", "--weights", "90:10")
    one, many = answer(capsys, *counts), answer(capsys, *counts, "--sequential")
    assert run(capsys, *counts, "--daily") == run(capsys, *counts, "--sequential")
    assert many["sample_ratio"] == evalr.sequential_sample_ratio([880, 120], [90, 10])._asdict()
    assert many["sample_ratio"]["p"] > one["sample_ratio"]["p"]  # type: ignore[index]


def test_a_match_as_printed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "srm", "treatment=880", "control=120", "--weights", "90:10")
    assert (code, err) == (0, "")
    assert out == (
        "             users  expected  weight\n"
        "  treatment    880       900   90.0%\n"
        "  control      120       100   10.0%\n"
        "\n"
        "no mismatch: p = 0.035 (chi-square); an alarm is p < 0.001\n"
    )


def test_an_alarm_is_exit_code_1_and_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "srm", "treatment=880", "control=120")
    assert code == 1
    assert "equal weights, since none are given" in out
    assert "mismatch: p < 0.001 (chi-square). Do not trust a comparison of these arms" in out
    code, out, _ = run(capsys, "srm", "a=500", "b=500", "c=3", "--weights", "1:1:0")
    assert code == 1
    assert "mismatch: 3 assigned to an arm that was to have none" in out


def test_coverage_by_arm(capsys: pytest.CaptureFixture[str]) -> None:
    counts = ("srm", "treatment=900", "control=100", "--weights", "90:10", "--evaluated")
    code, out, _ = run(capsys, *counts, "treatment=850,control=70")
    assert code == 1
    assert "no mismatch" in out
    assert "uneven coverage: p < 0.001" in out
    assert "850  94.4%" in out
    assert run(capsys, *counts, "850:95")[0] == 0
    code, out, _ = run(capsys, *counts, "900:100")
    assert code == 0
    assert "coverage: nothing to check, all were evaluated" in out
    found = answer(capsys, *counts, "850:70")
    assert found["coverage"] == evalr.coverage_by_arm([850, 70], [900, 100])._asdict()


def test_nothing_to_check_is_no_pass(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "srm", "treatment=880")
    assert code == 2
    assert "nothing to check: one arm alone" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("treatment=880", "treatment=120"), "the arm 'treatment' is named twice"),
        (("treatment=8.5", "control=1"), "in whole numbers"),
        (("treatment=-5", "control=1"), "in whole numbers"),
        (("treatment=1e5", "control=1"), "in whole numbers"),
        ((f"treatment={'9' * 5000}", "control=1"), "in whole numbers"),
        (("=5", "control=1"), "is not an arm and its users"),
        (("one.csv", "two.csv"), "give one file of assignments, or users by arm"),
        (("treatment=8", "control=1", "--weights", "90:5:5"), "has 3 parts for 2 arms"),
        (("treatment=8", "control=1", "--weights", "90%:10"), "is not a split"),
        (("treatment=8", "control=1", "--weights", "90:x"), "is not a split"),
        (("treatment=8", "control=1", "--weights", "treatment=9"), "name no arm 'control', to which 1 are assigned"),
        (("treatment=8", "control=1", "--weights", "treatment=9,treatment=1"), "is named twice"),
        (("treatment=8", "control=1", "--weights", "0:0"), "an arm with a positive weight"),
        (("treatment=8", "control=1", "--evaluated", "9:1"), "of 8 users assigned to 'treatment'"),
        (("treatment=8", "control=1", "--evaluated", "treatment=1"), "'control' is not in both"),
        (("no-such-file.csv",), "no-such-file.csv: there is no such file"),
    ],
)
def test_a_split_that_cannot_be_checked(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "srm", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_hostile_arm_is_harmless(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "assignments.jsonl"
    path.write_text('{"user": "a", "arm": "x\\u001b[31m{0}"}\n{"user": "b", "arm": "\\u202ey"}\n', encoding="utf-8")
    _, out, _ = run(capsys, "srm", str(path))
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert "{0}" in out
    _, _, err = run(capsys, "srm", str(path), "--weights", "90:10")
    assert "\x1b" not in err


# Files of assignments


def test_a_file_is_counted_by_user(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "assignments.csv"
    path.write_text(GOOD + "u1,treatment\nu3,control\nu2000,\nu4,\n", encoding="utf-8")
    code, out, err = run(capsys, "srm", str(path), "--weights", "90:10")
    assert (code, err) == (0, "")
    assert "treatment    899" in out
    assert "left out: 1 user in several arms ('u3')" in out
    assert "left out: 1 user without an arm" in out


def test_positional_weights_need_arms_of_which_the_order_is_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "assignments.csv"
    path.write_text(GOOD.replace("treatment", "new").replace("control", "old"), encoding="utf-8")
    code, _, err = run(capsys, "srm", str(path), "--weights", "90:10")
    assert code == 2
    assert "does not say which part is of which arm: name them, as in new=90,old=10" in err
    assert run(capsys, "srm", str(path), "--weights", "new=90,old=10")[0] == 0


def test_a_column_that_holds_no_arms_is_found_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "assignments.csv"
    path.write_text("user,arm\n" + "".join(f"u{n},{n}\n" for n in range(200)), encoding="utf-8")
    code, _, err = run(capsys, "srm", str(path))
    assert code == 2
    assert "200 arms, such as '0': is 'arm' the column of arms? Name it with --arm-column" in err


TWO = [Assignment(user="a", arm="treatment"), Assignment(user="b")]


@pytest.mark.parametrize(
    "text",
    [
        "user,arm\na,treatment\nb,\n",
        "\ufeffuser;arm\r\na;treatment\r\nb;\r\n",
        'arm\tat\tuser\n\ntreatment\t"x\ny"\ta\n\t\tb',
        'at , user , arm\n1 , "a" , treatment\n2,b,\n'.replace(' "a"', "a"),
        '{"user": "a", "arm": "treatment"}\n\n{"user": "b", "arm": null}\n',
        '{"user": "a", "arm": "treatment", "more": [1]}\n{"user": "b"}',
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_files_that_say_the_same(text: str, packed: bool, tmp_path: Path) -> None:
    path = tmp_path / "assignments"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    assert read_assignments(path) == TWO


def test_columns_of_other_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "assignments.csv"
    path.write_text("uid,variant\na,treatment\nb,\n", encoding="utf-8")
    assert read_assignments(path, user_column="uid", arm_column="variant") == TWO
    code, _, err = run(capsys, "srm", str(path))
    assert code == 2
    assert "no column 'user'; there are: 'uid', 'variant'. Name it: --user-column, or user_column= in Python" in err
    assert run(capsys, "srm", str(path), "--user-column", "uid", "--arm-column", "variant")[0] == 2  # one arm alone
    with pytest.raises(InputError, match="both 'uid'"):
        read_assignments(path, user_column="uid", arm_column="uid")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"user,arm\n", "no assignments below its first line"),
        (b"\xff\xfeu\x00", "is UTF-16"),
        (b"user,arm\na,treatment\nb,\xff\n", "line 3: not UTF-8"),
        (b"user,arm\na,treat\x00ment\n", "line 2: it holds a NUL"),
        (b"user,arm\na,treatment\nb\n", "line 3: 1 cells, where the first line has 2"),
        (b"user,arm\na,treatment,x\n", "line 2: 3 cells"),
        (b"user,arm\n,treatment\n", "line 2: no user in 'user'"),
        (b'user,arm\na,treatment\nb,"control\nc,control\n', "line 3: no row of CSV can be read from here"),
        (b'user,arm\n"x\ny",treatment\nb\n', "line 4: 1 cells"),
        (b"user,arm\na," + b"x" * 200_000 + b"\n", "line 2: no row of CSV can be read from here"),
        (b"user,arm,user\na,treatment,b\n", "2 columns are named 'user'"),
        (b"user,group\na,treatment\n", "no column 'arm'; there are: 'user', 'group'"),
        (b'[{"user": "a", "arm": "treatment"}]', "is one JSON document"),
        (b'{"user": "a", "arm": "treatment"}\n{"user": "b", "arm"\n', "line 2: not JSON"),
        (b'{"user": "a", "arm": "treatment"}\n7\n', "line 2: not a JSON object"),
        (b'{"user": "a", "arm": "treatment"}\n{"arm": "control"}\n', "line 2: no column 'user'"),
        (b'{"user": "a", "arm": ["treatment"]}\n', "line 1: wrong type in 'arm'"),
        (b'{"user": null, "arm": "treatment"}\n', "line 1: no user"),
        (b'{"user": "a", "group": "treatment"}\n', "no column 'arm'; there are: 'user', 'group'"),
        (gzip.compress(GOOD.encode())[:-400], "damaged or cut off"),
        (b"PK\x03\x04\x00\x00", "holds a NUL"),
    ],
)
def test_a_file_that_cannot_be_used(
    content: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "assignments"
    path.write_bytes(content)
    code, out, err = run(capsys, "srm", str(path))
    assert (code, out) == (2, "")
    assert message in err
    assert str(path) in err
    assert err.count("\n") == 1


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="is a directory, not a file"):
        read_assignments(tmp_path)


@given(st.binary(max_size=200))
def test_any_bytes_are_assignments_or_a_clear_error(content: bytes) -> None:
    path = Path("assignments")  # in the folder that the fixture below enters
    path.write_bytes(b"user,arm\n" + content)
    try:
        found, said = read_assignments(path), ""
    except LogError as error:
        found, said = [], f"{', line ' in str(error)} {isinstance(error, RecordError)} {error}"
    assert found or said.startswith(("True True assignments", "False False assignments"))
    assert all(each.user for each in found)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_assignments_of_a_file_serve_a_lift(tmp_path: Path) -> None:
    path = tmp_path / "assignments.csv"
    path.write_text(GOOD, encoding="utf-8")
    done = TaskCompletion(completed=True, quality=5)
    results = [
        Verdict(done, "judge", "1", evalr.About("transcript", id=f"t{n}", user=f"u{n}", arm=arm))
        for n in range(100)
        for arm in ["control" if n % 10 == 0 else "treatment"]
    ]
    found = completion_rate.lift(
        results, assignments=read_assignments(path), weights={"treatment": 0.9, "control": 0.1}
    )
    assert found.allocation is not None
    assert found.allocation.assigned == {"treatment": 900, "control": 100}
    assert found.allocation.sample_ratio == evalr.sample_ratio([900, 100], [0.9, 0.1])


# Spellings

percents = st.integers(0, 1000).map(lambda tenths: tenths / 10)


@given(percents)
def test_a_share_in_percent_and_as_a_number_is_one(percent: float) -> None:
    assert read_share(f"{percent}%", "--rate") == pytest.approx(read_share(f"{percent / 100:.6f}", "--rate"))


@given(percents, percents)
def test_points_and_times_say_the_same(rate: float, target: float) -> None:
    change = round(target - rate, 1)
    assert lifted(rate / 100, f"{change:+}pp") == pytest.approx(target / 100, abs=1e-9)
    if rate and target / rate >= 1e-4:
        assert lifted(rate / 100, f"x{target / rate:.12f}") == pytest.approx(target / 100, abs=1e-9)


@given(st.text(st.sampled_from("0123456789.%+-xpe_ ٣∞")))
def test_a_lift_is_read_in_one_way_or_refused(text: str) -> None:
    try:
        found, said = lifted(0.5, text), ""
    except InputError as error:
        found, said = 0.5, str(error)
    assert 0 <= found <= 1
    assert text.endswith("pp") or text.startswith("x") or "write 5pp" in said


arms = st.text(string.ascii_letters + string.digits + " _-", min_size=1).filter(lambda arm: arm == arm.strip())


@given(st.dictionaries(arms, st.integers(0, 10**12), min_size=1, max_size=5))
def test_a_split_by_name_reads_as_it_was_written(parts: dict[str, int]) -> None:
    assert read_by_arm(",".join(f"{arm}={part}" for arm, part in parts.items()), "--weights") == parts
    assert read_counts([f"{arm}={part}" for arm, part in parts.items()]) == parts
    assert read_parts(":".join(map(str, parts.values())), "--weights") == list(parts.values())


@given(st.text(max_size=30))
def test_any_text_is_a_split_or_a_clear_error(text: str) -> None:
    for read in (read_parts, read_by_arm):
        try:
            found, said = read(text, "--weights"), ""
        except EvalrError as error:
            found, said = [], str(error)
        assert found or "write 90:10" in said or "is named twice" in said
        assert all(0 <= part < math.inf for part in (found.values() if isinstance(found, dict) else found))


# Planning in Python


def test_planning_results_print_what_they_say() -> None:
    assert str(evalr.users_needed(0.7, 0.6, ratio=9)) == "1,733 in treatment, 193 in control"
    assert str(evalr.detectable(0.7, treatment_users=900, control_users=100)) == "+12.1pp, -14.3pp"
    assert str(evalr.detectable(1.0, treatment_users=900, control_users=100)).startswith("no increase, -")
    assert str(evalr.sample_ratio([880, 120], [9, 1])) == "no alarm: p = 0.035 (chi-square/1)"
    assert str(evalr.sample_ratio([880], [1])) == "no alarm: one arm alone has no split to keep"
    assert str(evalr.sample_ratio([5, 5, 1], [1, 1, 0])).startswith("alarm: p = 1.000 (chi-square/1), 1 assigned")

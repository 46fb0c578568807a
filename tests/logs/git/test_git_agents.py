"""Who wrote a commit: agents by their signs, people and bots by the lack of one."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evalr.errors import InputError
from evalr.logs.git.agents import (
    BOT,
    MIXED_SQUASH,
    NO_AUTHOR,
    Agents,
    Identity,
    Wrote,
    identity_in,
    load_agents,
    who_wrote,
)

AGENTS = load_agents()
ALICE = Identity("Alice", "alice@example.com")
NOREPLY = "users.noreply.github.com"
DEPENDABOT = Identity("dependabot[bot]", f"49699333+dependabot[bot]@{NOREPLY}")
CLAUDE = ("Co-Authored-By", "Claude Opus 4.8 (1M context) <noreply@anthropic.com>")
BOB = ("Co-authored-by", "Bob <bob@example.com>")

PERSON = Wrote("person", None, None)


def agent(name: str) -> Wrote:
    return Wrote("agent", name, None)


def left_out(reason: str) -> Wrote:
    return Wrote(None, None, reason)


def wrote(
    author: Identity = ALICE,
    *trailers: tuple[str, str],
    subject: str = "Mend the parser",
    agents: Agents = AGENTS,
) -> Wrote:
    return who_wrote(agents, author=author, subject=subject, trailers=trailers)


# Signs


@pytest.mark.parametrize(
    ("name", "email", "expected"),
    [
        ("Claude", "noreply@anthropic.com", "claude"),
        ("claude[bot]", "", "claude"),
        ("claude[bot]", f"209825114+claude[bot]@{NOREPLY}", "claude"),
        ("claude", f"claude[bot]@{NOREPLY}", "claude"),
        ("anthropic-code-agent[bot]", f"242468646+Claude@{NOREPLY}", "claude"),
        ("Alice (aider)", "alice@example.com", "aider"),
        ("(aider)", "alice@example.com", "aider"),
        ("devin-ai-integration[bot]", f"158243242+devin-ai-integration[bot]@{NOREPLY}", "devin"),
        ("Devin AI", f"158243242+devin-ai-integration[bot]@{NOREPLY}", "devin"),
        ("Cursor Agent", "cursoragent@cursor.com", "cursor"),
        ("Alice", "cursoragent@cursor.com", "cursor"),
        ("copilot-swe-agent[bot]", f"198982749+Copilot@{NOREPLY}", "copilot"),
        ("Copilot", f"198982749+Copilot@{NOREPLY}", "copilot"),
        ("chatgpt-codex-connector[bot]", f"199175422+chatgpt-codex-connector[bot]@{NOREPLY}", "codex"),
        ("google-labs-jules[bot]", f"161369871+google-labs-jules[bot]@{NOREPLY}", "jules"),
        ("codeflash-ai[bot]", f"148906541+codeflash-ai[bot]@{NOREPLY}", "codeflash"),
        ("factory-droid[bot]", f"138933559+factory-droid[bot]@{NOREPLY}", "droid"),
        ("Hermes Agent", "hermes@localhost", "hermes"),
        ("OpenCode", "opencode@ai.local", "opencode"),
        ("gemini-code-assist[bot]", f"176961590+gemini-code-assist[bot]@{NOREPLY}", "gemini"),
        ("openhands", "openhands@all-hands.dev", "openhands"),
    ],
)
def test_an_agent_is_known_as_an_author_and_as_a_co_author(name: str, email: str, expected: str) -> None:
    assert wrote(Identity(name, email)) == agent(expected)
    assert wrote(ALICE, ("Co-authored-by", f"{name} <{email}>")) == agent(expected)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Claude <noreply@anthropic.com>", "claude"),
        ("Claude Fable 5.1 <noreply@anthropic.com>", "claude"),
        ("Codex <noreply@openai.com>", "codex"),
        ("GPT-5.6 Sol <codex@openai.com>", "codex"),
        ("Cursor <cursoragent@cursor.com>", "cursor"),
        ("aider (openai/gpt-4o) <aider@aider.chat>", "aider"),
        ("aider (gpt-4o) <noreply@aider.dev>", "aider"),
        (f"Copilot <223556219+Copilot@{NOREPLY}>", "copilot"),
        (f"Copilot Autofix powered by AI <62310815+github-advanced-security[bot]@{NOREPLY}>", "copilot"),
        (f"Copilot Autofix powered by AI <223894421+github-code-quality[bot]@{NOREPLY}>", "copilot"),
        (f"Devin <158243242+devin-ai-integration[bot]@{NOREPLY}>", "devin"),
        ("OpenCode <noreply@opencode.ai>", "opencode"),
        ("Hermes Agent <agent@example.com>", "hermes"),
        ("Gemini CLI <gemini-cli@google.com>", "gemini"),
        ("Gemini <noreply@google.com>", "gemini"),
        ("Warp <agent@warp.dev>", "warp"),
        ("Amp <amp@ampcode.com>", "amp"),
        ("Crush <crush@charm.land>", "crush"),
    ],
)
def test_a_co_author_is_an_agents_sign(value: str, expected: str) -> None:
    assert wrote(ALICE, ("Co-authored-by", value)) == agent(expected)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("Claude-Session", "https://claude.ai/code/session_01", "claude"),
        ("Claude-Session", "", "claude"),
        ("Made-with", "Cursor", "cursor"),
        ("Entire-Agent", "Claude Code", "claude"),
        ("Entire-Agent", "Cursor", "cursor"),
        ("Entire-Agent", "Gemini CLI", "gemini"),
        ("Entire-Agent", "an agent of tomorrow", "entire"),
        ("Agent-Logs-Url", "https://github.com/acme/shop/sessions/1", "copilot"),
        ("Amp-Thread-ID", "https://ampcode.com/threads/T-1", "amp"),
        ("Replit-Commit-Author", "Agent", "replit"),
        ("Assisted-by", "Crush <crush@charm.land>", "crush"),
    ],
)
def test_a_trailer_is_an_agents_sign(key: str, value: str, expected: str) -> None:
    assert wrote(ALICE, (key, value)) == agent(expected)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("Made-with", "love"),
        ("Made-with", "Cursor and love"),
        ("Replit-Commit-Author", "Deployment"),
        ("Reviewed-by", "Claude <noreply@anthropic.com>"),
        ("Signed-off-by", "Claude <noreply@anthropic.com>"),
        ("Assisted-by", "Bob <bob@example.com>"),
        ("Session", "https://claude.ai/code/session_01"),
        ("", "Claude"),
        ("", ""),
    ],
)
def test_another_trailer_is_none(key: str, value: str) -> None:
    assert wrote(ALICE, (key, value)) == PERSON


@pytest.mark.parametrize(
    "trailer",
    [
        ("CO-AUTHORED-BY", "Claude <NoReply@Anthropic.com>"),
        (" co-authored-by ", "  Claude   <  noreply@anthropic.com  >  "),
        ("Co-authored-by", "Claude noreply@anthropic.com"),
        ("Co-authored-by", "noreply@anthropic.com"),
        ("Co-authored-by", "<noreply@anthropic.com>"),
        ("Co-authored-by", "Claude <noreply@anthropic.com"),
        ("Co-authored-by", "Claude (noreply@anthropic.com)"),
        ("Co-authored-by", "Claude <<noreply@anthropic.com>>"),
        ("Co-authored-by", "Pi <Claude 4 Sonnet> <noreply@anthropic.com>"),
        ("Co-authored-by", "CLAUDE CODE"),
        ("CLAUDE-SESSION", "x"),
        ("entire-agent", " CLAUDE CODE "),
    ],
)
def test_case_blanks_and_lost_brackets_do_not_matter(trailer: tuple[str, str]) -> None:
    assert wrote(ALICE, trailer) == agent("claude")
    assert wrote(Identity(" CURSOR agent ", "")) == agent("cursor")
    assert wrote(Identity("x", " CursorAgent@Cursor.COM ")) == agent("cursor")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Ada Lovelace <ada@example.com>", Identity("Ada Lovelace", "ada@example.com")),
        ("Ada", Identity("Ada", "")),
        ("@ada", Identity("@ada", "")),
        ("Ada <>", Identity("Ada", "")),
        ("Ada\tada@example.com", Identity("Ada", "ada@example.com")),
        ("", Identity("", "")),
        (" ", Identity("", "")),
        ("<", Identity("", "")),
        (">", Identity(">", "")),
    ],
)
def test_whom_a_co_author_trailer_names(value: str, expected: Identity) -> None:
    assert identity_in(value) == expected


@given(st.text(alphabet=st.sampled_from("<>@ ab\t(),"), max_size=30))
def test_any_co_author_value_names_somebody_without_blanks_around(value: str) -> None:
    identity = identity_in(value)
    assert identity.name == identity.name.strip()
    assert identity.email == identity.email.strip()
    assert wrote(ALICE, ("Co-authored-by", value)) == PERSON


# People


LOOK_ALIKES = [
    ("Alice", "alice@anthropic.com"),
    ("Bob", "bob@cursor.com"),
    ("Carol", "carol@openai.com"),
    ("Claude", "claude@gmail.com"),
    ("Claude Dupont", "cdupont@example.com"),
    ("Jean-Claude", "jean-claude@example.com"),
    ("Devin", "devin@x.org"),
    ("Devin Smith", f"123+devin-ai@{NOREPLY}"),
    ("Jules Verne", "jules@example.com"),
    ("Kiro", "kiro@example.com"),
    ("Cursor", "cursor@example.com"),
    ("Codex", f"12+not-codex@{NOREPLY}"),
    ("Codex", f"12+codex@{NOREPLY}"),
    ("Aider", "aider@example.com"),
    ("(aider) Alice", "alice@example.com"),
    ("Warp", "warp@example.com"),
    ("Dana", "dana@warp.dev"),
    ("Gemini", "gemini@example.com"),
    ("Lovable Bear", "bear@example.com"),
    ("GitHub", "noreply@github.com"),
    ("Alice", f"1+notclaude[bot].example@{NOREPLY}"),
    ("Abbot", "abbot@example.com"),
    ("Robot", "bot@example.com"),
    ("Alice", "xnoreply@anthropic.com"),
    ("Alice", "noreply@anthropic.com.example.org"),
    ("Alice", f"cursoragent@cursor.com@{NOREPLY}"),
]


@pytest.mark.parametrize(("name", "email"), LOOK_ALIKES)
def test_staff_and_people_with_an_agents_name_are_people(name: str, email: str) -> None:
    assert wrote(Identity(name, email)) == PERSON
    assert wrote(ALICE, ("Co-authored-by", f"{name} <{email}>")) == PERSON


WORDS = st.text(alphabet=string.ascii_letters + " .-'éß", min_size=1, max_size=12)
PEOPLE = st.builds(
    lambda given, family, tag, domain: Identity(
        f"{given} {family}", f"{tag}@{domain}".lower().replace(" ", "").replace("'", "")
    ),
    given=st.sampled_from(["Claude", "Devin", "Jules", "Cursor", "Codex", "Aider", "Copilot"]) | WORDS,
    family=st.sampled_from(["Dupont", "Code-Smith", "Agentsson", "Botha"]),
    tag=st.sampled_from(["claude.dupont", "123+alice", "not-claude", "noreply-alice", "bot.smith"]),
    domain=st.sampled_from(["example.com", "anthropic.com", "cursor.com", "openai.com", "google.com", NOREPLY]),
)


@given(author=PEOPLE, others=st.lists(PEOPLE, max_size=4), squash=st.booleans())
@example(author=Identity("Jean Claude", "jean@anthropic.com"), others=[Identity("A (aider) B", "")], squash=True)
def test_people_alone_are_never_an_agent(author: Identity, others: Sequence[Identity], squash: bool) -> None:
    trailers = [("Co-authored-by", f"{person.name} <{person.email}>") for person in others]
    assert wrote(author, *trailers, subject="Mend (#12)" if squash else "Mend") == PERSON


@given(others=st.lists(PEOPLE, max_size=4), at=st.integers(0, 4))
def test_people_never_turn_an_agents_commit_into_anothers(others: Sequence[Identity], at: int) -> None:
    trailers = [("Co-authored-by", f"{person.name} <{person.email}>") for person in others]
    trailers.insert(at, CLAUDE)
    assert wrote(ALICE, *trailers) == agent("claude")
    assert wrote(ALICE, *trailers, subject="Mend (#12)") == (left_out(MIXED_SQUASH) if others else agent("claude"))


# Bots, and commits of nobody


@pytest.mark.parametrize(
    ("name", "email"),
    [
        ("dependabot[bot]", f"49699333+dependabot[bot]@{NOREPLY}"),
        ("dependabot", "support@dependabot.com"),
        ("renovate[bot]", f"29139614+renovate[bot]@{NOREPLY}"),
        ("Renovate Bot", "bot@renovateapp.com"),
        ("pre-commit-ci[bot]", f"66853113+pre-commit-ci[bot]@{NOREPLY}"),
        ("github-actions[bot]", f"41898282+github-actions[bot]@{NOREPLY}"),
        ("GitHub Action", "action@github.com"),
        ("snyk-bot", "snyk-bot@snyk.io"),
        ("greenkeeper[bot]", f"greenkeeper[bot]@{NOREPLY}"),
        ("allcontributors[bot]", f"46447321+allcontributors[bot]@{NOREPLY}"),
        ("Hosted Weblate", "hosted@weblate.org"),
        ("ImgBotApp", "ImgBotHelp@gmail.com"),
        ("mergify[bot]", ""),
        ("semantic-release-bot", "semantic-release-bot@martynus.net"),
        ("Crowdin Bot", "support+bot@crowdin.com"),
        ("transifex-integration[bot]", ""),
        ("a-bot-of-tomorrow[bot]", "x@example.com"),
        ("A bot of tomorrow", f"1+tomorrow[bot]@{NOREPLY}"),
        ("github-advanced-security[bot]", f"62310815+github-advanced-security[bot]@{NOREPLY}"),
    ],
)
def test_a_bot_is_neither_agent_nor_person(name: str, email: str) -> None:
    bot = Identity(name, email)
    assert wrote(bot) == left_out(BOT)
    assert wrote(bot, BOB) == left_out(BOT)
    assert wrote(bot, CLAUDE) == agent("claude")
    assert wrote(bot, CLAUDE, subject="Bump (#12)") == agent("claude")


def test_a_person_who_credits_a_bot_is_a_person() -> None:
    assert wrote(ALICE, ("Co-authored-by", f"{DEPENDABOT.name} <{DEPENDABOT.email}>")) == PERSON


def test_a_commit_without_an_author_is_left_out_unless_an_agent_signs_it() -> None:
    nobody = Identity(" ", "")
    assert wrote(nobody) == left_out(NO_AUTHOR)
    assert wrote(nobody, BOB) == left_out(NO_AUTHOR)
    assert wrote(nobody, CLAUDE) == agent("claude")
    assert wrote(Identity("Alice", "")) == PERSON
    assert wrote(Identity("", "alice@example.com")) == PERSON


# Squashed pull requests


SQUASHES = ["Mend (#12)", "Mend (#12) ", "Mend (#1) (#12)", "Mend (!12)", "Mend (pull request #12)", "(#12)"]
NO_SQUASHES = ["Mend", "Mend (#12) again", "Mend #12", "Mend (#)", "Mend (12)", "Mend (#1a)", "#12)", "Mend (# 12)"]
NO_SQUASHES += ["Mend (#١٢)", "Mend (#²)", "", ")", "Merge pull request #12", "Mend (#12"]


@pytest.mark.parametrize("author", [ALICE, Identity("Claude", "noreply@anthropic.com"), DEPENDABOT])
@pytest.mark.parametrize("subject", SQUASHES)
def test_a_squash_of_an_agents_and_peoples_work_is_mixed(subject: str, author: Identity) -> None:
    assert wrote(author, CLAUDE, BOB, subject=subject) == left_out(MIXED_SQUASH)
    assert wrote(author, BOB, CLAUDE, subject=subject) == left_out(MIXED_SQUASH)
    assert wrote(author, ("Claude-Session", "x"), BOB, subject=subject) == left_out(MIXED_SQUASH)


@pytest.mark.parametrize("subject", SQUASHES)
def test_a_squash_of_an_agents_work_alone_is_the_agents(subject: str) -> None:
    bot = ("Co-authored-by", f"{DEPENDABOT.name} <{DEPENDABOT.email}>")
    gemini = ("Co-authored-by", "Gemini <noreply@google.com>")
    assert wrote(ALICE, CLAUDE, subject=subject) == agent("claude")
    assert wrote(ALICE, CLAUDE, bot, gemini, subject=subject) == agent("claude")
    for herself in ["Alice <ALICE@example.com>", "A. L. <alice@example.com>", "alice", "", "<>"]:
        assert wrote(ALICE, CLAUDE, ("Co-authored-by", herself), subject=subject) == agent("claude")
    for another in ["Alice <alice@example.org>", "Bob", "bob@example.com"]:
        assert wrote(ALICE, CLAUDE, ("Co-authored-by", another), subject=subject) == left_out(MIXED_SQUASH)


@pytest.mark.parametrize("subject", SQUASHES)
def test_a_squash_of_peoples_work_is_a_persons(subject: str) -> None:
    assert wrote(ALICE, BOB, subject=subject) == PERSON


@pytest.mark.parametrize("subject", NO_SQUASHES)
def test_a_commit_that_is_no_squash_is_the_agents_whoever_is_named(subject: str) -> None:
    assert wrote(ALICE, CLAUDE, BOB, subject=subject) == agent("claude")
    devin = Identity("devin-ai-integration[bot]", f"158243242+devin-ai-integration[bot]@{NOREPLY}")
    assert wrote(devin, BOB, subject=subject) == agent("devin")


# The order of the table


def test_of_two_agents_the_first_row_wins() -> None:
    cursor = ("Made-with", "Cursor")
    assert wrote(ALICE, cursor, CLAUDE) == wrote(ALICE, CLAUDE, cursor) == agent("claude")
    assert wrote(Identity("Cursor", "cursoragent@cursor.com"), CLAUDE) == agent("claude")
    assert wrote(Identity("Alice (aider)", ""), cursor) == agent("cursor")
    claude_on_copilots_platform = Identity("anthropic-code-agent[bot]", f"242468646+Claude@{NOREPLY}")
    assert wrote(claude_on_copilots_platform, ("Agent-Logs-Url", "x")) == agent("claude")


@pytest.mark.parametrize(("first", "second"), [("one", "two"), ("two", "one")])
def test_the_order_of_a_file_decides(tmp_path: Path, first: str, second: str) -> None:
    signs = {"one": 'names = ["One"]', "two": 'trailers = ["Two"]'}
    agents = own(tmp_path, *(f'[[agent]]\nname = "{name}"\n{signs[name]}' for name in (first, second)))
    assert wrote(Identity("One", ""), ("Two", "x"), agents=agents) == agent(first)


def test_each_row_of_the_packaged_table_is_named_in_a_short_word_and_known_by_its_own_signs() -> None:
    assert len(AGENTS.rows) > 50
    for row in AGENTS.rows:
        assert re.fullmatch(r"[a-z0-9-]{2,16}", row.name)
        identities = [Identity(name, "") for name in row.names]
        identities += [Identity("Alice" + end, "") for end in row.name_suffixes]
        identities += [Identity("", email) for email in row.emails]
        identities += [Identity("", "123" + end) for end in row.email_suffixes]
        expected = agent(row.name) if row.kind == "agent" else left_out(BOT)
        assert [wrote(identity) for identity in identities] == [expected] * len(identities)
        for key, value in row.trailers:
            assert wrote(ALICE, (key, "x" if value is None else value)) == expected


def test_no_sign_of_the_packaged_table_stands_in_two_rows() -> None:
    signs = [
        (kind, sign)
        for row in AGENTS.rows
        for kind in ("names", "name_suffixes", "emails", "email_suffixes", "trailers")
        for sign in getattr(row, kind)
    ]
    assert sorted({sign for sign in signs if signs.count(sign) > 1}, key=str) == []
    assert all("@" in address for row in AGENTS.rows for address in (*row.emails, *row.email_suffixes))


# A file of one's own


def own(tmp_path: Path, *rows: str) -> Agents:
    path = tmp_path / "own.toml"
    path.write_text("\n".join(rows), encoding="utf-8")
    return load_agents(path)


def test_a_house_names_its_own_agents_and_bots(tmp_path: Path) -> None:
    agents = own(
        tmp_path,
        '[[agent]]\nname = "acme"\nemails = ["coder@acme.com"]\ngithub_apps = ["acme-coder"]\ntrailers = ["Acme-Run"]',
        '[[bot]]\nname = "sync"\nname_suffixes = [" bot"]\n'
        'email_suffixes = ["@bots.acme.com"]\ntrailers = ["Sync: on"]',
    )
    for author in [
        Identity("x", "Coder@ACME.com"),
        Identity("acme-coder[bot]", ""),
        Identity("", f"1+acme-coder[bot]@{NOREPLY}"),
    ]:
        assert wrote(author) == (left_out(BOT) if "[bot]" in str(author) else PERSON)
        assert wrote(author, agents=agents) == agent("acme")
    assert wrote(ALICE, ("acme-run", "7"), agents=agents) == agent("acme")
    assert wrote(Identity("Nightly Bot", ""), agents=agents) == left_out(BOT)
    assert wrote(Identity("Abbot", ""), agents=agents) == PERSON
    assert wrote(Identity("x", "x@bots.acme.com"), agents=agents) == left_out(BOT)
    assert wrote(ALICE, ("Sync", "on"), agents=agents) == left_out(BOT)
    assert wrote(ALICE, ("Sync", "off"), agents=agents) == PERSON
    assert wrote(ALICE, CLAUDE, agents=agents) == agent("claude")


def test_a_houses_rows_win(tmp_path: Path) -> None:
    agents = own(
        tmp_path,
        '[[agent]]\nname = "review"\nemails = ["support@dependabot.com"]',
        '[[bot]]\nname = "ours"\nemails = ["noreply@anthropic.com"]',
        '[[agent]]\nname = "cursor-cloud"\ngithub_apps = ["cursor[bot]"]',
    )
    assert wrote(Identity("x", "support@dependabot.com"), agents=agents) == agent("review")
    assert wrote(Identity("Claude", "noreply@anthropic.com"), agents=agents) == left_out(BOT)
    assert wrote(ALICE, CLAUDE, agents=agents) == PERSON
    assert wrote(Identity("cursor[bot]", ""), agents=agents) == agent("cursor-cloud")
    assert wrote(ALICE, ("Made-with", "Cursor"), agents=agents) == agent("cursor")


def test_a_person_is_a_person_although_a_row_below_knows_better(tmp_path: Path) -> None:
    agents = own(
        tmp_path,
        '[[agent]]\nname = "ours"\nemail_suffixes = ["@acme.com"]',
        '[[person]]\nname = "us"\nnames = ["Lovable", "mr[bot]"]\nemails = ["alice@acme.com"]\n'
        'trailers = ["Made-with: Cursor"]',
    )
    assert wrote(Identity("Lovable", "love@example.com"), agents=agents) == PERSON
    assert wrote(Identity("mr[bot]", ""), agents=agents) == PERSON
    assert wrote(Identity("Alice", "alice@acme.com"), agents=agents) == PERSON
    assert wrote(Identity("Coder", "coder@acme.com"), agents=agents) == agent("ours")
    assert wrote(ALICE, ("Made-with", "Cursor"), agents=agents) == PERSON
    lovable = ("Co-authored-by", "Lovable <love@example.com>")
    assert wrote(ALICE, CLAUDE, lovable, subject="Mend (#12)", agents=agents) == left_out(MIXED_SQUASH)
    assert wrote(ALICE, CLAUDE, lovable, subject="Mend (#12)") == agent("claude")


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "\ufeff[[bot]]\nname = 'x'\nnames = ['X']\n"])
def test_a_file_may_be_empty_and_may_begin_with_a_byte_order_mark(tmp_path: Path, text: str) -> None:
    assert wrote(ALICE, CLAUDE, agents=own(tmp_path, text)) == agent("claude")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[agent]", "is no TOML: .*line 1.*; its rows are [[person]], [[agent]] and [[bot]]"),
        ("a = " + "[" * 100_000, "is no TOML"),
        ("agents = []", "unknown key 'agents'; write each row as [[person]], [[agent]] or [[bot]]"),
        ("agent = 1", "'agent' is not a list of rows; write each as [[agent]]"),
        ("[bot]\nname = 'x'\nnames = ['X']", "'bot' is not a list of rows; write each as [[bot]]"),
        ("[[agent]]\nname = 'a'\nnames = ['A']\n[[agent]]\nnames = ['X']", "[[agent]] 2 has no name; add one"),
        ("[[agent]]\nname = ' '\nnames = ['X']", "[[agent]] 1 has no name; add one"),
        ("[[agent]]\nname = 1\nnames = ['X']", "[[agent]] 1: 'name' is not a text; put it in quotes"),
        ("[[person]]\nname = 'x'", "[[person]] 1 ('x') has no sign; add at least one of names, name_suffixes, "),
        ("[[bot]]\nname = 'x'\nnames = []", "[[bot]] 1 ('x') has no sign"),
        ("[[bot]]\nname = 'x'\nnmaes = ['X']", "[[bot]] 1 ('x'): unknown key 'nmaes'; a row has a name and names, "),
        (
            "[[bot]]\nname = 'x'\nemails = 'x@y.z'",
            "('x'): 'emails' is not a list of texts; write it as [\"one\", \"two\"]",
        ),
        ("[[bot]]\nname = 'x'\nemails = [1]", "('x'): 'emails' is not a list of texts"),
        ("[[bot]]\nname = 'x'\nname_suffixes = ['a', '']", "'name_suffixes' has an empty text, .*; leave it out"),
        ("[[bot]]\nname = 'x'\nemails = [' ']", "('x'): 'emails' has an empty text"),
        (
            "[[agent]]\nname = 'x'\ntrailers = [': y']",
            "'trailers' has ': y', which has no key; write \"Key\" or \"Key: value\"",
        ),
    ],
)
def test_a_file_of_another_form_is_an_error_that_says_where_and_what_to_do(
    tmp_path: Path, text: str, says: str
) -> None:
    with pytest.raises(InputError) as caught:
        own(tmp_path, text)
    assert str(caught.value).startswith(str(tmp_path / "own.toml"))
    assert re.search(re.escape(says).replace(r"\.\*", ".*"), str(caught.value)), str(caught.value)


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.toml cannot be read: No such file or directory; name a TOML file"):
        load_agents(tmp_path / "none.toml")
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        load_agents(tmp_path)
    with pytest.raises(InputError, match=r"cannot be read: .*null"):
        load_agents("own\0.toml")
    (tmp_path / "utf-16.toml").write_text("[[agent]]", encoding="utf-16")
    with pytest.raises(InputError, match="is not UTF-8 text; save it as UTF-8"):
        load_agents(str(tmp_path / "utf-16.toml"))


# Hostile text


@given(
    name=st.text(max_size=40),
    email=st.text(max_size=40),
    subject=st.text(max_size=40),
    trailers=st.lists(st.tuples(st.text(max_size=20), st.text(max_size=40)), max_size=3),
)
@example(name="\ud83d{0}", email="%s", subject="{0} (#1)", trailers=[("Co-authored-by", "\udcff {x} <")])
def test_any_text_has_an_answer(name: str, email: str, subject: str, trailers: list[tuple[str, str]]) -> None:
    answer = wrote(Identity(name, email), *trailers, subject=subject)
    assert [answer.role, answer.left_out].count(None) == 1
    assert (answer.agent is None) == (answer.role != "agent")


def test_a_long_text_takes_no_longer_than_reading_it() -> None:
    long = "(<@ " * 500_000
    assert wrote(Identity(long, long), ("Co-authored-by", long), CLAUDE, subject=long) == agent("claude")
    assert (
        wrote(ALICE, ("Co-authored-by", long), CLAUDE, subject=f"{long}(#{'1' * 1_000_000})").left_out == MIXED_SQUASH
    )

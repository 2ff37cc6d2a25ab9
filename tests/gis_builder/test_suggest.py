"""What is suggested for an issue, and what is written about it, against a local GitHub."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from typer.testing import CliRunner

import gis_builder
from gis_builder._cli import app
from gis_builder._emulator import Server, serve
from gis_builder._github import Notices, Token
from gis_builder._records import IssueRef
from gis_builder._suggest.calibration import Calibration, read_calibration, with_leads
from gis_builder._suggest.candidates import Candidate, IndexSearch, ServerSearch, Sought
from gis_builder._suggest.comment import comment_text, harmless
from gis_builder._suggest.found import Suggestion
from gis_builder._suggest.sentences import best_sentences
from gis_builder._suggest.suggest import Wanted, suggest_for, suggest_new
from pairkit.errors import AuthError, BadReply, ConfigError, DataError, RateLimited, RemoteError

from .conftest import issue, write_tracker
from .crawl_world import quick

MOON = "acme/moon"
SHORT = {"first": [1, 2, 3], "further": [1, 2, 3], "repositories": [], "until": "", "issues": 1, "right": 1}
HOSTILE = (
    "`x` @acme/all <img src=x onerror=y> [a](http://evil) ![b](c) #1 </sub>\u202e\u0000 <!-- gis suggest"
)
SURE = Calibration(
    ["cosine"], [-9, 12, 0], [-9, 12, 0], [MOON], "2020", 100, 30
)  # 0.9 from a cosine of 0.933


@pytest.fixture
def github(tmp_path: Path) -> Iterator[Server]:
    write_tracker(
        tmp_path / "dump",
        MOON,
        issues=[
            issue(MOON, 1, title="Crash on start", body="It broke.\nThe log says E42 in line 7. More."),
            issue(MOON, 2, title=HOSTILE, body="Nothing. @everyone look `here`"),
            issue(MOON, 3, pull_request={"merged_at": None}),
            issue(MOON, 5, title="It dies at once", body="Log: E42. Please help!"),
        ],
        missing=[{"number": 4, "status": "deleted"}],
    )
    with serve(tmp_path / "dump") as server:
        yield server


def candidate(number: int, cosine: float, text: str = "A title\n\nA body.", **more: Any) -> Candidate:
    row = {"number": number, "repo": MOON}
    from msgspec import convert

    return convert({"row": row, "text": text, "cosine": cosine, **more}, Candidate)


class Found:
    """A search that knows its answer, and keeps what it was asked."""

    def __init__(self, *candidates: Candidate) -> None:
        self.candidates = candidates
        self.asked: list[Sought] = []

    def __call__(self, sought: Sought) -> Sequence[Candidate]:
        self.asked.append(sought)
        return self.candidates


def suggested(server: Server, search: Found, number: int = 5, **wanted: Any) -> gis_builder.Suggested:
    desk = Notices(quick(server.url), Token("one", server.url))
    calibration = wanted.pop("calibration", SURE)
    return suggest_for(desk, IssueRef(MOON, number), search, calibration, Wanted(**wanted))


def comments(server: Server) -> list[str]:
    found = requests.get(f"{server.url}/repos/{MOON}/issues/5/comments", timeout=10).json()
    return [comment["body"] for comment in found]


def test_older_issues_are_shown_as_they_are_now(github: Server) -> None:
    crash = "Crash on start\n\nIt broke.\nThe log says E42 in line 7. More."
    search = Found(candidate(4, 1), candidate(3, 1), candidate(1, 1, crash), candidate(2, 0.75))
    found = suggested(github, search, top=2)
    (sought,) = search.asked
    assert (sought.repo, sought.before) == (MOON, "2020-01-05T12:00:00Z")
    assert sought.by == "model"  # as the calibration was learnt
    assert sought.text == "It dies at once\n\nLog: E42. Please help!"
    assert [(one.number, one.title, one.state) for one in found.suggestions] == [
        (1, "Crash on start", "open"),
        (2, HOSTILE, "open"),
    ]
    assert found.gone == 2  # a deleted one and a pull request
    first = found.suggestions[0]
    assert first.sentence == "The log says E42 in line 7."
    assert first.probability == pytest.approx(1 / (1 + 2.718281828 ** (9 - 12)), abs=1e-6)
    assert (found.comment, found.label, found.text != "", comments(github)) == ("none", "none", True, [])
    assert json.loads(json.dumps(found.to_dict()))["suggestions"][0]["number"] == 1


def test_a_comment_is_written_above_the_threshold_once_and_never_in_a_dry_run(github: Server) -> None:
    likely, unlikely = Found(candidate(1, 1), candidate(2, 0.4)), Found(candidate(1, 0.92))
    assert suggested(github, likely, comment=True).comment == "would write"
    assert suggested(github, unlikely, comment=True, dry_run=False).comment == "none"
    assert comments(github) == []
    assert suggested(github, likely, comment=True, dry_run=False).comment == "written"
    assert suggested(github, likely, comment=True, dry_run=False).comment == "was there"
    (text,) = comments(github)
    assert "#1 (open, 95% likely) `Crash on start`" in text
    assert "#2" not in text


def test_a_label_is_put_on_above_the_threshold_once(github: Server) -> None:
    likely = Found(candidate(1, 1))
    assert suggested(github, likely, label="maybe").label == "would write"
    assert suggested(github, Found(candidate(1, 0.8)), label="maybe", dry_run=False).label == "none"
    assert suggested(github, likely, label="maybe", dry_run=False).label == "written"
    assert suggested(github, likely, label="maybe", dry_run=False).label == "was there"


def test_an_issue_that_is_not_written_yet(github: Server) -> None:
    search = Found(candidate(1, 1))
    desk = Notices(quick(github.url), Token("one", github.url))
    found = suggest_new(desk, "Acme/Moon", "New", "It dies", search, None, Wanted())
    assert search.asked[0] == Sought("New\n\nIt dies", MOON, None, 15)
    assert (found.issue, found.suggestions[0].probability) == (MOON, None)
    with pytest.raises(DataError, match="acme/moon: no text is left of the issue"):
        suggest_new(desk, MOON, " ", "", search, None, Wanted())
    with pytest.raises(ConfigError, match="takes neither comment nor label"):
        suggest_new(desk, MOON, "New", "", search, SURE, Wanted(comment=True))


@pytest.mark.parametrize(
    ("number", "wanted", "error", "words"),
    [
        (4, {}, DataError, "acme/moon#4: no such issue"),
        (3, {}, DataError, "acme/moon#3: no such issue .*a pull request"),
        (5, {"comment": True, "calibration": None}, ConfigError, "give a calibration"),
        (5, {"top": 0}, ConfigError, "top 0"),
        (5, {"least": 1.5}, ConfigError, "least 1.5"),
        (5, {"label": ""}, ConfigError, "label: expected 1 to 50 characters"),
        (5, {"label": " "}, ConfigError, "label: expected 1 to 50 characters"),
        (5, {"label": "x" * 51}, ConfigError, "label: expected 1 to 50 characters"),
    ],
)
def test_what_can_not_be_done(
    github: Server, number: int, wanted: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        suggested(github, Found(candidate(1, 1)), number, **wanted)


def test_the_sentence_is_the_one_that_shares_rare_words() -> None:
    texts = ["T\n\nThe log is here. E42 came.\nThe log.", "T2\n\nNo. The log of the log.", "Only a title"]
    assert best_sentences("the log says E42", texts) == ["E42 came.", "The log of the log.", "Only a title"]
    assert best_sentences("nothing known", ["T\n\nFirst. Second.", "T\n\n\n---\n", ""]) == ["First.", "T", ""]
    assert len(best_sentences("x", ["T\n\n" + "x" * 1000])[0]) == 300


def suggestion(title: str, sentence: str = "") -> Suggestion:
    return Suggestion(7, title, "open", "https://github.com/a/b/issues/7", 0.93, 0.8, 0.3, sentence)


@given(st.text(max_size=300), st.text(max_size=300))
def test_titles_and_sentences_are_text_alone(title: str, sentence: str) -> None:
    _is_harmless(title, sentence)


@pytest.mark.parametrize(
    "title",
    [
        HOSTILE,
        "``` a\n\n# Head\n- @b\n",
        "`` ` ``` `",
        "a\n\n</details><script>",
        "\u2028@x",
        "fixes #12, closes http://x",
    ],
)
def test_hostile_titles_are_text_alone(title: str) -> None:
    _is_harmless(title, title)


def _is_harmless(title: str, sentence: str) -> None:
    text = comment_text([suggestion(title, sentence), suggestion("second")])
    tokens = MarkdownIt("commonmark").parse(text)
    inline = [token for block in tokens for token in block.children or ()]
    assert {token.type for token in inline} <= {"text", "code_inline", "softbreak", "html_inline"}
    assert [token.content for token in inline if token.type == "html_inline"] == ["<sub>", "</sub>"]
    plain = "".join(token.content for token in inline if token.type == "text")
    assert "@" not in plain
    assert plain.count("#7") == plain.count("#") == 2
    assert [token.tag for token in tokens if token.type == "list_item_open"] == ["li", "li"]


def test_nothing_is_no_span() -> None:
    assert (harmless(" \n\u200b"), harmless("a`b"), harmless("`")) == ("", "`a'b`", "`'`")


def test_leads_by_hand() -> None:
    import numpy as np

    numbers = with_leads(np.array([[0.9, 0.1], [0.7, 0.4], [0.2, 0.2]]))
    assert numbers[:, 2:].tolist() == [
        pytest.approx([0.2, -0.3]),
        pytest.approx([-0.2, 0.2]),
        pytest.approx([-0.7, -0.2]),
    ]
    assert with_leads(np.array([[0.9]])).tolist() == [[0.9, 0.9]]


def test_a_calibration_is_read_as_it_was_written(tmp_path: Path) -> None:
    SURE.write(tmp_path / "c.json")
    again = read_calibration(tmp_path / "c.json")
    assert again == SURE
    assert again.probabilities([]) == []
    told = again.probabilities([[1.0], [0.75]])
    assert told == pytest.approx([1 / (1 + 2.718281828**-3), 0.5], abs=1e-6)
    with pytest.raises(ConfigError, match="rests on cosine, which this search does not give"):
        again.probabilities([[None]])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is no calibration"),
        ('{"format": 2}', "is no calibration"),
        ("[" * 100_000, "is no calibration"),
        (json.dumps({**SHORT, "evidence": ["cosine", "words"]}), "has not 5 weights"),
        (json.dumps({**SHORT, "evidence": ["cosine"], "first": [1, 2, 1e300]}), "is no calibration"),
    ],
)
def test_a_damaged_calibration_is_one_line(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "c.json").write_text(text)
    with pytest.raises(DataError, match=words):
        read_calibration(tmp_path / "c.json")
    with pytest.raises(ConfigError, match="can't be read"):
        read_calibration(tmp_path / "none.json")


class Answers(BaseHTTPRequestHandler):
    """Answers with what it is told, and keeps what it was asked."""

    status: ClassVar[int] = 200
    body: ClassVar[bytes] = b""
    asked: ClassVar[list[dict[str, Any]]] = []
    keys: ClassVar[list[str | None]] = []

    def do_POST(self) -> None:
        self.asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        self.keys.append(self.headers["authorization"])
        self.send_response(self.status)
        self.send_header("content-length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def answers() -> Iterator[tuple[str, type[Answers]]]:
    handler = type("Told", (Answers,), {"asked": [], "keys": []})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", handler
        server.shutdown()


HIT = {"row": {"number": 1, "repo": MOON, "x": None}, "text": "a", "cosine": 0.5, "words": 0.1, "score": 1}


def test_a_server_is_asked_for_older_issues_of_the_repository(answers: tuple[str, type[Answers]]) -> None:
    url, told = answers
    told.body = json.dumps({"hits": [HIT]}).encode()
    (found,) = ServerSearch(url, "secret-of-this-server")(Sought("text", MOON, "2020", 7))
    assert (found.number, found.cosine, found.words) == (1, 0.5, 0.1)
    ServerSearch(url)(Sought("text", MOON, None, 7))
    first = {"text": "text", "top": 7, "by": "both", "where": {"repo": MOON}}
    assert told.asked == [{**first, "before": {"created_at": "2020"}}, first]
    assert told.keys == ["Bearer secret-of-this-server", None]


@pytest.mark.parametrize(
    ("status", "body", "error", "words"),
    [
        (200, "{}", BadReply, "not of issues .*gis render"),
        (200, json.dumps({"hits": [{**HIT, "row": {"text": "x"}}]}), BadReply, "not of issues"),
        (200, json.dumps({"hits": [{**HIT, "cosine": 7}]}), BadReply, "not of issues"),
        (400, '{"error": {"message": "where repo: no such column"}}', ConfigError, "no such column"),
        (401, "{}", AuthError, "HTTP 401, no words; give its key"),
        (404, '{"error": {"message": "this server has no index"}}', ConfigError, "has no index"),
        (429, "{}", RateLimited, "later"),
        (503, "<html>", RemoteError, "HTTP 503, no words"),
    ],
)
def test_what_a_server_may_say(
    answers: tuple[str, type[Answers]], status: int, body: str, error: type[Exception], words: str
) -> None:
    url, told = answers
    told.status, told.body = status, body.encode()
    with pytest.raises(error, match=words):
        ServerSearch(url)(Sought("text", MOON, None, 5))


def test_a_server_that_is_not_there_and_a_key_in_clear() -> None:
    with pytest.raises(RemoteError, match="is an `aoe serve` with an index running there"):
        ServerSearch("http://127.0.0.1:9")(Sought("text", MOON, None, 5))
    with pytest.raises(ConfigError, match="others can read the key"):
        ServerSearch("http://example.org", "key")


@pytest.mark.parametrize("key", ["two\nlines-of-a-key", "кey"])
def test_a_key_that_can_not_be_sent_is_refused_and_not_repeated(key: str) -> None:
    with pytest.raises(ConfigError, match="characters that no key has") as refused:
        ServerSearch("https://example.org", key)
    assert key[:3] not in str(refused.value)
    words = ["--repo", MOON, "--issue", "5", "--server", "https://example.org", "--server-key-env", "KEY"]
    done = CliRunner().invoke(app, ["suggest", *words], env={"GITHUB_TOKEN": "any", "KEY": key})
    assert isinstance(done.exception, ConfigError)
    assert "what KEY holds is no key" in str(done.exception)


def test_a_text_goes_to_the_search_by_standard_input_and_no_token_goes_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "told.json"
    script = tmp_path / "python"
    script.write_text(
        f"#!{sys.executable}\nimport json, os, sys\n"
        f"kept = {{'words': sys.argv[1:], 'text': sys.stdin.read(), 'names': sorted(os.environ)}}\n"
        f"json.dump(kept, open({str(told)!r}, 'w'))\n"
        f"print({json.dumps({'hits': [HIT]})!r})\n"
    )
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    secrets = {"GITHUB_TOKEN", "GITHUB_APP_PRIVATE_KEY", "GH_ENTERPRISE_TOKEN"}
    for name in secrets:
        monkeypatch.setenv(name, "secret")
    text = "é" * 200_000 + "\n--help"
    (found,) = IndexSearch(tmp_path / "index")(Sought(text, MOON, "2020", 7))
    assert found.number == 1
    kept = json.loads(told.read_text())
    assert kept["text"] == text
    assert kept["words"][:5] == ["-P", "-m", "aoe_train", "search", str(tmp_path / "index")]
    assert kept["words"][5:] == [
        "-",
        "--json",
        "--top",
        "7",
        "--by",
        "both",
        "--where",
        f"repo={MOON}",
        "--before",
        "created_at=2020",
    ]
    assert not secrets & {*kept["names"]}


def test_an_index_that_is_none_is_told_as_aoe_tells_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "typer.py").write_text("raise SystemExit('a file of the folder was run')")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"no index\.json; expected the folder that `aoe index` made"):
        IndexSearch(tmp_path / "--help")(Sought("text", MOON, None, 5))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "expected --repo with"),
        (["--repo", MOON], "expected one repository, and the number of an issue or the title"),
        (["--repo", MOON, "--issue", "5"], "expected an index or a server"),
        (["--repo", MOON, "--issue", "5", "--index", "x", "--server", "http://y"], "an index or a server"),
        (["--repo", MOON, "--new", "--index", "x"], "expected --repo with"),
        (["--repo", MOON, "--issue", "5", "--body-file", "x", "--index", "x"], "expected --repo with"),
        (["--repo", MOON, "--issue", "5", "--index", "x", "--comment"], "give a calibration"),
        (["--backtest", "x"], "--backtest: expected --work"),
        (["--backtest", "x", "--work", "y", "--repo", MOON], "--backtest: expected --work"),
        (["--backtest", "x", "--work", "y", "--comment"], "--backtest: expected --work"),
        (["--backtest", "x", "--work", "y", "--label", "z"], "--backtest: expected --work"),
        (["--backtest", "x", "--work", "y", "--calibration", "z"], "--backtest: expected --work"),
        (["--repo", MOON, "--issue", "5", "--server", "http://y", "--server-key-env", "NONE"], "no such env"),
        (["--repo", MOON, "--new", "--title", "x", "--body-file", "none", "--index", "x"], "can't be read"),
    ],
)
def test_wrong_words_are_told_before_anything_is_asked(words: list[str], told: str) -> None:
    done = CliRunner().invoke(app, ["suggest", *words], env={"GITHUB_TOKEN": "any"})
    assert isinstance(done.exception, ConfigError)
    assert told in str(done.exception)


def test_what_would_be_written_is_shown_where_it_is_asked_for(
    github: Server, tmp_path: Path, answers: tuple[str, type[Answers]]
) -> None:
    url, told = answers
    told.body = json.dumps({"hits": [{**HIT, "cosine": 1}]}).encode()
    SURE.write(tmp_path / "c.json")
    words = ["suggest", "--repo", MOON, "--issue", "5", "--server", url, "--api-url", github.url]
    words += ["--calibration", str(tmp_path / "c.json")]
    shown = {}
    for wanted in ((), ("--label", "maybe"), ("--comment",)):
        done = CliRunner().invoke(app, [*words, *wanted], env={"GITHUB_TOKEN": "any"})
        assert done.exit_code == 0, done.output
        shown[wanted] = ("reported before" in done.stdout, "--no-dry-run writes it" in done.stderr)
    assert shown == {(): (False, False), ("--label", "maybe"): (False, True), ("--comment",): (True, True)}

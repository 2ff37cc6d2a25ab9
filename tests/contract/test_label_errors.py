"""`label` reports bad input in one line and with the right exit code."""

import pytest

from tests.contract.label_command import KEYS, generate, one_llm, run_label, sentences
from tests.support.llm import Faults, Options, serve
from tests.support.shorthand import each_line, parametrize, table, values

WORDNET = ("--llm", "wordnet")


@pytest.fixture
def source(tmp_path):
    return sentences(tmp_path / "s.txt", 6)


@each_line("""
    flags, says
    --llm chatgpt | no key; set OPENAI_API_KEY
    --llm wordnet --size 0 | --size 0:
    --llm wordnet --aggregation vote | rules can't judge
    --llm chatgpt --local-only | may send text to another machine
    --llm wordnet --columns text=body | --columns
""")
def test_settings(source, out, flags, says):
    done = generate(source, out, *flags.split())
    assert done.code == 2, done.err
    assert says in done.error
    assert not (out).exists()


@parametrize(
    "name, content, code, says",
    [
        *values(
            r"""
                none.txt | None | 2 | no such file
                bad.txt | b'\x81 good' | 3 | UTF-8
                bad.parquet | b'PAR1nothing' | 3 | bad.parquet
                bad.jsonl | b'{"text": "fine"}\n{"text": ' | 3 | bad.jsonl:2
                nul.txt | b'one\x00two\n' | 3 | unusable_characters 1
            """,
        ),
        ("long.txt", b"word " * 10_000, 3, "too_long 1"),
    ],
)
def test_sentences(tmp_path, name, content, code, says):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    done = generate(path, tmp_path / "out", *WORDNET)
    assert done.code == code, done.err
    assert says in done.error
    assert name in done.error


@parametrize("kind, reason", [("html", "broken_reply"), ("hang", "timeout")])
def test_a_server_that_never_answers_well(source, tmp_path, out, kind, reason):
    with serve(Options(), Faults(1.0, (kind,))) as server:
        wait = {"attempts": 2, "timeout_s": 0.3 if kind == "hang" else 60}
        done = generate(source, out, *one_llm(tmp_path, server.base_url, **wait))
    assert done.code == 4, done.err
    assert reason in done.error
    assert "run the same command again" in done.error
    assert not (out).exists()


@table(
    """
        change, keys, code, says
        {} | {'EMULATED_API_KEY': 'a-wrong-secret-key'} | 4 | EMULATED_API_KEY
        {} | {} | 2 | no key; set EMULATED_API_KEY
        {'model': 'nope'} | KEYS | 2 | no such model 'nope'
        {'base_url': 'http://127.0.0.1:9/v1'} | KEYS | 4 | can't be reached at http://127.0.0.1:9/v1
        {'base_url': 'ftp://127.0.0.1/v1'} | KEYS | 2 | http
    """,
    KEYS=KEYS,
)
def test_permanent_errors_end_the_run(source, tmp_path, change, keys, code, says):
    with serve(Options(api_key=KEYS["EMULATED_API_KEY"])) as server:
        flags = one_llm(tmp_path, server.base_url, **change)
        done = generate(source, tmp_path / "out", *flags, keys=keys)
    assert done.code == code, done.err
    assert says in done.error
    assert "secret" not in done.err


def test_other_folders_are_not_replaced(source, tmp_path):
    out, taken = tmp_path / "out", tmp_path / "taken"
    taken.mkdir()
    (taken / "thesis.tex").write_text("years of work")
    assert generate(source, out, *WORDNET).code == 0
    for at, flags, says in (
        (taken, (), "not a dataset of `label`"),
        (out, ("--work", out / "w"), "would replace the working folder"),
    ):
        done = generate(source, at, *WORDNET, *flags)
        assert (done.code, says in done.error) == (2, True), done.err
    parse = run_label(
        "parse",
        "--work",
        tmp_path / "out.work",
        "--out",
        tmp_path / "p",
        "--set",
        "size=9",
    )
    assert (parse.code, "change them with `label generate`" in parse.error) == (
        2,
        True,
    ), parse.err


def test_unreported_usage_is_charged_at_its_bound(source, tmp_path, out):
    with serve(faults=Faults(1.0, ("no_usage",))) as server:
        done = generate(source, out, *one_llm(tmp_path, server.base_url))
    assert done.result["tokens"] > 12 * 500
    report = run_label("report", "--work", f"{out}.work", "--json").result
    assert report["llms"]["llama"]["estimated_calls"] == 12


@parametrize("command", ["parse", "show", "report", "evaluate"])
def test_folders_that_are_not_working_folders(tmp_path, command):
    gold = tmp_path / "gold.csv"
    gold.write_text("text1,text2,label\na b,c d,1\n")
    more = {"show": ["row:1"], "evaluate": ["--gold", gold]}.get(command, [])
    done = run_label(command, *more, "--work", tmp_path / "none")
    assert done.code == 2, done.err
    assert "not a working folder" in done.error

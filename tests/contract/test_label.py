"""`label` on the command line, with emulated servers that fail."""

import json
import stat
from pathlib import Path

import polars as pl
import pytest

import pairkit
from tests.contract.label_command import (
    BRIEF,
    KEYS,
    ensemble,
    generate,
    llms_file,
    one_llm,
    requests,
    run_label,
    sentences,
)
from tests.llm_labeler.llm_server import responding
from tests.support.llm import Faults, Options, serve


def test_judging_without_an_unavailable_llm_exits_with_4(tmp_path):
    pairs = tmp_path / "p.csv"
    pairs.write_text(
        "text1,text2,label\n" + "".join(f"A cat {n}.,Cats {n}.,1\n" for n in range(6))
    )
    with serve() as good, serve(faults=Faults(1.0, ("quota",))) as broke:
        urls = {"good": good.base_url, "bad": broke.base_url}
        config = llms_file(tmp_path / "l.toml", urls, model="emulated")
        flags = (
            "--data",
            pairs,
            "--out",
            tmp_path / "out",
            "--llm",
            "good,bad",
            "--config",
            config,
        )
        done = run_label("judge", *flags, "--json")
        kept = run_label("judge", *flags, "--json", "--keep-going")
    assert done.code == 4, done.err
    assert "bad: the account is exhausted" in done.error
    assert kept.code == 4, kept.err
    assert "was made without all answers of bad" in kept.error
    assert sum(split["pairs"] for split in kept.result["splits"].values()) > 0


def test_an_unavailable_llm_does_not_stop_the_others(tmp_path):
    """A server with an exhausted account."""
    source, out = sentences(tmp_path / "s.txt", 10), tmp_path / "out"
    with (
        ensemble(tmp_path) as (flags, servers),
        serve(faults=Faults(1.0, ("quota",))) as broke,
    ):
        config = Path(flags[-1])
        text = config.read_text().replace('"chatgpt"', '"emulated"')
        config.write_text(text.replace(servers[0].base_url, broke.base_url))
        done = generate(source, out, *flags)
        assert done.code == 4, done.err
        assert "chatgpt: the account is exhausted" in done.error
        assert not out.exists()
        assert [len(server.stats.answers) for server in servers] == [0, 20, 20]
        kept = generate(source, out, *flags, "--keep-going")
        assert kept.code == 4, kept.err
        assert "was made without all answers of chatgpt" in kept.error
        assert (kept.result["texts"], kept.result["cached"]) == (10, 40)
        assert [len(server.stats.answers) for server in servers] == [0, 20, 20]
    with ensemble(tmp_path) as (flags, servers):
        # Another address counts as another LLM, so all questions are asked again.
        mended = generate(source, out, *flags, "--fresh")
        assert mended.code == 0, mended.err


def test_show_and_report(tmp_path, out):
    source = sentences(tmp_path / "s.txt", 8)
    with ensemble(tmp_path) as (flags, _):
        assert generate(source, out, *flags, "--aggregation", "vote").code == 0
    work = tmp_path / "out.work"
    for path in work.iterdir():
        assert path.name == "lock" or stat.S_IMODE(path.stat().st_mode) == 0o600, path
    shown = run_label("show", "row:3", "--work", work)
    assert shown.code == 0, shown.err
    places = ("--work", work, "--out", tmp_path / "union")
    parsed = run_label("parse", *places, "--aggregation", "union", "--json")
    assert (parsed.code, parsed.result["calls"]) == (0, 0), parsed.err
    sentence = source.read_text().splitlines()[2]
    for words in (
        sentence,
        "prompt, positive",
        "answer of chatgpt, negative",
        "proposals",
        "pairs",
        "llama: same",
    ):
        assert words in shown.out
    assert run_label("show", sentence, "--work", work).out == shown.out
    unknown = run_label("show", "zzz", "--work", work)
    assert (unknown.code, "no sentence 'zzz' among 8" in unknown.error) == (3, True)
    reported = run_label("report", "--work", work, "--json")
    assert reported.result["llms"]["llama"]["answers"] == 16
    assert reported.result["llms"]["llama"]["cost"] > 0
    assert run_label("report", "--work", work, "--json", "--quiet").err == ""
    assert "llama" in run_label("report", "--work", work).out
    gold = tmp_path / "gold.csv"
    rows = pl.concat(pairkit.read(out).splits.values()).head(10)
    rows.select("text1", "text2", "label").write_csv(gold)
    score = ("evaluate", "--work", work, "--gold", gold)
    assert run_label(*score, "--json").result["found"] == 10
    table = run_label(*score).out
    assert "union, positive" in table
    assert "kappa" in table


@pytest.mark.parametrize(
    "limit, most",
    [
        ("--max-cost", 0.004),
        pytest.param("--max-tokens", 2_000, marks=pytest.mark.slow),
        pytest.param("--max-requests", 15, marks=pytest.mark.slow),
    ],
)
def test_a_budget_is_kept_over_sessions(tmp_path, out, limit, most):
    source = sentences(tmp_path / "s.txt", 12)
    with ensemble(tmp_path, BRIEF) as (flags, servers):
        for _ in range(2):
            done = generate(source, out, *flags, limit, most)
            assert done.code == 4, done.err
            assert done.error.endswith(
                f"to continue, raise {limit} and run the same command again"
            )
            assert "parse(" not in done.err  # the reader's interface is the shell
            assert done.result["stopped"] == limit.strip("-").replace("-", "_")
            assert done.result["dropped"]["not_answered"] > 0
            assert f"; {limit}={most} covers about " in done.err
            assert done.result["cost_in_all"] <= most or limit != "--max-cost"
        assert limit != "--max-requests" or requests(servers) <= most
        more = generate(source, out, *flags)
        assert more.code == 0, more.err
        assert "not_answered" not in more.result["dropped"]


def test_rejected_questions_are_repeated_on_request(tmp_path):
    source = tmp_path / "s.txt"
    source.write_text("The nurse is kind.\n" + "A very long story. " * 40 + "\n")
    with serve(Options(context_chars=500)) as server:
        flags = one_llm(tmp_path, server.base_url, concurrency=1)
        for more, asked in (((), 4), ((), 0), (("--retry-failed",), 2)):
            before = len(server.requests)
            done = generate(source, tmp_path / "out", *flags, *more)
            assert done.code == 0, done.err
            assert "2 questions were rejected by their server" in done.err
            assert (
                len([r for r in server.requests[before:] if r.method == "POST"])
                == asked
            )


def test_a_key_in_a_response_is_never_stored(tmp_path):
    source = sentences(tmp_path / "s.txt", 6)
    key = KEYS["EMULATED_API_KEY"]
    message = {
        "role": "assistant",
        "content": f"1. You sent Bearer {key}.\n2. The nurse is {key}.",
    }
    body = json.dumps(
        {"choices": [{"message": message, "finish_reason": "stop"}], "model": key}
    )
    with responding(200, body, x_echo=key) as url:
        done = generate(source, tmp_path / "out", *one_llm(tmp_path, url))
    assert done.code in (0, 3), done.err
    assert key not in done.out + done.err
    kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not [data for data in kept if key.encode() in data]
    assert [data for data in kept if b"You sent Bearer [key]" in data]

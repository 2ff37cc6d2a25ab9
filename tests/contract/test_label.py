"""`label` from the command line: from sentences to a dataset, through emulated servers that misbehave."""

from __future__ import annotations

import json
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import polars as pl
import pytest

from pairkit.dataset.reader import read_pairs
from pairkit.system.seeded import keyed_unit
from tests.contract.label_command import MEMBERS, killed_at, llms_file, run_label, sentences, tree
from tests.llm_labeler.llm_server import http, playing_back
from tests.support.llm import Faults, Options, Server, serve

KEYS = {"EMULATED_API_KEY": "any"}
PASSING = Faults(share=0.3, first=3, retry_after_s=0.02)


@contextmanager
def ensemble(
    folder: Path, faults: Faults | None = None, *, latency_s: float = 0.0, **more: object
) -> Iterator[tuple[Path, list[Server]]]:
    """The papers' three, each behind a server of its own."""
    with ExitStack() as stack:
        servers = [
            stack.enter_context(
                serve(
                    Options((name,), latency_s=latency_s),
                    Faults(faults.share, faults.kinds, seed, faults.first, faults.retry_after_s)
                    if faults
                    else Faults(),
                )
            )
            for seed, name in enumerate(MEMBERS)
        ]
        urls = {name: server.base_url for name, server in zip(MEMBERS, servers, strict=True)}
        yield llms_file(folder / "llms.toml", urls, **more), servers


def flags(source: Path, config: Path, out: Path, *more: str) -> list[str]:
    return [
        "generate",
        "--input",
        str(source),
        "--llm",
        "ensemble",
        "--config",
        str(config),
        "--out",
        str(out),
        *more,
    ]


def test_a_dead_member_does_not_keep_the_others_from_their_part(tmp_path: Path) -> None:
    """Its account is exhausted from the first call on."""
    source = sentences(tmp_path / "s.txt", 20)
    with ensemble(tmp_path) as (config, servers), serve(faults=Faults(1.0, ("quota",))) as broke:
        entry = f'base_url = "{servers[0].base_url}"'
        text = config.read_text().replace('"chatgpt"', '"emulated"')
        config.write_text(text.replace(entry, f'base_url = "{broke.base_url}"'))
        out = tmp_path / "out"
        done = run_label(*flags(source, config, out, "--json"), keys=KEYS)
        assert done.code == 4, done.err
        assert "chatgpt: its account is exhausted" in done.error
        assert not out.exists()
        assert [len(server.stats.answers) for server in servers] == [0, 40, 40]
        kept = run_label(*flags(source, config, out, "--json", "--keep-going"), keys=KEYS)
        assert kept.code == 4, kept.err
        assert "is made without all answers of chatgpt" in kept.error
        assert (kept.result["texts"], kept.result["cached"]) == (20, 80)
        assert [len(server.stats.answers) for server in servers] == [0, 40, 40]
    with ensemble(tmp_path) as (config, servers):
        # Another address is another LLM to the store, so all is asked once more.
        mended = run_label(*flags(source, config, out, "--json", "--fresh"), keys=KEYS)
        assert mended.code == 0, mended.err


def test_a_gateway_that_passes_an_empty_account_on_as_400(tmp_path: Path) -> None:
    source = sentences(tmp_path / "s.txt", 60)
    body = {"error": {"message": "Upstream: the balance of this workspace is nil.", "code": "400"}}
    with playing_back(http(200, '{"data": []}'), http(400, json.dumps(body))) as url:
        config = llms_file(tmp_path / "l.toml", {"llama": url})
        common = ("--input", str(source), "--llm", "llama", "--out", str(tmp_path / "out"), "--json")
        done = run_label("generate", *common, "--config", str(config), keys=KEYS)
        assert done.code == 4, done.err
        assert "the balance of this workspace is nil" in done.error
        again = run_label("generate", *common, "--config", str(config), keys=KEYS)
        assert again.code == 4, again.err
    with sqlite3.connect(tmp_path / "out.work" / "answers.sqlite") as connection:
        ((final, failed),) = connection.execute("SELECT sum(final), count(*) FROM failures")
    connection.close()
    assert final == 0
    assert 0 < failed < 60


def test_what_was_rejected_for_good_is_asked_again_on_demand(tmp_path: Path) -> None:
    source = tmp_path / "s.txt"
    source.write_text("The nurse is kind.\n" + "A very long story. " * 40 + "\n", encoding="utf-8")
    common = ("--input", str(source), "--llm", "llama", "--out", str(tmp_path / "out"), "--json")
    with serve(Options(("llama",), context_chars=500)) as server:
        config = llms_file(tmp_path / "l.toml", {"llama": server.base_url}, concurrency=1)
        for more, asked in (((), 4), ((), 0), (("--retry-failed",), 2)):
            before = len(server.requests)
            done = run_label("generate", *common, "--config", str(config), *more, keys=KEYS)
            assert done.code == 0, done.err
            assert "2 questions were rejected for good" in done.err
            assert len([r for r in server.requests[before:] if r.method == "POST"]) == asked


def test_an_ensemble_with_faults_loses_nothing_and_asks_nothing_twice(tmp_path: Path) -> None:
    source = sentences(tmp_path / "s.txt", 20)
    with ensemble(tmp_path, PASSING) as (config, servers):
        done = run_label(*flags(source, config, tmp_path / "out", "--json"), keys=KEYS)
        assert done.code == 0, done.err
        assert done.result["texts"] == 20
        assert done.result["pairs"] == done.result["positives"] + done.result["negatives"] > 0
        assert done.result["calls"] == sum(server.stats.requests for server in servers) > 120
        for server in servers:
            assert server.stats.faults
            assert len(server.stats.answers) == 40
            assert server.stats.asked_again == 0
        again = run_label(*flags(source, config, tmp_path / "out", "--json"), keys=KEYS)
        assert (again.result["calls"], again.result["cached"]) == (0, 120)
        assert sum(server.stats.answered for server in servers) == 120
    dataset = read_pairs(tmp_path / "out")
    assert {"text_id", "polarity", "llms", "prompt_hashes", "votes"} <= {*dataset.rows.columns}
    rows = pl.concat(dataset.splits.values())
    assert rows["text_id"].n_unique() == 20
    assert {name for names in rows["llms"].to_list() for name in names} == set(MEMBERS)


@pytest.mark.slow
def test_the_same_dataset_without_faults(tmp_path: Path) -> None:
    source = sentences(tmp_path / "s.txt", 30)
    found = []
    for faults in (None, PASSING):
        folder = tmp_path / ("calm" if faults is None else "rough")
        folder.mkdir()
        with ensemble(folder, faults) as (config, _):
            assert run_label(*flags(source, config, folder / "out"), keys=KEYS).code == 0
        files = tree(folder / "out")
        # The servers' addresses differ from run to run, and with them the parameters that run.json names.
        found.append({name: data for name, data in files.items() if name != "run.json"})
    assert found[0] == found[1]


def kill_and_finish(tmp_path: Path, kills: int, texts: int) -> None:
    source = sentences(tmp_path / "s.txt", texts)
    with ensemble(tmp_path, PASSING, latency_s=0.01) as (config, servers):
        calm = run_label(*flags(source, config, tmp_path / "calm", "--json"), keys=KEYS)
        assert calm.code == 0, calm.err
        for server in servers:
            server.stats.answers.clear()
            server.stats.answered = 0
        command = flags(source, config, tmp_path / "killed", "--json")
        for turn in range(kills):
            assert killed_at(command, servers, 10 + int(80 * keyed_unit(7, turn)), keys=KEYS)
        done = run_label(*command, keys=KEYS)
        assert done.code == 0, done.err
        # An answer on its way when the process was killed was never committed; nothing else is asked again.
        most_lost = kills * 3 * 16
        assert sum(server.stats.asked_again for server in servers) <= most_lost
        assert done.result["pairs"] == calm.result["pairs"]
    assert tree(tmp_path / "killed") == tree(tmp_path / "calm")


def test_a_kill(tmp_path: Path) -> None:
    kill_and_finish(tmp_path, kills=1, texts=30)


@pytest.mark.slow
def test_twenty_kills(tmp_path: Path) -> None:
    kill_and_finish(tmp_path, kills=20, texts=400)


@pytest.mark.parametrize("strategy", [pytest.param("vote", marks=pytest.mark.slow), "weighted"])
def test_strategies(tmp_path: Path, strategy: str) -> None:
    source = sentences(tmp_path / "s.txt", 40)  # with fewer, too little is known of the LLMs to weigh them
    with ensemble(tmp_path) as (config, servers):
        done = run_label(
            *flags(source, config, tmp_path / "out", "--strategy", strategy, "--json"), keys=KEYS
        )
        assert done.code == 0, done.err
        asked = sum(server.stats.requests for server in servers)
        assert asked > 240  # judging asks more
        # Another ensemble of the same answers costs no call.
        parsed = run_label(
            "parse",
            "--work",
            str(tmp_path / "out.work"),
            "--out",
            str(tmp_path / "union"),
            "--strategy",
            "union",
            "--json",
        )
        assert parsed.code == 0, parsed.err
        assert parsed.result["calls"] == 0
        assert parsed.result["pairs"] >= done.result["pairs"] > 0
        assert sum(server.stats.requests for server in servers) == asked
    labels = pl.concat(read_pairs(tmp_path / "out").splits.values())["label"]
    assert labels.dtype == (pl.Float32 if strategy == "weighted" else pl.Int64)


@pytest.mark.parametrize(
    ("limit", "most"),
    [
        ("--max-cost", 0.01),
        pytest.param("--max-tokens", 4_500, marks=pytest.mark.slow),
        pytest.param("--max-requests", 40, marks=pytest.mark.slow),
    ],
)
def test_a_budget_is_kept_over_sessions(tmp_path: Path, limit: str, most: float) -> None:
    source = sentences(tmp_path / "s.txt", 30)
    with ensemble(tmp_path, PASSING) as (config, servers):
        for _ in range(2):
            done = run_label(*flags(source, config, tmp_path / "out", limit, str(most), "--json"), keys=KEYS)
            assert done.code == 0, done.err
            assert done.result["stopped"] == limit.strip("-").replace("-", "_")
            assert done.result["dropped"]["not_answered"] > 0
            assert done.result["cost_in_all"] <= most or limit != "--max-cost"
        assert limit != "--max-requests" or sum(server.stats.requests for server in servers) <= most
        more = run_label(*flags(source, config, tmp_path / "out", "--json"), keys=KEYS)
        assert more.code == 0, more.err
        assert "not_answered" not in more.result["dropped"]


def test_private_files(tmp_path: Path) -> None:
    source = sentences(tmp_path / "s.txt", 5)
    with ensemble(tmp_path) as (config, _):
        assert run_label(*flags(source, config, tmp_path / "out"), keys=KEYS).code == 0
    for path in (tmp_path / "out.work").iterdir():
        if path.name != "lock":
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_looking_at_the_work(tmp_path: Path) -> None:
    source = sentences(tmp_path / "s.txt", 15)
    with ensemble(tmp_path) as (config, _):
        assert run_label(*flags(source, config, tmp_path / "out", "--strategy", "vote"), keys=KEYS).code == 0
    work = str(tmp_path / "out.work")
    shown = run_label("show", "row:3", "--work", work)
    assert shown.code == 0, shown.err
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
    reported = run_label("report", "--work", work, "--json")
    assert reported.err.endswith(f"label show row:1 --work {work}\n")
    assert run_label("report", "--work", work, "--json", "--quiet").err == ""
    report = reported.result
    assert report["llms"]["llama"]["answers"] == 30
    assert report["llms"]["llama"]["cost"] > 0
    assert "llama" in run_label("report", "--work", work).out
    rows = pl.concat(read_pairs(tmp_path / "out").splits.values()).head(20)
    gold = tmp_path / "gold.csv"
    rows.select("text1", "text2", "label").write_csv(gold)
    score = run_label("score", "--work", work, "--gold", str(gold), "--json").result
    assert score["found"] == 20
    table = run_label("score", "--work", work, "--gold", str(gold))
    assert "union, positive" in table.out
    assert "kappa" in table.out


def test_dry_run_asks_nobody(tmp_path: Path) -> None:
    source = sentences(tmp_path / "s.txt", 30)
    with ensemble(tmp_path) as (config, servers):
        done = run_label(*flags(source, config, tmp_path / "out", "--dry-run", "--json"), keys=KEYS)
        assert done.code == 0, done.err
        assert sum(server.stats.requests for server in servers) == 0
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "out.work").exists()
    assert done.result["calls"] == 180
    assert 0 < done.result["cost"] < 1
    config.write_text(config.read_text().replace("price_in = 1.0\n", ""))
    config.write_text(config.read_text().replace("127.0.0.1", "llm.example"))
    unknown = run_label(*flags(source, config, tmp_path / "out", "--dry-run", "--json"), keys=KEYS)
    assert unknown.result["cost"] is None
    assert "unknown" in run_label(*flags(source, config, tmp_path / "out", "--dry-run"), keys=KEYS).out


def test_the_llms_that_there_are(tmp_path: Path) -> None:
    config = llms_file(tmp_path / "llms.toml", {"mine": "http://llm.example/v1"})
    done = run_label("llms", "--config", str(config))
    assert done.code == 0, done.err
    assert all(name in done.out for name in ("wordnet", "chatgpt", "mine"))

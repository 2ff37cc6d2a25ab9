"""`label` on the command line, with emulated servers that fail."""

from __future__ import annotations

import shlex
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

from pairkit.base.system.seeded import keyed_unit
from pairkit.dataset.reading.reader import read_pairs
from tests.aoe_train.tiny import save_bert
from tests.contract.conftest import Done, environment, killed_when, run_here
from tests.contract.label_command import (
    KEYS,
    MEMBERS,
    generate,
    llms_file,
    one_llm,
    run_label,
    sentences,
    tree,
)
from tests.support.llm import Faults, Options, Server, serve

PASSING = Faults(share=0.3, first=3, retry_after_s=0.02)


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llm_labeler.dispatch.workers._MIN_BACKOFF_S", 0.01)
    monkeypatch.setattr("llm_labeler.dispatch.limits._MIN_PAUSE_S", 0.01)


@contextmanager
def ensemble(
    folder: Path, faults: Faults | None = None, *, latency_s: float = 0.0
) -> Iterator[tuple[tuple[str, ...], list[Server]]]:
    """Serve the papers' three LLMs, each on its own server; the flags for them."""
    with ExitStack() as stack:
        servers = [
            stack.enter_context(
                serve(
                    Options((name,), latency_s=latency_s), replace(faults, seed=seed) if faults else Faults()
                )
            )
            for seed, name in enumerate(MEMBERS)
        ]
        urls = {name: server.base_url for name, server in zip(MEMBERS, servers, strict=True)}
        yield ("--llm", "ensemble", "--config", str(llms_file(folder / "llms.toml", urls))), servers


def requests(servers: list[Server]) -> int:
    return sum(server.stats.requests for server in servers)


def test_an_unavailable_llm_does_not_stop_the_others(tmp_path: Path) -> None:
    """A server with an exhausted account."""
    source, out = sentences(tmp_path / "s.txt", 10), tmp_path / "out"
    with ensemble(tmp_path) as (flags, servers), serve(faults=Faults(1.0, ("quota",))) as broke:
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


def test_judging_without_an_unavailable_llm_exits_with_4(tmp_path: Path) -> None:
    pairs, out = tmp_path / "p.csv", tmp_path / "out"
    pairs.write_text("text1,text2,label\n" + "".join(f"A cat {n}.,Cats {n}.,1\n" for n in range(6)))
    with serve() as good, serve(faults=Faults(1.0, ("quota",))) as broke:
        urls = {"good": good.base_url, "bad": broke.base_url}
        config = llms_file(tmp_path / "l.toml", urls, model="emulated")
        flags = ("--data", pairs, "--out", out, "--llm", "good,bad", "--config", config, "--json")
        done, kept = run_label("judge", *flags), run_label("judge", *flags, "--keep-going")
    assert (done.code, "bad: the account is exhausted" in done.error) == (4, True), done.err
    assert (kept.code, "was made without all answers of bad" in kept.error) == (4, True), kept.err
    assert sum(split["pairs"] for split in kept.result["splits"].values()) > 0


def test_rejected_questions_are_repeated_on_request(tmp_path: Path) -> None:
    source = tmp_path / "s.txt"
    source.write_text("The nurse is kind.\n" + "A very long story. " * 40 + "\n", encoding="utf-8")
    with serve(Options(context_chars=500)) as server:
        flags = one_llm(tmp_path, server.base_url, concurrency=1)
        for more, asked in (((), 4), ((), 0), (("--retry-failed",), 2)):
            before = len(server.requests)
            done = generate(source, tmp_path / "out", *flags, *more)
            assert done.code == 0, done.err
            assert "2 questions were rejected by their server" in done.err
            assert len([r for r in server.requests[before:] if r.method == "POST"]) == asked


def test_a_faulty_ensemble_loses_no_answer_and_repeats_no_question(tmp_path: Path) -> None:
    source = sentences(tmp_path / "s.txt", 12)
    with ensemble(tmp_path, PASSING) as (flags, servers):
        done = generate(source, tmp_path / "out", *flags)
        assert done.code == 0, done.err
        assert done.result["texts"] == 12
        assert done.result["pairs"] == done.result["positives"] + done.result["negatives"] > 0
        assert done.result["calls"] == requests(servers) > 72
        for server in servers:
            assert server.stats.faults
            assert len(server.stats.answers) == 24
            assert server.stats.asked_again == 0
        again = generate(source, tmp_path / "out", *flags)
        assert (again.result["calls"], again.result["cached"]) == (0, 72)
        assert sum(server.stats.answered for server in servers) == 72
    dataset = read_pairs(tmp_path / "out")
    assert {"text_id", "polarity", "llms", "prompt_hashes", "votes"} <= {*dataset.rows.columns}
    rows = pl.concat(dataset.splits.values())
    assert rows["text_id"].n_unique() == 12
    assert {name for names in rows["llms"].to_list() for name in names} == set(MEMBERS)


@pytest.mark.parametrize(
    ("kills", "texts"), [(1, 12), pytest.param(20, 400, marks=pytest.mark.slow)], ids=["one", "twenty"]
)
def test_kills_lose_nothing(tmp_path: Path, kills: int, texts: int) -> None:
    source = sentences(tmp_path / "s.txt", texts)
    with ensemble(tmp_path, PASSING, latency_s=0.01) as (flags, servers):
        calm = generate(source, tmp_path / "calm", *flags)
        assert calm.code == 0, calm.err
        for server in servers:
            server.stats.answers.clear()
            server.stats.answered = 0
        files = ("--data", str(source), "--out", str(tmp_path / "killed"))
        for turn in range(kills):
            most = requests(servers) + 10 + int(min(texts, 80) * keyed_unit(7, turn))
            assert killed_when(
                lambda most=most: requests(servers) >= most,
                *("llm_labeler", "generate", *files, *flags),
                environ=environment(**KEYS),
            )
        done = generate(source, tmp_path / "killed", *flags)
        assert done.code == 0, done.err
        # Only answers that were in flight at a kill are requested again.
        assert sum(server.stats.asked_again for server in servers) <= kills * 3 * 16
        assert done.result["pairs"] == calm.result["pairs"]
    assert tree(tmp_path / "killed") == tree(tmp_path / "calm")


@pytest.mark.parametrize("aggregation", [pytest.param("vote", marks=pytest.mark.slow), "weighted"])
def test_aggregations(tmp_path: Path, aggregation: str) -> None:
    source = sentences(tmp_path / "s.txt", 40)  # enough to estimate accuracies
    with ensemble(tmp_path) as (flags, servers):
        done = generate(source, tmp_path / "out", *flags, "--aggregation", aggregation)
        assert done.code == 0, done.err
        asked = requests(servers)
        assert asked > 240  # including judging
        # Another aggregation needs no call.
        places = ("--work", tmp_path / "out.work", "--out", tmp_path / "union")
        parsed = run_label("parse", *places, "--aggregation", "union", "--json")
        assert parsed.code == 0, parsed.err
        assert parsed.result["calls"] == 0
        assert parsed.result["pairs"] >= done.result["pairs"] > 0
        assert requests(servers) == asked
    labels = pl.concat(read_pairs(tmp_path / "out").splits.values())["label"]
    assert labels.dtype == (pl.Float32 if aggregation == "weighted" else pl.Int64)


@pytest.mark.parametrize(
    ("limit", "most"),
    [
        ("--max-cost", 0.004),
        pytest.param("--max-tokens", 2_000, marks=pytest.mark.slow),
        pytest.param("--max-requests", 15, marks=pytest.mark.slow),
    ],
)
def test_a_budget_is_kept_over_sessions(tmp_path: Path, limit: str, most: float) -> None:
    source = sentences(tmp_path / "s.txt", 12)
    with ensemble(tmp_path, PASSING) as (flags, servers):
        for _ in range(2):
            done = generate(source, tmp_path / "out", *flags, limit, most)
            assert done.code == 0, done.err
            assert done.result["stopped"] == limit.strip("-").replace("-", "_")
            assert done.result["dropped"]["not_answered"] > 0
            assert done.result["cost_in_all"] <= most or limit != "--max-cost"
        assert limit != "--max-requests" or requests(servers) <= most
        more = generate(source, tmp_path / "out", *flags)
        assert more.code == 0, more.err
        assert "not_answered" not in more.result["dropped"]


def next_commands(done: Done) -> list[list[str]]:
    """The commands of all "next: ..." lines."""
    lines = done.err.splitlines()
    return [shlex.split(below) for line, below in pairwise(lines) if line.startswith("next: ")]


def test_next_steps_run(tmp_path: Path) -> None:
    save_bert(tmp_path / "bert")
    sentences(tmp_path / "s.txt", 40)
    header = "text,other\n" + "".join(f"{line},x\n" for line in (tmp_path / "s.txt").read_text().splitlines())
    source, out = tmp_path / "a file.csv", tmp_path / "our pairs"  # rows begin at 2; names with blanks
    source.write_text(header)
    gold = tmp_path / "gold.csv"
    with ensemble(tmp_path) as (flags, _):
        given = ("--data", source, "--columns", "text=text", "--out", out, *flags, "--aggregation", "vote")
        steps = next_commands(run_label("generate", *given, "--dry-run"))
        assert steps == [["label", "generate", *map(str, given)]]
        seen = set[str]()
        while steps:
            step = steps.pop()
            if step[0] == "less" or (step[0] == "aoe" and "aoe train" in seen):
                assert any(Path(word).exists() for word in step)
                continue
            package = {"label": "llm_labeler", "aoe": "aoe_train"}[step[0]]
            step = [str(tmp_path / "bert") if word == "minilm" else word for word in step]
            done = run_here(package, *step[1:], environ=environment(**KEYS), cwd=tmp_path)
            assert done.code == 0, (step, done.err)
            if step[1] == "generate":
                rows = pl.concat(read_pairs(out).splits.values()).head(10)
                rows.select("text1", "text2", "label").write_csv(gold)
                judge = ("judge", "--data", gold, "--out", tmp_path / "judged", *flags)
                steps += next_commands(run_label(*judge))
            seen.add(f"{step[0]} {step[1]}")
            steps += next_commands(done) if step[0] == "label" else []
    assert seen == {"label generate", "label report", "label show", "aoe train"}


def test_show_and_report(tmp_path: Path) -> None:
    source = sentences(tmp_path / "s.txt", 8)
    with ensemble(tmp_path) as (flags, _):
        assert generate(source, tmp_path / "out", *flags, "--aggregation", "vote").code == 0
    work = tmp_path / "out.work"
    for path in work.iterdir():
        assert path.name == "lock" or stat.S_IMODE(path.stat().st_mode) == 0o600, path
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
    unknown = run_label("show", "zzz", "--work", work)
    assert (unknown.code, "no sentence 'zzz' among 8" in unknown.error) == (3, True)
    reported = run_label("report", "--work", work, "--json")
    assert reported.result["llms"]["llama"]["answers"] == 16
    assert reported.result["llms"]["llama"]["cost"] > 0
    assert run_label("report", "--work", work, "--json", "--quiet").err == ""
    assert "llama" in run_label("report", "--work", work).out
    gold = tmp_path / "gold.csv"
    rows = pl.concat(read_pairs(tmp_path / "out").splits.values()).head(10)
    rows.select("text1", "text2", "label").write_csv(gold)
    score = ("evaluate", "--work", work, "--gold", gold)
    assert run_label(*score, "--json").result["found"] == 10
    table = run_label(*score).out
    assert "union, positive" in table
    assert "kappa" in table

"""Proposing and judging: failures and budgets; plans."""

import asyncio
import json
import socket

import polars as pl
import pytest

import llm_labeler
from llm_labeler import CallFailed
from tests.support.shorthand import (
    approx,
    config_error,
    data_error,
    parametrize,
    raises,
    remote_error,
    table,
)

from .stored_answers import add_pending_batch

TEXTS = ["The nurse takes a pill.", "A doctor drinks cold water."]


def answering(name, *failures):
    """An LLM that proposes and confirms; its first calls on the first sentence raise `failures`."""
    left = [*failures]

    def llm(prompt):
        if "Sentence: " not in prompt:
            return json.dumps({str(number): "same" for number in range(1, 9)})
        if "nurse" in prompt and left:
            raise left.pop(0)
        return f"1. It is so, {name} says.\n2. So {name} says it is."

    return llm


def generate(out, *failures, texts=TEXTS, **more):
    llms = {"ann": answering("ann", *failures), "bob": answering("bob")}
    given = {"polarity": "positive", **more}
    return llm_labeler.generate(texts, llm=llms, out=out, aggregation="vote", **given)


def test_a_rejected_question_does_not_stop_judging(out):
    rejected = CallFailed("rejected", "against the rules", retry=False, final=True)
    result = generate(out, rejected)
    assert result.dropped["answer_rejected"] == 1
    assert result.positives > 0
    assert "not_judged" not in result.dropped


def test_judging_waits_for_all_proposals(tmp_path, out):
    passing = CallFailed("rejected", "not now", retry=False)
    remedy = r"no answer to 1 questions \(rejected 1: not now\).*out', fresh=True\)`"
    with remote_error(remedy):
        generate(out, passing, fresh=True)
    report = llm_labeler.report(tmp_path / "out.work")
    assert (report.failures, report.llms["bob"].kept) == ({"rejected": 1}, 4)
    assert "not_judged" not in generate(out).dropped


def test_votes_that_were_not_requested_are_missed(tmp_path, out):
    llms = {name: answering(name) for name in ("ann", "bob")}
    result = llm_labeler.generate(TEXTS, llm=llms, out=out, polarity="positive")
    with data_error("not_judged 4.* judges have not answered; run .* aggregation=$"):
        llm_labeler.parse(result.work, out=tmp_path / "voted", aggregation="vote")


def test_part_of_the_budget_is_kept_for_judges(tmp_path, out):
    texts = [f"The nurse takes pill number {number}." for number in range(20)]
    result = generate(out, texts=texts, max_requests=40)
    assert result.asked.stopped == "max_requests"
    assert result.asked.spent.requests >= 36
    assert 36 <= result.positives <= 40  # 4 per text, for 2 questions and 2 to judges
    places = f"work='{result.work}', out='{result.out}-unjudged'"
    command = f"`llm_labeler.parse({places}, aggregation='union')` makes"
    assert any(command in line for line in result.messages)
    rest = generate(out, texts=texts)
    assert (rest.positives, rest.asked.stopped) == (80, None)
    assert (
        generate(tmp_path / "enough", texts=texts, max_requests=80).asked.stopped
        is None
    )
    with data_error(r"no pair is left .*`llm_labeler.parse.*union"):
        generate(tmp_path / "few", texts=texts, max_requests=2, polarity="negative")


@parametrize("aggregation", ["vote", "weighted"])
def test_llms_that_write_the_same_sentence_confirm_it(out, aggregation):
    llms = {name: answering("she") for name in ("ann", "bob")}
    given = {"out": out, "aggregation": aggregation}
    result = llm_labeler.generate(TEXTS, llm=llms, polarity="positive", **given)
    assert (result.positives, dict(result.dropped)) == (4, {})
    assert result.statistics["judges"]["by_name"] == {}  # no one judged
    rows = result.pairs.rows
    assert rows.select(
        pl.col("llms").list.len(), pl.col("votes").list.len()
    ).unique().rows() == [(2, 0)]


def test_the_accuracy_of_uncompared_judges_is_not_estimated(out):
    result = generate(out)  # each judges the other's sentences
    judges = result.statistics["judges"]["by_name"]
    assert judges == {
        name: {"judged": 4, "unsure": 0, "accuracy": None} for name in ("ann", "bob")
    }
    assert "0.50" not in str(result.tables()[0])


def test_questions_in_a_pending_batch_are_not_asked(out):
    result = generate(out)
    add_pending_batch(result.work, "ann")
    with config_error(r"1 questions are in a pending batch of ann .* batch=True, or"):
        generate(out)
    before = result.spent_in_all.requests
    assert generate(out, retry_failed=True).spent_in_all.requests == before + 1
    assert generate(out).asked.spent.requests == 0


def of_ensemble(out, *members, **more):
    settings = {
        "ensemble.members": [*members],
        "llm.llama.base_url": "http://127.0.0.1:9/v1",
    }
    return llm_labeler.generate(
        TEXTS, llm="ensemble", out=out, settings=settings, **more
    )


def test_the_ensemble_leaves_out_unavailable_members(out, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    result = of_ensemble(out, "chatgpt", "llama", "wordnet")
    assert result.positives > 0
    assert result.problem is None
    chatgpt, llama = (line for line in result.messages if "is left out" in line)
    assert chatgpt.startswith("ensemble: chatgpt")
    assert llama.startswith("ensemble: llama")
    assert "start the server" in llama


def test_only_private_servers_are_advised_to_be_started(out, monkeypatch):
    def unknown(*_, **__):
        raise socket.gaierror("no such host")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    far = {
        "kind": "openai_compatible",
        "model": "m",
        "base_url": "https://llm.example/v1",
    }
    with remote_error("check the network, or set base_url"):
        llm_labeler.generate(TEXTS, llm={"far": far}, out=out)


def test_an_ensemble_without_enough_members_is_refused(tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with config_error(r"2 LLMs can't be asked: .*OPENAI_API_KEY.*; llm llama"):
        of_ensemble(tmp_path / "none", "chatgpt", "llama")
    vote = {"aggregation": "vote"}
    with config_error("wordnet is the only one, so no pair could result"):
        of_ensemble(tmp_path / "vote", "chatgpt", "llama", "wordnet", **vote)
    with config_error("OPENAI_API_KEY"):
        of_ensemble(tmp_path / "named", "wordnet", "chatgpt", judges="chatgpt", **vote)


def test_an_error_of_one_llm_is_reported_after_the_others_ended(out):
    async def waits(prompt):
        await asyncio.sleep(60)
        return ""

    def breaks(prompt):
        raise ZeroDivisionError("of mine")

    with raises(ZeroDivisionError, match="of mine"):
        llm_labeler.generate(TEXTS, llm=[waits, breaks], out=out)


TEXT = "x" * 40
SERVER = {
    "kind": "openai_compatible",
    "model": "m",
    "base_url": "http://llm.example/v1",
    "max_tokens": 100,
}
PRICED = {**SERVER, "price_in": 1.0, "price_out": 10.0}


@pytest.fixture
def planned(tmp_path):
    """The plan of a text and a short prompt for the LLMs a, b and c."""
    prompt = tmp_path / "own.toml"
    prompt.write_text('positive = "{size} of {text}"\nnegative = "{size} un {text}"')

    def plan(*llms, entry=SERVER, **options):
        given = {"prompt": str(prompt), "size": 2, "out": tmp_path / "out", **options}
        fields = {
            f"llm.{name}.{key}": value for name in "abc" for key, value in entry.items()
        }
        return llm_labeler.plan(
            [TEXT], llm=",".join(llms or ("a",)), settings=fields, **given
        )

    return plan


def test_an_estimate_computed_by_hand(planned):
    (one,) = planned(entry=PRICED).estimates
    assert (one.questions, one.missing) == (2, 2)
    # A prompt of 45 bytes has 11 tokens, two sentences of 40 bytes times 1.3 have 26. Twice.
    assert one.tokens == 2 * (11 + 26)
    assert one.cost == approx((2 * 11 * 1.0 + 2 * 26 * 10.0) / 1e6)
    assert one.at_most > 2 * (45 + 100)
    assert one.cost_at_most is not None
    assert one.cost_at_most > one.cost
    assert one.leaves_machine


def test_an_unknown_price_is_not_zero_and_judging_is_estimated(planned):
    with config_error("the price of a is unknown; give"):
        planned(max_cost=1)
    plan = planned()
    assert plan.cost is None
    assert plan.to_dict()["llms"]["a"]["cost"] is None
    plain, judged = planned(*"abc"), planned(*"abc", aggregation="vote")
    assert all(
        m.tokens > few.tokens
        for m, few in zip(judged.estimates, plain.estimates, strict=True)
    )
    only_judge = planned("a", judges="b", aggregation="vote").estimates[1]
    assert (only_judge.questions, only_judge.missing) == (0, 0)
    assert judged.calls > sum(each.missing for each in judged.estimates) == plain.calls
    assert only_judge.tokens > 250  # at least the instructions of a judge


@table("""
    budget, short
    {} | []
    {'max_cost': 1.0, 'max_tokens': 10000, 'max_requests': 2} | []
    {'max_cost': 0.0004} | ['$0.0005, of which $0 are spent; max_cost=0.0004 covers about 74% of']
    {'max_tokens': 70, 'max_requests': 1} | ['max_requests=1 covers', 'max_tokens=70 covers']
""")
def test_a_limit_that_is_too_low_for_the_run_is_reported(budget, short, planned):
    plan = planned(entry=PRICED, **budget)
    lines = plan.to_dict()["short_of"]
    assert len(lines) == len(short)
    assert all(map(str.__contains__, lines, short))
    assert all(line in str(plan.table().caption) for line in lines)


@table("""
    llms, options, refused
    a | {'aggregation': 'vote'} | True
    a | {'aggregation': 'weighted'} | True
    a | {'aggregation': 'vote', 'judges': 'a'} | True
    a | {'aggregation': 'vote', 'judges': 'b'} | False
    ab | {'aggregation': 'weighted'} | False
    a | {} | False
""")
def test_an_aggregation_that_can_give_no_pair_is_refused(
    llms, options, refused, planned
):
    if not refused:
        planned(*llms, **options)
        return
    with config_error("no pair could result") as caught:
        planned(*llms, **options)
    assert "\n" not in str(caught.value)

"""What a server may do with a batch of questions."""

import llm_labeler
from pairkit import AuthError
from tests.support.llm import Faults, Options, serve
from tests.support.shorthand import config_error, parametrize, raises

from .llm_server import entry

TEXTS = [f"Patient {number} is fine." for number in range(60)]


def batch(server, out, texts=TEXTS[:20], **fields):
    """One question about each text; the first one is asked directly."""
    llm = entry(server.base_url, **{"kind": "openai"} | fields)
    given = {"polarity": "positive", "keep_going": True, "fresh": True}
    return llm_labeler.generate(texts, llm={"llama": llm}, out=out, batch=True, **given)


def answers(result):
    return llm_labeler.report(result.work).llms["llama"].answers


@parametrize("ends", ["expired", "cancelled"])
def test_unanswered_questions_of_a_batch_are_asked_again(ends, out):
    with serve(Options(batch_ends=ends)) as server:
        first = batch(server, out)  # each second of the other 19 is answered
        assert (answers(first), first.asked.unanswered) == (11, {"timeout": 9})
        assert ends in first.asked.detail
        again = batch(server, out)
        assert (answers(again), again.asked.cached, again.asked.unanswered) == (
            16,
            11,
            {"timeout": 4},
        )
        assert server.stats.asked_again == 0


def test_a_batch_that_the_server_rejects(out):
    with serve(Options(batch_ends="failed")) as server:
        result = batch(server, out)
    assert "rejected batch batch_1 (emulated)" in str(result.problem)
    assert result.spent_in_all.requests == 1


def test_faults_of_single_lines(out):
    with serve(
        faults=Faults(1.0, ("server_error", "refusal", "no_usage", "empty"), first=1)
    ) as server:
        result = batch(server, out, TEXTS, price_in=1.0, price_out=2.0)
        assert server.stats.faults.keys() == {
            "server_error",
            "refusal",
            "no_usage",
            "empty",
        }
    unanswered = result.asked.unanswered
    assert unanswered.keys() == {"server_error", "empty_answer"}
    assert min(unanswered.values()) > 5
    assert answers(result) == 60 - sum(unanswered.values())
    # A lost usage is estimated; the direct question may be repeated.
    lost = server.stats.faults["no_usage"]
    assert lost <= result.asked.spent.estimated <= lost + 1
    assert result.cost
    assert result.dropped["refusal"] == server.stats.faults["refusal"]


def test_questions_that_the_server_rejects_are_not_asked_again(out):
    texts = [*TEXTS[:5], f"A {'very ' * 200}long story.", *TEXTS[6:10]]
    with serve(Options(context_chars=1000)) as server:
        result = batch(server, out, texts)
        assert (answers(result), result.dropped) == (9, {"answer_rejected": 1})
        again = batch(server, out, texts)
        assert (again.asked.cached, again.asked.spent.requests) == (10, 0)


def test_a_wrong_key_is_detected_before_a_batch_is_submitted(out, monkeypatch):
    monkeypatch.setenv("OTHER_KEY", "sk-wrong")
    with serve(Options(api_key="sk-right")) as server:
        with raises(AuthError, match="OTHER_KEY"):
            batch(server, out, api_key_env="OTHER_KEY")
        assert server.stats.batches == 0


def test_llms_without_a_batch_api_are_refused(out):
    with serve() as server, config_error("llm llama: has no Batch API"):
        batch(server, out, kind="glm")

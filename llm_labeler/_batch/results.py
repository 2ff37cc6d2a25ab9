"""From what a batch says that has ended to answers and failures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from llm_labeler._batch.lines import Line
from llm_labeler._provider import CallFailed
from llm_labeler._records import Answer, Failure, Reply, Usage
from llm_labeler._store import Batch
from pairkit.errors import PairkitError
from pairkit.openai_api.refusals import Refusal, Refused

if TYPE_CHECKING:
    from llm_labeler._providers.server import ServerProvider


@dataclass(slots=True)
class Results:
    """What a batch brought, by custom id.

    Attributes:
        answers: Questions answered.
        failures: All others.
        problem: What no further call can fix, if a line said so.
    """

    answers: dict[str, Answer] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)
    problem: PairkitError | None = None


async def read_results(
    provider: ServerProvider, batch: Batch, state: str, lines: Iterable[Line], discount: float
) -> Results:
    """Match what a batch says with its questions; the first answer to a question is the one that counts.

    Args:
        provider: Who was asked; knows prices and what refusals mean.
        batch: The questions.
        state: How the batch ended: completed, expired or cancelled.
        lines: What it says, in any order.
        discount: Factor of the provider's prices.
    """
    results, hopeless = Results(), set[int]()
    for line in lines:
        if line.custom_id not in batch.keys or line.custom_id in results.answers:
            continue
        try:
            reply = _reply(provider, line, state)
            results.answers[line.custom_id] = _answer(provider, batch, line, reply, discount)
            results.failures.pop(line.custom_id, None)
        except CallFailed as failed:
            results.failures[line.custom_id] = _failure(batch, line.custom_id, failed)
        except Refused as refused:
            if (status := refused.refusal.status) not in hopeless:
                meaning = await provider.explain(refused)
                if isinstance(meaning, CallFailed):
                    results.failures[line.custom_id] = _failure(batch, line.custom_id, meaning)
                else:  # it speaks for all that follow of its status
                    results.problem = meaning
                    hopeless.add(status)
    if not results.answers:  # what is said of all of them may be about none of them
        results.failures = {name: replace(failure, final=False) for name, failure in results.failures.items()}
    for name in batch.keys.keys() - results.answers.keys() - results.failures.keys():
        results.failures[name] = _failure(batch, name, _unasked(state))
    return results


def _reply(provider: ServerProvider, line: Line, state: str) -> Reply:
    if line.status is None:
        raise _unasked(line.body if isinstance(line.body, str) else state)
    if line.status != 200:
        raise Refused(Refusal.from_value(line.status, line.body), {})
    return provider.dialect.reply_of(line.body)


def _unasked(state: str) -> CallFailed:
    return CallFailed("timeout", f"the batch was {state} before it was answered")


def _answer(provider: ServerProvider, batch: Batch, line: Line, reply: Reply, discount: float) -> Answer:
    usage = reply.usage or _share(batch)
    cost = provider.prices.cost(usage)
    price = None if cost is None else cost * discount
    return Answer(batch.keys[line.custom_id], replace(reply, usage=usage), price, reply.usage is None)


def _share(batch: Batch) -> Usage:
    """A question's share of the most that the batch can take, for when nobody says what it took."""
    count = len(batch.keys)
    return Usage(-(-batch.bound.prompt_tokens // count), -(-batch.bound.completion_tokens // count))


def _failure(batch: Batch, name: str, failed: CallFailed) -> Failure:
    return Failure(batch.keys[name], failed.reason, failed.detail, 1, failed.final)

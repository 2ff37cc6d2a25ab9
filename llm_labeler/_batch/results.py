"""From the files of a batch that has ended to answers and failures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from llm_labeler._batch.lines import Line, read_lines
from llm_labeler._provider import CallFailed
from llm_labeler._providers.replies import reply_of
from llm_labeler._records import Answer, Failure, Reply, Usage
from llm_labeler._store import Batch
from pairkit.errors import PairkitError
from pairkit.openai_api.refusals import Refusal, Refused

if TYPE_CHECKING:
    from llm_labeler._providers.openai_compatible import OpenAiProvider


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
    provider: OpenAiProvider, batch: Batch, state: str, files: Iterable[bytes], discount: float
) -> Results:
    """Match the lines of a batch's files with its questions.

    Args:
        provider: Who was asked; knows prices and what refusals mean.
        batch: The questions.
        state: How the batch ended: completed, expired or cancelled.
        files: Output and error files.
        discount: Factor of the provider's prices.
    """
    results, hopeless = Results(), set[int]()
    for line in (line for content in files for line in read_lines(content)):
        if line.custom_id not in batch.keys or line.custom_id in results.answers or line.status is None:
            continue
        try:
            results.answers[line.custom_id] = _answer(provider, batch, line, _reply(line), discount)
            results.failures.pop(line.custom_id, None)
        except CallFailed as failed:
            results.failures[line.custom_id] = _failure(batch, line.custom_id, failed)
        except Refused as refused:
            if line.status not in hopeless:
                meaning = await provider.explain(refused)
                if isinstance(meaning, CallFailed):
                    results.failures[line.custom_id] = _failure(batch, line.custom_id, meaning)
                else:  # it speaks for all that follow of its status
                    results.problem = meaning
                    hopeless.add(line.status)
    if not results.answers:  # what is said of all of them may be about none of them
        results.failures = {name: replace(failure, final=False) for name, failure in results.failures.items()}
    unasked = CallFailed("timeout", f"the batch was {state} before it was answered")
    for name in batch.keys.keys() - results.answers.keys() - results.failures.keys():
        results.failures[name] = _failure(batch, name, unasked)
    return results


def _reply(line: Line) -> Reply:
    if line.status is not None and line.status != 200:
        raise Refused(Refusal.from_value(line.status, line.body), {})
    return reply_of(line.body)


def _answer(provider: OpenAiProvider, batch: Batch, line: Line, reply: Reply, discount: float) -> Answer:
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

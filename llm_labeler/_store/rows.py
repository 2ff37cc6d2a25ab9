"""Records as rows and back."""

from __future__ import annotations

import math
from typing import Any, get_args

from llm_labeler._budget import MOST
from llm_labeler._records import Answer, AskKey, Failure, Reply, Task, Usage
from llm_labeler._store.schema import KEY
from pairkit.errors import DataError

Row = tuple[Any, ...]

ANSWER = f"{KEY}, raw, finish, prompt_tokens, completion_tokens, model, cost, estimated"
FAILURE = f"{KEY}, reason, detail, attempts, final"
SAME_KEY = " AND ".join(f"{column} = ?" for column in KEY.split(", "))


def blob(text: str) -> bytes:
    """UTF-8 that keeps lone surrogates."""
    return text.encode("utf-8", "surrogatepass")


def text(data: Any) -> str:
    """The text of a `blob`."""
    if not isinstance(data, bytes):
        raise _damaged(data)
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise _damaged(data) from error


def key_row(key: AskKey) -> Row:
    """The columns of `schema.KEY`."""
    return (key.text_id, key.task, key.llm, key.prompt_hash, key.parameters)


def row_key(row: Row) -> AskKey:
    """The key of a row that begins with `schema.KEY`."""
    text_id, task, llm, prompt_hash, parameters = (_typed(value, str) for value in row[:5])
    if task not in get_args(Task):
        raise _damaged(task)
    return AskKey(text_id, llm, task, prompt_hash, parameters)


def answer_row(answer: Answer) -> Row:
    """The columns of `ANSWER`."""
    reply, usage = answer.reply, answer.reply.usage
    tokens = (None, None) if usage is None else (usage.prompt_tokens, usage.completion_tokens)
    return (
        *key_row(answer.key),
        *(blob(reply.raw), blob(reply.finish), *tokens, blob(reply.model)),
        *(answer.cost, int(answer.estimated)),
    )


def row_answer(row: Row) -> Answer:
    """The answer of a row with the columns of `ANSWER`."""
    raw, finish, prompt_tokens, completion_tokens, model, cost, estimated = row[5:]
    usage = None
    if prompt_tokens is not None:
        usage = Usage(amount(prompt_tokens), amount(completion_tokens))
    price = None if cost is None else _price(cost)
    reply = Reply(text(raw), text(finish), usage, text(model))
    return Answer(row_key(row), reply, price, bool(amount(estimated)))


def failure_row(failure: Failure) -> Row:
    """The columns of `FAILURE`."""
    return (
        *key_row(failure.key),
        *(failure.reason, blob(failure.detail), failure.attempts, int(failure.final)),
    )


def row_failure(row: Row) -> Failure:
    """The failure of a row with the columns of `FAILURE`."""
    reason, detail, attempts, final = row[5:]
    return Failure(row_key(row), _typed(reason, str), text(detail), amount(attempts), bool(amount(final)))


def amount(value: Any) -> int:
    """A count, or a sum of money or tokens."""
    number: int = _typed(value, int)
    if not 0 <= number <= MOST:
        raise _damaged(value)
    return number


def name(value: Any) -> str:
    """A text that is no `blob`."""
    found: str = _typed(value, str)
    return found


def _price(value: Any) -> float:
    price = float(_typed(value, int | float))
    if not (math.isfinite(price) and price >= 0):
        raise _damaged(value)
    return price


def _typed(value: Any, kind: Any) -> Any:
    """SQLite lets any column hold anything."""
    if not isinstance(value, kind):
        raise _damaged(value)
    return value


def _damaged(value: Any) -> DataError:
    return DataError(
        f"a row of the label store holds {type(value).__name__} {value!r:.60}, which `label` never writes; "
        "the store is damaged or not ours: move its folder away and run again"
    )

"""Records as rows and back."""

from __future__ import annotations

from typing import Any

from llm_labeler.records import Answer, AskKey, Failure, Reply, Usage
from llm_labeler.store.schema import KEY

Row = tuple[Any, ...]

ANSWER = f"{KEY}, raw, finish, prompt_tokens, completion_tokens, model, cost, estimated"
FAILURE = f"{KEY}, reason, detail, attempts, final"
SAME_KEY = " AND ".join(f"{column} = ?" for column in KEY.split(", "))


def blob(text: str) -> bytes:
    """UTF-8 that keeps lone surrogates."""
    return text.encode("utf-8", "surrogatepass")


def text(data: bytes) -> str:
    """The text of a `blob`."""
    return data.decode("utf-8", "surrogatepass")


def key_row(key: AskKey) -> Row:
    """The columns of `schema.KEY`."""
    return (key.text_id, key.task, key.llm, key.prompt_hash, key.parameters)


def row_key(row: Row) -> AskKey:
    """The key of a row that begins with `schema.KEY`."""
    text_id, task, llm, prompt_hash, parameters = row[:5]
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
    usage = None if prompt_tokens is None else Usage(prompt_tokens, completion_tokens)
    return Answer(row_key(row), Reply(text(raw), text(finish), usage, text(model)), cost, bool(estimated))


def failure_row(failure: Failure) -> Row:
    """The columns of `FAILURE`."""
    return (
        *key_row(failure.key),
        *(failure.reason, blob(failure.detail), failure.attempts, int(failure.final)),
    )


def row_failure(row: Row) -> Failure:
    """The failure of a row with the columns of `FAILURE`."""
    reason, detail, attempts, final = row[5:]
    return Failure(row_key(row), reason, text(detail), attempts, bool(final))

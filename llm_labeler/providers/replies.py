"""From the body of a chat completion to a reply. Servers differ: nothing in it is taken for granted."""

from __future__ import annotations

import json
from typing import Any

from llm_labeler.finish import ending_of
from llm_labeler.provider import CallFailed
from llm_labeler.records import Reply, Usage

_ABSURD = 1 << 40  # tokens
_SHOWN = 120  # characters of an odd body that an error shows


def read_reply(body: bytes) -> Reply:
    """The reply in a body.

    Raises:
        CallFailed: `broken_reply`: it is no chat completion; whatever it is, it may have been paid for.
    """
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _broken("not JSON", body) from error
    return reply_of(value)


def reply_of(value: Any) -> Reply:
    """The reply in a decoded body, see `read_reply`."""
    if not isinstance(value, dict):
        raise _broken("not an object", value)
    choices = value.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise _broken("no choices", value.get("error") or sorted(value))
    message = choices[0].get("message")
    if not isinstance(message, dict):
        raise _broken("a choice without message", sorted(choices[0]))
    finish = choices[0].get("finish_reason")
    finish = finish if isinstance(finish, str) else ""
    if ending_of(finish) == "failed":
        raise CallFailed("server_error", f"the model failed while it answered ({finish})", maybe_billed=True)
    raw, refusal = _text(message.get("content")), _text(message.get("refusal"))
    if refusal and not raw:
        raw, finish = refusal, "refusal"
    model = value.get("model")
    return Reply(raw, finish, usage_of(value.get("usage")), model if isinstance(model, str) else "")


def usage_of(value: Any) -> Usage | None:
    """The tokens that a server counted; None if it told none, or nonsense."""
    if not isinstance(value, dict):
        return None
    prompt, completion = _count(value.get("prompt_tokens")), _count(value.get("completion_tokens"))
    return None if prompt is None or completion is None else Usage(prompt, completion)


def _count(value: Any) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _ABSURD
    return value if is_count else None


def _text(content: Any) -> str:
    """A message's text, which some servers send in parts."""
    if isinstance(content, list):
        return "".join(_text(part.get("text")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _broken(what: str, found: Any) -> CallFailed:
    shown = found.decode("utf-8", "replace") if isinstance(found, bytes) else str(found)
    text = " ".join(shown.split())[:_SHOWN]
    return CallFailed("broken_reply", f"status 200, but {what}: {text}", maybe_billed=True)

"""From what a server sends to a reply, or to what follows where there is none.

Servers differ: nothing in the body of a chat completion is taken for granted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from llm_labeler._finish import ending_of
from llm_labeler._provider import CallFailed
from llm_labeler._records import MOST_TOKENS, Reply, Usage
from pairkit.errors import PairkitError, RemoteError
from pairkit.openai_api.refusals import NoAnswer, Refusal, Refused
from pairkit.printable import one_line

_SHOWN = 120  # characters of an odd body that an error shows
_LONGEST_NAME = 200  # characters of a model's name or of why an answer ended
_MOST_MODELS = 5000
_MAYBE_BILLED = frozenset((408, 504, 524))  # the time ran out, perhaps after the work was done


def read_reply(body: bytes, read: Callable[[Any], Reply] | None = None) -> Reply:
    """The reply in a body.

    Args:
        body: As it came.
        read: Makes a reply of it once it is decoded; None: `reply_of`.

    Raises:
        CallFailed: `broken_reply`: it is no chat completion; whatever it is, it may have been paid for.
        Refused: an error in the place of an answer, with a status of its own.
    """
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise broken("not JSON", body) from error
    return (read or reply_of)(value)


def reply_of(value: Any) -> Reply:
    """The reply in a decoded body, see `read_reply`.

    Raises:
        Refused: an error in the place of an answer, with a status of its own.
    """
    if not isinstance(value, dict):
        raise broken("not an object", value)
    choices = value.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise refused_in(value) or broken("no choices", value)
    message = choices[0].get("message")
    if not isinstance(message, dict):
        raise broken("a choice without message", choices[0])
    finish = name_of(choices[0].get("finish_reason"))
    raw, refusal = _text(message.get("content")), _text(message.get("refusal"))
    if refusal and not raw:
        raw, finish = refusal, "refusal"
    return replied(raw, finish, usage_of(value.get("usage")), value.get("model"))


def replied(raw: str, finish: str, usage: Usage | None, model: Any) -> Reply:
    """The reply, unless its end says that the model failed.

    Raises:
        CallFailed: it did.
    """
    if ending_of(finish) == "failed":
        raise CallFailed("server_error", f"the model failed while it answered ({finish})", maybe_billed=True)
    return Reply(raw, finish, usage, name_of(model))


def models_of(body: bytes, listed_as: str = "data", named: str = "id") -> list[str]:
    """The models in a list of them; none where it can't be understood.

    Args:
        body: As it came.
        listed_as: The field with the list.
        named: The field with a model's name.
    """
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return []
    entries = value.get(listed_as) if isinstance(value, dict) else None
    found = [
        name_of(entry.get(named)) for entry in list_of(entries)[:_MOST_MODELS] if isinstance(entry, dict)
    ]
    return [name for name in found if name]


def usage_of(value: Any) -> Usage | None:
    """The tokens that a server counted; None if it told none, or nonsense, such as a prompt of none."""
    if not isinstance(value, dict):
        return None
    return usage([value.get("prompt_tokens")], [value.get("completion_tokens")])


def usage(prompts: Iterable[Any], completions: Iterable[Any]) -> Usage | None:
    """Usage of a prompt and an answer that are counted in parts; None if a count is nonsense."""
    read, written = [*map(_count, prompts)], [*map(_count, completions)]
    prompt, completion = (sum(part or 0 for part in parts) for parts in (read, written))
    is_sound = None not in read and None not in written and 0 < prompt <= MOST_TOKENS >= completion
    return Usage(prompt, completion) if is_sound else None


def no_answer(missed: NoAnswer) -> CallFailed:
    """What an exchange that broke off means."""
    return CallFailed(missed.reason, missed.detail, maybe_billed=missed.was_sent)


def outcome(name: str, refused: Refused) -> CallFailed | PairkitError:
    """What a refusal means that concerns neither the key, nor the model, nor a field of the request.

    Args:
        name: The LLM's.
        refused: What the server said.
    """
    refusal = refused.refusal
    detail = f"HTTP {refusal.status}: {refusal.message}"
    if refusal.is_exhausted:
        return RemoteError(
            f"llm {name}: its account is exhausted ({detail}); add credit or wait, then run the same command "
            "again to continue"
        )
    if refusal.may_pass:
        reason = "rate_limited" if refusal.status == 429 else "server_error"
        billed = refusal.status in _MAYBE_BILLED
        return CallFailed(reason, detail, retry_after_s=refused.retry_after_s, maybe_billed=billed)
    return CallFailed("rejected", detail, retry=False, final=refusal.is_about_question)


def _count(value: Any) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS
    return value if is_count else None


def _text(content: Any) -> str:
    """A message's text, which some servers send in parts."""
    parts = [part.get("text") for part in list_of(content) if isinstance(part, dict)] or [content]
    return "".join(part for part in parts if isinstance(part, str))


def name_of(value: Any) -> str:
    """A name, or nothing where it is none."""
    return value[:_LONGEST_NAME] if isinstance(value, str) else ""


def list_of(value: Any) -> list[Any]:
    """A list, or nothing where it is none."""
    return value if isinstance(value, list) else []


def refused_in(value: dict[str, Any]) -> Refused | None:
    """Gateways that had begun to answer put their upstream's error, with its status, into a 200."""
    error = value.get("error")
    status = error.get("code") if isinstance(error, dict) else None
    if isinstance(status, int) and 400 <= status < 500:
        return Refused(Refusal.from_value(status, value), {})
    return None


def broken(what: str, found: Any) -> CallFailed:
    """An answer that is none, whatever it is; it may have been paid for."""
    if isinstance(found, dict):
        found = Refusal.from_value(200, found).message
    shown = found[: 4 * _SHOWN].decode("utf-8", "replace") if isinstance(found, bytes) else found
    told = one_line(shown, _SHOWN) if isinstance(shown, str) else type(shown).__name__
    return CallFailed("broken_reply", f"status 200, but {what}: {told}", maybe_billed=True)

"""From what a server sends to a reply, or to what follows where there is none.

Servers differ: nothing in the body of a chat completion is taken for granted.
"""

from __future__ import annotations

import json
from typing import Any

from llm_labeler.clients.provider import CallFailed
from llm_labeler.parsing.finish import ending_of
from llm_labeler.records import MOST_TOKENS, Reply, Usage
from pairkit.app.errors import PairkitError, RemoteError
from pairkit.app.printable import one_line
from pairkit.openai_api.refusals import NoAnswer, Refusal, Refused

_SHOWN = 120  # characters of an odd body that an error shows
_LONGEST_NAME = 200  # characters of a model's name or of why an answer ended
_MOST_MODELS = 5000
_MAYBE_BILLED = frozenset((408, 504, 524))  # the time ran out, perhaps after the work was done


def read_body(body: bytes) -> Any:
    """The JSON of an answer."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _broken("not JSON", body) from error


def reply_of(value: Any) -> Reply:
    """The reply in a decoded chat completion."""
    if not isinstance(value, dict):
        raise _broken("not an object", value)
    choices = value.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise _refused_in(value) or _broken("no choices", value)
    message = choices[0].get("message")
    if not isinstance(message, dict):
        raise _broken("a choice without message", choices[0])
    finish = _name(choices[0].get("finish_reason"))
    raw, refusal = _text(message.get("content")), _text(message.get("refusal"))
    if refusal and not raw:
        raw, finish = refusal, "refusal"
    if ending_of(finish) == "failed":
        raise CallFailed("server_error", f"the model failed while it answered ({finish})", maybe_billed=True)
    return Reply(raw, finish, usage_of(value.get("usage")), _name(value.get("model")))


def models_of(body: bytes) -> list[str]:
    """The models in a list; none if it can't be read."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return []
    entries = _list(value.get("data") if isinstance(value, dict) else None)[:_MOST_MODELS]
    found = [_name(entry.get("id")) for entry in entries if isinstance(entry, dict)]
    return [name for name in found if name]


def usage_of(value: Any) -> Usage | None:
    """The tokens that a server counted; None if it reports none, or impossible counts.

    Gemini counts thoughts in the total only, and bills them.
    """
    if not isinstance(value, dict):
        return None
    prompt, completion = _count(value.get("prompt_tokens")), _count(value.get("completion_tokens"))
    if not prompt or completion is None:
        return None
    return Usage(prompt, max(completion, (_count(value.get("total_tokens")) or 0) - prompt))


def no_answer(missed: NoAnswer) -> CallFailed:
    """What an exchange that broke off means."""
    return CallFailed(missed.reason, missed.detail, maybe_billed=missed.was_sent)


def outcome(name: str, refused: Refused) -> CallFailed | PairkitError:
    """What a refusal means that concerns neither the key, nor the model, nor a field of the request."""
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
    parts = [part.get("text") for part in _list(content) if isinstance(part, dict)] or [content]
    return "".join(part for part in parts if isinstance(part, str))


def _name(value: Any) -> str:
    """A name, or nothing where it is none."""
    return value[:_LONGEST_NAME] if isinstance(value, str) else ""


def _list(value: Any) -> list[Any]:
    """A list, or nothing where it is none."""
    return value if isinstance(value, list) else []


def _refused_in(value: dict[str, Any]) -> Refused | None:
    """Gateways that had begun to answer put their upstream's error, with its status, into a 200."""
    error = value.get("error")
    status = error.get("code") if isinstance(error, dict) else None
    if isinstance(status, int) and 400 <= status < 500:
        return Refused(Refusal.from_value(status, value), {})
    return None


def _broken(what: str, found: Any) -> CallFailed:
    """An answer that is none, whatever it is; it may have been paid for."""
    if isinstance(found, dict):
        found = Refusal.from_value(200, found).message
    shown = found[: 4 * _SHOWN].decode("utf-8", "replace") if isinstance(found, bytes) else found
    told = one_line(shown, _SHOWN) if isinstance(shown, str) else type(shown).__name__
    return CallFailed("broken_reply", f"status 200, but {what}: {told}", maybe_billed=True)

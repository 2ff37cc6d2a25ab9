"""What follows from a call that brought no answer: once more, never, or nothing at all any more."""

from __future__ import annotations

from llm_labeler._provider import CallFailed
from pairkit.errors import PairkitError, RemoteError
from pairkit.openai_api.refusals import NoAnswer, Refused

_MAYBE_BILLED = frozenset((408, 504, 524))  # the time ran out, perhaps after the work was done


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
            "again to go on"
        )
    if refusal.may_pass:
        reason = "rate_limited" if refusal.status == 429 else "server_error"
        billed = refusal.status in _MAYBE_BILLED
        return CallFailed(reason, detail, retry_after_s=refused.retry_after_s, maybe_billed=billed)
    return CallFailed("rejected", detail, retry=False, final=refusal.is_about_question)

"""What a server says when it does not answer, and what follows from it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from llm_labeler.provider import CallFailed
from llm_labeler.providers.waits import retry_after_s
from pairkit.errors import PairkitError, RemoteError

_SHOWN = 300  # characters of a server's message that errors show

# No waiting mends these: unpaid, locked or ended accounts, and limits of a day or more (GLM's are numbers).
_EXHAUSTED = frozenset(
    (
        *("insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "account_deactivated"),
        *("1110", "1111", "1112", "1113", "1121", "1304", "1308", "1309", "1310"),
    )
)
_NO_MODEL = frozenset(("model_not_found", "1211"))
_MAYBE_BILLED = frozenset((408, 504, 524))  # the time ran out, perhaps after the work was done


@dataclass(frozen=True, slots=True)
class Refusal:
    """A status other than 200, with whatever the body tells about it."""

    status: int
    message: str = ""
    code: str = ""
    kind: str = ""
    param: str = ""

    @classmethod
    def of(cls, status: int, body: str, secret: str = "") -> Refusal:
        """Read a body: OpenAI's shape, others' shapes, or plain text.

        Args:
            status: The HTTP status.
            body: As it came.
            secret: Taken out of the message, should the server repeat it.
        """
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            value = body
        inner = value.get("error") or value.get("detail") or value if isinstance(value, dict) else value
        fields: Mapping[str, Any] = inner if isinstance(inner, dict) else {"message": inner}
        text = fields.get("message")
        message = text if isinstance(text, str) else json.dumps(inner)
        shown = " ".join((message.replace(secret, "[key]") if secret else message).split())
        code, kind, param = (str(fields.get(name) or "") for name in ("code", "type", "param"))
        return cls(status, shown[:_SHOWN], code, kind, param)

    @property
    def is_about_model(self) -> bool:
        """Whether there is no such model, or no such address."""
        return self.status in (404, 405) or self.code in _NO_MODEL

    @property
    def is_about_key(self) -> bool:
        """Whether the credential is missing, wrong or too weak."""
        return self.status in (401, 403)

    @property
    def is_exhausted(self) -> bool:
        """Whether the account can't pay for more."""
        return self.status == 402 or bool({self.code, self.kind} & _EXHAUSTED)


class Refused(Exception):  # noqa: N818 - named after what happened
    """The server answered with another status than 200."""

    def __init__(self, refusal: Refusal, headers: Mapping[str, str]) -> None:
        self.refusal, self.headers = refusal, headers
        super().__init__(f"HTTP {refusal.status}")


def outcome(name: str, refusal: Refusal, headers: Mapping[str, str]) -> CallFailed | PairkitError:
    """What a refusal means that concerns neither the key, nor the model, nor a field of the request.

    Args:
        name: The LLM's.
        refusal: What the server said.
        headers: Of its answer.
    """
    detail = f"HTTP {refusal.status}: {refusal.message}"
    if refusal.is_exhausted:
        return RemoteError(
            f"llm {name}: its account is exhausted ({detail}); add credit or wait, then run the same command "
            "again to go on"
        )
    if refusal.status == 429:
        return CallFailed("rate_limited", detail, retry_after_s=retry_after_s(headers, time.time()))
    if refusal.status in (408, 409) or refusal.status >= 500:
        return CallFailed(
            "server_error",
            detail,
            retry_after_s=retry_after_s(headers, time.time()),
            maybe_billed=refusal.status in _MAYBE_BILLED,
        )
    return CallFailed("rejected", detail, retry=False)

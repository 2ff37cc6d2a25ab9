"""Requests that are refused, and what their answers say: errors as OpenAI's clients read them."""

from __future__ import annotations

import msgspec

_KINDS = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_SERVER = 500


class RefusalError(Exception):
    """A request that gets no result.

    Attributes:
        status: Of HTTP.
        param: The field that is wrong, if one is.
        code: A word for programs.
        retry_after_s: When it may be sent again.
    """

    def __init__(
        self,
        status: int,
        words: str,
        *,
        param: str | None = None,
        code: str | None = None,
        retry_after_s: int | None = None,
    ) -> None:
        self.status, self.param, self.code, self.retry_after_s = status, param, code, retry_after_s
        super().__init__(words)

    @property
    def body(self) -> bytes:
        """The answer's JSON."""
        usual = "server_error" if self.status >= _SERVER else "invalid_request_error"
        error = {
            "message": str(self),
            "type": _KINDS.get(self.status, usual),
            "param": self.param,
            "code": self.code,
        }
        return msgspec.json.encode({"error": error})

    @property
    def headers(self) -> dict[str, str]:
        """What goes with it; of a request that was not read to its end nothing more is read."""
        headers = {"content-type": "application/json"}
        if self.retry_after_s is not None:
            headers["retry-after"] = str(self.retry_after_s)
        if self.status == 401:
            headers["www-authenticate"] = "Bearer"
        return headers

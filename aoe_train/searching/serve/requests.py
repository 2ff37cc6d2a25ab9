"""Request bodies, limits and error replies, in the format of OpenAI's clients."""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta

from pairkit.base.printable import one_line
from pairkit.base.settings import Settings, setting

MIB = 1 << 20
_MAX_HITS = 1000
_MAX_QUERY = 100_000  # characters
_KINDS = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
R = TypeVar("R")


class Limits(Settings):
    """Limits beyond which requests are refused."""

    body_mib: int = setting(8, "Maximum size of a request, in MiB.", ge=1, le=1024)
    texts: int = setting(2048, "Maximum number of texts of a request.", ge=1)
    queue: int = setting(
        16_384,
        "Maximum number of texts in progress or waiting; further requests get status 429.",
        ge=1,
    )
    batch_tokens: int = setting(
        8192,
        "Maximum number of tokens in a batch. Smaller batches need less memory and answer short requests "
        "sooner.",
        ge=1,
    )
    connections: int = setting(
        512, "Maximum number of open connections; one address gets half of them.", ge=1
    )
    held_mib: int = setting(
        256, "Maximum size of all requests in memory, in MiB.", ge=1
    )
    receive_s: float = setting(
        30,
        "Seconds until a request's headers must be complete, and then its body.",
        gt=0,
    )


class RefusalError(Exception):
    """An error reply."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        retry_after_s: int = 0,
    ) -> None:
        self.status = status
        self.param = param
        self.code = code
        # The rest of the request's body is not read, so the connection can't be used again.
        self.headers = {"connection": "close"}
        if retry_after_s:
            self.headers["retry-after"] = str(retry_after_s)
        if status == 401:
            self.headers["www-authenticate"] = "Bearer"
        super().__init__(message)

    @property
    def body(self) -> bytes:
        """The reply in JSON."""
        default = "server_error" if self.status >= 500 else "invalid_request_error"
        kind = _KINDS.get(self.status, default)
        error = {
            "message": str(self),
            "type": kind,
            "param": self.param,
            "code": self.code,
        }
        return msgspec.json.encode({"error": error})


class EmbeddingRequest(msgspec.Struct, frozen=True):
    """Body of `/v1/embeddings` as in OpenAI's reference, plus `prompt_name`; unknown keys are ignored."""

    input: str | list[str | int | list[int]]
    model: str | None = None
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Annotated[int, Meta(ge=1)] | None = None
    prompt_name: str | None = None

    def texts(self, most: int) -> list[str]:
        """The checked texts, in order."""
        items = [self.input] if isinstance(self.input, str) else self.input
        texts = [text for text in items if isinstance(text, str)]
        if len(texts) < len(items):
            problem = "input contains token ids; send texts (LangChain: check_embedding_ctx_length=False)"
        elif not texts:
            problem = "input is empty; expected at least one text"
        elif len(texts) > most:
            problem = f"{len(texts):,} texts in one request; send at most {most:,} per request"
        elif not all(text.strip() for text in texts):
            blank = next(index for index, text in enumerate(texts) if not text.strip())
            problem = f"text {blank} (from 0) is empty; leave it out"
        else:
            return texts
        raise RefusalError(400, problem, param="input")


class SearchRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of `/search`; see `aoe_train.search`."""

    text: Annotated[str, Meta(min_length=1, max_length=_MAX_QUERY)]
    top: Annotated[int, Meta(ge=1, le=_MAX_HITS)] = 10
    where: dict[str, str | int | float | bool] = {}
    before: dict[str, str | int | float] = {}
    by: Literal["both", "model", "words"] = "both"
    weight: Annotated[float, Meta(ge=0, le=1)] | None = None
    index: Annotated[int, Meta(ge=0, le=1)] = 0  # 1 is the one of --against


def decoded(body: bytes, kind: type[R]) -> R:
    """Decode the body of a request."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RefusalError(400, one_line(str(error), 300)) from error
    except RecursionError:
        raise RefusalError(400, "the JSON is nested too deeply") from None

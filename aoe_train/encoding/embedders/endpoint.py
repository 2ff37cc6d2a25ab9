"""A model on a server with OpenAI's `/embeddings`: OpenAI, vLLM, Ollama, llama.cpp, TEI and others."""

from __future__ import annotations

import os

import numpy as np
from numpy import ndarray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from aoe_train.encoding.embedders.embedder import Endpoint, in_batches
from aoe_train.model.run_folder import digest_of
from aoe_train.settings.train_settings import NamedPrompts, Similarity, written_out
from pairkit.base.errors import (
    AuthError,
    BadReply,
    ConfigError,
    DataError,
    PairkitError,
    RateLimited,
    RemoteError,
)
from pairkit.base.openai_api.channel import Channel, ServerConnection, run_anywhere
from pairkit.base.openai_api.credentials import Key, find_key, key_variable
from pairkit.base.openai_api.refusals import NoAnswer, RefusedCall, patiently
from pairkit.base.printable import one_line
from pairkit.base.system.address import read_address

# Limits of a request; a longer text has its own request.
_TEXTS = 128
_CHARACTERS = 200_000
_MAX_DIM = 65_536
_TIMEOUT_S = 120.0
_TRIES = 7
_PAUSE_S = 0.5  # before the second try; later pauses are longer
_WAIT_S = 60.0  # after a rate limit that names no waiting time
_SHOWN = 60  # characters of a text or error


class EndpointEmbedder:
    """Requests vectors from a server, where only the model's name identifies it; see `Embedder`."""

    # Servers report neither their tokenizer's separator nor the model's prompts.
    separator = "\n"
    prompts = NamedPrompts({})
    similarity: Similarity = "cosine"

    def __init__(self, model: str, endpoint: Endpoint) -> None:
        self.name = model
        url = endpoint.url.rstrip("/").removesuffix("/embeddings")
        address = read_address(url, "--endpoint", "http://localhost:8000/v1")
        variable = key_variable(address.host, endpoint.api_key_env)
        remedy = f"set {variable}, or name another variable as --api-key-env"
        key = None
        if variable is not None:
            key = find_key("--endpoint", variable, os.environ, remedy)
        self._connection = ServerConnection(
            address, key, timeout_s=_TIMEOUT_S, plain_http=endpoint.plain_http
        )
        # Checks whether the key may be sent to this address.
        Channel(self._connection, os.environ)
        self._where = f"{model} at {address.url}"
        self.identity = digest_of([f"{address.url}/", model])
        self._dim: int | None = None

    def encode(self, texts: list[str], prompt: str | None = None) -> ndarray:
        """Vectors, float32 (text, dim); prompts are sent as part of the texts."""
        if not texts:
            return np.empty((0, self._dim or 0), np.float32)
        for text in texts:
            _check(text)
        if prompt:
            texts = [written_out(prompt, text) for text in texts]
        batches = list(in_batches(texts, _TEXTS, _CHARACTERS))
        return np.concatenate(run_anywhere(self._request_all(batches)))

    async def _request_all(self, batches: list[list[str]]) -> list[ndarray]:
        channel = Channel(self._connection, os.environ)
        try:
            return [await self._request(channel, batch) for batch in batches]
        finally:
            await channel.close()

    async def _request(self, channel: Channel, texts: list[str]) -> ndarray:
        request = {"input": texts, "model": self.name, "encoding_format": "float"}
        try:
            body = await patiently(
                lambda: channel.post("/embeddings", request),
                tries=_TRIES,
                pause_s=_PAUSE_S,
            )
        except RefusedCall as refused:
            raise self._explain(refused, channel.key, texts) from refused
        except NoAnswer as missed:
            cause = f"{missed.detail}; run the same command again"
            if missed.reason == "connection":
                cause = f"can't be reached ({missed.detail}); start the server or fix --endpoint"
            raise RemoteError(f"{self._where}: {cause}") from missed
        vectors = self._read(body, len(texts))
        dim = vectors.shape[1]
        if dim != (self._dim or dim):
            raise BadReply(
                f"{self._where}: vectors of {dim} dimensions, after vectors of {self._dim}"
            )
        self._dim = dim
        return vectors

    def _read(self, body: bytes, n: int) -> ndarray:
        """Vectors of `n` texts in the texts' order; a reply may list them in another order."""
        try:
            entries = _Vectors.model_validate_json(body).data
            by_index = {entry.index: entry.embedding for entry in entries}
            vectors = np.array([by_index[index] for index in range(n)], np.float64)
        except (ValueError, KeyError) as error:
            cause = str(error)
            if isinstance(error, ValidationError):
                cause = error.errors()[0]["msg"]
            raise BadReply(
                f"{self._where}: the reply isn't a list of {n} vectors of equal length with indices"
                f" ({type(error).__name__}: {cause[:_SHOWN]}); check that --endpoint has OpenAI's protocol"
            ) from error
        if len(entries) != n:
            raise BadReply(
                f"{self._where}: returned {len(entries)} vectors for {n} texts"
            )
        if not (np.abs(vectors) <= np.finfo(np.float32).max).all():
            raise BadReply(
                f"{self._where}: a vector contains a number that is infinite, NaN or too large"
            )
        return vectors.astype(np.float32)

    def _explain(
        self, refused: RefusedCall, key: Key | None, texts: list[str]
    ) -> PairkitError:
        """The error for an HTTP error status."""
        refusal = refused.refusal
        reply = f"HTTP {refusal.status}: {refusal.message}"
        if refusal.cause == "account":
            return RemoteError(
                f"{self._where}: the account is exhausted ({reply}); add credit, then run it again"
            )
        if refusal.cause == "key":
            refused_key = (
                f"the key in {key.source}" if key else "a request without a key"
            )
            # The message of a 401 may contain part of the key.
            shown = f"HTTP {refusal.status}" if refusal.status == 401 else reply
            return AuthError(
                f"{self._where}: refused {refused_key} ({shown}); set --api-key-env to a variable with a key for this"
                " model"
            )
        if refusal.status == 429:
            wait_s = refused.retry_after_s or _WAIT_S
            return RateLimited(
                f"{self._where}: rate limit ({reply}); run the command again in {wait_s:g} s",
                wait_s,
            )
        if refusal.cause == "model" or 300 <= refusal.status < 400:
            target = one_line(refused.headers.get("location", "").partition("?")[0])
            moved = f"; its redirect to {target} is not followed" if target else ""
            return ConfigError(
                f"{self._where}: no such model or address ({reply}){moved}; --endpoint is the address before"
                " /embeddings and usually ends in /v1"
            )
        if refusal.status in (400, 413, 422):
            longest = max(texts, key=len)
            return DataError(
                f"{self._where}: refused {len(texts)} texts ({reply}); the longest has {len(longest):,} characters and "
                f"begins {longest[:_SHOWN]!r}: shorten it or leave it out if it is too long"
            )
        return RemoteError(
            f"{self._where}: {reply}; run the same command again, or see the server's log"
        )


def _check(text: str) -> None:
    if not text.strip():
        raise DataError(
            f"a text is empty ({text!r}), and endpoints refuse empty texts; leave it out"
        )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"{text[:_SHOWN]!r} contains half a surrogate pair, which can't be sent"
        ) from error


class _Vector(BaseModel):
    model_config = ConfigDict(strict=True)

    index: int = Field(ge=0)
    embedding: list[float] = Field(min_length=1, max_length=_MAX_DIM)


class _Vectors(BaseModel):
    model_config = ConfigDict(strict=True)

    data: list[_Vector]

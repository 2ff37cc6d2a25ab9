"""A model behind a server with OpenAI's `/embeddings`: OpenAI, vLLM, Ollama, llama.cpp, TEI and others."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from aoe_train.evaluation.embedders.embedder import Endpoint, in_batches
from aoe_train.settings.prompts import NamedPrompts, written_out
from aoe_train.settings.training import Similarity
from pairkit.app.errors import (
    AuthError,
    BadReply,
    ConfigError,
    DataError,
    PairkitError,
    RateLimited,
    RemoteError,
)
from pairkit.app.printable import one_line
from pairkit.openai_api.channel import Channel, ServerConnection, run_anywhere
from pairkit.openai_api.credentials import Key, find_key, key_variable
from pairkit.openai_api.refusals import NoAnswer, RefusedCall, patiently
from pairkit.system.address import Address, read_address

_TEXTS, _CHARACTERS = 128, 200_000  # in a request at most; one longer text goes alone
_MOST_NUMBERS = 65_536  # of a vector
_TIMEOUT_S = 120.0
_TRIES, _PAUSE_S = 7, 0.5
_SHOWN = 60
_WAIT_S = 60.0  # if a server does not say how long


class EndpointEmbedder:
    """Asks a server for vectors; see `Embedder`.

    The server's name for the model is all that is known of it: where another model may come to bear the same
    name, don't rely on cached vectors.
    """

    separator = "\n"  # no server says what its tokenizer puts between texts
    prompts = NamedPrompts({})  # nor which prompts the model was made for
    similarity: Similarity = "cosine"

    def __init__(self, model: str, endpoint: Endpoint, *, environ: Mapping[str, str] = os.environ) -> None:
        """Nothing is asked yet."""
        self.name = model
        address = _address(endpoint.url)
        variable = key_variable(address.host, endpoint.api_key_env)
        remedy = f"set {variable}, or name another variable as --api-key-env"
        key = None if variable is None else find_key("--endpoint", variable, environ, remedy)
        self._connection = ServerConnection(
            address, key, timeout_s=_TIMEOUT_S, plain_http=endpoint.plain_http
        )
        self._environ = environ
        Channel(self._connection, environ)  # whether the key may go there is known before anything is loaded
        self._where = f"{model} at {address.url}"
        self.identity = hashlib.sha256(json.dumps([f"{address.url}/", model]).encode()).hexdigest()
        self._dim: int | None = None

    def encode(self, texts: list[str], prompt: str | None = None) -> np.ndarray:
        """Vectors, float32 (text, dim), some texts a request; prompts are sent as part of the texts."""
        if not texts:
            return np.empty((0, self._dim or 0), np.float32)
        for text in texts:
            _check(text)
        sent = [written_out(prompt, text) for text in texts] if prompt else texts
        return np.concatenate(run_anywhere(self._ask_all(list(in_batches(sent, _TEXTS, _CHARACTERS)))))

    async def _ask_all(self, batches: list[list[str]]) -> list[np.ndarray]:
        channel = Channel(self._connection, self._environ)
        try:
            return [await self._ask(channel, batch) for batch in batches]
        finally:
            await channel.close()

    async def _ask(self, channel: Channel, texts: list[str]) -> np.ndarray:
        request = {"input": texts, "model": self.name, "encoding_format": "float"}
        try:
            body = await patiently(
                lambda: channel.post("/embeddings", request), tries=_TRIES, pause_s=_PAUSE_S
            )
        except RefusedCall as refused:
            raise _explain_refusal(refused, self._where, channel.key, texts) from refused
        except NoAnswer as missed:
            raise _explain_silence(missed, self._where) from missed
        vectors = _read(body, len(texts), self._where)
        if vectors.shape[1] != (self._dim or vectors.shape[1]):
            raise BadReply(f"{self._where}: vectors of {vectors.shape[1]} numbers after such of {self._dim}")
        self._dim = vectors.shape[1]
        return vectors


def _address(url: str) -> Address:
    return read_address(url.rstrip("/").removesuffix("/embeddings"), "--endpoint", "http://localhost:8000/v1")


def _check(text: str) -> None:
    if not text.strip():
        raise DataError(f"an empty text ({text!r}), for which an endpoint has no vector; leave it out")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"{text[:_SHOWN]!r} holds half a surrogate pair, which can't be sent") from error


class _Vector(BaseModel):
    model_config = ConfigDict(strict=True)

    index: int = Field(ge=0)
    embedding: list[float] = Field(min_length=1, max_length=_MOST_NUMBERS)


class _Vectors(BaseModel):
    model_config = ConfigDict(strict=True)

    data: list[_Vector]


def _read(body: bytes, n: int, where: str) -> np.ndarray:
    """Vectors of `n` texts in the texts' order; a reply may list them in another."""
    try:
        entries = _Vectors.model_validate_json(body).data
        found = {entry.index: entry.embedding for entry in entries}
        vectors = np.array([found[index] for index in range(n)], np.float64)
    except (ValueError, KeyError) as error:
        told = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise BadReply(
            f"{where}: the reply is no list of {n} vectors of one length with their indices"
            f" ({type(error).__name__}: {told[:_SHOWN]}); see that --endpoint is of OpenAI's protocol"
        ) from error
    if len(entries) != n:
        raise BadReply(f"{where}: {len(entries)} vectors for {n} texts; expected one each")
    if not (np.abs(vectors) <= np.finfo(np.float32).max).all():
        raise BadReply(f"{where}: a vector holds a number that is not finite or too large")
    return vectors.astype(np.float32)


def _explain_refusal(refused: RefusedCall, where: str, key: Key | None, texts: list[str]) -> PairkitError:
    """One of ours for a refusal."""
    refusal = refused.refusal
    said = f"HTTP {refusal.status}: {refusal.message}"
    if refusal.is_exhausted:
        return RemoteError(f"{where}: the account is exhausted ({said}); add credit, then run it again")
    if refusal.is_about_key:
        held = f"the key in {key.source}" if key else "a request without a key"
        # What comes with a 401 may repeat part of the key.
        told = f"HTTP {refusal.status}" if refusal.status == 401 else said
        return AuthError(
            f"{where}: refused {held} ({told}); name the variable with a key that may use the model as "
            "--api-key-env"
        )
    if refusal.status == 429:
        wait_s = refused.retry_after_s or _WAIT_S
        return RateLimited(
            f"{where}: asks to wait {wait_s:g} s ({said}); run the same command again then", wait_s
        )
    if refusal.is_about_model or 300 <= refusal.status < 400:
        to = one_line(refused.headers.get("location", "").partition("?")[0])
        moved = f"; it redirects to {to}, which is not followed" if to else ""
        return ConfigError(
            f"{where}: no such model or address ({said}){moved}; --endpoint is what comes before /embeddings "
            "and usually ends in /v1"
        )
    if refusal.status in (400, 413, 422):
        longest = max(texts, key=len)
        return DataError(
            f"{where}: refused {len(texts)} texts ({said}); the longest has {len(longest):,} characters and "
            f"begins {longest[:60]!r}: shorten it or leave it out if it is too long"
        )
    return RemoteError(f"{where}: {said}; run the same command again, or see the server's log")


def _explain_silence(missed: NoAnswer, where: str) -> RemoteError:
    """One of ours for an exchange that brought no answer."""
    if missed.reason == "connection":
        return RemoteError(f"{where}: can't be reached ({missed.detail}); start the server or fix --endpoint")
    return RemoteError(f"{where}: {missed.detail}; run the same command again")

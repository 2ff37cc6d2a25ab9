"""A model behind a server with OpenAI's `/embeddings`: OpenAI, vLLM, Ollama, llama.cpp, TEI and others."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from aoe_train.evaluate.embedders.client import make_client, remote_errors
from pairkit.errors import BadReply, DataError

_TEXTS, _CHARACTERS = 128, 200_000  # in a request at most; one longer text goes alone
_SHOWN = 60


class EndpointEmbedder:
    """Asks a server for vectors; see `Embedder`.

    The server's name for the model is all that is known of it: where another model may come to bear the same
    name, don't rely on cached vectors.
    """

    separator = "\n"  # no server says what its tokenizer puts between texts

    def __init__(self, model: str, url: str) -> None:
        """Nothing is asked yet.

        Args:
            model: The server's name for it.
            url: The address up to, but without, `/embeddings`.

        Raises:
            ConfigError: Not an address, a key that can't be one, or the client is not installed.
        """
        self.name = model
        self._client = make_client(url)
        self._where = f"{model} at {self._client.base_url}"
        self.identity = hashlib.sha256(json.dumps([str(self._client.base_url), model]).encode()).hexdigest()
        self._dim: int | None = None

    def encode(self, texts: list[str]) -> np.ndarray:
        """Vectors, float32 (text, dim), some texts a request.

        Raises:
            DataError: A text that is empty, can't be sent, or is refused, such as one that is too long.
            ConfigError: No such model.
            RemoteError: The server can't be reached, refuses the key, or failed; failures that may pass have
                been retried.
        """
        if not texts:
            return np.empty((0, self._dim or 0), np.float32)
        for text in texts:
            _check(text)
        return np.concatenate([self._ask(batch) for batch in _batches(texts)])

    def _ask(self, texts: list[str]) -> np.ndarray:
        with remote_errors(self._where, texts):
            reply = self._client.embeddings.with_raw_response.create(
                input=texts, model=self.name, encoding_format="float"
            )
            body = reply.http_response.content
        vectors = _read(body, len(texts), self._where)
        if vectors.shape[1] != (self._dim or vectors.shape[1]):
            raise BadReply(f"{self._where}: vectors of {vectors.shape[1]} numbers after such of {self._dim}")
        self._dim = vectors.shape[1]
        return vectors


def _check(text: str) -> None:
    if not text.strip():
        raise DataError(f"an empty text ({text!r}), for which an endpoint has no vector; leave it out")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"{text[:_SHOWN]!r} holds half a surrogate pair, which can't be sent") from error


def _batches(texts: list[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    characters = 0
    for text in texts:
        if batch and (len(batch) == _TEXTS or characters + len(text) > _CHARACTERS):
            yield batch
            batch, characters = [], 0
        batch.append(text)
        characters += len(text)
    yield batch


def _read(body: bytes, n: int, where: str) -> np.ndarray:
    """Vectors of `n` texts in the texts' order; a reply may list them in another.

    Raises:
        BadReply: Not that.
    """
    try:
        entries: list[dict[str, Any]] = json.loads(body)["data"]
        found = {int(entry["index"]): entry["embedding"] for entry in entries}
        vectors = np.array([found[index] for index in range(n)], np.float32)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadReply(
            f"{where}: the reply is no list of {n} vectors of one length with their indices"
            f" ({type(error).__name__}: {str(error)[:_SHOWN]}); see that --endpoint is of OpenAI's protocol"
        ) from error
    if vectors.ndim != 2 or len(entries) != n:
        raise BadReply(f"{where}: {len(entries)} vectors for {n} texts; expected one each")
    return vectors

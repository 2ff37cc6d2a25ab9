"""Requests and answers as they are sent. Keys that no record names are passed over, as other servers do."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import numpy as np
from msgspec import Meta

from aoe_train._serve.refusals import RefusalError
from aoe_train._serve.token_arrays import TokenArrays
from pairkit.printable import one_line

Encoding = Literal["float", "base64"]
_SHOWN = 100  # characters of a name
_MOST_HITS = 1000
# Of token numbers, as in OpenAI's API: a number of a few bytes may stand for a hundred letters.
_MOST_TOKENS, _MOST_TOKENS_IN_ALL = 8192, 300_000
R = TypeVar("R")


class Texts(msgspec.Struct, frozen=True):
    """What `/v1/embeddings` is sent; see OpenAI's reference. `prompt_name` is ours."""

    input: str | list[str | int | list[int]]
    model: str | None = None
    encoding_format: Encoding | None = None
    dimensions: Annotated[int, Meta(ge=1)] | None = None
    prompt_name: str | None = None

    def texts(self, most: int, arrays: TokenArrays | None = None) -> list[str]:
        """The texts, in order.

        Args:
            most: How many there may be.
            arrays: Reads those that are arrays of tokens; None refuses them.

        Raises:
            RefusalError: None or too many, one of blanks, or arrays of tokens that can't be read.
        """
        given = _inputs(self.input)
        if not given:
            raise RefusalError(400, "input is empty; expected a text or several", param="input")
        if len(given) > most:
            raise RefusalError(
                400, f"{len(given):,} texts; at most {most:,} a request, send several", param="input"
            )
        texts = [text for text in given if isinstance(text, str)]
        if len(texts) < len(given):
            texts = _read(given, arrays)
        blank = next((place for place, text in enumerate(texts) if not text.strip()), None)
        if blank is not None:
            raise RefusalError(400, f"text {blank} (from 0) is empty; leave it out", param="input")
        return texts


def _inputs(given: str | list[str | int | list[int]]) -> list[str | list[int]]:
    """Texts and arrays of tokens; a list of numbers is one array."""
    if isinstance(given, str):
        return [given]
    numbers = [one for one in given if isinstance(one, int)]
    if not numbers:
        return [one for one in given if not isinstance(one, int)]
    if len(numbers) < len(given):
        raise RefusalError(400, "input mixes numbers with texts or arrays; send one kind", param="input")
    return [numbers]


def _read(given: list[str | list[int]], arrays: TokenArrays | None) -> list[str]:
    if arrays is None:
        raise RefusalError(
            400,
            "input holds token numbers, which don't say whose they are; send texts (with LangChain,"
            " check_embedding_ctx_length=False), or start the server with --token-encoding",
            param="input",
            code="token_ids",
        )
    lengths = [len(one) for one in given if not isinstance(one, str)]
    if max(lengths) > _MOST_TOKENS or sum(lengths) > _MOST_TOKENS_IN_ALL:
        raise RefusalError(
            400,
            f"input holds {max(lengths):,} tokens in an array and {sum(lengths):,} in all; at most"
            f" {_MOST_TOKENS:,} and {_MOST_TOKENS_IN_ALL:,}",
            param="input",
        )
    return [one if isinstance(one, str) else arrays.text(one) for one in given]


class Sought(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `/search` is sent; see `aoe_train.search`."""

    text: Annotated[str, Meta(min_length=1)]
    top: Annotated[int, Meta(ge=1, le=_MOST_HITS)] = 10
    where: dict[str, str | int | float | bool] = {}
    before: dict[str, str | int | float] = {}
    by: Literal["both", "model", "words"] = "both"
    weight: Annotated[float, Meta(ge=0, le=1)] | None = None


def read(body: bytes, kind: type[R]) -> R:
    """A request's body.

    Raises:
        RefusalError: It is no JSON, nested too deep, or not what was expected.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RefusalError(400, one_line(str(error), 300)) from error
    except RecursionError:
        raise RefusalError(400, "the JSON is nested too deep") from None


def check_model(asked: str | None, name: str) -> None:
    """Refuse another model than the one that is served.

    Raises:
        RefusalError: It is another.
    """
    if asked is not None and asked != name:
        raise RefusalError(
            404,
            f"no model {one_line(asked, _SHOWN)!r} here; this server has {name!r}",
            param="model",
            code="model_not_found",
        )


def listed(vectors: np.ndarray, encoding: Encoding | None, model: str, tokens: int) -> bytes:
    """The answer of `/v1/embeddings`: vectors (text, dim) as numbers, or as float32 in base64."""
    rows: Sequence[Any]
    if encoding == "base64":
        rows = [base64.b64encode(row).decode() for row in vectors.astype("<f4", order="C")]
    else:
        rows = vectors.tolist()
    data = [{"object": "embedding", "index": place, "embedding": row} for place, row in enumerate(rows)]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return msgspec.json.encode({"object": "list", "data": data, "model": model, "usage": usage})

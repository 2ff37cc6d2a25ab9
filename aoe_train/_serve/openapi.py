"""The description that `/openapi.json` gives (OpenAPI 3.1)."""

from __future__ import annotations

from typing import Any

from aoe_train._serve.limits import Limits
from pairkit.version import __version__

_JSON = "application/json"
_ERRORS = {
    400: "not what was expected",
    401: "no key, or a wrong one",
    404: "no such model",
    408: "the request took too long to arrive",
    413: "the body is too long",
    415: "the body is no JSON",
    429: "too much waits; see Retry-After",
}


def openapi(limits: Limits, *, has_search: bool) -> dict[str, Any]:
    """The description of a server.

    Args:
        limits: Those it has.
        has_search: Whether it has an index.
    """
    paths: dict[str, Any] = {
        "/v1/embeddings": {
            "post": _operation("Vectors of texts, as OpenAI's API gives them.", _texts(limits))
        },
        "/v1/models": {"get": _operation("The model that is served.")},
        "/health": {"get": {**_operation("Whether the server is there."), "security": []}},
        "/metrics": {"get": _operation("Figures for Prometheus.")},
    }
    if has_search:
        paths["/search"] = {"post": _operation("The texts of the index that fit best.", _SOUGHT)}
    return {
        "openapi": "3.1.0",
        "info": {"title": "aoe serve", "version": __version__},
        "paths": paths,
        "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
        "security": [{"key": []}],
    }


def _operation(summary: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    answers = {"200": {"description": "done"}}
    answers |= {str(status): {"description": words} for status, words in _ERRORS.items()}
    told: dict[str, Any] = {"summary": summary, "responses": answers}
    if body is not None:
        told["requestBody"] = {"required": True, "content": {_JSON: {"schema": body}}}
    return told


def _texts(limits: Limits) -> dict[str, Any]:
    text = {"type": "string", "minLength": 1}
    tokens = {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}
    return {
        "type": "object",
        "required": ["input"],
        "properties": {
            "input": {
                "oneOf": [
                    text,
                    {"type": "array", "items": text, "minItems": 1, "maxItems": limits.texts},
                    {**tokens, "description": "Only with --token-encoding."},
                    {"type": "array", "items": tokens, "minItems": 1, "maxItems": limits.texts},
                ]
            },
            "model": {"type": "string"},
            "encoding_format": {"enum": ["float", "base64"], "default": "float"},
            "dimensions": {"type": "integer", "minimum": 1},
            "prompt_name": {"type": "string", "description": "A prompt that the model knows, such as query."},
        },
    }


_SOUGHT = {
    "type": "object",
    "required": ["text"],
    "additionalProperties": False,
    "properties": {
        "text": {"type": "string", "minLength": 1},
        "top": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 10},
        "where": {"type": "object", "description": "Columns with the value that a row has to have."},
        "before": {
            "type": "object",
            "description": "Columns with a value that a row's has to be smaller than.",
        },
        "by": {"enum": ["both", "model", "words"], "default": "both"},
        "weight": {"type": "number", "minimum": 0, "maximum": 1},
    },
}

from __future__ import annotations

import asyncio
import json
import random
from email.utils import formatdate
from typing import Any

import pytest

from pairkit.base.openai_api.refusals import (
    NoAnswer,
    Refusal,
    RefusedCall,
    patiently,
    retry_after_s,
)


def about(refusal: Refusal) -> str:
    """The cause; without one, whether the call may be repeated."""
    return refusal.cause or ("passing" if refusal.may_pass else "unknown")


def error(message: str, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, **fields}}


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        # litellm: its own limits, and upstream errors as 400
        (400, error("Budget has been exceeded! Max budget: 9", type="budget_exceeded"), "account"),
        (429, error("Over the limit", type="budget_exceeded", code="429"), "account"),
        (
            400,
            error("ExceededBudget: End User=me over budget.", type="auth_error", code="400"),
            "account",
        ),
        (400, error("AnthropicException - Your credit balance is too low"), "account"),
        (
            400,
            error("litellm.BadRequestError: DeepseekException - Insufficient Balance"),
            "account",
        ),
        (
            400,
            error("Authentication Error, Invalid proxy server token passed.", type="auth_error"),
            "key",
        ),
        (
            400,
            error("litellm.BadRequestError: OpenAIException - Incorrect API key provided: sk-9"),
            "key",
        ),
        (
            400,
            error("litellm.ContextWindowExceededError: prompt is too long: 9 tokens"),
            "question",
        ),
        (
            400,
            error("litellm.ContentPolicyViolationError: AzureException - was filtered"),
            "question",
        ),
        (400, error("Invalid request."), "unknown"),
        # OpenAI
        (429, error("You exceeded your current quota", code="insufficient_quota"), "account"),
        (
            429,
            error("Rate limit reached for gpt in organization x", code="rate_limit_exceeded"),
            "passing",
        ),
        (401, error("Incorrect API key provided", code="invalid_api_key"), "key"),
        (404, error("The model does not exist", code="model_not_found"), "model"),
        (400, error("too long", code="context_length_exceeded", param="messages"), "question"),
        (
            400,
            error("max_tokens is too large: 9000. It supports at most 4096.", param="max_tokens"),
            "limit",
        ),
        # Azure
        (400, error("was filtered", code="content_filter", innererror={"code": "X"}), "question"),
        (400, error("no", innererror={"code": "ResponsibleAIPolicyViolation"}), "question"),
        # OpenRouter
        (402, error("Insufficient credits", code=402), "account"),
        (403, error("Your input was flagged", code=403, metadata={"reasons": ["x"]}), "question"),
        (403, error("This key may not use the model", code=403), "key"),
        (
            400,
            error("Provider returned error", metadata={"raw": '{"error":"context length"}'}),
            "question",
        ),
        (502, error("Provider is down", code=502), "passing"),
        (
            429,
            error("Rate limit exceeded: free-models-per-day. Add 10 credits", code=429),
            "account",
        ),
        (400, error("opnai/gpt is not a valid model ID", code=400), "model"),
        # Gemini answers with a list
        (
            400,
            [error("API key not valid. Please pass a valid API key.", status="INVALID_ARGUMENT")],
            "key",
        ),
        (
            429,
            [error("You exceeded your current quota, please check your plan and billing")],
            "passing",
        ),
        # vLLM, llama.cpp, TGI, Ollama
        (
            400,
            {"object": "error", "message": "This model's maximum context length is 9 tokens."},
            "question",
        ),
        (
            400,
            error("exceeds the available", type="exceed_context_size_error", code=400),
            "question",
        ),
        (
            422,
            {"error": "Validation: too many input tokens", "error_type": "validation"},
            "question",
        ),
        (422, {"error": "`inputs` tokens + `max_new_tokens` must be <= 9"}, "question"),
        # xAI
        (
            403,
            {"code": "No", "error": "Content violates usage guidelines. API key ID: 9"},
            "question",
        ),
        (400, {"code": "invalid_api_key", "error": "no"}, "key"),
        (
            403,
            {"code": "No permission", "error": "Your team doesn't have any credits yet."},
            "account",
        ),
        (
            429,
            {"code": "Exhausted", "error": "Your team has used all available credits"},
            "account",
        ),
        # Mistral, Perplexity, Together, LiteLLM, LM Studio
        (400, error("Invalid model: small", type="invalid_model", code="1500"), "model"),
        (
            400,
            error("Unable to access non-serverless model x.", code="model_not_available"),
            "model",
        ),
        (400, error("/chat/completions: Invalid model name passed in model=gpt"), "model"),
        (400, {"error": "Unexpected endpoint or method. (POST /chat/completions)"}, "model"),
        # Cohere, Moonshot
        (429, {"message": "a Trial key, which is limited to 1000 API calls / month"}, "account"),
        (498, {"message": "the prompt violates our usage guidelines"}, "question"),
        (429, error("your account is not active", type="exceeded_current_quota_error"), "account"),
        # Groq
        (400, error("Failed to generate JSON.", code="json_validate_failed"), "answer"),
        (400, error("no", code="tool_use_failed", failed_generation="<function"), "answer"),
        (498, error("capacity_exceeded"), "passing"),
        (
            413,
            error("Request too large: tokens per minute", code="rate_limit_exceeded"),
            "question",
        ),
        # refusals of a format
        (400, error("JSON Schema not supported: could not understand the instance"), "unknown"),
        (
            400,
            [error("Request contains an invalid argument.", status="INVALID_ARGUMENT")],
            "unknown",
        ),
        # GLM, Qwen
        (429, error("余额不足或无可用资源包,请充值。", code="1113"), "account"),
        (400, error("模型不存在", code="1211"), "model"),
        (400, error("Model not exist.", code="InvalidParameter"), "model"),
        (400, error("系统检测到输入或生成内容可能包含不安全或敏感内容", code="1301"), "question"),
        (400, error("Prompt 超长", code="1261"), "question"),
        (400, error("Access denied", code="Arrearage"), "account"),
        (400, error("no", code="data_inspection_failed"), "question"),
        (400, [error("x", code="DataInspectionFailed")], "question"),
        (
            400,
            error("Range of input length should be [1, 30720]", code="InvalidParameter"),
            "question",
        ),
        (
            403,
            error("The free tier of the model has been exhausted.", code="AllocationQuota"),
            "account",
        ),
        # one cause each, whatever else is said
        (
            403,
            error('Your input was flagged for "hate". No credits were charged.', code=403),
            "question",
        ),
        (
            403,
            error("no", code=403, metadata={"reasons": ["hate"], "flagged_input": "a"}),
            "question",
        ),
        (403, error("Model is not ready. No credits were charged."), "key"),
        (400, error("Model names are case-sensitive"), "unknown"),
        (400, error('Unknown name "safety_settings"'), "unknown"),
        (400, {"detail": [{"loc": ["body", "x"], "msg": "bad", "input": "unsafe"}]}, "unknown"),
        (400, error("Moderation Block", type="content_filter", code="421"), "question"),
        (451, error("The content you provided is blocked"), "question"),
        (
            400,
            error("Sensitive chat messages", type="invalid_request_error", code="invalid_messages"),
            "question",
        ),
        (400, error("no", code="sensitive_words_detected"), "question"),
        (400, error("no", code="InputTextSensitiveContentDetected"), "question"),
        (400, error("The request was rejected because it was considered high risk"), "question"),
        (500, error("too long", code=500, type="exceed_context_size_error", n_ctx=256), "question"),
        (500, {"error": "the prompt is too long"}, "question"),
        (500, error("Internal error in the content filter"), "passing"),
        (
            429,
            error("Request too large for gpt: Limit 30, Requested 40", code="rate_limit_exceeded"),
            "question",
        ),
        (400, error("Prompt tokens too long", code="tokens_too_long"), "question"),
        (400, error("max_tokens: 9000 > 4096, which is the maximum"), "limit"),
        (
            400,
            error("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"),
            "limit",
        ),
        (
            403,
            {"code": 403, "reason": "NOT_ENOUGH_BALANCE", "message": "not enough balance"},
            "account",
        ),
        (403, error("no", code="insufficient_user_quota"), "account"),
        (403, {"code": 30001, "message": "Sorry, your account balance is insufficient"}, "account"),
        (400, error("You have reached your specified API usage limits."), "account"),
        (
            412,
            error("Account x is suspended, possibly due to reaching the monthly spending limit"),
            "account",
        ),
        (424, {"error": "Request failed during generation", "error_type": "generation"}, "passing"),
        (404, error("No endpoints found that can handle the requested parameters."), "unknown"),
        (404, error("No endpoints found matching your data policy."), "unknown"),
        (404, error("No endpoints found for x/y."), "model"),
        (403, error("Project does not have access to model", code="model_not_found"), "model"),
        (400, error("Developer instruction is not enabled for models/gemma-3-27b-it"), "unknown"),
        # pages of proxies
        (403, "<!DOCTYPE html><title>Just a moment...</title>", "unknown"),
        (403, "no", "key"),
        (401, "<html>Log in</html>", "key"),
        (404, "<html>404</html>", "model"),
        (502, "<html>Bad gateway</html>", "passing"),
        # others
        (418, "teapot", "unknown"),
        # the prompt's text is ignored
        (422, {"detail": [{"msg": "bad", "input": "my api key"}]}, "unknown"),
    ],
)
def test_classes_of_refusals(status: int, body: object, expected: str) -> None:
    text = body if isinstance(body, str) else json.dumps(body)
    assert about(Refusal.of(status, text.encode())) == expected


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 200_000,
        b'{"error": ' * 100_000,
        b'{"error": {"code": ' + b"[" * 400 + b"]" * 400 + b"}}",
        b'{"error": {"code": ' + b"9" * 4000 + b"}}",
        b'{"error": {"code": ' + b"9" * 5000 + b"}}",
        b'{"error": {"message": "\\ud800", "code": "\\udfff", "type": 1e999, "param": NaN}}',
        b"\xff\xfe\x00",
        b"[[]]",
        b'{"error": [], "detail": {}}',
        b'{"error": {"message": {"a": null}, "metadata": [], "innererror": "x"}}',
        b"x" * (1 << 22),
    ],
)
def test_invalid_bodies(body: bytes) -> None:
    for status in (400, 403, 429, 500):
        refusal = Refusal.of(status, body)
        about(refusal)
        assert len(refusal.message) <= 300
        assert "\n" not in refusal.message
        refusal.message.encode()


def refused(status: int, **headers: str) -> RefusedCall:
    return RefusedCall(
        Refusal(status), {name.replace("_", "-"): value for name, value in headers.items()}
    )


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits without jitter."""
    found: list[float] = []

    async def note(seconds: float) -> None:
        found.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", note)
    monkeypatch.setattr(random, "uniform", lambda low, high: (low + high) / 2)
    return found


def ask(*outcomes: Exception | str, tries: int = 9, pause_s: float = 1.0) -> str:
    left = list(outcomes)

    async def call() -> str:
        outcome = left.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    answer = asyncio.run(patiently(call, tries=tries, pause_s=pause_s))
    assert not left
    return answer


def test_backoff(waits: list[float]) -> None:
    assert ask(*[refused(500)] * 8, "answer") == "answer"
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]
    waits.clear()
    assert ask(refused(429, retry_after="60"), refused(429, retry_after="0"), "answer") == "answer"
    assert waits == [60, 2]


@pytest.mark.parametrize(
    ("outcomes", "tries", "waited"),
    [
        ([refused(500)] * 3, 3, [1, 2]),
        ([refused(401)], 9, []),
        ([refused(429, retry_after="60.5")], 9, []),
        ([NoAnswer("timeout", "3 s", was_sent=True)], 1, []),
    ],
)
def test_failures_that_end_the_attempts(
    waits: list[float], outcomes: list[Exception], tries: int, waited: list[float]
) -> None:
    with pytest.raises(type(outcomes[0])):
        ask(*outcomes, tries=tries)
    assert waits == waited


NOW = 1_790_000_000.0


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": formatdate(NOW + 90, usegmt=True)}, 90.0),
        ({"retry-after": formatdate(NOW - 90, usegmt=True)}, 0.0),
        # By the server's clock, from which this machine's differs by an hour.
        ({"retry-after": formatdate(NOW + 3690), "date": formatdate(NOW + 3600)}, 90.0),
        ({"x-ratelimit-reset": str(NOW - 3550), "date": formatdate(NOW - 3600)}, 50.0),
        ({"retry-after": formatdate(NOW + 90), "date": "soon"}, 90.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m12.5s"}, 72.5),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "20ms"}, 0.02),
        # a limit that isn't exhausted is ignored
        ({"x-ratelimit-remaining-tokens": "9", "x-ratelimit-reset-tokens": "6m0s"}, None),
        (
            {f"x-ratelimit-remaining-{kind}": "0" for kind in ("requests", "tokens")}
            | {"x-ratelimit-reset-requests": "2s", "x-ratelimit-reset-tokens": "3s"},
            3.0,
        ),
        ({"x-ratelimit-reset": "15"}, 15.0),
        ({"x-ratelimit-reset": str(int(NOW) + 30)}, 30.0),
        ({"x-ratelimit-reset": str((int(NOW) + 30) * 1000)}, 30.0),
        ({"x-ratelimit-reset": "1h30m"}, 5400.0),
        ({"x-ratelimit-reset": "1h30"}, None),
        # implausible values
        ({"x-ratelimit-reset": "1" * 20_000}, None),
        ({"x-ratelimit-reset": "1" * 20_000 + "s"}, None),
        ({"retry-after": "9" * 400}, None),
        ({"retry-after": "9" * 60}, 1e9),
        ({"retry-after": "1e400"}, None),
    ],
)
def test_stated_waits(headers: dict[str, str], expected: float | None) -> None:
    assert retry_after_s(headers, NOW) == (
        None if expected is None else pytest.approx(expected, abs=1e-6)
    )


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (error("Quota", details=[{"@type": "RetryInfo", "retryDelay": "41s"}]), 41.0),
        (error("Rate limit reached. Please try again in 1m7.66s. Visit x"), 67.66),
        (error("Please retry after 26 seconds."), 26.0),
        (error("Please try again in a day, 5s."), None),
        (error("Please try again in " + "1" * 10_000), None),
    ],
)
def test_waits_stated_in_the_text(body: object, expected: float | None) -> None:
    refusal = Refusal.of(429, json.dumps(body))
    assert RefusedCall(refusal, {}).retry_after_s == expected
    assert RefusedCall(refusal, {"retry-after": "3"}).retry_after_s == 3.0

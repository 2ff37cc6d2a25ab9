"""Failed calls to servers, and checks before the first call."""

import json

from llm_labeler import CallFailed
from pairkit import AuthError, ConfigError
from tests.llm_labeler.llm_server import (
    KEY,
    as_anthropic,
    check,
    provider,
    reply_of,
    responding,
)
from tests.support.llm import Faults, Options, serve
from tests.support.shorthand import (
    config_error,
    parametrize,
    raises,
    remote_error,
    table,
    values,
)


def failure_of(base_url, **fields):
    with raises(CallFailed) as caught:
        reply_of(provider(base_url, **fields))
    return caught.value


@table("""
    kind, reason, retry_after_s, maybe_billed
    rate_limited | rate_limited | 2.0 | False
    server_error | server_error | None | False
    unavailable | server_error | 2.0 | False
    broken_json | broken_reply | None | True
    html | broken_reply | None | True
    empty_choices | broken_reply | None | True
    disconnect | connection | None | True
    hang | timeout | None | True
""")
def test_faults_of_one_call(kind, reason, retry_after_s, maybe_billed):
    with serve(faults=Faults(1.0, (kind,), retry_after_s=2.0)) as server:
        failed = failure_of(server.base_url, timeout_s=0.3 if kind == "hang" else 60)
    assert (failed.reason, failed.retry, failed.retry_after_s) == (
        reason,
        True,
        retry_after_s,
    )
    assert failed.maybe_billed == maybe_billed
    assert failed.detail


def test_an_unreachable_server():
    failed = failure_of("http://127.0.0.1:9/v1")
    assert (failed.reason, failed.maybe_billed) == ("connection", False)
    with remote_error(
        r"llm llama: can't be reached at http://127.0.0.1:9/v1 .*base_url"
    ):
        check(provider("http://127.0.0.1:9/v1"))


@parametrize(
    "status, body, reason",
    [
        *values(
            """
                400 | '{"error": "no"}' | rejected
                413 | "" | rejected
                422 | '{"detail": []}' | rejected
                418 | x | rejected
            """,
        ),
        *(
            (status, "<html>Bad gateway</html>", "server_error")
            for status in (408, 409, 500, 502, 503, 504, 529)
        ),
    ],
)
def test_statuses(status, body, reason):
    with responding(status, body) as url:
        failed = failure_of(url)
    assert (failed.reason, failed.retry) == (reason, reason == "server_error")
    assert failed.maybe_billed == (status in (408, 504))


@parametrize("how", [check, reply_of])
def test_a_wrong_key(how):
    with serve(Options(api_key=KEY)) as server:
        with raises(AuthError) as caught:
            how(
                provider(
                    server.base_url,
                    name="chatgpt",
                    kind="openai",
                    api_key_env="OTHER_KEY",
                )
            )
        message = str(caught.value)
        assert message.startswith(
            f"llm chatgpt: {server.base_url} refused the key from OTHER_KEY with HTTP"
        )
        assert "sk-wrong" not in message
        with raises(AuthError, match="refused a call without a key"):
            how(provider(server.base_url))


def test_unlisted_models_can_be_allowed():
    models = json.dumps([{"id": "other"}])  # Together's; others are in an object
    with responding(200, models) as url:
        with config_error("must_be_listed = false"):
            check(provider(url))
        check(provider(url, must_be_listed=False))


def test_no_such_model():
    with serve(Options(models=("llama-3.1-8b", "qwen-2.5", "glm-4"))) as server:
        for how in (check, reply_of):
            with raises(ConfigError) as caught:
                how(provider(server.base_url, model="llama-3-8b"))
            message = str(caught.value)
            assert message.startswith(
                f"llm llama: no such model 'llama-3-8b' at {server.base_url}"
            )
            assert (
                "it has llama-3.1-8b, glm-4, qwen-2.5; set model in [llm.llama]"
                in message
            )
    with (
        serve(Options(models=("other",), lists_models=False)) as server,
        config_error(r"HTTP 404.*it lists none; base_url usually ends in /v1"),
    ):
        reply_of(provider(server.base_url))
    with serve(Options(models=("m" * 200,))) as server, raises(ConfigError) as caught:
        check(provider(server.base_url))
    assert f"it has {'m' * 59}…; set model" in str(caught.value)
    body = json.dumps({"error": {"code": "1211", "message": "Model does not exist"}})
    with responding(400, body) as url, config_error("no such model"):
        reply_of(provider(url, kind="glm"))


def test_a_redirect_is_not_followed():
    with serve() as elsewhere:
        location = elsewhere.base_url + "/chat/completions?token=1"
        with (
            responding(307, "", location=location) as url,
            config_error("redirects to") as caught,
        ):
            reply_of(provider(url))
        assert "token" not in str(caught.value)
        assert elsewhere.requests == []


@parametrize("status", [200, 404, 405, 429, 500, 503])
def test_a_check_needs_no_list_of_models(status):
    with responding(status, "<html>") as url:
        check(provider(url))


def test_successful_checks():
    with serve(Options(models=("emulated", "b"), api_key=KEY)) as server:
        check(provider(server.base_url, kind="openai"))
        check(provider(server.base_url + "/", api_key_env="OPENAI_API_KEY"))
    with serve(Options(lists_models=False)) as server:
        check(provider(server.base_url))
    with serve(Options(models=("emulated:latest",))) as server:
        check(provider(server.base_url))
        check(provider(server.base_url, kind="glm", model="glm-not-listed"))
    with serve(Options(("models/gemini-2.5-flash",))) as server:
        check(provider(server.base_url, kind="gemini", model="gemini-2.5-flash"))


def test_anthropics_endpoint_has_no_list_of_models(monkeypatch):
    with serve() as server:
        check(as_anthropic(server.base_url, monkeypatch))
        assert server.requests == []


def test_the_key_is_never_printed():
    asked = provider("http://localhost:1/v1", kind="openai")
    assert asked.channel.key is not None
    assert asked.channel.key.secret == KEY
    assert (
        KEY
        not in f"{asked!r} {vars(asked)!r} {asked.channel.key!r} {asked.parameters_text}"
    )

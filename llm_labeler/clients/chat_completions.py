"""OpenAI's chat completions: build requests and parse responses.

Servers differ in field names, in accepted requests and in responses, so no field of a response is trusted.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any, Literal

from llm_labeler.parsing.turns import split_thought
from llm_labeler.records import (
    MAX_TOKENS,
    Ask,
    AskKey,
    CallFailed,
    LlmReply,
    Message,
    TokenUsage,
    ending_of,
)
from llm_labeler.settings.llms import LIMIT_NAMES, LlmSettings
from pairkit.base.errors import ConfigError, PairkitError, RemoteError
from pairkit.base.openai_api.refusals import Refusal, RefusedCall, read_json
from pairkit.base.printable import one_line

# Fields that `extra` must not set.
_RESERVED = {"model", "messages", "n", "stream", "headers", *LIMIT_NAMES}
_SECRET = re.compile(
    r'"([^"]*(?:(?:api|access|secret|private)[_-]?key|token|secret|password|authorization))":',
    re.IGNORECASE,
)
_UNKNOWN_FIELD = re.compile(
    r"unsupported|not supported|unrecogni[sz]ed|unknown|extra|not permitted|not allowed|unexpected|instead",
    re.IGNORECASE,
)
_WRONG_VALUE = re.compile(
    rf"{_UNKNOWN_FIELD.pattern}|support|invalid|cannot|n[o']t\b|must|only|between|range|requested|`|不支持|参数",
    re.IGNORECASE,
)
_NO_SYSTEM = re.compile(
    r"(?:system|developer)[\s_-]?(?:role|message|prompt|instruction)|(?:support|role|got)\w*:? [`'\"]?system"
    r"|system\b[^\n]{0,40}\bsupport|roles? must alternate|must start with a user",
    re.IGNORECASE,
)
_MAX_MISSES = 2  # refusals of a question in the format, before it is asked without
_FORMAT = re.compile(
    r"response_?format|json_?(?:schema|object|mode)|structured|guided|grammar|requested parameters",
    re.IGNORECASE,
)

_EXCERPT_CHARS = 120  # of an unexpected body in an error
_MAX_NAME_CHARS = 200  # of a model's name or a finish_reason
_MAX_MODELS = 5000
_EVENT = re.compile(rb"\s*data:")
# Lines of an event stream without data, which some servers send around a JSON response, too.
_NO_DATA = re.compile(
    rb"^(?:(?::|event:|id:|retry:).*|data:[ \t]*\[DONE\][ \t\r]*)$", re.MULTILINE
)
_PARTS = ("content", "reasoning_content", "reasoning", "refusal")
_BLOCKED = re.compile(r'block_?reason": "|"filtered": true', re.IGNORECASE)
_MAYBE_BILLED = frozenset((408, 424, 504, 524))  # timeouts, and failures of the model


@dataclass(frozen=True, slots=True)
class Form:
    """The variable part of a request."""

    limit: str  # the name of the field max_tokens
    format: Literal["json_schema", "json_object", ""]
    has_system: bool = False  # Gemma 2, for one, refuses a system message


class Dialect:
    """The request format that one server accepts, adapted after each refusal."""

    def __init__(self, name: str, settings: LlmSettings) -> None:
        # `extra` is saved.
        if secret := _SECRET.search(json.dumps(settings.extra, default=str)):
            raise ConfigError(
                f"llm {name}: extra has {secret[1]}; name an environment variable with the key in api_key_env"
                f" of [llm.{name}], and remove it from extra"
            )
        if reserved := sorted(_RESERVED & settings.extra.keys()):
            raise ConfigError(
                f"llm {name}: extra has {reserved[0]}, which has its own setting or can't be changed; remove"
                f" it from [llm.{name}.extra]"
            )
        self._name = name
        self._settings = settings
        sampling = settings.model_dump(
            include={"temperature", "top_p", "seed"}, exclude_none=True
        )
        self._chosen = sampling | dict(settings.api.fields)
        self.refused: set[str] = set()  # fields that the server doesn't know
        # Whether the server has answered a request with it.
        self._has_format = False
        self._has_system = False
        # Unexplained refusals of each question with the format.
        self.misses = Counter[AskKey]()
        # Questions that are asked without a system message, to find out whether the server refuses it.
        self._without_system: set[AskKey] = set()
        # OpenAI's newer models accept only the newer name, most other servers only the older one.
        first = settings.api.limit_field
        self._limits = sorted(LIMIT_NAMES, key=lambda limit: limit != first)

    def form(self, ask: Ask) -> Form:
        """The form of the next request for a question."""
        structured = self._settings.structured
        usable = [name for name in self._limits if name not in self.refused]
        limit, *_ = usable or self._limits
        is_merged = "system" in self.refused or ask.key in self._without_system
        has_system = ask.messages[0].role == "system" and not is_merged
        is_missed = self.misses[ask.key] >= _MAX_MISSES and structured != "strict"
        is_refused = is_missed or "response_format" in self.refused
        if structured == "off" or ask.schema is None or is_refused:
            return Form(limit, "", has_system)
        if self._settings.api.takes_schemas:
            return Form(limit, "json_schema", has_system)
        # Without a schema, the prompt has to describe the JSON.
        has_json = any("json" in message.content.lower() for message in ask.messages)
        is_object = has_json or structured == "strict"
        return Form(limit, "json_object" if is_object else "", has_system)

    def body(self, ask: Ask, form: Form) -> dict[str, Any]:
        """The request for a question."""
        settings = self._settings
        messages = [*ask.messages]
        if not form.has_system and messages[0].role == "system":
            merged = "\n\n".join(message.content for message in messages[:2])
            messages[:2] = [Message("user", merged)]
        body = {
            "model": settings.model,
            "messages": [asdict(message) for message in messages],
            form.limit: settings.max_tokens,
        }
        if settings.seed is not None:
            body["seed"] = settings.seed + ask.sample
        if form.format == "json_schema":
            schema = {"name": "answer", "schema": ask.schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif form.format:
            body["response_format"] = {"type": form.format}
        return self._chosen | body | settings.extra

    def adapt(self, ask: Ask, form: Form, refusal: Refusal) -> bool:
        """Adapt to the refusal of a request in `form`; return whether to send the next form at once."""
        # OpenRouter refuses a part with 404, llama.cpp with 500.
        if refusal.status in (401, 402, 403, 429):
            return False
        about = f"{refusal.param} {refusal.message}"
        if form.format and _FORMAT.search(about) and refusal.cause != "answer":
            if self._settings.structured == "strict":
                raise ConfigError(
                    f"llm {self._name}: the server doesn't support {form.format} ({refusal.message}); "
                    f'set structured = "auto" in [llm.{self._name}]'
                )
            self.refused.add("response_format")
        elif form.limit in about and _UNKNOWN_FIELD.search(about):
            self.refused.add(form.limit)
        elif form.has_system and _NO_SYSTEM.search(about):
            self.refused.add("system")
        elif (
            refusal.status in (400, 422)
            and not refusal.is_explained
            and self.setting_error(refusal) is None
        ):
            return self._leave_out_part(ask, form, refusal)
        return self.form(ask) != form

    def _leave_out_part(self, ask: Ask, form: Form, refusal: Refusal) -> bool:
        """Leave out a part that the server has not accepted yet, as servers word its refusal differently."""
        is_of_answer = refusal.cause == "answer"
        if form.format and self._settings.structured != "strict":
            self._has_format |= is_of_answer
            self.misses[ask.key] += 1 if self._has_format else _MAX_MISSES
            return not self._has_format
        if form.has_system and not (self._has_system or is_of_answer):
            self._without_system.add(ask.key)
        return self.form(ask) != form

    def answered(self, ask: Ask, form: Form) -> None:
        """Learn from an answer which parts of a request the server knows."""
        self._has_format |= form.format != ""
        self._has_system |= form.has_system
        misses = self.misses.pop(ask.key, 0)
        if ask.key in self._without_system:  # the format may be innocent
            self.refused.add("system")
        elif misses and not self._has_format:
            self.refused.add("response_format")

    def setting_error(self, refusal: Refusal) -> ConfigError | None:
        """The error if a setting was refused, which affects every question."""
        if refusal.cause == "limit":
            return ConfigError(
                f"llm {self._name}: the server doesn't allow such long answers ({refusal.message}); lower"
                f" max_tokens in [llm.{self._name}]"
            )
        if refusal.status not in (400, 404, 422):
            return None
        names = sorted(self._chosen | self._settings.extra)
        about = refusal.param
        if _WRONG_VALUE.search(refusal.message):
            about = f"{about} {refusal.message}"
        if "requested parameters" in about:
            about = " ".join(names)
        named = []
        for name in names:
            # Gemini's and xAI's names are topP and presencePenalty.
            pattern = re.escape(name).replace("_", "_?")
            if re.search(rf"\b{pattern}\b", about, re.IGNORECASE):
                named.append(name)
        if not named:
            return None
        return ConfigError(
            f"llm {self._name}: the server refused the value of {' or '.join(named)}"
            f" ({refusal.message}); change it in [llm.{self._name}]"
        )


def read_body(body: bytes) -> Any:
    """Decode the JSON of a response, or an event stream, which some servers send unasked."""
    plain = _NO_DATA.sub(b"", body)
    try:
        return _from_events(plain) if _EVENT.match(plain) else read_json(plain)
    except ValueError as error:
        raise _broken("not JSON", body) from error


def _from_events(body: bytes) -> Any:
    """The chat completion whose parts are the events of a stream."""
    parts = []
    finish = None
    whole: dict[str, Any] = {}
    for event in re.finditer(rb"^data:[ \t]*(\{.*)", body, re.MULTILINE):
        fields = read_json(event[1]).items()
        whole |= {name: value for name, value in fields if value is not None}
        for choice in _objects(whole.pop("choices", None))[:1]:
            parts += _objects([choice.get("delta") or choice.get("message")])
            finish = choice.get("finish_reason") or finish
    message = {
        name: "".join(_text(part.get(name)) for part in parts) for name in _PARTS
    }
    has_choice = finish or any(message.values())
    choices = [{"message": message, "finish_reason": finish}] if has_choice else []
    return {"choices": choices, **whole}


def reply_of(value: Any) -> LlmReply:
    """Parse a decoded chat completion; one without text is an answer, too, if it has a reason."""
    if not isinstance(value, dict):
        raise _broken("not an object", value)
    choice = next(iter(_objects(value.get("choices"))), {})
    message = choice.get("message")
    fields = message if isinstance(message, dict) else {}
    raw = _text(fields.get("content"))
    _check_error(value, choice, has_text=raw != "")

    finish = _name(choice.get("finish_reason"))
    if not (isinstance(message, dict) or finish or _is_blocked(value)):
        raise _broken("no message", value)
    refusal = _text(fields.get("refusal"))
    if not raw and refusal:
        raw = refusal
        finish = "refusal"
    if ending_of(finish) == "failed":
        detail = f"the model failed during its answer ({finish})"
        raise CallFailed("server_error", detail, maybe_billed=True)
    raw = raw or _misplaced(fields)
    usage = usage_of(value.get("usage"))
    _, answer = split_thought(raw)
    if not answer.strip():
        if _is_blocked(value):
            finish = "content_filter"
        elif ending_of(finish) in ("complete", "unknown"):
            detail = f"status 200, but an answer without text (finish_reason {finish or 'absent'})"
            raise CallFailed("empty_answer", detail, maybe_billed=True, usage=usage)
    return LlmReply(raw, finish, usage, _name(value.get("model")))


def _check_error(
    value: dict[str, Any], choice: dict[str, Any], *, has_text: bool
) -> None:
    """Raise the refusal of a choice, or the refusal or error that a completion has in place of a text."""
    refused = _refused_in(choice)
    if refused is None and not has_text:
        refused = _refused_in(value)
    if refused is not None:
        raise refused
    if value.get("error") and not has_text:
        raise _broken("an error", value)


def _is_blocked(value: dict[str, Any]) -> bool:
    return _BLOCKED.search(json.dumps(value)) is not None


def _misplaced(message: dict[str, Any]) -> str:
    """The JSON that some servers return as reasoning or as the arguments of a tool; empty without any."""
    calls = [call.get("function") for call in _objects(message.get("tool_calls"))]
    texts = [call.get("arguments") for call in _objects(calls)[:1]]
    texts += [message.get("reasoning_content"), message.get("reasoning")]
    for text in texts:
        bare = text.strip() if isinstance(text, str) else ""
        if bare.startswith("{") and bare.endswith("}"):
            return bare
    return ""


def models_of(body: bytes) -> list[str]:
    """The names in a list of models; empty if it can't be read."""
    try:
        value = read_json(body)
    except ValueError:
        return []
    # Together's list is not in an object.
    entries = _objects(value.get("data") if isinstance(value, dict) else value)
    names = [_name(entry.get("id")) for entry in entries[:_MAX_MODELS]]
    return [name for name in names if name]


def usage_of(value: Any) -> TokenUsage | None:
    """The reported usage; if only a total is reported, it has the price of answers. None: unknown."""
    if not isinstance(value, dict):
        return None
    prompt = _count(value.get("prompt_tokens", value.get("input_tokens")))
    completion = _count(value.get("completion_tokens", value.get("output_tokens")))
    total = _count(value.get("total_tokens"))
    if total and not prompt and not completion:
        return TokenUsage(0, total)
    if total and not prompt:
        prompt = total - (completion or 0)
    if total and completion is None:
        completion = total - (prompt or 0)
    if completion is None or not prompt or min(prompt, completion) < 0:
        return None
    return TokenUsage(prompt, max(completion, (total or 0) - prompt))


def call_error(name: str, refused: RefusedCall) -> CallFailed | PairkitError:
    """The error for a refusal that is not about the key, the model or a setting."""
    refusal = refused.refusal
    detail = f"HTTP {refusal.status}: {refusal.message}"
    if refusal.cause == "account":
        return RemoteError(
            f"llm {name}: the account is exhausted ({detail}); add credit or wait, then run the same command"
            " again to continue"
        )
    if not refusal.may_pass:
        return CallFailed(
            "rejected", detail, retry=False, final=refusal.cause == "question"
        )
    return CallFailed(
        "rate_limited" if refusal.status in (429, 498) else "server_error",
        detail,
        retry_after_s=refused.retry_after_s,
        maybe_billed=refusal.status in _MAYBE_BILLED or refusal.cause == "answer",
    )


def _count(value: Any) -> int | None:
    is_count = type(value) is int and 0 <= value <= MAX_TOKENS
    return value if is_count else None


def _text(content: Any) -> str:
    """The text of a message, which may consist of parts."""
    parts = [part.get("text") for part in _objects(content)] or [content]
    return "".join(part for part in parts if isinstance(part, str))


def _name(value: Any) -> str:
    return value[:_MAX_NAME_CHARS] if isinstance(value, str) else ""


def _objects(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        return []
    return [entry for entry in value if isinstance(entry, dict)]


def _refused_in(value: dict[str, Any]) -> RefusedCall | None:
    """The refusal in a response with status 200, as sent by gateways, and by MiniMax in `base_resp`."""
    error = value.get("error") or value.get("base_resp")
    if not error:
        return None
    code = error.get("code") if isinstance(error, dict) else None
    status = code if isinstance(code, int) and 400 <= code < 500 else None
    refusal = Refusal.from_value(status or 400, {"error": error})
    return RefusedCall(refusal, {}) if status or refusal.is_explained else None


def _broken(problem: str, body: Any) -> CallFailed:
    """The error for an unusable response, which may have been billed."""
    if isinstance(body, dict):
        body = Refusal.from_value(200, body).message
    if isinstance(body, bytes):
        body = body[: 4 * _EXCERPT_CHARS].decode("utf-8", "replace")
    excerpt = type(body).__name__
    if isinstance(body, str):
        excerpt = one_line(body, _EXCERPT_CHARS)
    detail = f"status 200, but {problem}: {excerpt}"
    return CallFailed("broken_reply", detail, maybe_billed=True)

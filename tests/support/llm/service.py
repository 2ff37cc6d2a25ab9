"""What the test server answers, and what goes wrong on purpose."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from tests.support.llm.answers import answer, digest, text_of

FaultKind = Literal[
    "rate_limited",  # 429 with Retry-After
    "quota",  # 429 without recovery
    "server_error",  # 500
    "unavailable",  # 503
    "broken_json",  # status 200, incomplete JSON
    "html",  # status 200, an HTML page
    "disconnect",  # the connection closes within the response
    "hang",  # no answer
    "empty_choices",  # an answer without choices
    "no_usage",  # a good answer without token usage
    "refusal",  # the model refuses
    "cut",  # the answer ends at the token limit
    "filtered",  # Gemini's choice without a message
    "events",  # an event stream, although none was requested
    "empty",  # a good answer without text
    "invalid_json",  # Groq's 400 for an answer that doesn't fit the requested format
]
# These are answers that are paid for and stored.
_ANSWERING = frozenset(("no_usage", "refusal", "cut", "filtered", "events"))
# A client that retries recovers from these.
PASSING = (
    "rate_limited",
    "server_error",
    "unavailable",
    "broken_json",
    "html",
    "disconnect",
    "empty_choices",
)
_LIMITS = ("max_completion_tokens", "max_tokens")
_PAGE = "<!DOCTYPE html><html><body>Please log in to this network.</body></html>"


@dataclass(frozen=True, slots=True)
class Faults:
    """The share of calls that fail, and the kinds of faults."""

    share: float = 0.0
    kinds: tuple[FaultKind, ...] = PASSING
    seed: int = 0
    first: int | None = (
        None  # only this number of first attempts of a question may fail
    )
    retry_after_s: float = 1.0

    def strikes(self, question, attempt):
        """The fault of a question's attempt, counted from 1."""
        if not self.share or (self.first is not None and attempt > self.first):
            return None
        if digest(self.seed, question, attempt) >= self.share * 2**64:
            return None
        return self.kinds[
            digest(self.seed, "kind", question, attempt) % len(self.kinds)
        ]


@dataclass(frozen=True, slots=True)
class Options:
    """All other options."""

    models: tuple[str, ...] = ("emulated",)
    api_key: str | None = None
    latency_s: float = 0.0
    refuses: frozenset[str] = frozenset()
    format_error: str = ""  # refuses a response format in these words
    format_status: int = 400
    context_chars: int | None = None
    context_error: tuple[str, str] = (
        "This model's maximum context length is exceeded.",
        "context_length_exceeded",
    )
    lists_models: bool = True
    batch_s: float = 0.0
    batch_ends: Literal["completed", "expired", "cancelled", "failed"] = "completed"
    respond: Callable[[str, Any], Response | None] | None = (
        None  # by path and body; None: as usual
    )


@dataclass(slots=True)
class Stats:
    """Counts; a question is a model and its messages."""

    requests: int = 0
    answered: int = 0
    asked: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    batches: int = 0
    first_s: float = 0.0  # monotonic clock at the first and the last call
    last_s: float = 0.0

    @property
    def asked_again(self):
        """Answers to questions that had been answered before."""
        return self.answered - len(self.answers)

    def summary(self):
        """The counts as JSON."""
        return {name: getattr(self, name) for name in ("requests", "first_s", "last_s")}


@dataclass(frozen=True, slots=True)
class Recorded:
    """A received request; header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class CutOff(Response):
    """Half of a response; then the connection closes."""

    async def __call__(self, scope, receive, send):
        await send(
            {
                "type": "http.response.start",
                "status": self.status_code,
                "headers": self.raw_headers,
            }
        )
        half = bytes(self.body)[: len(self.body) // 2]
        await send({"type": "http.response.body", "body": half, "more_body": True})


class Hang(Response):
    """No response."""

    async def __call__(self, scope, receive, send):
        while (await receive())["type"] != "http.disconnect":
            pass


@dataclass(slots=True)
class Job:
    """A batch: its tag, its questions as (custom id, body), and its results once it has ended."""

    name: str
    tag: str
    file: str
    questions: Sequence[tuple[str, Mapping[str, Any]]]
    ready_s: float
    files: dict[str, str] | None = None


def reply(status, body, **headers):
    """Any response; underscores in header names become hyphens."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Response(body, status, named, "application/json")


def error(status, message, *, code="", param=None, **headers):
    """An error in OpenAI's words."""
    body = {
        "message": message,
        "type": "emulated_error",
        "param": param,
        "code": code or None,
    }
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return JSONResponse({"error": body}, status, named)


def no_such_url(request):
    """The error of an unknown address."""
    return error(404, f"Invalid URL ({request.method} {request.url.path})")


class Service:
    """The whole API as a starlette app, `app`."""

    def __init__(self, options, faults):
        self.stats = Stats()
        self.requests = []
        self._options, self._faults = options, faults
        self._files = {}
        self._jobs = {}
        api = [
            Route("/models", self._models),
            Route("/chat/completions", self._chat, methods=["POST"]),
            Route("/files", self._upload, methods=["POST"]),
            Route("/files/{name}/content", self._download),
            Route("/batches", self._create, methods=["POST"]),
            Route("/batches", self._list),
            Route("/batches/{name}", self._look),
        ]
        stats = Route("/stats", lambda _: JSONResponse(self.stats.summary()))
        handlers = {
            **dict.fromkeys((404, 405), lambda request, _: no_such_url(request)),
            ValueError: lambda *_: error(
                400, "We could not make sense of your request."
            ),
        }
        self._routes = Starlette(
            routes=[stats, Mount("/v1", routes=api)], exception_handlers=handlers
        )

    async def app(self, scope, receive, send):
        """Record a request, check its key, wait, and answer it."""
        request = Request(scope, receive)
        body = await request.body()
        replayed = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def again():
            return next(replayed, None) or await receive()

        if request.url.path != "/stats":
            if len(self.requests) < 100:
                self.requests.append(
                    Recorded(request.method, request.url.path, request.headers, body)
                )
            key = self._options.api_key
            if (
                key is not None
                and request.headers.get("authorization") != f"Bearer {key}"
            ):
                await error(401, "Incorrect API key provided.", code="invalid_api_key")(
                    scope, again, send
                )
                return
            await asyncio.sleep(self._options.latency_s)
        response = None
        if self._options.respond:
            is_json = request.headers.get("content-type") == "application/json"
            response = self._options.respond(
                request.url.path, json.loads(body) if is_json else body
            )
        await (response or self._routes)(scope, again, send)

    async def _models(self, request):
        if not self._options.lists_models:
            return no_such_url(request)
        models = [{"id": name, "object": "model"} for name in self._options.models]
        return JSONResponse({"object": "list", "data": models})

    async def _chat(self, request):
        body = json.loads(await request.body())
        if not isinstance(body, dict):
            raise ValueError("no JSON object")  # noqa: TRY004
        return self._refusal(404, body) or self._reply(body)

    def _refusal(self, no_model, body):
        """The error of an invalid request, if any."""
        options, messages = self._options, body.get("messages")
        if (model := body.get("model")) not in options.models:
            message = (
                f"The model `{model}` does not exist or you do not have access to it."
            )
            return error(no_model, message, code="model_not_found", param="model")
        if not isinstance(messages, list) or not messages:
            return error(400, "Invalid 'messages': empty array.", param="messages")
        for name in sorted(options.refuses & body.keys()):
            message = (
                f"Unsupported parameter: '{name}' is not supported with this model."
            )
            return error(400, message, code="unsupported_parameter", param=name)
        if options.format_error and "response_format" in body:
            return error(options.format_status, options.format_error)
        if (
            options.context_chars is not None
            and len(text_of(messages)) > options.context_chars
        ):
            message, code = options.context_error
            return error(400, message, code=code, param="messages")
        return None

    def _reply(self, body):
        """The response to one call, counted."""
        stats = self.stats
        question = f"{digest(body['model'], body['messages']):x}"
        stats.last_s = time.monotonic()
        stats.first_s = stats.first_s or stats.last_s
        stats.requests += 1
        stats.asked[question] += 1
        kind = self._faults.strikes(question, stats.asked[question])
        if kind == "invalid_json" and "response_format" not in body:
            kind = None
        if kind is not None:
            stats.faults[kind] += 1
        if kind is None or kind in _ANSWERING:
            stats.answered += 1
            stats.answers[question] += 1
            completion = self._completion(body, question, kind)
            return (
                _event_stream(completion)
                if kind == "events"
                else JSONResponse(completion)
            )
        return self._fault(kind, self._completion(body, question, None))

    def _fault(self, kind, good):
        wait, whole = f"{self._faults.retry_after_s:g}", json.dumps(good)
        match kind:
            case "rate_limited":
                return error(
                    429,
                    "Rate limit reached.",
                    code="rate_limit_exceeded",
                    retry_after=wait,
                )
            case "quota":
                return error(
                    429, "You exceeded your current quota.", code="insufficient_quota"
                )
            case "server_error":
                return error(500, "The server had an error.")
            case "invalid_json":
                return error(
                    400, "Failed to generate JSON.", code="json_validate_failed"
                )
            case "unavailable":
                return error(503, "Overloaded.", retry_after=wait)
            case "empty":
                return JSONResponse({**good, "choices": [{"message": {"content": ""}}]})
            case "empty_choices":
                return JSONResponse({**good, "choices": []})
            case "html":
                return Response(_PAGE, headers={"content-type": "text/html"})
            case "broken_json":
                return Response(whole[: len(whole) // 2], media_type="application/json")
            case "hang":
                return Hang()
            case _:
                return CutOff(whole, media_type="application/json")

    def _completion(self, body, question, kind):
        messages = body["messages"]
        wanted = body.get("response_format") or {}
        text = answer(
            str(body["model"]),
            messages,
            (wanted.get("json_schema") or {}).get("schema"),
        )
        limit = next((int(body[name]) for name in _LIMITS if body.get(name)), 1 << 30)
        if kind == "cut":
            limit = min(limit, max(1, _tokens(text) // 2))
        shown = text.encode("utf-8", "replace")[: 4 * limit].decode("utf-8", "ignore")
        message = {"role": "assistant", "content": shown, "refusal": None}
        if kind == "refusal":
            message |= {"content": None, "refusal": "I can't help with that."}
        finish = "length" if _tokens(text) > limit else "stop"
        choice = {"index": 0, "message": message, "finish_reason": finish}
        if kind == "filtered":
            choice = {"index": 0, "finish_reason": "content_filter: PROHIBITED_CONTENT"}
        completion = {
            "id": f"chatcmpl-{question}",
            "object": "chat.completion",
            "model": body["model"],
        }
        completion["choices"] = [choice]
        if kind != "no_usage":
            read, written = _tokens(text_of(messages)), min(limit, _tokens(text))
            used = {
                "prompt_tokens": read,
                "completion_tokens": written,
                "total_tokens": read + written,
            }
            completion["usage"] = used
        return completion

    async def _upload(self, request):
        boundary = request.headers["content-type"].partition("boundary=")[2].encode()
        parts = (
            part.partition(b"\r\n\r\n")
            for part in (await request.body()).split(b"--" + boundary)
        )
        content = next(
            content.removesuffix(b"\r\n")
            for head, _, content in parts
            if b'name="file"' in head
        )
        return JSONResponse(
            {"id": self._keep(content), "object": "file", "purpose": "batch"}
        )

    def _keep(self, content):
        name = f"file-{len(self._files) + 1}"
        self._files[name] = content
        return name

    async def _download(self, request):
        content = self._files.get(request.path_params["name"])
        return error(404, "no such file") if content is None else Response(content)

    async def _create(self, request):
        body = json.loads(await request.body())
        if (content := self._files.get(body.get("input_file_id"))) is None:
            return error(400, "no such file", param="input_file_id")
        lines = [json.loads(line) for line in content.splitlines()]
        questions = [(line["custom_id"], line["body"]) for line in lines]
        tag = (body.get("metadata") or {}).get("tag", "")
        name, ready_s = (
            f"batch_{len(self._jobs) + 1}",
            time.monotonic() + self._options.batch_s,
        )
        self._jobs[name] = job = Job(
            name, tag, body["input_file_id"], questions, ready_s
        )
        self.stats.batches += 1
        return JSONResponse(self._shown(job))

    async def _look(self, request):
        job = self._jobs.get(request.path_params["name"])
        return (
            error(404, "no such batch")
            if job is None
            else JSONResponse(self._shown(job))
        )

    async def _list(self, request):
        after, size = (
            request.query_params.get("after", ""),
            int(request.query_params.get("limit", "20")),
        )
        names = [*reversed(self._jobs)]
        start = names.index(after) + 1 if after in self._jobs else 0
        shown = [self._shown(self._jobs[name]) for name in names[start : start + size]]
        return JSONResponse(
            {"object": "list", "data": shown, "has_more": start + size < len(names)}
        )

    def _shown(self, job):
        """A batch as it is now."""
        ends = self._options.batch_ends
        shown = {"id": job.name, "object": "batch", "input_file_id": job.file}
        shown |= {
            "metadata": {"tag": job.tag},
            "status": "in_progress",
            "endpoint": "/v1/chat/completions",
        }
        if time.monotonic() < job.ready_s:
            return shown
        if ends == "failed":
            problem = {"code": "invalid_json_line", "line": 1, "message": "emulated"}
            return {**shown, "status": ends, "errors": {"data": [problem]}}
        if job.files is None:
            job.files = self._results(job)
        return {**shown, "status": ends, **job.files}

    def _results(self, job):
        """Result files, in another order; a batch that expires or is cancelled leaves out each second one."""
        ends = self._options.batch_ends
        done = job.questions if ends == "completed" else job.questions[::2]
        lines = {"output_file_id": [], "error_file_id": []}
        for name, body in reversed(done):
            response = self._refusal(400, body) or self._reply(body)
            try:
                found = {
                    "status_code": response.status_code,
                    "body": json.loads(bytes(response.body)),
                }
            except ValueError:  # a fault of the connection, which a batch has not
                found = {
                    "status_code": 500,
                    "body": {"error": {"message": "The server had an error."}},
                }
            place = "output_file_id" if found["status_code"] == 200 else "error_file_id"
            lines[place].append(
                json.dumps({"custom_id": name, "response": found, "error": None})
            )
        if ends == "expired":  # OpenAI says nothing of cancelled ones
            late = {"response": None, "error": {"code": "batch_expired"}}
            expired = [{"custom_id": name, **late} for name, _ in job.questions[1::2]]
            lines["error_file_id"] += map(json.dumps, expired)
        kept = {
            place: "".join(f"{line}\n" for line in of).encode()
            for place, of in lines.items()
            if of
        }
        return {place: self._keep(content) for place, content in kept.items()}


def _event_stream(completion):
    """A completion as events, one for each half of the answer."""
    (choice,) = completion["choices"]
    content = choice["message"]["content"]
    halves = [
        {"content": half}
        for half in (content[: len(content) // 2], content[len(content) // 2 :])
    ]
    events = [
        {**completion, "choices": [{"index": 0, "delta": delta}], "usage": None}
        for delta in halves
    ]
    events.append(
        {
            **completion,
            "choices": [{"delta": {}, "finish_reason": choice["finish_reason"]}],
        }
    )
    lines = [
        ": processing",
        *(f"data: {json.dumps(event)}" for event in events),
        "data: [DONE]",
    ]
    return Response("\n\n".join(lines) + "\n\n", media_type="text/event-stream")


def _tokens(text):
    """Four bytes a token, rounded up."""
    return -(-len(text.encode("utf-8", "replace")) // 4)

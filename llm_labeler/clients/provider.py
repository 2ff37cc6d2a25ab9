"""What an LLM is to the rest: asked a question it brings a reply, or says how it failed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from llm_labeler.records import Ask, LlmReply, TokenUsage
from llm_labeler.settings import LlmSettings
from pairkit.app.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars per million tokens; None where it is not known."""

    prompt: float | None
    completion: float | None

    def cost(self, usage: TokenUsage) -> float | None:
        """What so many tokens cost; None if that can't be known."""
        if self.prompt is None or self.completion is None:
            return None
        return (usage.prompt_tokens * self.prompt + usage.completion_tokens * self.completion) / 1e6


class CallFailed(Exception):  # noqa: N818 - named after what happened
    """One call brought no reply; the dispatcher decides what follows.

    What no call can fix (no key, a refused key, an unknown model, an exhausted account) is raised as one of
    `pairkit.app.errors` instead, and ends the run.

    Attributes:
        reason: `rate_limited`, `timeout`, `connection`, `server_error`, `broken_reply` or `rejected`.
        detail: What the server said, for people; never a credential.
        retry_after_s: The server's wish, if it told one.
        retry: Whether asking again, now, may help.
        final: Whether it is about this very question, so that asking it again never helps.
        maybe_billed: Whether the server may have worked, and charged, for it.
    """

    def __init__(
        self,
        reason: str,
        detail: str,
        *,
        retry: bool = True,
        final: bool = False,
        retry_after_s: float | None = None,
        maybe_billed: bool = False,
    ) -> None:
        self.reason, self.detail = reason, detail
        self.retry, self.final = retry, final
        self.retry_after_s, self.maybe_billed = retry_after_s, maybe_billed
        super().__init__(f"{reason}: {detail}")


_SHAPING = ("kind", "model", "temperature", "top_p", "seed", "max_tokens", "extra")


def answer_parameters(name: str, settings: LlmSettings, further: Mapping[str, Any]) -> str:
    """What of an entry shapes the answers, as JSON; the size of a batch and the like do not."""
    values = {**{field: getattr(settings, field) for field in _SHAPING}, **further}
    try:
        return json.dumps(values, sort_keys=True, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"llm {name}: extra is no JSON ({error}); use texts, numbers, lists and tables in "
            f"[llm.{name}.extra]"
        ) from error


@dataclass(frozen=True, slots=True)
class TokenizedPrompt:
    """A question as the model reads it."""

    ids: tuple[int, ...]
    seed: int  # of its sampling


@dataclass(frozen=True, slots=True)
class Completion:
    """What the model wrote after a prompt."""

    text: str
    tokens: int  # with the one that ends it
    finish: str  # stop or length


class Provider(Protocol):
    """An LLM that can be asked; see `build`."""

    name: str  # the entry's name in the configuration
    model: str
    parameters: str  # digest of what shapes its answers, see AskKey
    parameters_text: str  # the same as JSON, for people; no credentials
    prices: Prices
    concurrency: int
    rpm: int | None
    tpm: int | None
    attempts: int
    key_variable: str | None  # the environment variable with its key; None: it needs none
    leaves_machine: bool  # whether the text may go to another machine

    def bound(self, ask: Ask) -> TokenUsage:
        """At least as many tokens as a call can cost: prompt by its bytes, completion by the limit."""
        ...

    async def check(self) -> None:
        """See that it can be asked at all, before anything is."""
        ...

    async def reply(self, ask: Ask) -> LlmReply:
        """Ask once."""
        ...

    async def close(self) -> None:
        """Let go of connections, threads and models."""
        ...

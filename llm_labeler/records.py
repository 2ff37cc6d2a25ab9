"""Records that the stages of `label` exchange.

```
Text ──prompts──► Ask ──dispatch──► StoredAnswer ──parsing──► Item ──filters──► Candidate (or why not)
                                                                                    │
          LabelledPair ◄──ensemble── JudgeVote ◄──judging── Ask, StoredAnswer ◄─────┘
```
Texts, asks and candidates are identified by content, never by position: rows stay with their text even if
answers are missing, failed or late.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal, Protocol

Polarity = Literal["positive", "negative"]
Task = Literal["positive", "negative", "judge"]
# What a hard negative changes of the text that it keeps the words of.
ChangeKind = Literal["negation", "antonym", "entity", "number", "role", "tense", "modality"]
CHANGES: tuple[ChangeKind, ...] = ("negation", "antonym", "entity", "number", "role", "tense", "modality")
Vote = Literal["same", "opposite", "unrelated", "unsure"]
VOTES: tuple[Vote, ...] = ("same", "opposite", "unrelated", "unsure")
POLARITIES: tuple[Polarity, ...] = ("positive", "negative")


def digest(*parts: str) -> str:
    """16 hex digits that stand for strings; different lists of strings differ."""
    framed = "".join(f"{len(part)}:{part}" for part in parts)
    return blake2b(framed.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class Text:
    """A sentence to label. Equal sentences are one text; `row` is the row of the first one."""

    text_id: str
    text: str
    row: int  # from 1, in the file

    @classmethod
    def of(cls, text: str, row: int) -> Text:
        """A text with its id, a digest of its content."""
        return cls(digest(text), text, row)


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat; an `assistant`'s is an example of an answer."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class AskKey:
    """What makes two questions the same question; its answer is asked for once."""

    text_id: str
    llm: str  # the entry's name in the configuration
    task: Task
    prompt_hash: str  # of the template and size; for a judge of the whole prompt
    parameters: str  # a digest of what else shapes the answer: model, server, temperature, …


@dataclass(frozen=True, slots=True)
class Ask:
    """A question to one LLM."""

    key: AskKey
    messages: tuple[Message, ...]
    schema: dict[str, Any] | None = field(default=None, hash=False)  # JSON schema of the answer wanted
    # input of providers that are not LLMs
    text: str = ""
    size: int = 0
    labelling: str = "papers"  # the labelling task, one of `settings.TASKS`
    changes: tuple[ChangeKind, ...] = ()  # of hard negatives, the kinds that are wanted
    sample: int = 0  # index of the sample, for an LLM that samples


# Of a call, in either direction: no model reads or writes so many, whatever its server counts. At the highest
# price of settings such a call costs less than 2^62 picodollars, and SQLite's whole numbers end at 2^63.
MOST_TOKENS = 10**8
MOST_PRICE = 10_000.0  # US dollars per million tokens


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of one call, as its server counted them."""

    prompt_tokens: int
    completion_tokens: int


# Why an answer ended. `cut`: in the middle. `filtered`: a filter ended it. `failed`: the model or its server
# gave up. `unknown`: no reason was given, or another one, such as a call of a tool. Servers pass on the
# words of the model behind them, so those of Anthropic, Gemini, Cohere, Mistral, GLM, DeepSeek, Bedrock,
# watsonx, vLLM, SGLang and TGI are here too.
Ending = Literal["complete", "cut", "refused", "filtered", "failed", "unknown"]

_ENDING_WORDS: Mapping[Ending, str] = {
    "complete": "stop end_turn stop_sequence eos eos_token endoftext complete completed end finished done",
    "cut": "length max_tokens max_output_tokens max_completion_tokens max_new_tokens max_length max_len"
    " token_limit model_length model_context_window_exceeded context_length context_length_exceeded"
    " continuation not_finished incomplete time_limit timeout error_limit insufficient_system_resource",
    "refused": "refusal refused",
    "filtered": "content_filter content_filtered guardrail_intervened sensitive safety image_safety"
    " recitation blocklist prohibited_content escalation model_armor spii language error_toxic moderation",
    "failed": "error failed network_error abort aborted cancelled canceled user_cancel"
    " malformed_function_call malformed_model_output malformed_response",
}
_ENDINGS: Mapping[str, Ending] = {
    word: ending for ending, words in _ENDING_WORDS.items() for word in words.split()
}
_REASON_PREFIX = re.compile(r"\A(?:finish_?)?reason_")


def ending_of(finish: str) -> Ending:
    """What a server's `finish_reason` means, in any spelling (`MAX_TOKENS`, `maxTokens`, `end-turn`)."""
    # `maxTokens` is `max_tokens`; a word all in capitals has no inner beginnings of words.
    word = finish if finish.isupper() else re.sub(r"(?<=[a-z])(?=[A-Z])", "_", finish[:60])
    word = re.sub(r"[\s-]+", "_", word[:80].strip().lower())
    return _ENDINGS.get(_REASON_PREFIX.sub("", word), "unknown")


@dataclass(frozen=True, slots=True)
class LlmReply:
    """What a provider brings back from one call, not yet interpreted."""

    raw: str
    finish: str = "stop"  # why it ended, in the server's word, see `ending_of`; empty: none given
    usage: TokenUsage | None = None  # None: the server reported none
    model: str = ""  # as the server named it


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars per million tokens; None if unknown."""

    prompt: float | None
    completion: float | None

    def cost(self, usage: TokenUsage) -> float | None:
        """The cost of this usage in US dollars; None if a price is unknown."""
        if self.prompt is None or self.completion is None:
            return None
        return (usage.prompt_tokens * self.prompt + usage.completion_tokens * self.completion) / 1e6


class CallFailed(Exception):  # noqa: N818 - named after what happened
    """One call brought no reply; the dispatcher decides what follows.

    What no call can fix (no key, a refused key, an unknown model, an exhausted account) is raised as one of
    `pairkit.app.errors` instead, and ends the run.

    Attributes:
        reason: `rate_limited`, `timeout`, `connection`, `server_error`, `broken_reply` or `rejected`.
        detail: The server's message, for people; never a credential.
        retry_after_s: Seconds to wait, if the server requested a time.
        retry: Whether asking again, now, may help.
        final: Whether the server rejected this very question, so that repeating it never helps.
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


class Provider(Protocol):
    """An LLM: asked a question it brings a reply, or says how it failed; see `clients.llms.build`."""

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
        """Check before any question that the LLM is available."""
        ...

    async def reply(self, ask: Ask) -> LlmReply:
        """Ask once."""
        ...

    async def close(self) -> None:
        """Release connections, threads and models."""
        ...


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """A stored reply."""

    key: AskKey
    reply: LlmReply
    cost: float | None  # US dollars; None: the price is unknown
    estimated: bool = False  # usage and cost are upper bounds, as the server reported none


@dataclass(frozen=True, slots=True)
class Failure:
    """A question that got no answer."""

    key: AskKey
    reason: str  # timeout, rate_limited, server_error, connection, broken_reply, rejected
    detail: str
    attempts: int
    final: bool  # asking again would not help: the server rejected this very question, and answers others


@dataclass(frozen=True, slots=True)
class Item:
    """One sentence that the parser found in an answer, or a piece that it turned down."""

    text: str
    reason: str | None = None  # why it is no candidate; None: it may be one
    change: str | None = None  # of a hard negative, what its writer says that it changes


@dataclass(frozen=True, slots=True)
class Proposal:
    """One sentence that one LLM proposed for one text, with what became of it."""

    text_id: str
    llm: str
    polarity: Polarity
    prompt_hash: str
    candidate: str
    reason: str | None = None  # None: kept; else why it was dropped
    change: str | None = None  # see `Item`


@dataclass(frozen=True, slots=True)
class Candidate:
    """A kept sentence of one text and polarity; all LLMs that proposed it are its sources."""

    text_id: str
    candidate: str
    polarity: Polarity
    llms: tuple[str, ...]  # in order of their names
    prompt_hashes: tuple[str, ...] = ()
    change: str | None = None  # see `Item`

    @property
    def candidate_id(self) -> str:
        """A digest of text and candidate; polarity takes no part, judges must not see it."""
        return digest(self.text_id, self.candidate)


@dataclass(frozen=True, slots=True)
class JudgeVote:
    """One LLM's verdict on one candidate, blind to its proposer and polarity."""

    candidate_id: str
    judge: str
    vote: Vote


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """A labelled pair, or a candidate that the ensemble turned down (`reason`)."""

    candidate: Candidate
    polarity: Polarity  # differs from the candidate's if judges reversed it
    label: float  # in [0, 1]; 1 the same meaning
    votes: tuple[JudgeVote, ...] = ()
    reason: str | None = None

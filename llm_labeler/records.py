"""Records that the stages of `label` exchange.

```
Text ──prompts──► Ask ──dispatch──► StoredAnswer ──parsing──► Item ──filters──► Candidate, or a reason
                                                                                    │
          LabelledPair ◄──ensemble── JudgeVote ◄──judging── Ask, StoredAnswer ◄─────┘
```
Texts, asks and candidates are identified by their content, so missing, failed or late answers can't shift
rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from hashlib import blake2b
from typing import Any, Literal, get_args

Polarity = Literal["positive", "negative"]
Task = Literal["positive", "negative", "judge"]
# How a hard negative changes the meaning of its text.
ChangeKind = Literal[
    "negation", "antonym", "entity", "number", "role", "tense", "modality"
]
CHANGES: tuple[ChangeKind, ...] = get_args(ChangeKind)
Vote = Literal["same", "opposite", "unrelated", "unsure"]
VOTES: tuple[Vote, ...] = get_args(Vote)
POLARITIES: tuple[Polarity, ...] = get_args(Polarity)

# Upper bounds of one call. Their product is below 2^62 picodollars; SQLite's integers end at 2^63.
MAX_TOKENS = 10**8
MAX_PRICE = 10_000.0  # US dollars per million tokens

# Why an answer ended. `cut`: at a limit. `filtered`: by a content filter. `failed`: by an error. `unknown`:
# no reason, or another one, such as a tool call. Gateways pass on the words of the model behind them, so the
# table has those of Anthropic, Gemini, Cohere, Mistral, GLM, DeepSeek, Bedrock, watsonx, vLLM, SGLang and
# TGI.
Ending = Literal["complete", "cut", "refused", "filtered", "failed", "unknown"]

_ENDING_WORDS: Mapping[Ending, str] = {
    "complete": "stop end_turn stop_sequence eos eos_token endoftext complete completed end finished done",
    "cut": "length max_tokens max_output_tokens max_completion_tokens max_new_tokens max_length max_len"
    " token_limit model_length model_context_window_exceeded context_length context_length_exceeded"
    " continuation not_finished incomplete time_limit timeout error_limit insufficient_system_resource",
    "refused": "refusal refused",
    "filtered": "content_filter content_filtered content_policy_violation guardrail_intervened sensitive"
    " safety blocked flagged recitation blocklist prohibited_content escalation model_armor spii language"
    " error_toxic moderation",
    "failed": "error failed network_error abort aborted cancelled canceled user_cancel"
    " malformed_function_call malformed_model_output malformed_response",
}
_ENDINGS = {
    word: ending for ending, words in _ENDING_WORDS.items() for word in words.split()
}
_REASON_PREFIX = re.compile(r"\A(?:(?:finish_?)?reason_|image_)")


def content_hash(*parts: str) -> str:
    """Hash a list of strings to 16 hex digits."""
    # The lengths keep ("a", "b") and ("ab",) apart.
    framed = "".join(f"{len(part)}:{part}" for part in parts)
    return blake2b(framed.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def format_counts(counts: Mapping[str, int]) -> str:
    """Format counts as `empty 3, repeated 1`."""
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()))


@dataclass(frozen=True, slots=True)
class Text:
    """A sentence to label. Equal sentences are one text; `row` is the row of the first one."""

    text_id: str  # hash of the text
    text: str
    row: int  # from 1, in the file

    @classmethod
    def of(cls, text: str, row: int) -> Text:
        """Make a text with its id."""
        return cls(content_hash(text), text, row)


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat; the role `assistant` marks a few-shot answer."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class AskKey:
    """The identity of a question: questions with equal keys are sent once."""

    text_id: str
    llm: str  # name in the configuration
    task: Task
    prompt_hash: str  # of template and size; for judges, of the whole prompt
    parameters: str  # hash of the other things that affect the answer: model, server, temperature, …

    @property
    def polarity(self) -> Polarity:
        """The polarity of the requested sentences, unless it is a question to a judge."""
        return "positive" if self.task == "positive" else "negative"


@dataclass(frozen=True, slots=True)
class Ask:
    """A question to one LLM."""

    key: AskKey
    messages: tuple[Message, ...]
    # JSON schema of the answer.
    schema: dict[str, Any] | None = field(default=None, hash=False)
    # for rules, which don't read the prompt
    text: str = ""
    size: int = 0
    sample: int = 0  # index of the sample


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of one call, as counted by the server."""

    prompt_tokens: int
    completion_tokens: int

    def __add__(self, other: TokenUsage) -> TokenUsage:
        prompt = self.prompt_tokens + other.prompt_tokens
        return TokenUsage(prompt, self.completion_tokens + other.completion_tokens)

    @property
    def total(self) -> int:
        """Prompt and completion tokens."""
        return self.prompt_tokens + self.completion_tokens


def ending_of(finish: str) -> Ending:
    """Classify a `finish_reason` in any spelling, such as `MAX_TOKENS` or `content_filter: SPII`."""
    words = (
        finish if finish.isupper() else re.sub(r"(?<=[a-z])(?=[A-Z])", "_", finish[:60])
    )
    parts = re.split(r"[:.]", re.sub(r"[\s-]+", "_", words[:80].lower()))
    plain = (_REASON_PREFIX.sub("", part.strip("_")) for part in parts)
    return next((_ENDINGS[word] for word in plain if word in _ENDINGS), "unknown")


@dataclass(frozen=True, slots=True)
class LlmReply:
    """The response to one call, not yet parsed."""

    raw: str
    # The server's finish_reason, see `ending_of`; empty if it gave none.
    finish: str = "stop"
    usage: TokenUsage | None = None  # None: not reported
    model: str = ""  # as named by the server


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars per million tokens; None if unknown."""

    prompt: float | None
    completion: float | None

    def cost(self, usage: TokenUsage) -> float | None:
        """Cost in US dollars; None if a price is unknown."""
        if self.prompt is None or self.completion is None:
            return None
        return (
            usage.prompt_tokens * self.prompt
            + usage.completion_tokens * self.completion
        ) / 1e6


@dataclass(eq=False, repr=False)
class CallFailed(Exception):  # noqa: N818 - named after the event
    """One call failed; the dispatcher may repeat it.

    Errors that affect every call (a missing or refused key, an unknown model, an exhausted account) are
    raised as one of `pairkit.base.errors` instead and end the run.

    Attributes:
        reason: `rate_limited`, `timeout`, `connection`, `server_error`, `broken_reply`, `empty_answer` or
            `rejected`.
        detail: The server's message; never a credential.
        retry_after_s: Seconds to wait, if the server requested a time.
        retry: Whether an immediate retry may help.
        final: Whether the server rejected this question, so that repeating it never helps.
        maybe_billed: Whether the server may have charged for the call.
        usage: Usage of a billed call, if the server reported it.
    """

    reason: str
    detail: str
    _: KW_ONLY
    retry: bool = True
    final: bool = False
    retry_after_s: float | None = None
    maybe_billed: bool = False
    usage: TokenUsage | None = None

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}"


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """A stored reply."""

    key: AskKey
    reply: LlmReply
    cost: float | None  # US dollars; None: unknown price
    # Whether usage and cost are upper bounds, because the server reported none.
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """A question without an answer."""

    key: AskKey
    reason: str  # see `CallFailed`
    detail: str
    attempts: int
    final: bool  # the server rejected this question but answers others: don't repeat it


@dataclass(frozen=True, slots=True)
class Item:
    """A piece of an answer: a sentence, or anything else with the reason why it is not a candidate."""

    text: str
    reason: str | None = None  # None: it may become a candidate
    change: str | None = None  # kind of a hard negative, as named by its writer


Items = list[Item]


@dataclass(frozen=True, slots=True)
class Proposal:
    """One sentence that one LLM proposed for one text."""

    text_id: str
    llm: str
    polarity: Polarity
    prompt_hash: str
    candidate: str
    reason: str | None = None  # why it was dropped; None: it was kept
    change: str | None = None  # see `Item`


@dataclass(frozen=True, slots=True)
class Candidate:
    """A kept sentence of one text and polarity, with all LLMs that proposed it."""

    text_id: str
    candidate: str
    polarity: Polarity
    llms: tuple[str, ...]  # sorted by name
    prompt_hashes: tuple[str, ...] = ()
    change: str | None = None  # see `Item`

    @property
    def candidate_id(self) -> str:
        """Hash of text and candidate, without the polarity, which judges must not see."""
        return content_hash(self.text_id, self.candidate)


@dataclass(frozen=True, slots=True)
class JudgeVote:
    """One LLM's verdict on one candidate, made without its proposer and polarity."""

    candidate_id: str
    judge: str
    vote: Vote


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """A labelled pair, or a candidate that the aggregation rejected (`reason`)."""

    candidate: Candidate
    polarity: Polarity  # differs from the candidate's if judges reversed it
    label: float  # in [0, 1]; 1: same meaning
    votes: tuple[JudgeVote, ...] = ()
    reason: str | None = None

"""What kind of server it pretends to be, and what goes wrong on purpose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from pairkit.keyed import keyed_hash, keyed_unit

FaultKind = Literal[
    "rate_limited",  # 429 with Retry-After
    "quota",  # 429 that no waiting helps
    "server_error",  # 500
    "unavailable",  # 503
    "broken_json",  # status 200, JSON that breaks off
    "html",  # status 200, a page
    "disconnect",  # the connection closes in the middle of the answer
    "hang",  # no answer
    "empty_choices",  # an answer without choices
    "no_usage",  # a good answer that tells no usage
    "refusal",  # the model declines
    "cut",  # the answer stops at the token limit
]
FAULT_KINDS: tuple[FaultKind, ...] = get_args(FaultKind)
# These still are answers, which are paid for and kept.
ANSWERING: frozenset[FaultKind] = frozenset(("no_usage", "refusal", "cut"))
# What any client with patience gets over.
PASSING: tuple[FaultKind, ...] = (
    "rate_limited",
    "server_error",
    "unavailable",
    "broken_json",
    "html",
    "disconnect",
    "empty_choices",
)


@dataclass(frozen=True, slots=True)
class Faults:
    """Which share of the calls goes wrong, and how.

    Attributes:
        share: Of all calls, in [0, 1].
        kinds: Drawn from evenly.
        seed: Decides every draw.
        first: Only this many first attempts of each question may go wrong; None: any.
        retry_after_s: What Retry-After says.
    """

    share: float = 0.0
    kinds: tuple[FaultKind, ...] = PASSING
    seed: int = 0
    first: int | None = None
    retry_after_s: float = 1.0

    def strikes(self, question: str, attempt: int) -> FaultKind | None:
        """What goes wrong with a question's attempt, counted from 1."""
        if not self.share or (self.first is not None and attempt > self.first):
            return None
        if keyed_unit(self.seed, question, attempt) >= self.share:
            return None
        return self.kinds[keyed_hash(self.seed, "kind", question, attempt) % len(self.kinds)]


@dataclass(frozen=True, slots=True)
class Options:
    """Everything but the faults.

    Attributes:
        models: The models that it has.
        api_key: The only key that it takes; None: it looks at no key.
        latency_s: Seconds before each answer.
        usage: Whether answers say how many tokens they took.
        refuses: Fields of a request that it answers with status 400, such as `response_format`.
        context_chars: Longest prompt that it takes; None: any.
        lists_models: Whether it has `/models`, which some servers lack.
        batch_s: Seconds that a batch takes.
        batch_ends: How batches end. Expired and cancelled ones leave every second question unanswered.
    """

    models: tuple[str, ...] = ("emulated",)
    api_key: str | None = None
    latency_s: float = 0.0
    usage: bool = True
    refuses: frozenset[str] = frozenset()
    context_chars: int | None = None
    lists_models: bool = True
    batch_s: float = 0.0
    batch_ends: Literal["completed", "expired", "cancelled", "failed"] = "completed"

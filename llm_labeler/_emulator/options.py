"""What kind of server it pretends to be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


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

"""What the server has done so far."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Stats:
    """Counts; a question is a model and its messages.

    Attributes:
        requests: Calls for a chat completion, batches' lines included.
        answered: Of them, those that brought an answer that a client can keep.
        asked: By question: calls.
        answers: By question: answers.
        faults: By kind.
        batches: Batches started.
    """

    requests: int = 0
    answered: int = 0
    asked: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    batches: int = 0
    first_s: float = 0.0  # this machine's monotonic clock, at the first call and the last
    last_s: float = 0.0

    def count_request(self) -> None:
        """Note a call."""
        self.last_s = time.monotonic()
        self.first_s = self.first_s or self.last_s
        self.requests += 1

    @property
    def asked_again(self) -> int:
        """Answers to questions that had been answered before."""
        return self.answered - len(self.answers)

    @property
    def questions(self) -> int:
        """Different questions seen."""
        return len(self.asked)

    def summary(self) -> dict[str, Any]:
        """The counts as JSON."""
        return {
            "requests": self.requests,
            "answered": self.answered,
            "questions": self.questions,
            "questions_answered": len(self.answers),
            "asked_again": self.asked_again,
            "batches": self.batches,
            "faults": dict(self.faults),
            "first_s": self.first_s,
            "last_s": self.last_s,
        }

"""What one shard of a labelling run came to."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from llm_labeler._asking import Asked
from llm_labeler._budget import Spending, money
from llm_labeler._labelled import missing
from pairkit.errors import RemoteError


@dataclass(frozen=True)
class ShardDone:
    """What one shard of `generate` came to; it makes no dataset, `merge` does.

    Attributes:
        shard: Which of how many, such as `2/8`.
        work: The folder of its answers.
        texts: Its sentences.
        texts_in_all: Those of all shards.
        left: Its questions that have no answer yet.
        asked: What asking came to.
        spent_in_all: What all sessions in `work` spent.
        seconds: Of this session.
        notes: What people should know of the run, a line each.
    """

    shard: str
    work: Path
    texts: int
    texts_in_all: int
    left: int
    asked: Asked
    spent_in_all: Spending
    seconds: float
    notes: tuple[str, ...] = field(default=())

    @property
    def problem(self) -> RemoteError | None:
        """What could not be asked; None where nothing failed."""
        told = missing(self.asked)
        return (
            RemoteError(f"{self.work}: lacks all answers of {told}; run the same command again")
            if told
            else None
        )

    def summary(self) -> str:
        """The counts, and what to do next, in a line."""
        spent = self.asked.spent
        done = (
            f"shard {self.shard} has {self.texts:,} of {self.texts_in_all:,} sentences: {spent.requests:,}"
            f" calls ({self.asked.cached:,} answered before), cost {money(spent.cost)}"
        )
        if not self.left:
            return f"{done}; it is done: when all shards are, `label merge` makes the dataset"
        limit = self.asked.stopped
        more = "" if limit is None else f" with a higher {limit} (--{limit.replace('_', '-')})"
        return f"{done}; {self.left:,} questions are left: run the same command again{more}"

    def to_dict(self) -> dict[str, Any]:
        """The counts as one object for scripts."""
        return {
            "shard": self.shard,
            "work": str(self.work),
            "texts": self.texts,
            "texts_in_all": self.texts_in_all,
            "left": self.left,
            "calls": self.asked.spent.requests,
            "cached": self.asked.cached,
            "cost": self.asked.spent.cost,
            "tokens": self.asked.spent.tokens,
            "cost_in_all": self.spent_in_all.cost,
            "seconds": round(self.seconds, 3),
            "stopped": self.asked.stopped,
        }

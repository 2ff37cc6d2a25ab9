"""What decides which texts become negatives, in the words of sentence-transformers and NV-Retriever."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from pairkit.app.settings import Settings, split_at_commas
from pairkit.similarity.near_duplicates import DEFAULT_THRESHOLD

Ranker = Literal["bm25", "model", "both"]
Candidates = Literal["all", "positives"]
_WIDER = 10  # candidates looked at for each negative where some may be turned down


class MineSettings(Settings):
    """Settings of a run of mining.

    A rule on scores that is None is not applied. Scores are cosines where a model takes part, else BM25's.
    """

    by: Ranker  # who ranks the candidates; both: in turns
    negatives: int = Field(default=5, ge=1)  # of a row, at most
    # candidates that are skipped, and the place of the last that is looked at
    rank_range: Annotated[tuple[int, int] | None, BeforeValidator(split_at_commas)] = None
    sampling: Literal["top", "random"] = "top"  # the nearest of those that are left, or any
    max_score: float | None = None  # no candidate above it
    min_score: float | None = None  # and none below it
    margin: float | None = None  # how far below the positive's score a candidate has to be
    relative_margin: float | None = Field(default=None, lt=1)  # the same, as a share of that score
    candidates: Candidates | None = None  # all texts, or those that stand second; None: as the rows are
    transitive: bool = True  # whether positives of positives, and whole clusters, are no negatives either
    threshold: float = Field(default=DEFAULT_THRESHOLD, gt=0, le=1)  # from which texts are near-identical
    scores: bool = False  # write scores, too
    seed: int = 42

    @model_validator(mode="after")
    def _room(self) -> MineSettings:
        low, high = self.window
        if low < 0 or high <= low:
            raise ValueError(
                f"rank_range {low},{high}: expected how many candidates to skip and the last to look at, such"
                " as 10,50"
            )
        if self.negatives > (high - low) * (2 if self.by == "both" else 1):
            raise ValueError(
                f"{self.negatives} negatives of the {high - low} candidates in the range {low},{high}; widen"
                " it or ask for fewer"
            )
        return self

    @property
    def window(self) -> tuple[int, int]:
        """Places of the candidates that are looked at, from the first to before the last, from 0."""
        return self.rank_range or (0, _WIDER * self.negatives)

    @property
    def measures_positives(self) -> bool:
        """Whether the scores of positives matter."""
        return self.scores or self.margin is not None or self.relative_margin is not None

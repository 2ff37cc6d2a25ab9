"""How probable it is that a suggestion is right: learnt from a tracker's past, where most issues repeat none.

A hit is judged by its cosine, by its share of words, and by how far each is ahead of the best of the other
hits, since what stands out among its rivals is right more often. Hits in the first place have weights of
their own, as they are what decides whether people are told.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta, to_builtins
from msgspec.json import Decoder
from numpy.typing import NDArray

from gis_builder._decoding import Malformed, Node, decode
from pairkit import logistic
from pairkit.errors import ConfigError, DataError
from pairkit.files import write_json

RIVALS = 5  # hits beside which one is looked at
_MOST_BYTES = 1 << 16
_REMEDY = "learn it again by a backtest"

Evidence = Literal["cosine", "words"]
_Weight = Annotated[float, Meta(ge=-1e6, le=1e6)]
_Weights = Annotated[list[_Weight], Meta(min_length=3, max_length=5)]
_Array = NDArray[np.float64]


class Calibration(Node, frozen=True):
    """What turns the evidence on hits into probabilities.

    Attributes:
        format: Of the file.
        evidence: What hits of the search have: cosine, words, or both.
        first: Weights for the hit in the first place: of 1, of each evidence, of its lead.
        further: The same for those behind it.
        repositories: Whose past it was learnt from.
        until: The last issue's time.
        issues: How many there were.
        right: How many of their first hits were right.
    """

    evidence: Annotated[list[Evidence], Meta(min_length=1, max_length=2)]
    first: _Weights
    further: _Weights
    repositories: list[str]
    until: str
    issues: int
    right: int
    format: Literal[1] = 1

    def probabilities(self, hits: Sequence[Sequence[float | None]]) -> list[float]:
        """How probable it is that each hit of one issue says the same, best ranked first.

        Args:
            hits: Of each the values of `evidence`.

        Raises:
            ConfigError: A search that gives other evidence.
        """
        if not hits:
            return []
        if any(value is None for hit in hits for value in hit):
            raise ConfigError(
                f"the calibration rests on {' and '.join(self.evidence)}, which this search does not give;"
                f" search as then, or {_REMEDY}"
            )
        numbers = with_leads(np.array(hits, np.float64))
        told = logistic.probability(numbers, np.array(self.further))
        told[:1] = logistic.probability(numbers[:1], np.array(self.first))
        return [float(value) for value in told]

    def write(self, path: Path) -> None:
        """Write the file.

        Raises:
            ConfigError: It can't be written.
        """
        write_json(path, to_builtins(self))


def with_leads(evidence: _Array) -> _Array:
    """The evidence on an issue's hits, and by how much each is ahead of the others: (hit, 2 * evidence).

    Args:
        evidence: (hit, evidence), best ranked first.
    """
    rivals = evidence[:RIVALS]
    leads = np.empty_like(evidence)
    for place, own in enumerate(evidence):
        others = np.delete(rivals, place, axis=0) if place < len(rivals) else rivals
        leads[place] = own - (others.max(axis=0) if len(others) else 0)
    return np.column_stack([evidence, leads])


def read_calibration(path: Path) -> Calibration:
    """What `gis suggest --backtest` learnt.

    Raises:
        ConfigError: There is no such file.
        DataError: It is damaged.
    """
    try:
        with path.open("rb") as file:
            body = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path}: can't be read ({error.strerror}); {_REMEDY}") from error
    try:
        found = decode(body[:_MOST_BYTES], _CALIBRATION)
    except Malformed as error:
        raise DataError(f"is no calibration ({error}); {_REMEDY}", path=path) from None
    wanted = 1 + 2 * len(found.evidence)
    if len(found.first) != wanted or len(found.further) != wanted:
        raise DataError(f"has not {wanted} weights of each kind; {_REMEDY}", path=path)
    return found


_CALIBRATION = Decoder(Calibration)

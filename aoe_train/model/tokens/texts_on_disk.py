"""Sequences of texts that are no lists: they take no memory for each text but what they are told by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import overload

import numpy as np

_AT_ONCE = 4096  # texts of a round


class MappedTexts(Sequence[str]):
    """Texts as UTF-8, one after the other in an array that may be mapped into memory."""

    def __init__(self, data: np.ndarray, ends: np.ndarray) -> None:
        """Take the texts from where they lie."""
        self._data, self._ends = data, ends

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if not isinstance(place, slice):
            number = range(len(self))[place]
            return self._data[self._ends[number] : self._ends[number + 1]].tobytes().decode()
        numbers = range(len(self))[place]
        if numbers.step != 1 or not numbers:
            return [self[number] for number in numbers]
        ends = self._ends[numbers.start : numbers.stop + 1].tolist()
        start, data = ends[0], self._data[ends[0] : ends[-1]].tobytes()
        return [data[one - start : other - start].decode() for one, other in pairwise(ends)]

    def __iter__(self) -> Iterator[str]:
        return _in_rounds(self)


class TextSelection(Sequence[str]):
    """Some texts of others, by number; they may come more than once."""

    def __init__(self, values: Sequence[str], numbers: np.ndarray) -> None:
        """Pick the texts."""
        self.values, self.numbers = values, numbers

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self.values[number] for number in self.numbers[place].tolist()]
        return self.values[int(self.numbers[place])]

    def __iter__(self) -> Iterator[str]:
        return _in_rounds(self)


def _in_rounds(texts: MappedTexts | TextSelection) -> Iterator[str]:
    for start in range(0, len(texts), _AT_ONCE):
        yield from texts[start : start + _AT_ONCE]

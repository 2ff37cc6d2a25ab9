"""A text ready to be read: masked, with its references hidden and its sentences marked out."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection

from gis_builder.detection.lexicon import Code
from gis_builder.detection.masking import mask
from gis_builder.detection.prefilter import is_worth_reading
from gis_builder.detection.references import Reference, find_references
from gis_builder.detection.tokens import Sentence, hide_references, sentence_spans, tokenise
from gis_builder.store.records import IssueRef

_SHORT = 300  # characters


class Page:
    """One text of `issue`; `former_names` are what its repository was called before."""

    def __init__(self, text: str, issue: IssueRef, former_names: Collection[str]) -> None:
        self.text, self.issue = text, issue
        masked = mask(text)
        self.references = find_references(masked, issue.repo, former_names)
        self.hidden = hide_references(masked, self.references).lower().replace("’", "'")
        self.spans = sentence_spans(self.hidden)
        self._by_start = {reference.start: reference for reference in self.references}
        self._starts = list(self._by_start)
        self._read: dict[int, Sentence] = {}

    def sentence(self, place: int) -> Sentence:
        """The sentence at a place, read once."""
        if place not in self._read:
            self._read[place] = tokenise(self.hidden, self.spans[place], self._by_start)
        return self._read[place]

    def sentences_worth_reading(self) -> dict[int, Sentence]:
        """By place, a short text whole; of a long one the beginning and what may bear on duplicates."""
        is_short = len(self.hidden) <= _SHORT
        return {
            place: self.sentence(place)
            for place, (start, end) in enumerate(self.spans)
            if is_short or place == 0 or is_worth_reading(self.hidden[start:end])
        }

    def references_of(self, place: int) -> list[Reference]:
        """The references of the sentence at a place."""
        start, end = (bisect_left(self._starts, bound) for bound in self.spans[place])
        return self.references[start:end]

    def only_reference(self) -> list[Reference]:
        """The one issue that the text names, if it names just one."""
        return self.references[:1] if len({reference.ref for reference in self.references}) == 1 else []

    def near(self, place: int) -> str:
        """The codes of a sentence and of those beside it."""
        places = range(max(0, place - 1), min(len(self.spans), place + 2))
        return Code.STOP.join(self.sentence(near).codes for near in places)

    def list_after(self, place: int) -> list[Reference]:
        """The references of the sentences that follow, up to the first without any."""
        found: list[Reference] = []
        for later in range(place + 1, len(self.spans)):
            more = self.references_of(later)
            if not more:
                break
            found += more
        return found

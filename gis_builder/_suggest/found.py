"""What comes of asking: an issue that may be repeated, and what was done about it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from pairkit.printable import one_line
from pairkit.result_table import ResultTable

Done = Literal["none", "would write", "written", "was there"]
_SHOWN = 100  # characters of a title or sentence in the table


@dataclass(frozen=True)
class Suggestion:
    """An older issue that may say the same.

    Attributes:
        number: The issue's.
        title: As it is now.
        state: open or closed.
        url: Its page.
        probability: That it says the same, as the calibration tells; None without one.
        cosine: Of both issues' vectors; None in a search by words alone.
        words: The share of words, see `aoe_train.Hit`; None in a search by vectors alone.
        sentence: The one of its body that BM25 ranks first for the issue, among those of all suggestions.
    """

    number: int
    title: str
    state: str
    url: str
    probability: float | None
    cosine: float | None
    words: float | None
    sentence: str


@dataclass(frozen=True, repr=False)
class Suggested:
    """What an issue may repeat.

    Attributes:
        issue: `owner/name#number`; of one that is not written yet, the repository alone.
        suggestions: The most probable first.
        gone: Issues of the index that are none any more: deleted, moved, or made pull requests.
        least: The probability from which on something is written.
        comment: What was done about a comment: none, would write, written, was there.
        label: The same about a label.
        text: The comment in Markdown; empty where none is due.
    """

    issue: str
    suggestions: tuple[Suggestion, ...]
    gone: int
    least: float
    comment: Done
    label: Done
    text: str

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `gis suggest --json`."""
        return asdict(self)

    def table(self) -> ResultTable:
        """The suggestions."""
        words = ("title", "state", "nearest sentence")
        table = ResultTable("issue", "probability", "state", "title", "nearest sentence", left=words)
        for one in self.suggestions:
            likely = None if one.probability is None else f"{one.probability:.2f}"
            shown = (one_line(text, _SHOWN) for text in (one.title, one.sentence))
            table.add_row(f"#{one.number}", likely, one.state, *shown)
        return table

    def notes(self) -> list[str]:
        """What was done, or would be; a line each."""
        notes = []
        if not self.suggestions:
            notes.append(f"{self.issue}: no older issue of its repository was found in the index")
        if self.gone:
            notes.append(f"{self.gone} of the found issues are gone, or no issues any more")
        for what, done in (("comment", self.comment), ("label", self.label)):
            if done != "none":
                notes.append(f"{what}: {_NOTES[done]}")
        return notes

    def __repr__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


_NOTES: dict[Done, str] = {
    "would write": "would be written; this was a dry run",
    "written": "written",
    "was there": "one was written before, so none now",
}

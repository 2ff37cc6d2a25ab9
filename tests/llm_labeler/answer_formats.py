"""Invented answers of LLMs with their sentences: the files of `answers/`."""

from dataclasses import dataclass
from pathlib import Path

from llm_labeler.parsing.answer import parse_answer
from llm_labeler.records import Polarity

FOLDER = Path(__file__).with_name("answers")
# By prompt; other formats; invented turns.
NAMES = ("hardened", "paper", "others", "runaway")


@dataclass(frozen=True)
class Format:
    """One answer: `%% name | polarity | size`, the source, `%% answer`, `%% expected`, its sentences."""

    name: str
    polarity: Polarity
    size: int
    text: str
    raw: str
    expected: tuple[str, ...]

    def parsed(self):
        """The parsed sentences."""
        items = parse_answer(
            self.raw, text=self.text, size=self.size, polarity=self.polarity
        )
        return tuple(item.text for item in items if item.reason is None)


def read(name):
    """Read the formats of one file."""
    chunks = ("\n" + (FOLDER / f"{name}.txt").read_text()).split("\n%% ")[1:]
    for head, answer, expected in zip(
        chunks[::3], chunks[1::3], chunks[2::3], strict=True
    ):
        title, text = head.split("\n", 1)
        label, polarity, size = title.split(" | ")
        raw = answer.removeprefix("answer\n")
        lines = tuple(
            line for line in expected.removeprefix("expected").split("\n") if line
        )
        yield Format(
            label,
            "positive" if polarity == "positive" else "negative",
            int(size),
            text,
            raw,
            lines,
        )

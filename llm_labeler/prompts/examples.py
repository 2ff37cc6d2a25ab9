"""Few-shot examples: what a file shows of good answers, as turns of the chat before the question."""

from __future__ import annotations

from pathlib import Path

from llm_labeler.records import CHANGES, POLARITIES, Polarity
from pairkit.app.errors import ConfigError
from pairkit.dataset.reader import read_pairs

# Examples are sent along with every question, and paid for.
MOST = 32  # texts
MOST_CHARACTERS = 100_000  # of them and of all that is said of them

Shots = dict[Polarity, tuple[tuple[str, tuple[str, ...]], ...]]


def read_examples(path: Path) -> Shots:
    """By polarity, texts with the sentences that belong to them, in the file's order.

    Each sentence is one line, as in answers. A hard negative whose row tells its kind (`negative_kind`) has
    it before it, as answers have; other datasets have words of their own in that column.
    """
    rows = read_pairs(path).rows
    half = max(rows["label"], default=0) / 2
    found: dict[Polarity, dict[str, dict[str, None]]] = {polarity: {} for polarity in POLARITIES}
    for row in rows.iter_rows(named=True):
        polarity: Polarity = "positive" if row["label"] > half else "negative"
        kind = row.get("negative_kind") if polarity == "negative" else None
        said = " ".join(row["text2"].split())
        found[polarity].setdefault(row["text1"], {})[f"{kind}: {said}" if kind in CHANGES else said] = None
    number = len({text for texts in found.values() for text in texts})
    if number > MOST:
        raise ConfigError(
            f"{path}: examples of {number:,} texts, which would go along with every question; give {MOST} at"
            " most (examples, --examples)"
        )
    characters = sum(
        len(part) for texts in found.values() for text, said in texts.items() for part in (text, *said)
    )
    if characters > MOST_CHARACTERS:
        raise ConfigError(
            f"{path}: examples of {characters:,} characters, which would go along with every question; give"
            f" {MOST_CHARACTERS:,} at most (examples, --examples)"
        )
    return {
        polarity: tuple((text, tuple(said)) for text, said in texts.items())
        for polarity, texts in found.items()
    }

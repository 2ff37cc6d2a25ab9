"""Few-shot examples: what a file shows of good answers, as turns of the chat before the question."""

from __future__ import annotations

from pathlib import Path

from llm_labeler._records import POLARITIES, Polarity
from pairkit.errors import ConfigError
from pairkit.reader import read_pairs

MOST = 32  # texts; examples are sent along with every question, and paid for

Shots = dict[Polarity, tuple[tuple[str, tuple[str, ...]], ...]]


def read_examples(path: Path) -> Shots:
    """By polarity, texts with the sentences that belong to them, in the file's order.

    A hard negative whose row tells its kind (`negative_kind`) has it before it, as answers have.

    Args:
        path: What `pairkit.read` reads: pairs with labels (those of the upper half are positives), or anchor,
            positive and negative.

    Raises:
        ConfigError: No such file, or more texts than `MOST`.
        DataError: No pairs can be read from it.
    """
    rows = read_pairs(path).rows
    half = max(rows["label"], default=0) / 2
    found: dict[Polarity, dict[str, list[str]]] = {polarity: {} for polarity in POLARITIES}
    for row in rows.iter_rows(named=True):
        polarity: Polarity = "positive" if row["label"] > half else "negative"
        kind = row.get("negative_kind") if polarity == "negative" else None
        said = f"{kind}: {row['text2']}" if kind else row["text2"]
        sentences = found[polarity].setdefault(row["text1"], [])
        if said not in sentences:
            sentences.append(said)
    number = len({text for texts in found.values() for text in texts})
    if number > MOST:
        raise ConfigError(
            f"{path}: examples of {number:,} texts, which would go along with every question; give {MOST} at"
            " most (examples, --examples)"
        )
    return {
        polarity: tuple((text, tuple(said)) for text, said in texts.items())
        for polarity, texts in found.items()
    }

"""Draws one search before and after training: `python docs/scripts/search_picture.py MODEL`.

The model is trained on the first 300 requests of `data/sample_requests.csv` as in the README. Both models
search the other 300 for a request that is drawn at random. A last line has the outcome of all 300 searches.
"""

from __future__ import annotations

import csv
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import aoe_train
from docs.scripts.picture import IMAGES, MONO, THEMES, Colours, box, words

REQUESTS = Path(__file__).resolve().parents[2] / "data" / "sample_requests.csv"
KNOWN, SEED, HITS = 300, 0, 5
SIZE = (960, 306)


class Hit(NamedTuple):
    """A request that a model found."""

    text: str
    cosine: float
    is_right: bool


class Searches(NamedTuple):
    """The hits of the drawn request, and the number of right hits of each request."""

    hits: list[Hit]
    right: np.ndarray


def searches(model: str, rows: list[dict[str, str]], drawn: int) -> Searches:
    """Search for each request among the others."""
    vectors = aoe_train.Encoder.load(model).encode([row["text"] for row in rows], progress=False)
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -np.inf)
    nearest = np.argsort(-cosines, axis=1, kind="stable")[:, :HITS]
    intents = np.array([row["intent"] for row in rows])
    is_right = intents[nearest] == intents[:, None]
    places = nearest[drawn].tolist()
    hits = [
        Hit(rows[place]["text"], float(cosines[drawn, place]), bool(right))
        for place, right in zip(places, is_right[drawn], strict=True)
    ]
    return Searches(hits, is_right.sum(axis=1))


def column(colours: Colours, x: int, title: str, found: list[Hit]) -> Iterator[str]:
    """A card with the hits of one model."""
    yield box(colours, x, 60, 462, 196)
    yield words(title, x + 18, 90, colours.text, 16, weight="600")
    for place, hit in enumerate(found):
        y = 122 + 28 * place
        mark, colour = ("✓", colours.yes) if hit.is_right else ("✗", colours.no)
        yield words(mark, x + 18, y, colour, 15, weight="700")
        yield words(f"{hit.cosine:.2f}", x + 42, y, colours.faint, 12, font=MONO)
        text = hit.text if len(hit.text) <= 48 else hit.text[:47] + "…"
        yield words(text, x + 84, y, colours.text)


def picture(colours: Colours, query: str, before: Searches, after: Searches) -> str:
    """The SVG document."""
    more, fewer = (after.right > before.right).sum(), (after.right < before.right).sum()
    outcome = (
        f"Drawn at random (seed {SEED}). Of all {len(before.right)} searches, {more} find more right requests"
        f" among five after training, and {fewer} fewer."
    )
    parts = [
        f"<title>The first five requests found for “{query}”, before and after training</title>",
        words("Search:", 12, 36, colours.faint, 15),
        words(query, 74, 36, colours.text, 17, weight="600"),
        *column(colours, 12, "all-MiniLM-L6-v2", before.hits),
        *column(colours, 486, f"trained on {KNOWN} other requests, without labels", after.hits),
        words(outcome, 12, 286, colours.faint, 15),
    ]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE[0]} {SIZE[1]}" role="img">'
    return "\n".join([head, *parts, "</svg>\n"])


def main() -> None:
    """Draw the picture for light and dark pages."""
    with REQUESTS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))[KNOWN:]
    drawn = random.Random(SEED).randrange(len(rows))  # noqa: S311 - a sample, not a secret
    before, after = searches("minilm", rows, drawn), searches(sys.argv[1], rows, drawn)
    for theme, colours in THEMES.items():
        svg = picture(colours, rows[drawn]["text"], before, after)
        (IMAGES / f"search-{theme}.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()

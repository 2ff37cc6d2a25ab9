"""Draws one search before and after training, wide and tall: `python docs/scripts/search_picture.py MODEL`.

The model is trained on the first 300 requests of `data/sample_requests.csv` as in the README. Both models
search the other 300 for a request that is drawn at random. A last line has the outcome of all 300 searches.
"""

from __future__ import annotations

import csv
import random
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import aoe_train
from docs.scripts.picture import IMAGES, MONO, THEMES, Colours, box, words

REQUESTS = Path(__file__).resolve().parents[2] / "data" / "sample_requests.csv"
KNOWN, SEED, HITS = 300, 0, 5


class Layout(NamedTuple):
    """A form of the picture: its size, the places of both cards, their width and the longest text."""

    size: tuple[int, int]
    cards: tuple[tuple[int, int], tuple[int, int]]
    width: int
    longest: int


LAYOUTS = {
    "": Layout((960, 306), ((12, 60), (486, 60)), 462, 48),
    "-tall": Layout((376, 548), ((2, 60), (2, 272)), 372, 36),
}


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
    vectors = aoe_train.Encoder.load(model).encode(
        [row["text"] for row in rows], progress=False
    )
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


def card(
    colours: Colours, layout: Layout, place: int, title: str, found: list[Hit]
) -> Iterator[str]:
    """The hits of one model."""
    x, y = layout.cards[place]
    yield box(colours, x, y, layout.width, 196)
    yield words(title, x + 18, y + 30, colours.text, 16, weight="600")
    for row, hit in enumerate(found):
        line = y + 62 + 28 * row
        mark, colour = ("✓", colours.yes) if hit.is_right else ("✗", colours.no)
        yield words(mark, x + 18, line, colour, 15, weight="700")
        yield words(f"{hit.cosine:.2f}", x + 42, line, colours.faint, 12, font=MONO)
        text = (
            hit.text
            if len(hit.text) <= layout.longest
            else hit.text[: layout.longest - 1] + "…"
        )
        yield words(text, x + 84, line, colours.text)


def picture(
    colours: Colours, layout: Layout, query: str, before: Searches, after: Searches
) -> str:
    """The SVG document."""
    more = (after.right > before.right).sum()
    fewer = (after.right < before.right).sum()
    outcome = (
        f"Drawn at random (seed {SEED}). Of all {len(before.right)} searches, {more} find more right requests"
        f" among five after training, and {fewer} fewer."
    )
    left, bottom = layout.cards[0][0], layout.cards[1][1] + 226
    lines = textwrap.wrap(outcome, layout.size[0] // 7)
    parts = [
        f"<title>The first five requests found for “{query}”, before and after training</title>",
        words("Search:", left, 36, colours.faint, 15),
        words(query, left + 62, 36, colours.text, 17, weight="600"),
        *card(colours, layout, 0, "all-MiniLM-L6-v2", before.hits),
        *card(
            colours, layout, 1, f"trained on {KNOWN} others, without labels", after.hits
        ),
        *(
            words(line, left, bottom + 20 * row, colours.faint, 14)
            for row, line in enumerate(lines)
        ),
    ]
    width, height = layout.size
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
    return "\n".join([head, *parts, "</svg>\n"])


def main() -> None:
    """Draw the picture for light and dark pages."""
    with REQUESTS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))[KNOWN:]
    drawn = random.Random(SEED).randrange(len(rows))  # noqa: S311 - a sample, not a secret
    before, after = searches("minilm", rows, drawn), searches(sys.argv[1], rows, drawn)
    for theme, colours in THEMES.items():
        for form, layout in LAYOUTS.items():
            svg = picture(colours, layout, rows[drawn]["text"], before, after)
            (IMAGES / f"search{form}-{theme}.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()

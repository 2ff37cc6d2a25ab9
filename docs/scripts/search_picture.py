"""Draws one search before and after training, wide and tall: `python docs/scripts/search_picture.py MODEL`.

The model is trained on `data/sample_requests.csv` as in the README. Both models search its requests.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import aoe_train
from docs.scripts.picture import IMAGES, MONO, THEMES, Colours, box, words

REQUESTS = Path(__file__).resolve().parents[2] / "data" / "sample_requests.csv"
QUERY, INTENT = "too much mail from you", "newsletter"
HITS = 5


class Layout(NamedTuple):
    """A form of the picture: its size, the places of both cards, their width and the longest text."""

    size: tuple[int, int]
    cards: tuple[tuple[int, int], tuple[int, int]]
    width: int
    longest: int


LAYOUTS = {
    "": Layout((960, 268), ((12, 60), (486, 60)), 462, 48),
    "-tall": Layout((376, 476), ((2, 60), (2, 272)), 372, 36),
}


class Hit(NamedTuple):
    """A request that a model found."""

    text: str
    cosine: float
    is_right: bool


def hits(model: str) -> list[Hit]:
    """The requests nearest to the query."""
    with REQUESTS.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    encoder = aoe_train.Encoder.load(model)
    cosines = encoder.encode([row["text"] for row in rows]) @ encoder.encode([QUERY])[0]
    nearest = np.argsort(-cosines)[:HITS].tolist()
    return [Hit(rows[n]["text"], float(cosines[n]), rows[n]["intent"] == INTENT) for n in nearest]


def card(colours: Colours, layout: Layout, place: int, title: str, found: list[Hit]) -> Iterator[str]:
    """The hits of one model."""
    x, y = layout.cards[place]
    yield box(colours, x, y, layout.width, 196)
    yield words(title, x + 18, y + 30, colours.text, 16, weight="600")
    for row, hit in enumerate(found):
        line = y + 62 + 28 * row
        mark, colour = ("✓", colours.yes) if hit.is_right else ("✗", colours.no)
        yield words(mark, x + 18, line, colour, 15, weight="700")
        yield words(f"{hit.cosine:.2f}", x + 42, line, colours.faint, 12, font=MONO)
        text = hit.text if len(hit.text) <= layout.longest else hit.text[: layout.longest - 1] + "…"
        yield words(text, x + 84, line, colours.text)


def picture(colours: Colours, layout: Layout, before: list[Hit], after: list[Hit]) -> str:
    """The SVG document."""
    left = layout.cards[0][0]
    parts = [
        f"<title>The first five requests found for “{QUERY}”, before and after training</title>",
        words("Search:", left, 36, colours.faint, 15),
        words(QUERY, left + 62, 36, colours.text, 17, weight="600"),
        *card(colours, layout, 0, "all-MiniLM-L6-v2", before),
        *card(colours, layout, 1, "trained on 600 unlabelled requests", after),
    ]
    width, height = layout.size
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
    return "\n".join([head, *parts, "</svg>\n"])


if __name__ == "__main__":
    before, after = hits("minilm"), hits(sys.argv[1])
    for theme, colours in THEMES.items():
        for form, layout in LAYOUTS.items():
            svg = picture(colours, layout, before, after)
            (IMAGES / f"search{form}-{theme}.svg").write_text(svg, encoding="utf-8")

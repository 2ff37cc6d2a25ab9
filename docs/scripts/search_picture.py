"""Draws one search before and after training: `python docs/scripts/search_picture.py MODEL`.

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
SIZE = (960, 268)
HITS = 5


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


def picture(colours: Colours, before: list[Hit], after: list[Hit]) -> str:
    """The SVG document."""
    parts = [
        f"<title>The first five requests found for “{QUERY}”, before and after training</title>",
        words("Search:", 12, 36, colours.faint, 15),
        words(QUERY, 74, 36, colours.text, 17, weight="600"),
        *column(colours, 12, "all-MiniLM-L6-v2", before),
        *column(colours, 486, "trained on 600 requests, without labels", after),
    ]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE[0]} {SIZE[1]}" role="img">'
    return "\n".join([head, *parts, "</svg>\n"])


if __name__ == "__main__":
    before, after = hits("minilm"), hits(sys.argv[1])
    for theme, colours in THEMES.items():
        svg = picture(colours, before, after)
        (IMAGES / f"search-{theme}.svg").write_text(svg, encoding="utf-8")

"""Draws the overview picture, wide and tall, light and dark: `python docs/scripts/picture.py`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

IMAGES = Path(__file__).resolve().parents[1] / "images"
WIDE, TALL = (960, 332), (360, 748)
SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif"
MONO = "ui-monospace, SFMono-Regular, Menlo, 'DejaVu Sans Mono', monospace"


class Colours(NamedTuple):
    """The colours of a theme."""

    box: str
    edge: str
    text: str
    faint: str
    line: str
    pill: str
    pill_text: str
    yes: str
    no: str


THEMES = {
    "light": Colours(
        "#ffffff",
        "#c7cdd8",
        "#1f2937",
        "#5b6472",
        "#8a93a3",
        "#3f51b5",
        "#ffffff",
        "#1b7f4b",
        "#b4372f",
    ),
    "dark": Colours(
        "#262b36",
        "#4a5263",
        "#e8eaf0",
        "#a9b1c0",
        "#7c8597",
        "#8c9eff",
        "#10131a",
        "#5fd39a",
        "#ff8a80",
    ),
}


def box(colours: Colours, x: int, y: int, width: int, height: int) -> str:
    """A card with rounded corners."""
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="10" fill="{colours.box}" '
        f'stroke="{colours.edge}" stroke-width="1.5"/>'
    )


def words(text: str, x: int, y: int, colour: str, size: int = 14, **more: str) -> str:
    """A line of text; `more` are attributes such as anchor="middle", weight="600" or font=MONO."""
    return (
        f'<text x="{x}" y="{y}" font-family="{more.get("font", SANS)}" font-size="{size}" fill="{colour}" '
        f'font-weight="{more.get("weight", "400")}" text-anchor="{more.get("anchor", "start")}">{text}</text>'
    )


def arrow(colours: Colours, path: str) -> str:
    """A line with a head."""
    return f'<path d="{path}" fill="none" stroke="{colours.line}" stroke-width="2" marker-end="url(#head)"/>'


def pill(colours: Colours, text: str, x: int, y: int) -> str:
    """A command, centred on a line."""
    width = 20 + 9 * len(text)
    return (
        f'<rect x="{x - width // 2}" y="{y - 14}" width="{width}" height="28" rx="14" fill="{colours.pill}"/>'
        + words(
            text,
            x,
            y + 5,
            colours.pill_text,
            14,
            font=MONO,
            weight="600",
            anchor="middle",
        )
    )


SOURCES = (
    ("Issues, tickets", "closed as duplicates"),
    ("Plain sentences", "and LLMs, or rules"),
    ("Your own pairs", "CSV, Parquet, the Hub"),
)


def sources(colours: Colours) -> Iterator[str]:
    """The three sources of pairs."""
    for index, (title, detail) in enumerate(SOURCES):
        y = 16 + 110 * index
        yield box(colours, 12, y, 208, 80)
        yield words(title, 30, y + 34, colours.text, 17, weight="600")
        yield words(detail, 30, y + 58, colours.faint)
        middle = y + 40
        yield arrow(colours, f"M 222 {middle} C 300 {middle}, 290 166, 366 166")
    yield pill(colours, "gis", 268, 70)
    yield pill(colours, "label", 268, 166)


def dataset(colours: Colours) -> Iterator[str]:
    """The pair dataset, with two rows."""
    yield box(colours, 370, 54, 250, 224)
    yield words("Pair dataset", 390, 88, colours.text, 17, weight="600")
    yield words("text1", 390, 120, colours.faint, 12, font=MONO)
    yield words("text2", 480, 120, colours.faint, 12, font=MONO)
    yield words("label", 566, 120, colours.faint, 12, font=MONO)
    yield f'<path d="M 390 128 H 600" stroke="{colours.edge}" stroke-width="1"/>'
    rows = (
        ("crash on save", "save crashes", "1"),
        ("crash on save", "slow search", "0"),
    )
    for index, (text1, text2, label) in enumerate(rows):
        y = 150 + 24 * index
        yield words(text1, 390, y, colours.text, 12)
        yield words(text2, 480, y, colours.text, 12)
        colour = colours.yes if label == "1" else colours.no
        yield words(label, 580, y, colour, 13, font=MONO, weight="700")
    yield f'<path d="M 390 190 H 600" stroke="{colours.edge}" stroke-width="1"/>'
    yield words("splits that share nothing,", 390, 216, colours.faint)
    yield words("each pair with its evidence", 390, 236, colours.faint)
    yield words("pairs audit · report · show", 390, 262, colours.faint, 12, font=MONO)


def model(colours: Colours) -> Iterator[str]:
    """The model and the commands that use it."""
    yield box(colours, 760, 54, 188, 224)
    yield words("Your model", 778, 88, colours.text, 17, weight="600")
    yield words("a folder that", 778, 114, colours.faint)
    yield words("sentence-transformers", 778, 134, colours.faint)
    yield words("loads as it is", 778, 154, colours.faint)
    yield f'<path d="M 778 172 H 930" stroke="{colours.edge}" stroke-width="1"/>'
    for place, command in enumerate(
        ("aoe evaluate", "aoe search, serve", "aoe export")
    ):
        yield words(command, 778, 198 + 26 * place, colours.text, 14, font=MONO)


def wide(colours: Colours) -> Iterator[str]:
    """The wide layout, from left to right."""
    yield from sources(colours)
    yield from dataset(colours)
    yield arrow(colours, "M 622 166 H 756")
    yield pill(colours, "aoe train", 686, 166)
    yield from model(colours)


def tall(colours: Colours) -> Iterator[str]:
    """The layout for phones, from top to bottom."""
    for index, (title, detail) in enumerate(SOURCES):
        y = 12 + 54 * index
        yield box(colours, 12, y, 336, 46)
        yield words(title, 28, y + 29, colours.text, 16, weight="600")
        yield words(detail, 182, y + 29, colours.faint)
    yield arrow(colours, "M 180 168 V 228")
    yield pill(colours, "gis, label", 180, 194)
    yield from ('<g transform="translate(-315 178)">', *dataset(colours), "</g>")
    yield arrow(colours, "M 180 458 V 508")
    yield pill(colours, "aoe train", 180, 480)
    yield from ('<g transform="translate(-674 458)">', *model(colours), "</g>")


def picture(colours: Colours, size: tuple[int, int], parts: Iterable[str]) -> str:
    """The SVG document."""
    head = (
        f'<defs><marker id="head" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="7" markerHeight="7" '
        f'orient="auto"><path d="M 0 0 L 10 5 L 0 10 z" fill="{colours.line}"/></marker></defs>'
    )
    title = "<title>From issues, sentences or your own pairs to a dataset, a model and its use</title>"
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}" role="img">'
        f"{title}\n{head}\n{body}\n</svg>\n"
    )


if __name__ == "__main__":
    for theme, colours in THEMES.items():
        (IMAGES / f"way-{theme}.svg").write_text(
            picture(colours, WIDE, wide(colours)), encoding="utf-8"
        )
        (IMAGES / f"way-tall-{theme}.svg").write_text(
            picture(colours, TALL, tall(colours)), encoding="utf-8"
        )

"""How figures look and how they are written: legible in print at their own size, the same bytes each time."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairkit.app.extras import needed_for
from pairkit.app.printable import one_line
from pairkit.system.files import write_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 6.3  # inches: the text width of an A4 page with the usual margins
DPI = 300
# Okabe and Ito's colours, which people with any kind of colour vision tell apart, darkest first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
GREY = "#555555"
PALE = "#E8E8E8"
_FONT = "DejaVu Sans"  # comes with matplotlib, so that every machine draws the same letters
_LOOK: dict[str, Any] = {
    "font.family": [_FONT],
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "text.parse_math": False,  # a dollar in a text or a model's name is a dollar
    "svg.hashsalt": "aoe",
    "svg.fonttype": "path",
}


@contextmanager
def drawing(style: Mapping[str, Any]) -> Iterator[None]:
    """Draw within it: with this style, whatever the machine's matplotlibrc says."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # its notes on its own caches
    with needed_for("a figure"):
        from matplotlib import rc_context, rcdefaults, rcParams
    with rc_context():
        rcdefaults()
        rcParams.update(style)  # type: ignore[arg-type]  # a key is one of many literals
        yield


def image(figure: Figure, kind: str, **options: Any) -> bytes:
    """A figure as a `png` or `svg` file holds it, without date and program."""
    metadata = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}[kind]
    held = io.BytesIO()
    figure.savefig(held, format=kind, metadata=metadata, **options)
    return held.getvalue()


@contextmanager
def paper_style() -> Iterator[None]:
    """Draw within it, to have the look of all figures."""
    with drawing(_LOOK):
        yield


def write_figure(figure: Figure, folder: Path, name: str) -> list[str]:
    """Write `name.png` and `name.svg`, without date and program; call it within `paper_style`."""
    files = {f"{name}.{kind}": image(figure, kind, dpi=DPI) for kind in ("png", "svg")}
    for file, data in files.items():
        write_bytes(folder / file, data)
    return list(files)


def shown(text: str, most: int) -> str:
    """A text as one line of at most `most` characters, each of which the font has."""
    from matplotlib.font_manager import findfont, get_font

    font = get_font(findfont(_FONT))
    line = one_line(text, None)
    line = line if len(line) <= most else line[: most - 1].rstrip() + "…"
    return "".join(letter if font.get_char_index(ord(letter)) else "\ufffd" for letter in line)

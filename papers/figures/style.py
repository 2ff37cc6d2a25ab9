"""The style of figures: legible in print at their size, and the same bytes on every machine."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairkit.base.extras import needed_for
from pairkit.base.printable import one_line
from pairkit.base.system.files import write_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 6.3  # inches: the text width of an A4 page with the usual margins
DPI = 300
# The palette of Okabe and Ito, for any kind of colour vision, darkest first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
GREY = "#555555"
PALE = "#E8E8E8"
_FONT = "DejaVu Sans"  # comes with matplotlib, so every machine has it
_STYLE: dict[str, Any] = {
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
    "text.parse_math": False,  # dollars in texts and model names are not formulas
    "svg.hashsalt": "aoe",
    "svg.fonttype": "path",
}


@contextmanager
def paper_style() -> Iterator[None]:
    """Use the style of all figures, independent of the machine's matplotlibrc."""
    # Otherwise matplotlib prints messages about its caches.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    with needed_for("a figure"):
        from matplotlib import rc_context, rcdefaults, rcParams
    with rc_context():
        rcdefaults()
        rcParams.update(_STYLE)  # type: ignore[arg-type]  # a key is one of many literals
        yield


def new_figure(height: float, width: float = WIDTH) -> Figure:
    """An empty figure of a size in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def write_figure(figure: Figure, folder: Path, name: str) -> list[str]:
    """Write `name.png` and `name.svg` without date and program; call it within `paper_style`."""
    files = []
    for kind, metadata in (
        ("png", {"Software": None}),
        ("svg", {"Date": None, "Creator": None}),
    ):
        buffer = io.BytesIO()
        figure.savefig(buffer, format=kind, metadata=metadata, dpi=DPI)
        files.append(f"{name}.{kind}")
        write_bytes(folder / files[-1], buffer.getvalue())
    return files


def fit_text(text: str, max_length: int) -> str:
    """The text as one line of limited length, with characters that the font has."""
    from matplotlib.font_manager import findfont, get_font

    font = get_font(findfont(_FONT))
    line = one_line(text, None)
    line = line if len(line) <= max_length else line[: max_length - 1].rstrip() + "…"
    return "".join(
        letter if font.get_char_index(ord(letter)) else "\ufffd" for letter in line
    )

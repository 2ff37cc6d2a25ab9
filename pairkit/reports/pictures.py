"""Figures of matplotlib: drawn alike on every machine, and the same bytes each time."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pairkit.app.extras import needed_for

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def check_matplotlib(what: str = "a figure") -> None:
    """Refuse to begin without matplotlib, and keep its notes on its own caches from the terminal."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    with needed_for(what):
        import matplotlib  # noqa: F401


@contextmanager
def drawing(style: Mapping[str, Any]) -> Iterator[None]:
    """Draw within it: with this style, whatever the machine's matplotlibrc says."""
    check_matplotlib()
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

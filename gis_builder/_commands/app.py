"""The application that the commands of `gis` register with."""

from __future__ import annotations

from pairkit.terminal import application, examples

__all__ = ["app", "examples"]

app = application("gis", "From duplicate GitHub issues to a leak-free dataset of text pairs.")

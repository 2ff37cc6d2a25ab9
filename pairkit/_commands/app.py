"""The application that the commands of `pairs` register with."""

from __future__ import annotations

from pairkit.application import application, examples

__all__ = ["app", "examples"]

app = application(
    "pairs", "Look at, check, join, divide and share datasets of text pairs, whoever made them."
)

"""The application that the commands of `aoe` register with."""

from __future__ import annotations

from pairkit.app.application import application, examples

__all__ = ["app", "examples"]

app = application(
    "aoe", "Train text embeddings with angles in complex space, encode with them, evaluate and export them."
)

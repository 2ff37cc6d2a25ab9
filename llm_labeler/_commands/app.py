"""The application that the commands of `label` register with."""

from __future__ import annotations

from pairkit.terminal import application, examples

__all__ = ["app", "examples"]

app = application(
    "label",
    "Make pairs of sentences with the same and with opposite meaning from unlabelled text, with LLMs.",
)

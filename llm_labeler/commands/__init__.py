"""The commands of `label`: each turns flags into keyword arguments, calls the face, and prints."""

from __future__ import annotations

from pairkit.app.application import application

app = application(
    "label",
    "Make pairs of sentences with the same and with opposite meaning from unlabelled text, with LLMs.",
)

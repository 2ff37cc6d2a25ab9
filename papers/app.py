"""The application that the modules of `papers.commands` register with."""

from __future__ import annotations

from pairkit.app.commands import application, examples

__all__ = ["app", "examples"]

app = application("python -m papers", "Tables and figures of the AnglE and AoE papers, made again.")

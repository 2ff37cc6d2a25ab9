"""The entry point of `label` and `python -m llm_labeler`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairkit.base.cli.startup import start

if TYPE_CHECKING:
    from typer import Typer


def application() -> Typer:
    """The command line, whose imports are slow."""
    from llm_labeler.cli import app

    return app


def main() -> None:
    """Run the command line."""
    start(application)


if __name__ == "__main__":
    main()

"""The entry point of `label` and `python -m llm_labeler`."""

from __future__ import annotations

from pairkit.base.cli.startup import start

CLI = "llm_labeler.cli"  # the module of the application, which takes a while to import


def main() -> None:
    """Run the command line."""
    start(CLI)


if __name__ == "__main__":
    main()

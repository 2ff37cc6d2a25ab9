"""The entry point of `pairs` and `python -m pairkit`."""

from __future__ import annotations

from pairkit.base.cli.startup import start

CLI = "pairkit.cli"  # the module of the application, which takes a while to import


def main() -> None:
    """Run the command line."""
    start(CLI)


if __name__ == "__main__":
    main()

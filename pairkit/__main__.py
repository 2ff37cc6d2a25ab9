"""`pairs`, and `python -m pairkit`."""

from pairkit.app.startup import start


def main() -> None:
    """Run the command line."""
    start("pairkit.cli")


if __name__ == "__main__":
    main()

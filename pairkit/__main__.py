"""`pairs`, and `python -m pairkit`."""

from pairkit.face import start


def main() -> None:
    """Run the command line."""
    start("pairkit._cli")


if __name__ == "__main__":
    main()

"""`gis`, and `python -m gis_builder`."""

from pairkit.face import start


def main() -> None:
    """Run the command line."""
    start("gis_builder._cli")


if __name__ == "__main__":
    main()

"""The entry point of `gis` and `python -m gis_builder`."""

from pairkit.base.cli.startup import start


def main() -> None:
    """Run the command line."""
    start("gis_builder.cli")


if __name__ == "__main__":
    main()

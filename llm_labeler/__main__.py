"""Entry point of `label` and `python -m llm_labeler`."""

from pairkit.base.cli.startup import start


def main() -> None:
    """Run the command line."""
    start("llm_labeler.cli")


if __name__ == "__main__":
    main()

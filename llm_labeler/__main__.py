"""`label`, and `python -m llm_labeler`."""

from pairkit.face import start


def main() -> None:
    """Run the command line."""
    start("llm_labeler._cli")


if __name__ == "__main__":
    main()

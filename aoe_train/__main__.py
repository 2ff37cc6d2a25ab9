"""`aoe`, and `python -m aoe_train`; so `torchrun -m aoe_train train …` trains in several processes."""

from pairkit.app.startup import start


def main() -> None:
    """Run the command line."""
    start("aoe_train.cli")


if __name__ == "__main__":
    main()

"""`python -m llm_labeler`."""

from llm_labeler.cli import main

if __name__ == "__main__":
    main()

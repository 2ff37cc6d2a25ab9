"""Tables of test cases as text, which stay readable with many rows of sentences."""

from __future__ import annotations


def text_table(text: str, columns: int = 0) -> list[tuple[str, ...]]:
    r"""The cells of each line, which are separated by `|`; lines that start with `# ` are comments.

    Of a number of columns, the last may contain `|`. A `\n` in a cell is a line break.
    """
    lines = [line.strip() for line in text.strip().splitlines()]
    rows = [line for line in lines if line and not line.startswith("# ")]
    cells = [row.split("|", columns - 1) for row in rows]
    return [tuple(cell.strip().replace("\\n", "\n") for cell in row) for row in cells]

"""The tutorials as notebooks, from the pages of the site: `make notebooks`.

Where a step is shown for the shell and for Python, the Python is taken. Any other block of shell commands
becomes a cell that a shell runs.
"""

from __future__ import annotations

import re
from pathlib import Path

import jupytext
import nbformat

TUTORIALS = Path(__file__).resolve().parents[1] / "tutorials"
_SHELL_TWIN = re.compile(r"^```sh\n(?:(?!```).*\n)*```\n\n(?=```python$)", re.MULTILINE)
_COMMENT = re.compile(r"^<!-- not run: .* -->\n", re.MULTILINE)
_ITSELF = re.compile(r"This page is also a .*\n\n")
_AT_ROOT = """\
import os
from pathlib import Path

folders = (Path.cwd(), *Path.cwd().parents)
os.chdir(next(folder for folder in folders if (folder / "data" / "sample").is_dir()))
"""
_KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def pages() -> list[Path]:
    """The tutorials, each of which has a notebook beside it."""
    return sorted(page for page in TUTORIALS.glob("*.md") if page.name != "index.md")


def notebook(page: Path) -> str:
    """A tutorial as the text of an .ipynb file, without outputs."""
    text = _COMMENT.sub("", page.read_text(encoding="utf-8"))
    text = _SHELL_TWIN.sub("", text)
    text = _ITSELF.sub("", text)
    text = re.sub(r"^```sh$", "```bash", text, flags=re.MULTILINE)
    made = jupytext.reads(text, fmt="md")
    made.cells.insert(1, nbformat.v4.new_code_cell(_AT_ROOT.rstrip()))
    for place, cell in enumerate(made.cells):
        cell["id"] = f"cell-{place}"  # the same each time
        cell["metadata"] = {}
    made.metadata = {"kernelspec": _KERNEL}
    nbformat.validate(made)
    return nbformat.writes(made) + "\n"


if __name__ == "__main__":
    for page in pages():
        page.with_suffix(".ipynb").write_text(notebook(page), encoding="utf-8")

"""Makes a notebook from each tutorial: `make notebooks`.

If a step has a shell block and a Python block, the notebook has only the Python. Other shell blocks become
cells that run in a shell.
"""

from __future__ import annotations

import re
from pathlib import Path

import jupytext
import nbformat

TUTORIALS = Path(__file__).resolve().parents[1] / "tutorials"
_SHELL_TWIN = re.compile(r"^```sh\n(?:(?!```).*\n)*```\n\n(?=```python$)", re.MULTILINE)
_COMMENT = re.compile(r"^<!-- not run: .* -->\n", re.MULTILINE)
_NOTEBOOK_LINK = re.compile(r"This page is also a .*\n\n")
_AT_ROOT = """\
import os
from pathlib import Path

folders = (Path.cwd(), *Path.cwd().parents)
os.chdir(next(folder for folder in folders if (folder / "data" / "sample").is_dir()))
"""
_KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def pages() -> list[Path]:
    """The tutorials that have a notebook."""
    return sorted(page for page in TUTORIALS.glob("*.md") if page.name != "index.md")


def notebook(page: Path) -> str:
    """Returns the .ipynb text of a tutorial, without outputs."""
    text = _COMMENT.sub("", page.read_text(encoding="utf-8"))
    text = _SHELL_TWIN.sub("", text)
    text = _NOTEBOOK_LINK.sub("", text)
    text = re.sub(r"^```sh$", "```bash", text, flags=re.MULTILINE)
    result = jupytext.reads(text, fmt="md")
    result.cells.insert(1, nbformat.v4.new_code_cell(_AT_ROOT.rstrip()))
    for index, cell in enumerate(result.cells):
        cell["id"] = f"cell-{index}"  # reproducible, unlike the random default
        cell["metadata"] = {}
    result.metadata = {"kernelspec": _KERNEL}
    nbformat.validate(result)
    return nbformat.writes(result) + "\n"


if __name__ == "__main__":
    for page in pages():
        page.with_suffix(".ipynb").write_text(notebook(page), encoding="utf-8")

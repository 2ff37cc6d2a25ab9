"""Each measured figure of the documents is in `benchmarks/results`.

`<!-- results: a.csv, b.csv -->` names the files of all figures that follow, up to the next heading or mark.
Figures that follow from others are calculated: `<!-- results: a.csv; 1.2 = 81.15 - 79.96 -->`.
`<!-- not measured: why -->` exempts the next block: a setting, a limit, an example.
"""

import ast
import itertools
import math
import operator
import re
from functools import cache
from typing import NamedTuple

import pytest

from tests.docs.blocks import ROOT, RUN, each_page
from tests.support.shorthand import values

RESULTS = ROOT / "benchmarks" / "results"
PAGES = (
    ROOT / "README.md",
    ROOT / "benchmarks" / "README.md",
    *sorted((ROOT / "papers").glob("*.md")),
    *sorted(
        page
        for page in (ROOT / "docs").rglob("*.md")
        if page.parent.name != "reference"
    ),
)

_BLOCK = re.compile(
    r"^(?:<!-- .+ -->\n)?```(?P<language>\w*)\n(?s:.*?)^```$|(?:^(?!```).+\n?)+",
    re.MULTILINE,
)
_MARK = re.compile(r"<!-- results: (?P<files>[^;]+?)(?:; (?P<sums>.+))? -->\s*")
_EXEMPT = re.compile(r"<!-- (?:not measured|not run): .+ -->\s*")
_HIDDEN = re.compile(r"^```\w*$|<!--.*?-->|`[^`\n]+`|\]\([^)]*\)|<[^>]+>", re.MULTILINE)

_NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"
# No version (6.2.0, Python 3.11), name (R@5, gpt-4.1), power (5e-5) or number of an issue.
_NAME = r"(?<!Python )(?<!arXiv )(?<!ST )(?<!BY )(?<!SA )(?<!UDA )"
_TOKEN = re.compile(rf"(?<![\w.,@#/])(?<!\w-){_NAME}({_NUMBER})(?![\w-]|[.,]?\d)")
_UNIT = (
    r"%|points?\b|times\b|[a-z]+/s\b|[MG]iB\b|[GT]B\b|ms\b|(?:CPU )?s\b|core-hours\b"
)
_BEFORE_UNIT = re.compile(rf"(?: (?:to|or|and) {_NUMBER})? ?(?:{_UNIT})")
_CELL = re.compile(rf"[-+−]?{_NUMBER}(?:[()\[\], ±%+-]| to |{_NUMBER})*")
_DEVIATION = re.compile(rf" ± ({_NUMBER})")
_BOUND = re.compile(rf", [-+]?({_NUMBER})\]")
_FIRST_OF_TWO = re.compile(rf"{_NUMBER} ± $|\[[-+]?{_NUMBER}, [-+]?$")
_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


class Mark(NamedTuple):
    """The results that a passage names."""

    files: list[str]
    sums: list[str]


class Passage(NamedTuple):
    """A block of a document with the mark that applies to it."""

    text: str
    mark: Mark | None


class Figure(NamedTuple):
    """A number of a document; of an interval or a mean with its deviation, both numbers."""

    text: str
    is_percent: bool = False
    second: str | None = None
    cell: tuple[str, ...] = ()  # all numbers of its cell, if it is in a table

    def is_among(self, lines):
        """Whether one line of the results has this number, rounded as shown, and those beside it."""
        return any(self._is_in(line) for line in lines)

    def _is_in(self, line):
        """Whether the second number follows this one, and the line has all numbers of the cell."""
        is_found = any(
            self._rounds_to(self.text, number)
            and (self.second is None or self._rounds_to(self.second, after))
            for number, after in itertools.pairwise([*line, math.nan])
        )
        return is_found and all(
            any(self._rounds_to(text, number) for number in line) for text in self.cell
        )

    def _rounds_to(self, text, number):
        """Whether a number, or its percentage, is shown as this text."""
        shown = float(text.replace(",", ""))
        half = 0.5 * 10 ** -len(text.partition(".")[2]) + 1e-9
        scales = (1, 100) if self.is_percent else (1,)
        return any(abs(scale * number - shown) <= half for scale in scales)


_CONFIDENCE = ("95", True)  # per cent, of all intervals


@each_page(PAGES)
def test_figures_have_results(page):
    assert [*faults(page.read_text(), runs=page in RUN)] == []


SECTION = (
    "# Small vectors\n\n<!-- results: small_vectors.csv; 1.2 = 81.15 - 79.96 -->\n\n"
)


@pytest.mark.parametrize(
    "text, expected",
    [
        *values(
            r"""
                Ours is 2.2 times as fast, in 30 MiB. | ['2.2 has no results', '30 has no results']
                "It removes 57 to\n99 % of them." | ['57 has no results', '99 has no results']
                Ours is twice as fast. | ['twice as fast: write the figure']
                "<!-- not measured: a limit -->\n\nAt most 30 MiB.\n\nIt is 15 % faster." | ['15 has no results']
                distilabel 1.5.3 and Python 3.11 read `0.5` of [BM25](https://example.org/2.5). | []
                "<!-- results: small_vectors.csv; 1.3 = 81.15 - 79.96 -->\n\nText." | ["1.3 isn't 81.15 - 79.96"]
                "<!-- results: small_vectors.csv; 1.2 = 81.17 - 79.96 -->\n\nText." | ["81.17 isn't in"]
                "<!-- results: missing.csv -->\n\nText." | ['missing.csv: no such file']
            """,
        ),
        (SECTION + "128 dimensions cost 1.2 points.", []),
        (
            SECTION + "128 dimensions cost 1.3 points.",
            ["1.3 isn't in small_vectors.csv"],
        ),
        (SECTION + "| dimensions | STS |\n|---|---|\n| 128 | 79.96 ± 0.17 |", []),
        (
            SECTION + "| dimensions | STS |\n|---|---|\n| 129 | 79.97 ± 0.06 |",
            ["129", "79.97"],
        ),
        (SECTION + "With 128, 79.96 ± 0.11 points.", ["79.96"]),
        (SECTION + "| bytes, STS |\n|---|\n| 128, 79.96 |", []),
        (SECTION + "| bytes, STS |\n|---|\n| 16, 79.96 |", ["16", "79.96"]),
        (SECTION + "About 80.0 of 81.2 points are left.", []),
        (
            SECTION + "128 dimensions.\n\n# Other\n\nThey cost 1.2 points.",
            ["1.2 has no results"],
        ),
    ],
)
def test_wrong_figures_are_found(text, expected):
    found = [*faults(text, runs=False)]
    assert len(found) == len(expected)
    for fault, beginning in zip(found, expected, strict=True):
        assert fault.startswith(beginning)


def faults(text, *, runs):
    """Yields what is wrong with the figures of a page; `runs` if tests compare its output."""
    for passage in passages(text, runs=runs):
        visible = _HIDDEN.sub(" ", passage.text)
        beginning = repr(visible[:60])
        for phrase in re.findall(r"(?:twice|three times|half) as fast", visible):
            yield f"{phrase}: write the figure"
        if passage.mark is None:
            yield from (
                f"{figure.text} has no results: {beginning}"
                for figure in figures(visible, is_marked=False)
            )
        elif not passage.text:
            yield from mark_faults(passage.mark)
        else:
            results = lines_of_mark(passage.mark)
            files = ", ".join(passage.mark.files)
            shown = figures(visible, is_marked=True)
            wrong = (figure.text for figure in shown if not figure.is_among(results))
            yield from (f"{number} isn't in {files}: {beginning}" for number in wrong)


def passages(text, *, runs):
    """Yields marks, without text, and the blocks of a page that may have figures."""
    mark = None
    is_exempt = False
    for block in _BLOCK.finditer(text):
        content = block[0]
        if content.startswith("#"):
            mark = None
            continue
        if found := _MARK.match(content):
            sums = found["sums"].split("; ") if found["sums"] else []
            mark = Mark(found["files"].split(", "), sums)
            yield Passage("", mark)
        elif found := _EXEMPT.match(content):
            is_exempt = True
        content = content[found.end() :] if found else content
        if not content:
            continue
        is_code = block["language"] not in (None, "text")
        is_tested = block["language"] == "text" and runs and mark is None
        if not (is_exempt or is_code or is_tested):
            yield Passage(content, mark)
        is_exempt = False


def mark_faults(mark):
    """Yields missing files and wrong calculations of a mark."""
    yield from (
        f"{name}: no such file" for name in mark.files if not path_of(name).is_file()
    )
    results = lines_of_files(mark.files)
    for line in mark.sums:
        shown, _, calculation = line.partition(" = ")
        operands = re.findall(_NUMBER, calculation)
        missing = [
            operand for operand in operands if not Figure(operand).is_among(results)
        ]
        if missing:
            yield f"{missing[0]} isn't in {', '.join(mark.files)}: {line}"
        elif not Figure(shown).is_among(
            [[value(ast.parse(calculation.replace(",", ""), mode="eval").body)]]
        ):
            yield f"{shown} isn't {calculation}"


def figures(text, *, is_marked):
    """Yields the measured figures of a block; if it is marked, also whole numbers of intervals and tables."""
    for line in lines_of(text.replace("*", "")):
        cells = numeric_cells(line) if is_marked else {}
        for token in _TOKEN.finditer(line):
            before, after = line[: token.start()], line[token.end() :]
            if _FIRST_OF_TWO.search(before):
                continue
            unit = _BEFORE_UNIT.match(after)
            interval = (
                _BOUND.match(after)
                if before.endswith(("[", "[-", "[+")) and is_marked
                else None
            )
            second = interval or _DEVIATION.match(after)
            is_percent = bool(unit and unit[0].endswith("%"))
            place = before.count("|")
            is_measured = unit or second or "." in token[1] or place in cells
            if is_measured and (token[1], is_percent) != _CONFIDENCE:
                yield Figure(
                    token[1],
                    is_percent,
                    second[1] if second else None,
                    cells.get(place, ()),
                )


def lines_of(text):
    """The rows of a table or of output; prose as one line."""
    is_table = text.startswith("|") or "\n|" in text
    return text.splitlines() if is_table else [" ".join(text.split())]


def numeric_cells(line):
    """The numbers of each cell without words of a table's row, by the bars before it; none of a range."""
    if not line.startswith("|"):
        return {}
    numbers = {}
    for place, cell in enumerate(line.split("|")):
        if _CELL.fullmatch(cell.strip()):
            # Which may be over several lines of results.
            is_range = " to " in cell and "(" not in cell
            numbers[place] = () if is_range else tuple(re.findall(_NUMBER, cell))
    return numbers


def value(node):
    """The value of a calculation."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    assert isinstance(node, ast.BinOp)
    return _OPERATORS[type(node.op)](value(node.left), value(node.right))


def lines_of_mark(mark):
    """The numbers that figures under a mark may have, by the line of the results."""
    calculated = [line.partition(" = ")[0].replace(",", "") for line in mark.sums]
    return lines_of_files(mark.files) + [[float(number)] for number in calculated]


def lines_of_files(names):
    """The numbers of result files by line."""
    return [line for name in names for line in numbers_by_line(path_of(name))]


def path_of(name):
    """The path of a file of results, or of one by its path in the repository."""
    return ROOT / name if "/" in name else RESULTS / name


@cache
def numbers_by_line(path):
    """The numbers of each line of a file; none if it is missing."""
    if not path.is_file():
        return []
    number = re.compile(r"(?<![\w.])\d+(?:,\d{3}(?=[ \"]))*(?:\.\d+)?")
    return [
        [float(found.replace(",", "")) for found in number.findall(line)]
        for line in path.read_text().splitlines()
    ]

"""Short forms of what most tests use: tables of cases as text, expected errors, rows of pairs."""

import ast
import math
from pathlib import Path

import polars as pl
import pytest

from pairkit import (
    AuthError,
    BadReply,
    ConfigError,
    DataError,
    RateLimited,
    RemoteError,
)

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "data" / "sample"
approx = pytest.approx
parametrize = pytest.mark.parametrize
raises = pytest.raises
module_fixture = pytest.fixture(scope="module")  # by all tests of a file
_ERRORS = (AuthError, BadReply, ConfigError, DataError, RateLimited, RemoteError)
_NAMED = {"nan": math.nan, **{error.__name__: error for error in _ERRORS}}


def text_lines(text):
    r"""The lines of a text, without blank ones and comments (`# `); `\n` in a line is a line break."""
    lines = [line.strip() for line in text.splitlines()]
    return [
        line.replace("\\n", "\n")
        for line in lines
        if line and not line.startswith("# ")
    ]


def text_table(text, columns=0):
    r"""The cells of each line, which are separated by `|`.

    Of a number of columns, the last may contain `|`. Lines are those of `text_lines`.
    """
    rows = [line.split("|", columns - 1) for line in text_lines(text)]
    return [tuple(cell.strip() for cell in row) for row in rows]


def each_line(text, columns=0):
    """Run a test for each line below the names: one name takes the line, several take its cells."""
    names, _, lines = text.strip().partition("\n")
    return parametrize(
        names, text_table(lines, columns) if "," in names else text_lines(lines)
    )


def table(text, **named):
    """Run a test for each line below the names; its cells, parted by " | ", are those of `values`."""
    names, _, lines = text.strip().partition("\n")
    rows = values(lines, **named)
    return parametrize(names, rows if "," in names else [cell for (cell,) in rows])


def values(text, **named):
    """Rows of cells, parted by " | ": errors, nan, names given here, literals of Python or else plain text."""
    lines = [line.strip() for line in text.strip().splitlines()]
    return [
        tuple(_value(cell, _NAMED | named) for cell in line.split(" | "))
        for line in lines
        if line[:2] != "# "
    ]


def _value(cell, named):
    if cell in named:
        return named[cell]
    try:
        return ast.literal_eval(cell)
    except (ValueError, SyntaxError):
        return cell


def config_error(words):
    return raises(ConfigError, match=words)


def data_error(words):
    return raises(DataError, match=words)


def input_error(words):
    """Expect settings or data to be refused."""
    return raises((ConfigError, DataError), match=words)


def remote_error(words):
    return raises(RemoteError, match=words)


def pair(text1, text2, label=1, **more):
    """One row, by default a positive; with lists, the columns of several rows."""
    return {"text1": text1, "text2": text2, "label": label, **more}


def pair_table(rows):
    """A table of rows of two texts and a label."""
    return pl.DataFrame(rows, schema=["text1", "text2", "label"], orient="row")

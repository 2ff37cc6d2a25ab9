"""Words that others wrote, made fit to be printed: they must neither command a terminal nor pass for ours."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import polars as pl

MAX_QUOTED = 300  # characters of a server's or a file's words in a message

# All but tab and newline; the marks that turn the direction of what follows; half characters.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_NO_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_HALF = re.compile("[\ud800-\udfff]")


def printable(text: str) -> str:
    """`text` with its control characters made visible; line breaks and tabs stay."""
    return _CONTROL.sub("\ufffd", text)


def holds_no_text(text: str) -> bool:
    """Whether it has control characters (but tab and line ends) or halves of surrogate pairs."""
    return _NO_TEXT.search(text) is not None


def one_line(text: str, limit: int | None = MAX_QUOTED) -> str:
    """`text` on one line without control characters, for a message that quotes a server, a file or a name."""
    if limit is not None:
        text = text[: 4 * limit]  # blanks may go, but nothing of gigabytes is worked through
    line = printable(" ".join(text.split()))
    return line if limit is None or len(line) <= limit else line[: limit - 1] + "…"


def half_escaped(json_text: str) -> str:
    """A JSON text with lone surrogates, as of odd file names, as escapes: it has to be UTF-8."""
    return _HALF.sub(lambda found: f"\\u{ord(found[0]):04x}", json_text)


# What begins a formula, the wide forms of East Asian signs included.
_SIGN = r"[=+\-@\t\r\n＝＋－＠]"
_FORMULA = re.compile(rf"\A'*{_SIGN}")


def inert(rows: pl.DataFrame) -> pl.DataFrame:
    """The table with an apostrophe before each text and name that would be run."""
    import polars as pl

    names = {name: f"'{name}" for name in rows.columns if _FORMULA.match(name)}
    return rows.with_columns(pl.col(pl.String).str.replace(rf"^('*{_SIGN})", "'${1}")).rename(names)


def without_apostrophes(text: pl.Expr) -> pl.Expr:
    """Texts without any apostrophe before such a sign: alike, whether or not they went through a sheet."""
    return text.str.replace(rf"^'+({_SIGN})", "${1}")


# Unicode's bound for streams (UAX #15, D3). To put the marks of one letter in order takes quadratic time.
_MOST_MARKS = 30
_PERHAPS_MARKS = re.compile(rf"[^\w\s\x00-\x7f]{{{_MOST_MARKS + 1},}}+")


def normalize(form: Literal["NFC", "NFKC"], text: str) -> str:
    """The text in a normal form, with 30 combining marks on a letter at most."""
    if text.isascii():
        return text
    return unicodedata.normalize(form, _PERHAPS_MARKS.sub(_few_marks, text))


def _few_marks(run: re.Match[str]) -> str:
    """The run without the combining marks that follow thirty others."""
    kept, marks = [], 0
    for character in run[0]:
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks <= _MOST_MARKS:
            kept.append(character)
    return "".join(kept)

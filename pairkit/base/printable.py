"""Make untrusted text safe to show: no control codes, fake lines, keys or formulas."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import polars as pl

MAX_QUOTED = 300  # characters of quoted text in a message

# Control characters except tab and newline; line separators; characters that reverse
# the direction of a text; lone surrogates.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_NOT_IN_TEXTS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
# Control and format characters and variation selectors, but no line ends and tabs.
# Python and polars read these sets alike.
_INVISIBLES = (
    r"\x00-\x08\x0e-\x1f\x7f\u00ad\u034f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    r"\u2060-\u206f\ufe00-\ufe0f\ufeff"
)
INVISIBLE = f"[{_INVISIBLES}]"
_INVISIBLE = re.compile(INVISIBLE)
_ASCII_INVISIBLE = {code: None for code in range(128) if _INVISIBLE.match(chr(code))}
# These, white space, further characters without a shape, such as fillers and tags, and
# the characters that replace lost ones.
BLANK = (
    rf"[{_INVISIBLES}\s\x80-\x9f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufff0-\uffff"
    r"\U000e0000-\U000e0fff]"
)
_BLANKS = re.compile(f"{BLANK}*")

# Keys of LLM servers, code hosts, the Hub and clouds, by their prefixes and alphabets.
# Words have no digits (keys of the Hub neither, but a fixed length), and paths such as
# `hf_minilm_v2` have no long parts.
_KEY = re.compile(
    r"""(?<![A-Za-z0-9_])(?=[\w.-]{0,99}\d|hf_[A-Za-z]{34})
    (?:
        (?:gsk|hf)_[A-Za-z0-9]{16}
        | gh[oprsu]_(?:\d+_)?[A-Za-z0-9]{16}
        | github_pat_[A-Za-z0-9]{16}
        | lin_(?:api|oauth|wh)_[A-Za-z0-9]{12}
        | (?:sk|rk|pk|glpat|nvapi|xox[abeoprs])[-_]
          (?=[\w.-]{0,99}?(?=[A-Za-z]{0,99}\d)[A-Za-z0-9]{10})[\w.-]{12}
        | AKIA[A-Z0-9]{12}
        | AIza[\w-]{12}
        | eyJ[\w.-]{12}
    )[\w.-]*""",
    re.VERBOSE,
)

# Characters that begin a formula, including their full-width forms.
_SIGN = r"[=+\-@\t\r\n＝＋－＠]"
_FORMULA = re.compile(rf"\A'*{_SIGN}")

APOSTROPHES = "apostrophes_added"  # the column of a table in a file that has them

# Unicode's limit for streams (UAX #15, D3); sorting the marks of one letter takes
# quadratic time.
_MAX_MARKS = 30
_LONG_RUNS = re.compile(rf"[^\w\s\x00-\x7f]{{{_MAX_MARKS + 1},}}+")

# Blanks, and characters in the full or half width of East Asian fonts; not the
# punctuation that ends sentences and clauses there without a blank.
_WIDE = re.compile(
    "[\u00a0\u2000-\u200a\u202f\u205f\u3000\uff02-\uff07\uff0a\uff0b\uff0d\uff0f-\uff19"
    "\uff1c-\uff1e\uff20-\uff3a\uff3c\uff3e-\uffdc]"
)


def printable(text: str) -> str:
    """`text` with control characters replaced, except line breaks and tabs."""
    return _CONTROL.sub("\ufffd", text)


def without_keys(text: str) -> str:
    """A message or record in which `[key]` replaces what looks like a server's key."""
    return _KEY.sub("[key]", text)


def is_blank(text: str) -> bool:
    """Whether a text is empty, or has only invisible or lost characters."""
    return _BLANKS.fullmatch(text) is not None


def holds_no_text(text: str) -> bool:
    """Whether a text has lone surrogates, or controls other than tab and line ends."""
    return _NOT_IN_TEXTS.search(text) is not None


def one_line(text: str, limit: int | None = MAX_QUOTED) -> str:
    """`text` on one line without control characters, for quotes in messages."""
    # More words than `limit` don't fit, so the rest of a huge text isn't split.
    line = " ".join(text.split(None, -1 if limit is None else limit))
    if limit is None or len(line) <= limit:
        return printable(line)
    return printable(line[: limit - 1]) + "…"


def listed(counts: Mapping[str, int]) -> str:
    """Counts by reason, as `too short 3, empty 1`."""
    return ", ".join(
        f"{name.replace('_', ' ')} {count:,}" for name, count in counts.items()
    )


def escape_surrogates(json_text: str) -> str:
    """JSON text with lone surrogates, as in odd file names, escaped for UTF-8."""
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", json_text)


def escape_formulas(rows: pl.DataFrame) -> pl.DataFrame:
    """The table with an apostrophe before texts and names that a spreadsheet would run.

    Categories become texts.
    """
    import polars as pl
    import polars.selectors as cs

    names = {name: f"'{name}" for name in rows.columns if _FORMULA.match(name)}
    texts = (
        cs.by_dtype(pl.String, pl.Categorical, pl.Enum)
        .cast(pl.String)
        .str.replace(rf"^('*{_SIGN})", "'${1}")
    )
    return rows.with_columns(texts).rename(names)


def unescape_formulas(table: pl.DataFrame) -> pl.DataFrame:
    """A table that was read, without the apostrophes that `escape_formulas` added.

    If a name without its apostrophe is in the table, all names keep their apostrophes.
    """
    import polars as pl

    if APOSTROPHES not in table.columns:
        return table
    formulas = filter(_FORMULA.match, table.columns)
    names = {name: name.removeprefix("'") for name in formulas}
    if len({*names.values()}) < len(names):
        names = {}
    texts = pl.col(pl.String).str.replace(rf"^'('*{_SIGN})", "${1}")
    return table.drop(APOSTROPHES).with_columns(texts).rename(names)


def without_apostrophes(text: pl.Expr) -> pl.Expr:
    """Texts without any apostrophes before the sign of a formula.

    Texts compare equal with and without `escape_formulas`, also if a spreadsheet
    dropped apostrophes.
    """
    return text.str.replace(rf"^'+({_SIGN})", "${1}")


def normalize(form: Literal["NFC", "NFKC"], text: str) -> str:
    """The normalised text, with at most 30 combining marks per letter."""
    if text.isascii():
        return text
    return unicodedata.normalize(form, _LONG_RUNS.sub(_limit_marks, text))


def same_width(text: str) -> str:
    """The text with all characters in their usual width, at the same positions."""
    return _WIDE.sub(lambda wide: unicodedata.normalize("NFKC", wide[0]), text)


def comparable(text: str) -> str:
    """The text without decomposed letters, odd widths and invisible characters.

    NFC and not NFKC, which joins 10² to 102 and ends sentences at other places in
    Chinese and Japanese.
    """
    if text.isascii():
        return text.translate(_ASCII_INVISIBLE)
    visible = _INVISIBLE.sub("", text)
    return normalize("NFC", same_width(visible))


def _limit_marks(run: re.Match[str]) -> str:
    """The characters without combining marks after the thirtieth in a row."""
    kept = ""
    marks = 0
    for character in run[0]:
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks <= _MAX_MARKS:
            kept += character
    return kept

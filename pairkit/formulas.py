"""Cells of CSV files that no spreadsheet takes for formulas.

A spreadsheet takes a cell that begins with `=`, `+`, `-`, `@`, a tab or a line end for a formula and runs
it, whoever wrote that text. So an apostrophe is put before it; also before a text that begins with
apostrophes and then such a sign, so that taking one off again always brings the text back.
"""

from __future__ import annotations

import re

import polars as pl

# What begins a formula, the wide forms of East Asian signs included.
_SIGN = r"[=+\-@\t\r\n＝＋－＠]"
_FORMULA = re.compile(rf"\A'*{_SIGN}")


def inert(rows: pl.DataFrame) -> pl.DataFrame:
    """The table with an apostrophe before each text and name that would be run."""
    names = {name: f"'{name}" for name in rows.columns if _FORMULA.match(name)}
    return rows.with_columns(pl.col(pl.String).str.replace(rf"^('*{_SIGN})", "'${1}")).rename(names)


def without_apostrophes(text: pl.Expr) -> pl.Expr:
    """Texts without any apostrophe before such a sign: alike, whether or not they went through a sheet."""
    return text.str.replace(rf"^'+({_SIGN})", "${1}")

"""Find the columns of texts, labels and documents: as mapped by the user, or by common names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from shlex import quote
from statistics import median
from typing import Literal

import polars as pl

from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import one_line
from pairkit.base.system.text_lines import note_once

Rows = Iterable[Mapping[str, object]]
Meant = Literal["pairs", "pairs or groups", "rows", "texts"]
"""What a table is expected to have.

`rows` are pairs or single texts, `texts` more likely single texts; texts of groups are labelled by group.
"""


def _name_pairs(names: str) -> list[list[str]]:
    return [pair.split() for pair in names.split(",")]


_PAIR_NAMES = _name_pairs("""
    text1 text2, sentence1 sentence2, premise hypothesis, question1 question2, text_a text_b,
    sentence_a sentence_b, question sentence, query document, query passage, query text
""")
_LABEL_NAMES = (
    "label",
    "score",
    "is_duplicate",
    "similarity",
    "similarity_score",
    "relatedness_score",
    "relevance",
    "gold_label",
)
_POSITIVE_LABELS = ("label", "score")  # of rows with positives
_POSITIVE_NAMES = _name_pairs("""
    anchor positive, query positive, text positive, query pos, question positive, sentence positive,
    query answer, question answer, sent0 sent1
""")
_MAPPED = ("text1", "text2", "label", "anchor", "positive", "text")
_MAPPED_NEGATIVE = re.compile(r"negative(_\d{1,9})?")
_NEGATIVE_NAME = re.compile(
    r"(?:hard[_-]?)?neg(?:ative)?s?(?:[_-](?:text|sentence|passage|document|doc|answer|example)s?)?[_-]?(\d{0,9})",
    re.IGNORECASE,
)
_NO_NEGATIVES = "none"  # `negative=none` in a mapping ignores the columns of negatives
_DOCUMENT_NAMES = {
    "title": ("title", "headline", "subject", "summary"),
    "body": ("body", "text", "content", "abstract", "description"),
    "question": ("question", "query"),
    "answer": ("answer", "response"),
}
# In order of preference: a title is the text only of tables without a body.
TEXT_COLUMNS = (
    "text",
    "sentence",
    "sentence1",
    "text1",
    "anchor",
    "premise",
    "content",
    "question",
    "title",
)
_UNKNOWN = "NAME"  # a column in a proposed option
_MIN_LENGTH = 20  # of a pair's texts, in characters; names of labels are shorter
_MAX_ROWS = 1000  # of a table that are looked at
_MAX_CHARS = 1000  # of a value that are looked at
_MAX_REPEATS = 3  # rows for each distinct text; names of labels repeat more often
_NO_TEXT = re.compile(
    r"(?=\S+://)\S+"  # an address
    r"|(?=[!-~]*[\d_/@:-])[!-~\d]+"  # an id, a path or a number, such as `ab-12`
    r"|(?=.*\b(?:19|20)\d\d\b)(?=.*\b\d\d?\b).{6,40}"  # a date, such as `3 May 2024`
)


@dataclass(frozen=True)
class Roles:
    """The column of each role. Rows without `label` are positives, without `text2` single texts."""

    text1: str
    text2: str
    label: str = ""
    negatives: tuple[str, ...] = ()
    unwanted: tuple[str, ...] = ()
    has_groups: bool = False  # the names of groups instead of a second text

    @property
    def required(self) -> dict[str, str]:
        """The columns without negatives and label, by what messages call them."""
        if not self.text2:
            return {"text": self.text1}
        names = ("anchor", "positive")
        if self.label:
            names = ("text1", "text2")
        elif self.has_groups:
            names = ("text", "group")
        return dict(zip(names, (self.text1, self.text2), strict=True))


def find_roles(
    frame: pl.DataFrame,
    where: str,
    columns: Mapping[str, str] | None = None,
    meant: Meant = "pairs",
) -> Roles:
    """Find the columns by an explicit mapping, or by common names.

    Raises DataError if texts or labels aren't found, or if columns of negatives would be ignored unasked.
    """
    names = frame.columns
    if columns:
        roles = _mapped_roles(names, where, columns, meant)
    else:
        roles = _known_roles(frame, where, meant)
    used = {roles.text1, roles.text2, roles.label, *roles.negatives}
    unused = tuple(name for name in _negative_columns(names) if name not in used)
    if not roles.text2 or not unused:
        return roles
    if (columns or {}).get("negative") != _NO_NEGATIVES:
        raise DataError(
            f"would not use {one_line(', '.join(unused))}, which by name are negatives; drop them, or give"
            f" the columns to use as --columns, with negative={_NO_NEGATIVES} to ignore negatives",
            path=where,
        )
    return replace(roles, unwanted=unused)


def _negative_columns(names: Iterable[str]) -> tuple[str, ...]:
    """The columns named as negatives, such as `negative_2` or `hard_negatives`, in order of their numbers."""
    numbers = {}
    for name in names:
        if match := _NEGATIVE_NAME.fullmatch(name):
            numbers[name] = int(match[1] or -1)
    return tuple(sorted(numbers, key=numbers.__getitem__))


def _first_of(usual: Sequence[str], names: Sequence[str]) -> str:
    """The column with the first usual name that exists, in upper or lower case; empty if there is none."""
    known = _by_lower_case(names)
    return next((known[name] for name in usual if name in known), "")


def _by_lower_case(names: Sequence[str]) -> dict[str, str]:
    """The columns by their names in lower case; the first, unless one has just this name."""
    in_lower_case = {name.lower(): name for name in reversed(names)}
    return in_lower_case | {name: name for name in names}


def _known_roles(frame: pl.DataFrame, where: str, meant: Meant) -> Roles:
    """The columns with common names; raises DataError with the `--columns` to give if there are none."""
    names = frame.columns
    if not meant.startswith("pairs") and len(names) == 1:
        return Roles(names[0], "")
    if names == ["text"]:
        raise DataError(
            "has single texts, expected pairs; `aoe sample-pairs` draws pairs of them to judge",
            path=where,
        )
    label = _first_of(_LABEL_NAMES, names)
    negatives = _negative_columns(names)
    pair = known_pair(names, _PAIR_NAMES)
    # Prodigy stores them beside the label that was proposed.
    if {"answer", "_task_hash"} <= {*names}:
        option = _proposed_option(frame, pair, "answer", meant)
        raise DataError(
            f"has answers of Prodigy; give {option} if pairs are similar that were accepted",
            path=where,
        )
    if pair and label:
        return Roles(pair[0], pair[1], label)
    if positives := known_pair(names, _POSITIVE_NAMES):
        label = _first_of(_POSITIVE_LABELS, names)
        if label and negatives:  # which of the texts is it of?
            raise DataError(
                f"has the label column {one_line(label)} beside negatives; drop it, or give --columns"
                " with the other columns",
                path=where,
            )
        return Roles(positives[0], positives[1], label, negatives)
    option = _proposed_option(frame, pair, label, meant)
    title = " delete rows above the header," if names[1:2] == ["column_2"] else ""
    raise DataError(
        f"found the columns {one_line(', '.join(names)) or '(none)'}, expected text1, text2, label (or"
        " sentence1, sentence2, score; premise, hypothesis, label; question1, question2, is_duplicate;"
        f" anchor, positive[, negative or negative_1, negative_2, …]);{title} rename them or give"
        f" {option}, with numbers for names if there is no header line",
        path=where,
    )


def known_pair(
    names: Sequence[str],
    usual: Sequence[Sequence[str]] = (*_PAIR_NAMES, *_POSITIVE_NAMES),
) -> list[str]:
    """The columns of the first usual pair of names, in upper or lower case; empty if there is none."""
    known = _by_lower_case(names)
    for pair in usual:
        if {*pair} <= known.keys():
            return [known[name] for name in pair]
    return []


def are_usual_names(names: Sequence[str]) -> bool:
    """Whether these are common names of columns, as in a header."""
    return bool(known_pair(names) or _first_of(TEXT_COLUMNS, names))


def _proposed_option(
    frame: pl.DataFrame,
    pair: Sequence[str],
    label: str,
    meant: Meant,
) -> str:
    """The `--columns` to propose in an error: the likely columns of a pair and its label, or of a text."""
    lengths = _text_lengths(frame.iter_rows(named=True))
    names = frame.columns
    pair = pair or _likely_pair(lengths)
    if meant == "texts" or (meant == "rows" and not pair):
        return _text_option(lengths)
    texts = [name for name in lengths if name != label]
    if meant == "pairs or groups" and not pair and len(texts) == 1:
        groups = [label] if label else [name for name in names if name not in texts]
        if len(groups) == 1:
            return _columns_option(text=texts[0], group=groups[0])
    if pair and not label and names[:-1] == pair:
        third = names[-1]
        if third in lengths:  # texts, not labels
            return _columns_option(anchor=pair[0], positive=pair[1], negative=third)
        label = third
    text1, text2 = pair or (_UNKNOWN, _UNKNOWN)
    if len(names) == 2 and not label:
        return _columns_option(anchor=text1, positive=text2)
    return _columns_option(text1=text1, text2=text2, label=label or _UNKNOWN)


def _check_mapping(
    columns: Mapping[str, str],
    roles: Sequence[str],
    names: Sequence[str],
    where: str,
) -> None:
    """Refuse unknown roles, columns that don't exist, and a column for two roles."""
    for role, name in columns.items():
        same = [other for other, column in columns.items() if column == name]
        if len(same) > 1:
            raise ConfigError(
                f"column mapping: {' and '.join(same)} are one column, {one_line(name)}"
            )
        if role not in roles:
            raise ConfigError(
                f"column mapping {role!r}: expected one of {', '.join(roles)}"
            )
        if name not in names:
            shown = one_line(", ".join(names)) or "(none)"
            raise DataError(
                f"no column {name!r} for {role}; there are {shown}", path=where
            )


def _mapped_roles(
    names: list[str],
    where: str,
    columns: Mapping[str, str],
    meant: Meant,
) -> Roles:
    """The columns as mapped by the user."""
    used = {**columns}
    if columns.get("negative") == _NO_NEGATIVES:
        del used["negative"]
    negatives = [role for role in used if _MAPPED_NEGATIVE.fullmatch(role)]
    known = [*_MAPPED, *(negatives or ("negative", "negative_1", "…"))]
    with_groups = meant == "pairs or groups"
    if with_groups:
        known.append("group")
    _check_mapping(used, known, names, where)
    if used.keys() == {"text1", "text2", "label"}:
        return Roles(used["text1"], used["text2"], used["label"])
    if used.keys() == {"anchor", "positive", *negatives}:
        negatives.sort(key=lambda role: int(role[len("negative_") :] or -1))
        in_order = tuple(used[role] for role in negatives)
        return Roles(used["anchor"], used["positive"], negatives=in_order)
    if with_groups and used.keys() == {"text", "group"}:
        return Roles(used["text"], used["group"], has_groups=True)
    single = not meant.startswith("pairs")
    if single and columns.keys() == {"text"}:
        return Roles(columns["text"], "")
    or_text = ", or only text" if single else ""
    raise ConfigError(
        "a column mapping names text1, text2 and label, or anchor, positive and perhaps negatives"
        f"{or_text}; found {', '.join(columns)}"
    )


def text_column(
    names: Sequence[str],
    where: str,
    columns: Mapping[str, str] | None,
    rows: Rows,
    strings: Sequence[str] = (),
) -> str:
    """The column of single texts: as mapped, of a known name, the only one, or the only one in `strings`.

    Raises ConfigError or DataError if there is none. A guess is logged once.
    """
    if columns:
        if columns.keys() != {"text"}:
            raise ConfigError(
                f"column mapping {', '.join(columns)}: expected only text, such as text=NAME"
            )
        _check_mapping(columns, ["text"], names, where)
        return columns["text"]
    is_document = _first_of(["body", "question", "answer"], names)
    column = _first_of(TEXT_COLUMNS[:-1] if is_document else TEXT_COLUMNS, names)
    for candidates in (names, strings):
        if not column and len(candidates) == 1:
            (column,) = candidates
    if not column:
        raise DataError(
            f"no known text column among {one_line(', '.join(names)) or '(none)'}; name it, such as"
            f" {_text_option(_text_lengths(rows))}",
            path=where,
        )
    if len(names) > 1 and column != "text":
        note_once(
            "%s: the texts are in %s; else give --columns text=NAME",
            where,
            one_line(column),
        )
    return column


def document_roles(
    frame: pl.DataFrame,
    where: str,
    columns: Mapping[str, str] | None,
    *,
    needed: bool = True,
) -> dict[str, str]:
    """The columns of title, body, question and answer.

    Raises DataError for a table without body and question, unless not `needed`.
    """
    names = frame.columns
    if columns:
        if {"text", "body"} <= columns.keys():
            raise ConfigError("column mapping: text and body are one role; give one")
        _check_mapping(columns, ["text", *_DOCUMENT_NAMES, "document"], names, where)
        roles = {**columns}
        if "text" in roles:
            roles["body"] = roles.pop("text")
    else:
        roles = {
            role: _first_of(usual, names) for role, usual in _DOCUMENT_NAMES.items()
        }
        roles = {role: name for role, name in roles.items() if name}
    for role, partner in (("question", "answer"), ("answer", "question")):
        if role in roles and partner not in roles:
            if columns:
                raise ConfigError(f"column mapping {role!r}: also give {partner}")
            del roles[role]
    if needed and not {"question", "body"} & roles.keys():
        lengths = _text_lengths(frame.iter_rows(named=True))
        option = _text_option(lengths)
        are_long = min(lengths.values(), default=0) >= _MIN_LENGTH
        if len(names) == len(lengths) == 2 and are_long:
            option = _columns_option(question=names[0], answer=names[1])
        raise DataError(
            f"found the columns {one_line(', '.join(names))}, expected title and body, question and answer,"
            f" or text; rename them or give {option}",
            path=where,
        )
    return roles


def _text_lengths(rows: Rows) -> dict[str, float]:
    """The median length of the texts in each column that has mostly texts, unless few are distinct."""
    first_rows = [*islice(rows, _MAX_ROWS)]
    lengths = {}
    for name in dict.fromkeys(chain(*first_rows)):
        values = [row.get(name) for row in first_rows]
        length = text_length(values)
        distinct = len({*map(str, values)})
        if length and _MAX_REPEATS * distinct > len(values):
            lengths[name] = length
    return lengths


def text_length(values: Iterable[object]) -> float:
    """The median length of texts; 0 if most values, or all, are addresses, ids, dates or numbers."""
    return median([*map(_text_length, islice(values, _MAX_ROWS))] or [0])


def _text_length(value: object) -> int:
    if not isinstance(value, str):
        return 0
    start = value[:_MAX_CHARS]
    letters = sum(map(str.isalpha, start))
    if 3 * letters <= len(start) or _NO_TEXT.fullmatch(start.strip()):
        return 0
    return len(value)


def _likely_pair(lengths: Mapping[str, float]) -> list[str]:
    """The only two columns with long texts, if their lengths or names (`A 1`, `A 2`) are alike; else empty."""
    long = [name for name, length in lengths.items() if length >= _MIN_LENGTH]
    if len(long) != 2:
        return []
    shorter, longer = sorted(lengths[name] for name in long)
    stems = {name[:-1] for name in long}
    return long if len(stems) == 1 or 2 * longer < 3 * shorter else []


def _text_option(lengths: Mapping[str, float]) -> str:
    """`--columns` with the column of the longest texts."""
    return _columns_option(text=max(lengths, key=lengths.__getitem__, default=_UNKNOWN))


def _columns_option(**roles: str) -> str:
    """`--columns` with a column for each role; a name that the option can't contain becomes NAME."""
    columns = []
    for role, name in roles.items():
        is_usable = {*",="}.isdisjoint(name)
        columns.append(f"{role}={one_line(name) if is_usable else _UNKNOWN}")
    return f"--columns {quote(','.join(columns))}"

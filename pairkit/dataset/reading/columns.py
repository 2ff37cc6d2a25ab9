"""Map the columns of a source to text1, text2 and label, and check every text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import BLANK, one_line
from pairkit.base.system.text_lines import note_once
from pairkit.dataset.labels import LEAVE_OUT, MISSING
from pairkit.dataset.negative_columns import (
    NEGATIVES,
    ROW,
    by_number,
    has_lists,
    lists_of_negatives,
    negative_columns,
)
from pairkit.dataset.reading.label_meaning import LabelColumn
from pairkit.dataset.reading.proposed_columns import (
    MIN_LENGTH,
    UNKNOWN,
    Meant,
    Rows,
    columns_option,
    likely_pair,
    text_lengths,
    text_option,
)
from pairkit.dataset.records import as_written


def _pairs(names: str) -> list[list[str]]:
    return [pair.split() for pair in names.split(",")]


_PAIR_NAMES = _pairs("""
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
_POSITIVE_NAMES = _pairs("""
    anchor positive, query positive, text positive, query pos, question positive, sentence positive,
    query answer, question answer, sent0 sent1
""")
_MAPPED = ("text1", "text2", "label", "anchor", "positive", "text")
_MAPPED_NEGATIVE = re.compile(r"negative(_\d+)?")
_NO_NEGATIVES = "none"  # `negative=none` in a mapping ignores the columns of negatives
_DOCUMENT_NAMES = {
    "title": ("title", "headline", "subject", "summary"),
    "body": ("body", "text", "content", "abstract", "description"),
    "question": ("question", "query"),
    "answer": ("answer", "response"),
}
# The title only without a body.
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


@dataclass(frozen=True, slots=True)
class Roles:
    """The column of each role. Rows without `label` are positives, without `text2` single texts."""

    text1: str
    text2: str
    label: str = ""
    negatives: tuple[str, ...] = ()
    unwanted: tuple[str, ...] = ()


def find_roles(
    frame: pl.DataFrame,
    where: str,
    columns: Mapping[str, str] | None = None,
    meant: Meant = "pairs",
) -> Roles:
    """Find the columns by an explicit mapping, or by common names."""
    names = frame.columns
    mapped = _mapped_roles(names, where, columns, single=meant != "pairs") if columns else None
    roles = mapped or _known_roles(frame, where, meant)
    if not mapped and roles.negatives and (label := _first_of(_POSITIVE_LABELS, names)):
        raise DataError(  # a label in a row with negatives is ambiguous
            f"has the label column {one_line(label)} beside negatives; drop it, or give --columns"
            " with the other columns",
            path=where,
        )
    used = {roles.text1, roles.text2, roles.label, *roles.negatives}
    unused = tuple(name for name in negative_columns(names) if name not in used)
    if not roles.text2 or not unused:
        return roles
    if (columns or {}).get("negative") != _NO_NEGATIVES:
        raise DataError(
            f"would not use {one_line(', '.join(unused))}, which by name are negatives; drop them, or give"
            f" the columns to use as --columns, with negative={_NO_NEGATIVES} to ignore negatives",
            path=where,
        )
    return replace(roles, unwanted=unused)


def _first_of(usual: Sequence[str], names: Sequence[str]) -> str:
    """The column with the first of the usual names that is there, in upper or lower case; else empty."""
    known = _by_lower_case(names)
    return next((known[name] for name in usual if name in known), "")


def _by_lower_case(names: Sequence[str]) -> dict[str, str]:
    """The columns by their names in lower case; the first, unless one has just this name."""
    in_lower_case = {name.lower(): name for name in reversed(names)}
    return in_lower_case | {name: name for name in names}


def _known_roles(frame: pl.DataFrame, where: str, meant: Meant) -> Roles:
    names = frame.columns
    if meant != "pairs" and len(names) == 1:
        return Roles(names[0], "")
    if names == ["text"]:
        raise DataError(
            "has single texts, expected pairs; `aoe sample-pairs` draws pairs of them to judge",
            path=where,
        )
    label = _first_of(_LABEL_NAMES, names)
    negatives = negative_columns(names)
    pair = known_pair(names, _PAIR_NAMES)
    if {"answer", "_task_hash"} <= {*names}:  # of Prodigy, beside the label that was proposed
        raise DataError(
            f"has answers of Prodigy; give {_pair_option(pair, 'answer')} if pairs are similar that were"
            " accepted",
            path=where,
        )
    if pair and label:
        return Roles(pair[0], pair[1], label)
    if positives := known_pair(names, _POSITIVE_NAMES):
        label = "" if negatives else _first_of(_POSITIVE_LABELS, names)
        return Roles(positives[0], positives[1], label, negatives)
    option = _advice(frame, pair, label, meant)
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
    """The columns of two texts, in upper or lower case; else empty."""
    known = _by_lower_case(names)
    for pair in usual:
        if {*pair} <= known.keys():
            return [known[name] for name in pair]
    return []


def _advice(
    frame: pl.DataFrame,
    pair: Sequence[str],
    label: str,
    meant: Meant,
) -> str:
    """`--columns` with the likely columns of a pair and its label, or of a text."""
    lengths = text_lengths(frame.iter_rows(named=True))
    names = frame.columns
    pair = pair or likely_pair(lengths)
    if meant == "texts" or (meant == "rows" and not pair):
        return text_option(lengths)
    if pair and names[:-1] == pair:
        label = label or names[-1]
    return _pair_option(pair, label, is_labelled=len(names) != 2)


def _pair_option(pair: Sequence[str], label: str, *, is_labelled: bool = True) -> str:
    """`--columns` of a pair with its label, or else of a positive."""
    one, other = pair or (UNKNOWN, UNKNOWN)
    if not is_labelled:
        return columns_option(anchor=one, positive=other)
    return columns_option(text1=one, text2=other, label=label or UNKNOWN)


def _check_mapping(
    columns: Mapping[str, str],
    roles: Sequence[str],
    names: Sequence[str],
    where: str,
) -> None:
    """Refuse unknown roles, and columns that don't exist."""
    for role, name in columns.items():
        if role not in roles:
            raise ConfigError(f"column mapping {role!r}: expected one of {', '.join(roles)}")
        if name not in names:
            shown = one_line(", ".join(names)) or "(none)"
            raise DataError(f"no column {name!r} for {role}; there are {shown}", path=where)


def _mapped_roles(
    names: list[str],
    where: str,
    columns: Mapping[str, str],
    *,
    single: bool,
) -> Roles:
    used = {**columns}
    if columns.get("negative") == _NO_NEGATIVES:
        del used["negative"]
    negatives = [role for role in used if _MAPPED_NEGATIVE.fullmatch(role)]
    known = [*_MAPPED, *(negatives or ("negative", "negative_1", "…"))]
    _check_mapping(used, known, names, where)
    if used.keys() == {"text1", "text2", "label"}:
        return Roles(used["text1"], used["text2"], used["label"])
    if used.keys() == {"anchor", "positive", *negatives}:
        negatives.sort(key=lambda role: by_number(role[len("negative_") :]))
        in_order = tuple(used[role] for role in negatives)
        return Roles(used["anchor"], used["positive"], negatives=in_order)
    if single and columns.keys() == {"text"}:
        return Roles(columns["text"], "")
    also = ", or only text" if single else ""
    raise ConfigError(
        "a column mapping names text1, text2 and label, or anchor, positive and perhaps negatives"
        f"{also}; found {', '.join(columns)}"
    )


def text_column(
    names: Sequence[str],
    where: str,
    columns: Mapping[str, str] | None,
    rows: Rows,
    strings: Sequence[str] = (),
) -> str:
    """The column of single texts: as given, of a known name, the only one, or the only one with strings."""
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
            f" {text_option(text_lengths(rows))}",
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
    """The columns of title, body, question and answer; `needed` refuses a table without body and question."""
    names = frame.columns
    if columns:
        _check_mapping(columns, ["text", *_DOCUMENT_NAMES, "document"], names, where)
        roles = {**columns}
        if "text" in roles:
            roles["body"] = roles.pop("text")
    else:
        roles = {role: _first_of(usual, names) for role, usual in _DOCUMENT_NAMES.items()}
        roles = {role: name for role, name in roles.items() if name}
    for role, partner in (("question", "answer"), ("answer", "question")):
        if role in roles and partner not in roles:
            if columns:
                raise ConfigError(f"column mapping {role!r}: also give {partner}")
            del roles[role]
    if needed and not {"question", "body"} & roles.keys():
        lengths = text_lengths(frame.iter_rows(named=True))
        option = text_option(lengths)
        are_long = min(lengths.values(), default=0) >= MIN_LENGTH
        if len(names) == len(lengths) == 2 and are_long:
            option = columns_option(question=names[0], answer=names[1])
        raise DataError(
            f"found the columns {one_line(', '.join(names))}, expected title and body, question and answer,"
            f" or text; rename them or give {option}",
            path=where,
        )
    return roles


# From here on, frames have the column `ROW`.


def label_column(
    frame: pl.DataFrame,
    roles: Roles,
    where: str,
    classes: Sequence[str],
) -> LabelColumn:
    """The labels of a table."""
    values = frame[roles.label]
    check_flat(values, frame[ROW], where)
    if values.dtype == pl.Binary:
        values = as_text(frame, roles.label, where)
    texts = (roles.text1, roles.text2)
    return LabelColumn(values, frame[ROW], _all_labels(1, frame), where, texts, classes)


def to_pairs(
    frame: pl.DataFrame,
    roles: Roles,
    where: str,
    labels: pl.Series | None,
) -> pl.DataFrame:
    """Rows with text1, text2, label and other columns; a triplet becomes a positive and its negatives."""
    frame = _with_texts(frame.drop(roles.unwanted), roles, where)
    if labels is not None:
        frame = frame.filter(labels.is_not_null())
        labels = labels.drop_nulls()
        binary = labels.is_in([0.0, 1.0]).all()
        labels = labels.cast(pl.Int64 if binary else pl.Float32).alias(roles.label)
        return _rows(frame, roles.text1, roles.text2, labels)
    positives = _one_positive(frame, roles)
    pairs = _rows(positives, roles.text1, roles.text2, _all_labels(1, positives))
    if not roles.negatives:
        return pairs
    lists = lists_of_negatives(frame, roles.negatives, where)
    others = frame.drop(roles.text2, *roles.negatives)
    rows = others.with_columns(lists).explode(NEGATIVES)
    negatives = _rows(rows, roles.text1, NEGATIVES, _all_labels(0, rows))
    both = pl.concat([pairs.drop(roles.negatives), negatives])
    return both.sort(ROW, maintain_order=True)


def _all_labels(label: int, rows: pl.DataFrame) -> pl.Series:
    # Without a name, as columns of its name are replaced.
    return pl.repeat(label, rows.height, dtype=pl.Int64, eager=True).alias("")


def to_rows(
    frame: pl.DataFrame,
    roles: Roles,
    where: str,
    labels: pl.Series | None = None,
) -> pl.DataFrame:
    """Rows as in the source: pairs with labels, positives with negatives, or single texts."""
    if labels is not None:
        return to_pairs(frame, roles, where, labels).select("text1", "text2", "label", ROW)
    frame = _with_texts(frame, roles, where)
    if not roles.text2:
        return frame.select(pl.col(roles.text1).alias("text"), ROW)
    anchor = pl.col(roles.text1).alias("anchor")
    positive = pl.col(roles.text2).alias("positive")
    columns = [anchor, positive]
    if roles.negatives:
        frame = frame.with_columns(lists_of_negatives(frame, roles.negatives, where))
        columns.append(pl.col(NEGATIVES))
    return _one_positive(frame, roles).select(*columns, ROW)


def _one_positive(frame: pl.DataFrame, roles: Roles) -> pl.DataFrame:
    """A row for each positive, if rows have lists of them."""
    return frame.explode(roles.text2) if _has_lists(frame, roles) else frame


def _has_lists(frame: pl.DataFrame, roles: Roles) -> bool:
    return not roles.label and roles.text2 != "" and has_lists(frame[roles.text2])


def _with_texts(frame: pl.DataFrame, roles: Roles, where: str) -> pl.DataFrame:
    """The frame with all columns of texts cast to String, or List of String."""
    if _has_lists(frame, roles):
        positives = lists_of_negatives(frame, [roles.text2], where)
        frame = frame.with_columns(positives.alias(roles.text2))
    texts = []
    for name in filter(None, (roles.text1, roles.text2, *roles.negatives)):
        may_be_list = name in roles.negatives or (name == roles.text2 and not roles.label)
        if may_be_list and isinstance(frame[name].dtype, pl.List | pl.Array):
            continue
        check_flat(frame[name], frame[ROW], where)
        texts.append(as_text(frame, name, where))
    return frame.with_columns(texts)


def check_flat(column: pl.Series, rows: pl.Series, where: str) -> None:
    """Refuse lists and structures in place of texts."""
    if column.dtype.is_nested():
        raise DataError(
            f"the column {one_line(column.name)} has lists or structures; expected a single value in each"
            " row",
            path=where,
            row=_first_structure(column, rows),
        )


def _first_structure(column: pl.Series, rows: pl.Series) -> int:
    """The row of the first list or structure."""
    is_structure = column.is_not_null()
    if column.dtype == pl.List(pl.String):
        # In JSON, these are texts beside structures, which have a null at their end.
        is_marked = (column.list.len() > 1).fill_null(value=False)
        if is_marked.any():
            is_structure = is_marked
    return int(rows[is_structure.arg_max() or 0])


def as_text(frame: pl.DataFrame, name: str, where: str) -> pl.Series:
    """A column as texts."""
    column = frame[name]
    text = _decoded(column) if column.dtype == pl.Binary else as_written(column)
    invalid = text.is_null() & column.is_not_null()
    if invalid.any():
        raise DataError(
            f"{one_line(name)} has bytes that aren't UTF-8; expected a text",
            path=where,
            row=int(frame[ROW][invalid.arg_max() or 0]),
        )
    return text


def _decoded(column: pl.Series) -> pl.Series:
    """Bytes as texts, null if invalid; polars would fail for the whole column."""
    texts = []
    for value in column:
        try:
            texts.append(None if value is None else value.decode())
        except UnicodeDecodeError:
            texts.append(None)
    return pl.Series(column.name, texts, pl.String)


def _rows(
    frame: pl.DataFrame,
    text1: str,
    text2: str,
    label: pl.Series,
) -> pl.DataFrame:
    """text1, text2, label, then other columns, with the prefix `source_` for equal names."""
    names = {name: f"source_{name}" for name in ("text1", "text2", "label")}
    rest = frame.drop(text1, text2, label.name, strict=False)
    rest = rest.rename(names, strict=False)
    pairs = frame.select(
        as_written(frame[text1]).alias("text1"),
        as_written(frame[text2]).alias("text2"),
        label.alias("label"),
    )
    return pairs.hstack(rest)


def missing_texts(frame: pl.DataFrame, roles: Roles, where: str) -> Iterator[tuple[str, pl.Series]]:
    """For each required text: the reason why rows lack it, and a mask of these rows."""
    frame = _with_texts(frame, roles, where)
    columns = {"text1": roles.text1, "text2": roles.text2}
    if not roles.label:
        columns = {"anchor": roles.text1, "positive": roles.text2}
    if not roles.text2:
        columns = {"text": roles.text1}
    for name, column in columns.items():
        texts = frame[column]
        if texts.dtype == pl.List:
            yield f"empty_{name}", texts.list.len() == 0
            continue
        texts = texts.fill_null("")
        is_missing = texts.str.contains(MISSING)
        is_blank = texts.str.contains(f"^{BLANK}*$")
        yield f"empty_{name}", is_blank
        yield f"placeholder_{name}", is_missing & ~is_blank
    if roles.negatives:
        yield (
            "empty_negative",
            lists_of_negatives(frame, roles.negatives, where).list.len() == 0,
        )


def missing_text(
    frame: pl.DataFrame,
    roles: Roles,
    where: str,
    reason: str,
    place: int,
) -> DataError:
    """The error for a row that lacks a text."""
    kind, _, name = reason.partition("_")
    problem = f"{name} is empty"
    if kind == "placeholder":
        column = roles.text2 if name in ("text2", "positive") else roles.text1
        problem = f"{name} is {frame[column][place]!r}, so missing"
    elif name == "negative" and len(roles.negatives) > 1:
        problem = f"all of {', '.join(roles.negatives)} are empty"
    message = f"{one_line(problem)}; fill it, drop the row, {LEAVE_OUT}"
    return DataError(message, path=where, row=int(frame[ROW][place]))

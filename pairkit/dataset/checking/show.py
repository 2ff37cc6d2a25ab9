"""One pair as a table: both texts side by side, with shared words marked."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import polars as pl
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pairkit.base.errors import ConfigError
from pairkit.base.printable import printable
from pairkit.dataset.reading.parts import split_name
from pairkit.dataset.records import PairDataset, all_texts, with_provenance
from pairkit.similarity.terms import common_words, distinct_words, split_at_words

_SAMPLE = 1000  # pairs in which words that most texts have are counted
_MAX_CHARS = 1000  # of each text, so that the table fits on a screen
_WIDTH = 130


@dataclass(frozen=True, repr=False)
class ShownPair:
    """One row of a dataset, displayed as a table on a terminal and in a notebook.

    Attributes:
        where: The split and the number of the row.
        row: The columns of the row.
        common: Words of many texts, which are not marked.
    """

    where: str
    row: dict[str, Any]
    common: frozenset[str] = frozenset()

    def __rich__(self) -> Table:
        row = self.row
        text1 = row["text1"]
        text2 = row["text2"]
        # As `Text`, because rich would read `[bot]` in a dataset as markup.
        title = _plain(f"{self.where}; label {row['label']:g}")
        caption = _plain(_caption(row))
        table = Table(
            box=box.ROUNDED,
            show_lines=True,
            title=title,
            caption=caption,
            expand=True,
        )
        repo = row.get("repo") or ""
        for side, repo_of_side in (("1", repo), ("2", row.get("repo2") or repo)):
            number = row.get(f"number{side}")
            issue = "" if number is None else f": {repo_of_side}#{number}"
            table.add_column(_plain(f"text{side}{issue}"), ratio=1, overflow="fold")
        table.add_row(
            _marked(text1, text2, self.common), _marked(text2, text1, self.common)
        )
        return table

    def __repr__(self) -> str:
        console = Console(file=io.StringIO(), width=_WIDTH, color_system=None)
        with console.capture() as captured:
            console.print(self)
        return captured.get().rstrip("\n")

    def to_svg(self) -> str:
        """The table as SVG."""
        console = Console(
            record=True,
            width=_WIDTH,
            file=io.StringIO(),
            force_terminal=True,
        )
        console.print(self)
        return console.export_svg(title="pairs show")

    _repr_html_ = to_svg


def pick_pair(
    dataset: PairDataset,
    split: str | None,
    number: int,
    label: float | None,
) -> ShownPair:
    """Row `number` of a split (default: the last split), counted among rows with `label` if given."""
    split = split_name(split) if split else [*dataset.splits][-1]
    if split not in dataset.splits:
        raise ConfigError(
            f"split = {split}: {dataset.source} has {', '.join(dataset.splits)}"
        )
    rows = with_provenance(dataset).splits[split]
    if label is not None:
        rows = rows.filter(pl.col("label") == label)
        if not rows.height:
            raise ConfigError(
                f"label = {label:g}: no pair in {split} of {dataset.source} has it"
            )
    if not 0 <= number < rows.height:
        raise ConfigError(
            f"row = {number}: {split} of {dataset.source} has {rows.height} such rows, counted from 0"
        )
    common = common_words(all_texts(rows.head(_SAMPLE)))
    return ShownPair(f"{split}, row {number}", rows.row(number, named=True), common)


def _caption(row: dict[str, Any]) -> str:
    evidence = row.get("evidence")
    if evidence:
        who = evidence["who"] or "an unknown account"
        day = evidence["when"][:10] if evidence["when"] else "an unknown day"
        details = f"{evidence['kind']} by {who} on {day}: {evidence['url']}"
        relation = row.get("relation")
        confidence = row.get("confidence")
        if relation and confidence is not None:
            return f"{relation} ({confidence:.2f}), {details}"
        return details
    kind = row.get("negative_kind")
    return f"drawn as a {kind} negative" if kind else ""


def _plain(text: str) -> Text:
    return Text(printable(text))


def _marked(text: str, partner: str, common: frozenset[str]) -> Text:
    shared = distinct_words(text) & distinct_words(partner)
    shown = text if len(text) <= _MAX_CHARS else text[:_MAX_CHARS].rstrip() + " …"
    marked = Text()
    for piece, is_shared in split_at_words(printable(shown), shared - common):
        marked.append(piece, "bold yellow" if is_shared else "")
    marked.highlight_regex(r"\A[^\n]*", "bold")
    return marked

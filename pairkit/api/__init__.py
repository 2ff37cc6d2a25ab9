"""The public functions of `pairkit`, which are also the commands of `pairs`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator

from pairkit.base.cli.options import INPUT, OUTPUT, Option, Request
from pairkit.base.settings import split_at_commas
from pairkit.dataset.labels import LabelRules, label_rules
from pairkit.dataset.shared_options import SHARED

if TYPE_CHECKING:
    from pairkit.dataset.labels import Meaning
    from pairkit.dataset.reading.in_memory import Source
    from pairkit.dataset.records import PairDataset

SplitSizes = Annotated[list[float], BeforeValidator(split_at_commas)]
"""Three numbers, or their text with commas."""

options = SHARED.extended(
    source=Option(
        "A folder, a CSV, TSV, JSONL or Parquet file, or a Hub id. A folder is a pair dataset, one of"
        " `Dataset.save_to_disk`, or has files named after splits; text files may be gzipped; a Hub id is"
        " `owner/name` or `owner/name:config`. In Python also a DataFrame, a `datasets.Dataset`, a list of"
        " dicts, or a mapping of splits to any of these.",
        metavar="DATASET",
        positional=True,
    ),
    out=replace(
        SHARED["out"], text="Folder of the dataset. None writes nothing.", required=True
    ),
    store=Option(
        "File of the review. Default: DATASET.review.", metavar="FILE", panel=INPUT
    ),
    dropped=Option(
        "File for the rows that are left out, with reasons: .csv, .tsv, .jsonl or .parquet.",
        metavar="FILE",
        panel=OUTPUT,
    ),
    conflicts=Option(
        "What to do with pairs that have different labels: drop, first (keep the first label), error or keep."
        " Case, blanks and punctuation of texts are ignored; scores differ from a fifth of their scale on.",
        metavar="NAME",
        main=True,
    ),
    cut_negatives=Option(
        "Drop negatives whose texts are in different splits. Use it for datasets whose negatives connect all"
        " texts: only positives then group the texts."
    ),
    split_sizes=Option(
        "Proportions of train, validation and test: fractions of 1, or whole numbers.",
        metavar="A,B,C",
        main=True,
    ),
)


class ReadRequest(Request, shared=options):
    """The arguments with which pairs are read."""

    _: KW_ONLY
    columns: Mapping[str, str] | None = None
    labels: Mapping[str, Meaning] | str | None = None
    label_range: tuple[float, float] | str | None = None
    bad_rows: str = "error"

    def rules(self) -> LabelRules:
        """How labels and unusable rows are read."""
        return label_rules(self.labels, self.label_range, self.bad_rows)

    def pairs_of(self, source: Source, **details: Any) -> PairDataset:
        """Read the pairs of a source."""
        from pairkit.dataset.reading.reader import read_pairs

        return read_pairs(source, self.columns, self.rules(), **details)

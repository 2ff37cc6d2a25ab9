"""The public functions of `pairkit`, which are also the commands of `pairs`."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import BeforeValidator

from pairkit.base.cli.options import INPUT, OUTPUT, Option
from pairkit.base.settings import split_at_commas
from pairkit.dataset.shared_options import SHARED

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

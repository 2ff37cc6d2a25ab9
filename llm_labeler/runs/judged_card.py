"""The card of a dataset with silver labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pairkit.dataset.card import dataset_card, table

WORDS = ("same", "related", "different")

_ABOUT = """
Pairs of texts from another dataset, judged anew by large language models that saw neither the label that
stood there nor one another's answers. `label` is what they decided: *silver*, as no person checked it. Built
with `label judge`.
"""
_WORD_SCHEMA = """
| column | type | meaning |
|---|---|---|
| text1, text2 | string | the pair |
| label | int64 | 1 where the judges found that both say the same, else 0 |
| judged | string | `same`, `related` or `different` |
| confidence | float32 | how likely that is by the judges' votes and accuracies, from 0 to 1 |
| probability | float32 | how likely `same` is, by the same; its doubt widens the intervals of `aoe` |
| given_label | number | the label of the source |
| votes | list of (judge, vote) | what each judge said |
"""
_FURTHER = """
Further columns are the source's; one that had such a name has `source_` before it.
"""
_LIMITS = """
* **The labels are machines'.** Judges of one family err alike. Measure a sample by hand before you rely
  on them.
* Pairs on which the judges did not agree well enough are left out, so what is left is easier than the source.
* A label that contradicts the source's may be the source's error or the judges'.
"""


def silver_card(
    statistics: Mapping[str, Any], run: Mapping[str, Any], files: Mapping[str, Mapping[str, str]]
) -> str:
    """The README of the dataset."""
    splits = statistics["splits"]
    names = ("pairs", *WORDS)
    rows = [(name, *(split.get(name, 0) for split in splits.values())) for name in names]
    found = statistics["contradictions"]
    counts = (
        f"{table(['', *splits], rows)}\n\nThe judges contradict the source in {sum(found.values()):,} pairs:"
        f" {found['given_same']:,} that it calls the same, and {found['given_other']:,} that it does not."
    )
    return dataset_card(
        "Pairs judged by LLMs",
        configs=files,
        rows=sum(split["pairs"] for split in splits.values()),
        sections=[
            ("", _ABOUT),
            ("Counts", counts),
            ("Columns", _WORD_SCHEMA + _FURTHER),
            ("Judges", _judges(statistics, run)),
            ("Limitations", _LIMITS),
            ("Licence", "The texts keep the terms of the dataset that they came from."),
        ],
        tags=("llm-labelled",),
    )


def _judges(statistics: Mapping[str, Any], run: Mapping[str, Any]) -> str:
    judges = [
        (f"`{name}`", f"`{run['llms'][name]['model']}`", round(judge["accuracy"], 2))
        for name, judge in statistics["judges"]["by_name"].items()
    ]
    return table(("name", "model", "estimated accuracy"), judges)

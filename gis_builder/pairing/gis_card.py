"""The README of a dataset of issues: columns, making, rendering, limitations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gis_builder.pairing.secrets import KINDS
from pairkit.dataset.making.dataset_folder import dataset_card, table

_TITLE = "GitHub Issues Similarity"

_INTRODUCTION = """
Pairs of GitHub issues or of tickets. Label 1: a maintainer closed one issue as a duplicate of the other.
Label 0: two issues of the same repository that are not known to be duplicates. Texts are long: the title and
body of an issue with its code. Built with `gis`.
"""

_SCHEMA = """
Configuration `default`:

| column | type | meaning |
|---|---|---|
| text1, text2 | string | title, empty line, body of each issue; their order is random |
| label | int64 | 1: duplicate, 0: not |
| repo | string | `owner/name` of the first issue |
| number1, number2 | int64 | numbers of the issues |
| repo2 | string | `owner/name` of the second issue; only if pairs cross repositories |
| url1, url2 | string | their pages; for tickets without a page, their ids |
| created_at1, created_at2 | string | when they were opened, ISO 8601, UTC |
| cluster | string | the duplicate cluster, named after its lowest issue; null for a negative |
| relation | string | the relation that the closing states (below); null for a negative |
| reason | string | who stated it and how, such as `closer_duplicate`; null for a negative |
| confidence | double | the detector's score in [0, 1]: a rank, not a probability; null for a negative |
| same_probability | double | estimate that both describe one problem, by words rare in the run; else null |
| evidence | struct | kind, url, who, when: the statement that made it a positive; null for a negative |
| negative_kind | string | `random` or `hard`; null for a positive |

Relations: `duplicate` (marked, labelled or called so), and by the words of the closing `same` ("same issue
as"), `reported` ("already reported as"), `superseded` ("in favour of", "subsumed by"), `tracked` ("tracked
in", "covered by"), `part-of`. Not all duplicates describe the same problem; some are a part, a symptom or a
sibling of another one. In samples from eight trackers, half to nine tenths of `duplicate` pairs did;
`same_probability` estimates it for each pair. Relations that were not selected (`pair.relations`) still tie
issues: they are in one cluster and split, and never a negative.

Configuration `positive`: `anchor` (the duplicate) and `positive` (the issue it was closed for).
"""

_MAKING = """
* **Positives.** The issue is closed, was not reopened, and its events or its maintainers' comments name the
  issue that it duplicates. Issues tied by such verdicts form a cluster.
* **Splits.** Each cluster is in one split, together with all clusters and issues that have near-identical
  texts (Jaccard similarity of word triples, found by MinHash). Repositories are spread evenly over the
  splits.
* **Negatives** are drawn within one repository and split, from different clusters. They reuse the issues of
  positives, each about as often as in positives, so that one text alone reveals little about the label.
  Unless `match` is `none`, they have the time gaps of positives: duplicates are often opened close together,
  and dates would reveal the label. The AUC of the gap measures how much they do: 0.5 means not at all, 1
  completely (about 0.8 without matching). `random` pairs are random, `hard` pairs are similar by BM25. Pairs
  that may be unmarked duplicates are excluded: near-identical texts, mentions of each other, equal titles,
  high BM25 scores.
* The seed and the data determine the dataset: equal input gives equal files. `run.json` has the settings,
  `statistics.json` the counts of dropped pairs and issues by reason.
"""

_RENDERING = """
With the same rules for both labels, in title and body: newlines and Unicode (NFC) are made uniform, control
characters, HTML comments, template checklists, and headings and questions that at least 5 of 100 issues of a
repository repeat are removed; images are replaced by their alternative text;
**statements about being a duplicate are removed** ("duplicate of …", "[dup]", "closing in favour of …");
**all references to issues and pull requests are removed** (numbers, links, file names such as
`issue-12.rs`), with the words that lead to them ("see", "related to"); credentials are replaced by `[secret]`
and e-mail addresses by `[email]` (listed below), login names in paths and prompts and names before e-mail
addresses by `user`, login names of people who are addressed or quoted ("cc @ann") by `@user`; blanks at line
ends and repeated blank lines are removed, also in code.
"""

_SECRETS = f"""
Only these are replaced:

{chr(10).join(f"* {kind}" for kind in KINDS.values())}

They are found by their format or by the name before them, so some are missed; `statistics.json` counts each
kind under `removed_from_texts`. Other names of people, postal addresses, phone numbers and IP addresses stay.
"""

_LIMITS = """
* Label 0 means *not known* to be a duplicate. Trackers have unmarked duplicates; only some are excluded.
* Verdicts depend on what people wrote; a few are wrong. `evidence.url` is the statement.
* Texts are the last edited versions, so a body may contain what its author learned later.
* Most texts are English and about software.
* The share of texts over 512 tokens is estimated without a tokenizer.
"""

_LICENCE = """
The texts belong to the people who wrote the issues and are public under the terms of service of GitHub; the
licences of the repositories do not cover them. Cite the pages of the issues, respect requests for removal,
and check what your use requires before you share the texts.
"""

# The rows of the table in the card, by key of the counts.
_COUNTED = {
    "positive": "positive",
    "negative": "negative",
    "total": "total",
    "long_share": "texts over 512 tokens",
}


def gis_card(counts: Mapping[str, Any], files: Mapping[str, Mapping[str, str]]) -> str:
    """The README of the dataset."""
    rows = sum(split["total"] for split in counts["splits"].values())
    sections = [
        ("", _INTRODUCTION),
        ("Counts", _counts(counts)),
        ("Columns", _SCHEMA),
        ("How it was made", _MAKING),
        ("How a text is rendered", _RENDERING),
        ("Credentials in texts", _SECRETS),
        ("Limitations", _LIMITS),
        ("Licence", _LICENCE),
    ]
    return dataset_card(
        _TITLE,
        configs=files,
        rows=rows,
        sections=sections,
        tags=("github-issues", "long-text"),
    )


def _counts(counts: Mapping[str, Any]) -> str:
    splits: Mapping[str, Mapping[str, Any]] = counts["splits"]
    lines: list[list[Any]] = []
    for key, name in _COUNTED.items():
        lines.append([name, *(split[key] for split in splits.values())])
    areas = [split["gap_auc"] for split in splits.values()]
    shown = ("–" if area is None else f"{area:.2f}" for area in areas)
    lines.append(["AUC of the gap in time", *shown])
    count = counts["repository_count"]
    noun = "repository" if count == 1 else "repositories"
    relations = [f"`{name}` {count:,}" for name, count in counts["relations"].items()]
    by_relation = f"Positives by relation: {', '.join(relations)}."
    return f"{table(['', *splits], lines)}\n\n{count:,} {noun}. {by_relation}"

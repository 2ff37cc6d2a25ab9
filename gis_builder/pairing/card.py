"""The card of a GIS dataset: what is in it, how it was made, what it is not good for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gis_builder.pairing.secrets import KINDS
from pairkit.dataset.card import dataset_card, table

_TITLE = "GitHub Issues Similarity"

_INTRODUCTION = """
Pairs of GitHub issues. Label 1: a maintainer closed one as a duplicate of the other. Label 0: two issues of
the same repository that are not known to be duplicates. Texts are long: title and body of an issue, code
included. Built with `gis`.
"""

_SCHEMA = """
Configuration `default`:

| column | type | meaning |
|---|---|---|
| text1, text2 | string | title, empty line, body of either issue; which one comes first says nothing |
| label | int64 | 1 duplicate, 0 not |
| repo | string | `owner/name` of the first issue |
| number1, number2 | int64 | numbers of the issues |
| url1, url2 | string | their pages |
| created_at1, created_at2 | string | when they were opened, ISO 8601, UTC |
| cluster | string | the duplicate cluster, named after its lowest issue; null for a negative |
| relation | string | how the closing words tie the two (below); null for a negative |
| reason | string | who said so and how, as in `closer_duplicate`; null for a negative |
| confidence | double | the detector's, in [0, 1]: a rank, not a probability; null for a negative |
| evidence | struct | kind, url, who, when: the statement that made it a positive; null for a negative |
| negative_kind | string | `random` or `hard`; null for a positive |

Relations, as the closing words say: `duplicate` (marked or called so), `same` ("same issue as"), `reported`
("already reported as"), `superseded` ("in favour of", "subsumed by"), `tracked` ("tracked in", "covered by"),
`part-of`. Read by eye in one large tracker, 97 % of `duplicate` describe the same problem, 90 % of `same`,
84 % of `reported`, about half of `superseded` and `tracked`, 18 % of `part-of`. Those that were not chosen
(`pair.relations`) still tie issues into clusters: they are never parted, and never a negative.

Configuration `positive`: `anchor` (the duplicate) and `positive` (the issue it was closed for).
"""

_MAKING = """
* **Positives.** The issue is closed, was not reopened, and its events or its maintainers' comments name the
  issue that it duplicates. Issues tied by such verdicts form a cluster.
* **Splits.** A cluster is never parted. Clusters and single issues with near-identical texts (Jaccard
  similarity of word triples, found by MinHash) go to one split. Repositories are spread evenly over the
  splits.
* **Negatives** are drawn within one repository and split, after the splits were made, from outside the
  cluster. Issues that stand in positives are paired anew, each about as often as it stands in positives: one
  text alone says little about the label. Unless `match` says otherwise, the time between the openings of a
  negative's issues is like that of some positive: duplicates stand near one another in time, and dates would
  give the label away. How far they do is the AUC of that gap: 0.5 not at all, 1 wholly (some 0.8 unmatched).
  `random` pairs are drawn at random within that, `hard` ones by BM25. A guard
  drops pairs that are near-identical, mention each other, share a title or score too high, as they may be
  duplicates nobody marked.
* The seed and the data decide everything; equal input gives equal files. `run.json` holds the settings,
  `statistics.json` the counts of all that was dropped, by reason.
"""

_RENDERING = """
By one rule for both labels, in title and body: newlines and Unicode (NFC) made uniform, control characters
dropped; HTML comments and template checklists dropped; images replaced by their alternative text;
**statements about being a duplicate dropped** ("duplicate of …", "[dup]", "closing in favour of …"); **every
reference to an issue or pull request dropped**, whichever it points at (numbers, links, file names such as
`issue-12.rs`), with the words that only lead to it ("see", "related to"); credentials replaced by `[secret]`
and e-mail addresses by `[email]` (the kinds stand below);
blank lines tidied. Code stays.
"""

_SECRETS = f"""
What is replaced, and nothing else:

{chr(10).join(f"* {what}" for what in KINDS.values())}

They are found by their shape or by the name before them, so some are missed; `statistics.json` counts each
kind under `removed_from_texts`. Names of people, postal addresses, phone numbers and IP addresses stay.
"""

_LIMITS = """
* Label 0 means *not known* to be a duplicate. Trackers hold duplicates that nobody marked; the guard finds
  some.
* Verdicts come from what people wrote; a few are wrong. `evidence.url` leads to the statement.
* Texts are as last edited, so a body may know more than its author did when opening the issue.
* Mostly English, mostly software.
* A share over 512 tokens is estimated without a tokenizer.
"""

_LICENCE = """
The texts belong to the people who wrote the issues and are public under the terms of service of GitHub; the
licences of the repositories do not cover them. Cite the issues' pages, respect requests for removal, and
check what your use needs before you share the texts further.
"""


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
        _TITLE, configs=files, rows=rows, sections=sections, tags=("github-issues", "long-text")
    )


def _counts(counts: Mapping[str, Any]) -> str:
    splits: Mapping[str, Mapping[str, Any]] = counts["splits"]
    lines = [
        (name, *(split[key] for split in splits.values()))
        for name, key in (
            ("positive", "positive"),
            ("negative", "negative"),
            ("total", "total"),
            ("texts over 512 tokens", "long_share"),
        )
    ]
    lines.append(("AUC of the gap in time", *(_auc(split["gap_auc"]) for split in splits.values())))
    count = counts["repository_count"]
    noun = "repository" if count == 1 else "repositories"
    relations = ", ".join(f"`{relation}` {count:,}" for relation, count in counts["relations"].items())
    return f"{table(['', *splits], lines)}\n\n{count:,} {noun}. Positives by relation: {relations}."


def _auc(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"

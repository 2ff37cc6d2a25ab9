"""Write pairs and texts as a dataset folder: rows, counts, the list of dropped pairs, and the README."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl

from gis_builder.pairing.positives import UNLIKELY_SAME
from gis_builder.pairing.secrets import KINDS
from gis_builder.store import (
    GITHUB,
    DroppedPair,
    IssuePair,
    IssueRef,
    IssueText,
    Relation,
)
from pairkit.base.errors import DataError
from pairkit.base.system.seeded import keyed_hash
from pairkit.dataset.making.dataset_folder import (
    card_files,
    dataset_card,
    table,
    write_dataset,
)
from pairkit.dataset.table_files import read_parquet
from pairkit.similarity.measures import count_long, gap_auc, opening_times

_EVIDENCE_FIELDS = ("kind", "url", "who", "when")
_EVIDENCE = pl.Struct(dict.fromkeys(_EVIDENCE_FIELDS, pl.String))
_ROWS = """
    text1 text2 label repo number1 number2 url1 url2 created_at1 created_at2 cluster relation reason
    confidence same_probability evidence negative_kind
"""
_NUMBERS: dict[str, Any] = {
    **dict.fromkeys(("label", "number1", "number2"), pl.Int64),
    **dict.fromkeys(("confidence", "same_probability"), pl.Float64),
}
ROWS: dict[str, Any] = (
    dict.fromkeys(_ROWS.split(), pl.String) | _NUMBERS | {"evidence": _EVIDENCE}
)
POSITIVE_ROWS = {"anchor": pl.String, "positive": pl.String}
# `label` and `issue2` are null for an issue.
DROPPED_SCHEMA = {
    "reason": pl.String,
    "label": pl.Int64,
    "issue1": pl.String,
    "issue2": pl.String,
}
# What to change if all duplicates have these reasons.
_REMEDIES = {
    UNLIKELY_SAME: "lower --min-same-probability",
    "text_too_short": "lower text.min_words and text.min_chars",
    "below_min_confidence": "lower detect.min_confidence",
    "cross_repository": "set detect.allow_cross_repository=true",
}
# Number of rejected pairs by label and reason; for issues the label is None.
Reasons = Counter[tuple[int | None, str]]

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


def row_order(seed: int) -> Callable[[IssuePair], tuple[int, IssueRef, IssueRef]]:
    """The sort key of rows: a hash of the pair."""

    def key(pair: IssuePair) -> tuple[int, IssueRef, IssueRef]:
        low, high = sorted((pair.first, pair.second))
        return keyed_hash(seed, "row", low, high), pair.first, pair.second

    return key


def make_rows(
    pairs: Iterable[IssuePair],
    texts: Mapping[IssueRef, IssueText],
    seed: int,
    site: str = GITHUB,
    *,
    with_repo2: bool = False,
) -> pl.DataFrame:
    """The rows of one split; the seed decides their order and the first text, whatever the label."""
    ordered = sorted(pairs, key=row_order(seed))
    rows = [_row(pair, texts, seed, site) for pair in ordered]
    frame = pl.DataFrame(rows, schema=ROWS | {"repo2": pl.String}, orient="row")
    return frame if with_repo2 else frame.drop("repo2")


def make_positive_rows(
    positives: Sequence[IssuePair], texts: Mapping[IssueRef, IssueText], seed: int
) -> pl.DataFrame:
    """The positives with the duplicate as anchor and its original as positive."""
    pairs = sorted(positives, key=row_order(seed))
    return pl.DataFrame(
        {
            "anchor": [texts[pair.first].text for pair in pairs],
            "positive": [texts[pair.second].text for pair in pairs],
        },
        schema=POSITIVE_ROWS,
    )


def _row(
    pair: IssuePair,
    texts: Mapping[IssueRef, IssueText],
    seed: int,
    site: str,
) -> tuple[object, ...]:
    first, second = sorted((pair.first, pair.second))
    if keyed_hash(seed, "first", first, second) % 2 == 0:
        first, second = second, first
    grounds = pair.grounds
    stated: tuple[Any, ...] = (None, None, None)
    evidence = None
    if grounds:
        stated = (str(grounds.relation), grounds.reason, grounds.confidence)
        if grounds.evidence:
            said = grounds.evidence
            evidence = {name: getattr(said, name) for name in _EVIDENCE_FIELDS}
    return (
        texts[first].text,
        texts[second].text,
        pair.label,
        first.repo,
        first.number,
        second.number,
        first.page(site),
        second.page(site),
        texts[first].created_at,
        texts[second].created_at,
        pair.cluster or None,
        *stated,
        pair.same_probability,
        evidence,
        pair.negative_kind or None,
        second.repo,
    )


def write_gis(
    out: Path,
    positives: Mapping[str, Sequence[IssuePair]],
    negatives: Mapping[str, Sequence[IssuePair]],
    texts: Mapping[IssueRef, IssueText],
    *,
    seed: int,
    statistics: Mapping[str, object],
    run: Mapping[str, Any],
    site: str,
) -> dict[str, object]:
    """Write the dataset folder with the configurations `default` and `positive`; returns its statistics.

    Raises DataError with a remedy if there are no positives.
    """
    if not any(positives.values()):
        raise DataError(
            _why_empty(statistics, run["settings"]["pair"]["relations"]), path=out
        )
    all_positives = chain(*positives.values())
    crosses = any(pair.first.repo != pair.second.repo for pair in all_positives)
    rows = {}
    positive_rows = {}
    for split, pairs in positives.items():
        all_pairs = [*pairs, *negatives.get(split, ())]
        rows[split] = make_rows(all_pairs, texts, seed, site, with_repo2=crosses)
        positive_rows[split] = make_positive_rows(pairs, texts, seed)
    configs = {"default": rows, "positive": positive_rows}
    columns = {split: counted_columns(frame) for split, frame in rows.items()}
    counts = row_counts(columns) | dict(statistics)
    card = gis_card(counts, card_files(configs))
    write_dataset(out, configs, card=card, statistics=counts, run=run)
    return counts


def _why_empty(statistics: Mapping[str, Any], chosen: Collection[str]) -> str:
    """Why there is no positive, and what to do."""
    dropped = statistics["dropped_positives"]
    uncertain = statistics["verdicts"].get("uncertain", {})
    reasons = dropped or uncertain
    named = ", ".join(f"{reason} {count:,}" for reason, count in reasons.items())
    why = "no duplicates found"
    if dropped:
        why = f"every duplicate was rejected ({named}; see dropped.parquet)"
    elif uncertain:
        why = f"no duplicates found, only uncertain ones ({named})"

    remedies = [remedy for reason, remedy in _REMEDIES.items() if reason in reasons]
    found = [relation for relation in Relation if f"relation_{relation}" in dropped]
    if found:
        wanted = [each for each in Relation if each in chosen or each in found]
        remedies.insert(0, f"give --relations={','.join(wanted)}")
    return f"{why}; {' or '.join(remedies) or 'crawl or import more issues'}"


def counted_columns(rows: pl.DataFrame) -> pl.DataFrame:
    """The columns that `row_counts` needs, without texts; `long` counts the long texts of a row."""
    return rows.select(
        pl.col("repo").cast(pl.Categorical),
        "label",
        pl.col("relation").cast(pl.Categorical),
        pl.col("evidence").struct.field("kind").cast(pl.Categorical).alias("evidence"),
        pl.col("negative_kind").cast(pl.Categorical),
        *opening_times(),
        count_long("text1", "text2").alias("long"),
    )


def row_counts(
    rows: Mapping[str, pl.DataFrame],
    max_repositories: int | None = None,
) -> dict[str, object]:
    """Counts by split, repository, relation, evidence and kind of negative; shares of long texts."""
    all_rows = pl.concat(rows.values())
    return {
        "splits": {split: _split_counts(frame) for split, frame in rows.items()},
        "gap_auc": gap_auc(all_rows),
        "repositories": {
            split: _by_name(repository_counts(frame), max_repositories)
            for split, frame in rows.items()
        },
        "repository_count": all_rows["repo"].n_unique(),
        "relations": _value_counts(all_rows["relation"]),
        "evidence": _value_counts(all_rows["evidence"]),
        "negative_kinds": _value_counts(all_rows["negative_kind"]),
    }


def _split_counts(frame: pl.DataFrame) -> dict[str, int | float | None]:
    positive = int(frame["label"].sum())
    long_texts = int(frame["long"].sum())
    texts = 2 * frame.height
    return {
        "positive": positive,
        "negative": frame.height - positive,
        "total": frame.height,
        "long_share": round(long_texts / max(1, texts), 4),
        "gap_auc": gap_auc(frame),
    }


def repository_counts(frame: pl.DataFrame) -> pl.DataFrame:
    """Positives and negatives of each repository, sorted by name."""
    positive = pl.col("label").sum()
    negative = pl.len().cast(pl.Int64) - positive
    by_repo = frame.group_by(pl.col("repo").cast(pl.String))
    return by_repo.agg(positive=positive, negative=negative).sort("repo")


def _by_name(
    counts: pl.DataFrame, max_repositories: int | None
) -> dict[str, dict[str, int]]:
    if max_repositories is not None:
        largest = counts.sort(
            "positive", "negative", "repo", descending=[True, True, False]
        )
        counts = largest.head(max_repositories).sort("repo")
    return {
        repo: {"positive": positive, "negative": negative}
        for repo, positive, negative in counts.iter_rows()
    }


def _value_counts(values: pl.Series) -> dict[str, int]:
    counts = values.drop_nulls().cast(pl.String).value_counts()
    return dict(counts.sort(values.name).iter_rows())


def reasons_of(
    rejected: Mapping[IssueRef, str], dropped: Iterable[DroppedPair]
) -> Reasons:
    """Number of rejected issues and dropped pairs, by label and reason."""
    reasons: Reasons = Counter((None, reason) for reason in rejected.values())
    reasons.update((drop.label, drop.reason) for drop in dropped)
    return reasons


def drop_counts(reasons: Reasons, removed: Mapping[str, int]) -> dict[str, object]:
    """The counts of rejected data in statistics.json, by stage."""
    by_label: dict[int | None, dict[str, int]] = {None: {}, 1: {}, 0: {}}
    for (label, reason), count in sorted(reasons.items(), key=str):
        by_label[label][reason] = count
    return {
        "rejected_issues": by_label[None],
        "dropped_positives": by_label[1],
        "dropped_negatives": by_label[0],
        "removed_from_texts": dict(sorted(removed.items())),
    }


def dropped_frame(
    rejected: Mapping[IssueRef, str], dropped: Iterable[DroppedPair]
) -> pl.DataFrame:
    """Every rejected issue and dropped pair with its reason, see `DROPPED_SCHEMA`."""
    rows: list[tuple[str, int | None, str, str | None]] = []
    for ref, reason in sorted(rejected.items()):
        rows.append((reason, None, str(ref), None))
    rows += (
        (drop.reason, drop.label, str(drop.first), str(drop.second))
        for drop in sorted(dropped)
    )
    return pl.DataFrame(rows, schema=DROPPED_SCHEMA, orient="row")


def dropped_lines(path: Path, issue: str) -> list[str]:
    """The reasons in a file of `dropped_frame` why an issue, or pairs with it, are not in the dataset."""
    if not path.exists():
        return []
    is_of_issue = (pl.col("issue1") == issue) | (pl.col("issue2") == issue)
    kinds = {None: "issue rejected", 1: "positive dropped", 0: "negative dropped"}
    lines = []
    for reason, label, *issues in read_parquet(path).filter(is_of_issue).iter_rows():
        named = " and ".join(filter(None, issues))
        lines.append(f"{kinds[label]} [{reason}]: {named}")
    return lines


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

"""Datasets made of others: written, merged, split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import polars as pl

from pairkit.app.errors import ConfigError
from pairkit.dataset.divide import DROPPED, divide, keep_apart
from pairkit.dataset.in_memory import Source
from pairkit.dataset.made import (
    Conflicts,
    MadeDataset,
    build_result,
    check_out,
    join_datasets,
    mark_repeated,
    run_record,
    write_made,
)
from pairkit.dataset.records import PairDataset

_WRITTEN = "Pairs written by `pairkit.write`."
_MERGED = """
Datasets joined by `pairs merge`. Each pair stands once, whichever of its texts comes first. No text, issue or
cluster stands in two splits, and neither do near-identical texts (Jaccard similarity of word triples).
"""
_SPLIT = """
A dataset divided anew by `pairs split`. Rows that have a text in common, directly or through others, are in
one split; so are near-identical texts (Jaccard similarity of word triples), issues and clusters.
"""
_NO_REASON = pl.lit(None, pl.String).alias(DROPPED)


def named(sources: Sequence[Source] | Mapping[str, Source]) -> dict[str, Source]:
    """The sources by name: what a mapping calls them, the ends of paths, or a number."""
    is_one = isinstance(sources, str | Path | PairDataset) or hasattr(sources, "columns")
    if is_one or not sources:
        raise ConfigError("nothing to merge; give a list of datasets")
    if isinstance(sources, Mapping):
        return dict(sources)
    found: dict[str, Source] = {}
    for place, source in enumerate(sources, 1):
        name = source.source if isinstance(source, PairDataset) else source
        plain = Path(name).name if isinstance(name, str | Path) else str(place)
        found[plain if plain and plain not in found else f"{plain}-{place}"] = source
    return found


def make_written(pairs: PairDataset, source: Source, out: Path, *, fresh: bool) -> MadeDataset:
    """See `pairkit.write`."""
    rows = pairs.rows.with_columns(_NO_REASON)
    made = build_result(rows, pairs.label_kind, str(out), [pairs.labels])
    run = run_record("write", {"pairs": pairs}, {})
    return write_result(made, out, run, {"pairs": source}, _WRITTEN, fresh=fresh)


def make_merged(
    datasets: Mapping[str, PairDataset],
    sources: Mapping[str, Source],
    out: Path | None,
    *,
    settings: Mapping[str, Any],
    fresh: bool,
) -> MadeDataset:
    """See `pairkit.merge`; `settings` are its own, by name."""
    run = run_record("merge", datasets, settings)
    if out is not None:
        check_out(out, run, sources, fresh=fresh)
    marked = mark_repeated(join_datasets(datasets), cast("Conflicts", settings["conflicts"]))
    alive = marked.filter(pl.col(DROPPED).is_null()).drop(DROPPED)
    divided = (
        keep_apart(alive, settings["threshold"]) if settings["split"] is None else _divided(alive, settings)
    )
    rows = pl.concat([divided, marked.filter(pl.col(DROPPED).is_not_null())], how="diagonal")
    kind = next(iter(datasets.values())).label_kind
    read = [pairs.labels for pairs in datasets.values()]
    made = build_result(rows, kind, str(out or "the merged datasets"), read)
    return made if out is None else write_result(made, out, run, sources, _MERGED, fresh=fresh)


def make_split(
    pairs: PairDataset, source: Source, out: Path | None, *, settings: Mapping[str, Any], fresh: bool
) -> MadeDataset:
    """See `pairkit.split`; `settings` are its own, by name."""
    run = run_record("split", {"pairs": pairs}, settings)
    if out is not None:
        check_out(out, run, {"": source}, fresh=fresh)
    divided = _divided(pairs.rows, settings)
    made = build_result(divided, pairs.label_kind, str(out or pairs.source), [pairs.labels])
    return made if out is None else write_result(made, out, run, {"": source}, _SPLIT, fresh=fresh)


def _divided(rows: pl.DataFrame, settings: Mapping[str, Any]) -> pl.DataFrame:
    return divide(
        rows,
        settings["split"],
        settings["seed"],
        settings["threshold"],
        cut_negatives=settings["cut_negatives"],
    )


def write_result(
    made: MadeDataset,
    out: Path,
    run: Mapping[str, Any],
    sources: Mapping[str, Source],
    introduction: str,
    *,
    fresh: bool,
    sections: Sequence[tuple[str, str]] = (),
) -> MadeDataset:
    """A dataset that was made, written to its folder."""
    check_out(out, run, sources, fresh=fresh)
    title = "".join(letter if letter.isalnum() or letter in "-_." else " " for letter in out.name).strip()
    write_made(made, out, run, title or "Text pairs", introduction, sections)
    return replace(made, out=out)

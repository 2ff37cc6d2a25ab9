"""Hard negatives, as `aoe mine` finds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

    from aoe_train.model.encoder import Encoder
    from pairkit.app.progress import Listener
    from pairkit.app.result_table import ResultTable
    from pairkit.dataset.in_memory import Source
    from pairkit.dataset.labels import Meaning


@dataclass(frozen=True, repr=False, eq=False)  # frames have no one truth to be equal by
class Mined:
    """Rows with hard negatives.

    Attributes:
        splits: By split anchor, positive, negative_1 to negative_n (null where a row has fewer), and perhaps
            scores: of the positive, then of each negative. A mapping that `train` takes.
        statistics: What statistics.json holds: counts by split and reason.
        out: The folder or file; None where nothing was written.
    """

    splits: Mapping[str, pl.DataFrame]
    statistics: Mapping[str, Any]
    out: Path | None = None

    @property
    def false_negatives(self) -> float | None:
        """An estimate: the share of mined texts that the dataset's labels know to be positives.

        Each row is mined for as if its two texts were all that is known, and what is found is looked up. A
        lower bound, as not every positive is marked; None where nothing would be mined.
        """
        found: float | None = self.statistics["false_negatives"]["share"]
        return found

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `aoe mine --json`."""
        return {"out": None if self.out is None else str(self.out), **self.statistics}

    def table(self) -> ResultTable:
        """Rows and negatives by split; below what was left out, and how many negatives may be false."""
        from pairkit.app.result_table import ResultTable
        from pairkit.dataset.records import in_split_order

        counts = ResultTable("split", "rows", "negatives", "rows with fewer")
        splits = self.statistics["splits"]
        for name in in_split_order(splits):
            split = splits[name]
            counts.add_row(name, split["rows"], split["negatives"], split["rows_with_fewer"])
        counts.caption = "; ".join(self._notes())
        return counts

    def _notes(self) -> list[str]:
        kinds = {"rows left out": "dropped_rows", "candidates turned down": "turned_down_candidates"}
        notes = []
        for words, key in kinds.items():
            if reasons := self.statistics[key]:
                told = ", ".join(f"{reason.replace('_', ' ')} {count:,}" for reason, count in reasons.items())
                notes.append(f"{words}: {told}")
        found = self.statistics["false_negatives"]
        if found["telling"]:
            notes.append(
                f"false negatives, were each row all that is known: {found['positives']:,} of"
                f" {found['mined']:,} ({found['share']:.2%});"
                f" {found['share_where_known']:.2%} where anchors have further positives"
            )
        return notes

    def __repr__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def mine(
    data: Source,
    *,
    model: str | Path | Encoder | None = None,
    out: str | Path | None = None,
    by: str | None = None,
    negatives: int | None = None,
    rank_range: tuple[int, int] | str | None = None,
    sampling: str | None = None,
    margin: float | None = None,
    relative_margin: float | None = None,
    max_score: float | None = None,
    min_score: float | None = None,
    corpus: Source | None = None,
    text_column: str | None = None,
    candidates: str | None = None,
    transitive: bool | None = None,
    threshold: float | None = None,
    scores: bool = False,
    columns: Mapping[str, str] | None = None,
    labels: Mapping[str, Meaning] | str | None = None,
    label_range: tuple[float, float] | str | None = None,
    split: str | None = None,
    precision: str | None = None,
    seed: int | None = None,
    work: str | Path | None = None,
    fresh: bool = False,
    progress: bool | Listener = True,
) -> Mined:
    """Find hard negatives: texts that are near to an anchor and no positive of it.

    A candidate that is equal or near-identical to the anchor or to one of its known positives is never taken.
    Each split has candidates of its own. The same call continues a run that was stopped.

    Args:
        data: Positives, or pairs with labels of which those with 1 are positives: whatever `train` takes.
        model: Ranks the candidates by the cosine: a model's folder, a Hub id, `minilm`, `smollm2`, or an
            `Encoder`.
            Anchors get its prompt for queries, candidates that for documents, where it has such.
        out: A folder, or a .jsonl or .parquet file; None leaves the rows in memory.
        by: bm25 (by words), model, or both, in turns; by default model where one is given, else bm25.
        negatives: How many for each row, at most. By default 5.
        rank_range: How many of the nearest candidates to skip, and the last to look at, such as `(10, 50)`;
            by default from the nearest to ten for each negative. Known positives have no rank.
        sampling: top takes the nearest that are left, random any of them. By default top.
        margin: Candidates have to score so much less than the anchor's positives.
        relative_margin: The same, as a share of the positive's score: 0.05 is NV-Retriever's 95 %.
        max_score: No candidate with a higher score: a cosine, or BM25's score where no model is given.
        min_score: No candidate with a lower one.
        corpus: Texts to choose from instead of the data's own: a text file, or a table.
        text_column: The corpus's column of texts, by default its only one.
        candidates: all texts of the data, or positives: those that stand second. By default all where pairs
            have labels, else positives.
        transitive: Whether positives of positives, and the texts of a cluster, are no negatives either. By
            default they are not.
        threshold: Jaccard similarity of word triples from which two texts are near-identical. By default 0.8.
        scores: Add the column `scores`: of the positive, then of each negative.
        columns: As for `train`.
        labels: As for `train`.
        label_range: As for `train`.
        split: Only this split.
        precision: fp32, bf16, fp16, int8 (on a CPU) or auto.
        seed: Decides what sampling takes, and which split gets which text of a corpus. By default 42.
        work: A folder that keeps the vectors, for runs with other settings; by default OUT.work, until the
            run is over.
        fresh: Replace what another run left.
        progress: Shown on stderr, or not, or told to a function.

    Raises:
        ConfigError: No such source or model, bad settings, or `out` holds something else.
        DataError: Data that can't be read, without positives, or in which no row gets a negative.
        RemoteError: The Hub could not be asked.

    Example:
        >>> import aoe_train
        >>> mined = aoe_train.mine("pairs.tsv", negatives=2, progress=False)
        >>> mined.splits["train"].columns
        ['anchor', 'positive', 'negative_1', 'negative_2']
    """
    from aoe_train.api.loading import loaded
    from aoe_train.api.notes import notes
    from aoe_train.searching.mining.dataset import read_mining_dataset
    from aoe_train.searching.mining.run import RunPaths, run_mining
    from aoe_train.searching.mining.settings import MineSettings
    from pairkit.app.errors import ConfigError
    from pairkit.app.progress import Display, stage
    from pairkit.app.settings import argument, load_settings
    from pairkit.dataset.in_memory import source_name
    from pairkit.dataset.labels import label_rules

    settings = load_settings(
        MineSettings,
        flags={
            "by": by or ("bm25" if model is None else "model"),
            "negatives": negatives,
            "rank_range": rank_range,
            "sampling": sampling,
            "margin": margin,
            "relative_margin": relative_margin,
            "max_score": max_score,
            "min_score": min_score,
            "candidates": candidates,
            "transitive": transitive,
            "threshold": threshold,
            "scores": scores,
            "seed": seed,
        },
    )
    if (model is None) != (settings.by == "bm25"):
        wrong = "needs a model" if model is None else "has no use for a model"
        raise ConfigError(f"by = {settings.by}: {wrong}; give one of bm25, model (with --model) or both")
    if text_column is not None and corpus is None:
        raise ConfigError(f"text_column = {text_column}: names a column of a corpus; give one")
    place = argument("out", out, Path | None)
    with Display(progress) as show:
        with stage("read", show):
            material = read_mining_dataset(
                data,
                settings,
                columns=columns,
                rules=label_rules(labels, label_range),
                split=split,
                corpus=corpus,
                text_column=text_column,
            )
        encoder = None if model is None else loaded(model, precision, show, notes(progress))
        places = RunPaths(place, argument("work", work, Path | None), fresh)
        splits, statistics = run_mining(material, settings, encoder, places, show, source_name(data))
    return Mined(splits, statistics, place)

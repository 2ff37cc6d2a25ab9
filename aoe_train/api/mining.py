"""Mine hard negatives: the function behind `aoe mine`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from aoe_train.api.parameters import Data, Precision, loaded, notes, one_or_several
from aoe_train.api.trained import JUDGE_ALL, compare
from pairkit.app.flag import INPUT, OUTPUT, RUN, Flag
from pairkit.app.result_table import Printed, ResultTable
from pairkit.dataset.flags import Columns, Fresh, LabelRange, Labels, Seed

if TYPE_CHECKING:
    import polars as pl

    from aoe_train.model.encoder import Encoder
    from pairkit.app.progress import Listener
    from pairkit.dataset.in_memory import Source


@dataclass(frozen=True, repr=False, eq=False)  # comparing data frames gives no single truth value
class Mined(Printed):
    """Rows with hard negatives.

    Attributes:
        splits: By split anchor, positive, negative_1 to negative_n (null where a row has fewer), and perhaps
            scores: of the positive, then of each negative. A mapping that `train` takes.
        statistics: What statistics.json holds: counts by split and reason.
        out: The folder; None if nothing was written.
    """

    splits: Mapping[str, pl.DataFrame]
    statistics: Mapping[str, Any]
    out: Path | None = None

    @property
    def false_negatives(self) -> float | None:
        """The estimated share of false negatives: mined texts that the labels mark as positives.

        Each row is mined as if its own positive were the only one known; the hits are then looked up in the
        labels. A lower bound, because not every positive is marked; None if nothing would be mined.
        """
        found: float | None = self.statistics.get("false_negatives", {}).get("share")
        return found

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `aoe mine --json`."""
        return {"out": None if self.out is None else str(self.out), **self.statistics}

    def table(self) -> ResultTable:
        """Rows and negatives by split, then what was left out and the estimate of false negatives."""
        from pairkit.app.result_table import ResultTable
        from pairkit.dataset.records import in_split_order

        counts = ResultTable("split", "rows", "negatives", "rows with fewer")
        splits = self.statistics["splits"]
        for name in in_split_order(splits):
            split = splits[name]
            counts.add_row(name, split["rows"], split["negatives"], split["rows_with_fewer"])
        counts.caption = "; ".join(self._notes())
        return counts

    def next_steps(self) -> list[tuple[str, list[str]]]:
        """How to train on the rows."""
        if self.out is None:
            return []
        return [("train with the negatives", ["aoe", "train", "--data", str(self.out), "--out", "model"])]

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


@dataclass(frozen=True, repr=False, eq=False)
class PairsToJudge(Mined):
    """Pairs of bare texts to be judged: `splits["test"]` has text1, text2 and their nearness as `label`."""

    models: tuple[str, ...] = ()

    def table(self) -> ResultTable:
        """How many pairs, of how many texts."""
        counts = ResultTable("pairs to judge", "texts", "compared texts")
        counts.add_row(*(self.statistics[name] for name in ("pairs", "texts", "compared_texts")))
        counts.caption = (
            "a gain of 1 point of AUC is shown by 400 judged pairs in 7 of 10 cases, by 200 in 4 of 10"
        )
        return counts

    def next_steps(self) -> list[tuple[str, list[str]]]:
        """How to have them judged, and to compare the models by the judgements."""
        if self.out is None:
            return []
        steps = [("judge the pairs in a browser", ["pairs", "review", str(self.out), *JUDGE_ALL])]
        if len(self.models) == 2:
            steps.append(("then compare the models", compare(*self.models, str(self.out))))
        return steps


def mine(
    data: Annotated[Source, Data],
    *,
    model: Annotated[
        str | Path | Encoder | Sequence[str | Path | Encoder] | None,
        Flag("--model -m", metavar="MODEL", panel="Candidates", main=True, repeat=True, read=one_or_several),
    ] = None,
    out: Annotated[str | Path | None, Flag("--out -o", metavar="DIR", panel=OUTPUT, required=True)] = None,
    by: Annotated[str | None, Flag(metavar="NAME", panel="Candidates", main=True)] = None,
    negatives: Annotated[
        int | None, Flag("--negatives -n", metavar="N", panel="Rules for negatives", main=True)
    ] = None,
    rank_range: Annotated[
        tuple[int, int] | str | None, Flag("--range", metavar="LOW,HIGH", panel="Rules for negatives")
    ] = None,
    sampling: Annotated[str | None, Flag(metavar="NAME", panel="Rules for negatives")] = None,
    margin: Annotated[float | None, Flag(metavar="X", panel="Rules for negatives")] = None,
    relative_margin: Annotated[
        float | None, Flag(metavar="X", panel="Rules for negatives", main=True)
    ] = None,
    max_score: Annotated[float | None, Flag(metavar="X", panel="Rules for negatives")] = None,
    min_score: Annotated[float | None, Flag(metavar="X", panel="Rules for negatives")] = None,
    corpus: Annotated[Source | None, Flag(metavar="DATA", panel="Candidates", main=True)] = None,
    text_column: Annotated[str | None, Flag(metavar="NAME", panel="Candidates")] = None,
    candidates: Annotated[str | None, Flag(metavar="NAME", panel="Candidates")] = None,
    transitive: Annotated[bool | None, Flag(panel="Rules for negatives")] = None,
    threshold: Annotated[float | None, Flag(metavar="X", panel="Rules for negatives")] = None,
    scores: Annotated[bool, Flag(panel=OUTPUT)] = False,
    columns: Columns = None,
    labels: Labels = None,
    label_range: LabelRange = None,
    split: Annotated[str | None, Flag(metavar="NAME", panel=INPUT)] = None,
    precision: Precision = None,
    seed: Annotated[int | None, Seed] = None,
    work: Annotated[str | Path | None, Flag(metavar="DIR", panel=RUN)] = None,
    fresh: Fresh = False,
    progress: bool | Listener = True,
) -> Mined:
    """Find hard negatives: similar texts that are not positives. Run it again to continue.

    Writes rows of anchor, positive, negative_1 to negative_n, which `aoe train` takes. Near-duplicates of an
    anchor or of its known positives are never taken, nor are texts of another split. False negatives are
    estimated from the labels: the share of negatives that are known positives when each row is mined as if
    its own positive were the only one known.

    Of bare texts (a .txt file; in Python a list of them) it draws up to 400 pairs for people to judge
    instead, text1 and text2: the nearest and less near ones by the mean cosine of all --model, so that a
    comparison by them favours neither model.

    Args:
        data: A dataset's folder, a file or a Hub id. Positives, or pairs with labels of which those with 1
            are positives; or a text file. In Python whatever `train` takes.
        model: Ranks texts: a folder, a Hub id, minilm or smollm2; repeatable for a text file. In Python also
            an `Encoder`. Anchors get its query prompt and candidates its document prompt, if it has them.
        out: A dataset's folder. None leaves the rows in memory.
        by: bm25, model or both (alternating). Default: model with --model, else bm25.
        negatives: Maximum number of negatives of each row. Default: 5.
        rank_range: Number of candidates to skip, and the last to look at, such as 10,50. Known positives have
            no rank. Default: 0,10N.
        sampling: top takes the nearest remaining candidates, random any of them. Default: top.
        margin: How far below the positive's score negatives have to be.
        relative_margin: How far below the positive's score, as a share of that score, such as 0.05. That is
            NV-Retriever's 95 %.
        max_score: Maximum score of a negative: a cosine, or BM25's without --model.
        min_score: Minimum score of a negative.
        corpus: Texts to choose from: a text file, or a table. Default: those of the same split.
        text_column: The corpus's column. Default: the only one.
        candidates: all texts, or positives: the second ones. Default: all if pairs have labels, else
            positives.
        transitive: Positives of positives, and texts of the same cluster, are not negatives. Default: on.
        threshold: Jaccard similarity of word triples from which texts are near-identical. Default: 0.8.
        scores: Add the scores of the positive and of each negative.
        columns: See `train`.
        labels: See `train`.
        label_range: See `train`.
        split: Only this split. Default: all.
        precision: See `serve`.
        seed: Decides every random choice. Default: 42.
        work: A folder that keeps vectors for runs with other rules. Default: OUT.work, until the end.
        fresh: Replace the output of another run.
        progress: Whether to show progress on stderr, or a function to be told of it.

    Raises:
        ConfigError: No such source or model, bad settings, or `out` contains other files.
        DataError: Data that can't be read, without positives, or in which no row gets a negative.
        RemoteError: The Hub could not be reached.

    Example:
        >>> import aoe_train
        >>> mined = aoe_train.mine("pairs.tsv", negatives=2, progress=False)
        >>> mined.splits["train"].columns
        ['anchor', 'positive', 'negative_1', 'negative_2']
    """
    from aoe_train.searching.mining.dataset import MineSettings, read_mining_dataset
    from aoe_train.searching.mining.run import RunPaths, run_mining
    from aoe_train.searching.mining.to_judge import is_texts, pairs_to_judge
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
    models = [model] if isinstance(model, str | Path) or not isinstance(model, Sequence) else [*model]
    if corpus is None and is_texts(data):
        if settings.by != "model" or settings.model_fields_set - {"by", "seed", "scores"}:
            raise ConfigError(
                f"{source_name(data)}: bare texts become pairs to judge, which takes --model and --seed;"
                " leave the rules for negatives out"
            )
        with Display(progress) as show:
            opened = [
                (each, loaded(each, precision, show, notes(progress))) for each in models if each is not None
            ]
            rows, counts = pairs_to_judge(data, opened, settings.seed, RunPaths(place, fresh=fresh))
        return PairsToJudge(rows, counts, place, tuple(map(str, models)))
    if len(models) > 1:
        raise ConfigError("model: several are for a text file, whose pairs are to be judged; give one")
    model = models[0]
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

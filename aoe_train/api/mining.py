"""Mine hard negatives, or sample pairs to judge: the functions behind `aoe mine` and `aoe sample-pairs`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from aoe_train.api.parameters import (
    FOLDER,
    as_list,
    compare_command,
    judge_command,
    loaded,
    notes,
    one_or_several,
    optional,
    options,
)
from pairkit.base.cli.options import INPUT, OUTPUT, RUN, Request, parameter, takes
from pairkit.base.cli.progress import Display, Listener, stage
from pairkit.base.cli.result_table import Printed, ResultTable
from pairkit.base.errors import ConfigError
from pairkit.base.printable import listed
from pairkit.dataset.shared_options import columns_given

if TYPE_CHECKING:
    import polars as pl

    from aoe_train.model.encoder import Encoder
    from aoe_train.searching.mining.mined_dataset import MineSettings
    from pairkit.dataset.labels import Meaning
    from pairkit.dataset.reading.in_memory import Source

_of_candidates = partial(optional, panel="Candidates")
_rule = partial(optional, panel="Rules for negatives")
_COUNTS = ("texts", "compared_texts", "queries", "differing_queries", "sampled_queries")
_PAIRS_NEEDED = "400 judged pairs show a gain of 1.2 points of AUC in 8 of 10 cases, 200 pairs in 5 of 10"
_QUERIES_NEEDED = (
    "with two candidates and --top 1, 200 judged pairs show a gain of 2 points of P@1 in 6 of 10 cases if an"
    " eighth of the queries have different results, and in 1 of 10 if 40 % have; fewer than 30 sampled"
    " queries give no verdict"
)


# Without `eq`, because comparing data frames gives no single truth value.
@dataclass(frozen=True, repr=False, eq=False)
class Mined(Printed):
    """Rows with hard negatives.

    Attributes:
        splits: For each split anchor, positive, negative_1 to negative_n (null if a row has fewer) and, on
            request, scores of the positive and of each negative. `train` accepts this mapping.
        statistics: The content of statistics.json: counts by split and reason.
        out: The folder; None if nothing was written.
    """

    splits: Mapping[str, pl.DataFrame]
    statistics: Mapping[str, Any]
    out: Path | None = None

    @property
    def false_negatives(self) -> float | None:
        """The estimated share of false negatives.

        A lower bound, because not every positive is labelled. None if nothing would be mined.
        """
        share: float | None = self.statistics.get("false_negatives", {}).get("share")
        return share

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `aoe mine --json`."""
        return {"out": None if self.out is None else str(self.out), **self.statistics}

    def table(self) -> ResultTable:
        """Counts by split, with dropped rows and the estimate of false negatives below."""
        from pairkit.dataset.records import in_split_order

        counts = ResultTable("split", "rows", "negatives", "rows with fewer")
        splits = self.statistics["splits"]
        for name in in_split_order(splits):
            split = splits[name]
            counts.add_row(
                name, split["rows"], split["negatives"], split["rows_with_fewer"]
            )
        notes = []
        for key in ("dropped_rows", "turned_down_candidates"):
            reasons = self.statistics[key]
            if reasons:
                name = key.replace("_", " ")
                notes.append(f"{name}: {listed(reasons)}")
        estimate = self.statistics["false_negatives"]
        if estimate["telling"]:
            notes.append(
                f"estimated false negatives: {estimate['positives']:,} of"
                f" {estimate['mined']:,} ({estimate['share']:.2%});"
                f" {estimate['share_where_known']:.2%} where anchors have further positives"
            )
        counts.caption = "; ".join(notes)
        return counts

    def next_steps(self) -> list[tuple[str, list[str]]]:
        """How to train on the rows, unless only a few are left."""
        from pairkit.dataset.making.made import FEW_ROWS
        from pairkit.similarity.measures import train_command

        rows = sum(split["rows"] for split in self.statistics["splits"].values())
        if self.out is None or rows < FEW_ROWS:
            return []
        return [("train with the negatives", train_command(self.out))]


class MineRequest(
    Request,
    shared=options,
    settings="aoe_train.searching.mining.mined_dataset:MineSettings",
):
    """The arguments of `mine`."""

    data: Source
    _: KW_ONLY
    model: str | Path | Encoder | None = _of_candidates(
        options["model"], read=one_or_several, repeat=True
    )
    out: str | Path | None = optional(FOLDER, main=False)
    by: str | None = _of_candidates(setting="by", metavar="NAME", main=True)
    num_negatives: int | None = _rule(setting="num_negatives", short="-n", main=True)
    rank_range: tuple[int, int] | str | None = _rule(
        setting="rank_range", metavar="LOW,HIGH"
    )
    sampling: str | None = _rule(setting="sampling", metavar="NAME")
    margin: float | None = _rule(setting="margin")
    relative_margin: float | None = _rule(setting="relative_margin", main=True)
    corpus: Source | None = _of_candidates(metavar="DATA", main=True)
    corpus_columns: Mapping[str, str] | None = _of_candidates(
        metavar="A=B", read=columns_given
    )
    candidates: str | None = _of_candidates(setting="candidates", metavar="NAME")
    transitive: bool | None = _rule(setting="transitive")
    duplicate_threshold: float | None = _rule(setting="duplicate_threshold")
    scores: bool = parameter(default=False, setting="scores", panel=OUTPUT)
    columns: Mapping[str, str] | None = None
    labels: Mapping[str, Meaning] | str | None = None
    label_range: tuple[float, float] | str | None = None
    split: str | None = None
    precision: str | None = None
    seed: int | None = optional(options["seed"], setting="seed")
    work: str | Path | None = optional(metavar="DIR", panel=RUN)
    fresh: bool = False
    progress: bool | Listener = True


@takes(MineRequest)
def mine(request: MineRequest) -> Mined:
    """Find hard negatives: similar texts that are not positives. Run it again to continue.

    Writes rows of anchor, positive, negative_1 to negative_n, which `aoe train` reads. Near-duplicates of an
    anchor or of its known positives, and texts of another split, are never negatives. The share of false
    negatives is estimated from the labels: each row is mined as if its own positive were the only one known,
    and negatives that are known positives are counted.

    Args:
        data: A dataset's folder, a file or a Hub id: positives, or pairs with labels, of which those with 1
            are positives. In Python whatever `train` takes.
        model: The model that ranks texts: a folder, a Hub id, minilm or smollm2. In Python also an
            `Encoder`. Its prompts for queries and documents are used, if it has them.
        corpus: Texts to choose negatives from: a text file, or a table. Default: the texts of the same split.
        corpus_columns: The corpus's column, as text=NAME. Default: the only one.
        split: Use only this split. Default: all.
        work: A folder that keeps vectors for runs with other rules. Default: OUT.work, deleted at the end.

    Raises:
        ConfigError: No such source or model, bad settings, or `out` contains other files.
        DataError: Data that can't be read, without positives, or in which no row gets a negative.
        RemoteError: The Hub could not be reached.

    Example:
        >>> import aoe_train
        >>> mined = aoe_train.mine("pairs.tsv", num_negatives=2, progress=False)
        >>> mined.splits["train"].columns
        ['anchor', 'positive', 'negative_1', 'negative_2']
    """
    from aoe_train.searching.mining.mined_dataset import read_mining_dataset
    from aoe_train.searching.mining.mining_run import run_mining
    from pairkit.base.settings import argument
    from pairkit.dataset.labels import label_rules
    from pairkit.dataset.reading.in_memory import source_name

    settings = _mine_settings(request)
    folder = argument("out", request.out, Path | None)
    with Display(request.progress) as show:
        with stage("read", show):
            dataset = read_mining_dataset(
                request.data,
                settings,
                columns=request.columns,
                rules=label_rules(request.labels, request.label_range),
                split=request.split,
                corpus=request.corpus,
                corpus_columns=request.corpus_columns,
            )
        encoder = None
        if request.model is not None:
            encoder = loaded(
                request.model, request.precision, show, notes(request.progress)
            )
        splits, statistics = run_mining(
            dataset,
            settings,
            encoder,
            out=folder,
            work=argument("work", request.work, Path | None),
            fresh=request.fresh,
            show=show,
            source=source_name(request.data),
        )
    return Mined(splits, statistics, folder)


def _mine_settings(request: MineRequest) -> MineSettings:
    """The settings; raises ConfigError if they don't match the model or the data."""
    from aoe_train.searching.mining.mined_dataset import MineSettings
    from pairkit.base.settings import load_settings
    from pairkit.dataset.reading.tables import is_lines

    model = request.model
    if isinstance(model, list):  # --model was repeated
        raise ConfigError(
            "--model: found several, expected one; `aoe sample-pairs` compares models"
        )
    if isinstance(request.data, str | Path) and is_lines(Path(request.data)):
        raise ConfigError(
            f"{request.data}: single texts have no positives; `aoe sample-pairs` draws pairs of them to judge"
        )
    default_ranking = {"by": "bm25" if model is None else "model"}
    settings = load_settings(MineSettings, request.flags(), below=default_ranking)
    if (model is None) != (settings.by == "bm25"):
        problem = "needs a model" if model is None else "doesn't use a model"
        raise ConfigError(
            f"by = {settings.by}: {problem}; expected bm25, or model or both with --model"
        )
    if model is None and request.precision is not None:
        raise ConfigError("--precision: applies to a model; add one with --model")
    if request.corpus_columns is not None and request.corpus is None:
        raise ConfigError(
            "--corpus-columns: applies to a corpus; add one with --corpus"
        )
    return settings


# Without `eq`, because comparing data frames gives no single truth value.
@dataclass(frozen=True, repr=False, eq=False)
class PairSample(Printed):
    """Unjudged pairs of texts, or of queries and results.

    Attributes:
        pairs: text1, text2, and the mean cosine of the models as label. With queries also `query_top`,
            `query_results`, `query_share`, and for each candidate the rank of the result.
        counts: Numbers of `pairs`, distinct `texts`, and `compared_texts`: those that were compared with each
            other or searched. With queries also `queries`, `differing_queries` and `sampled_queries`.
        models: The models, as they were named.
        out: The dataset's folder; None if nothing was written.
        purposes: What the texts are searched for; without queries, the purpose of the question to judges.
    """

    pairs: pl.DataFrame
    counts: Mapping[str, int]
    models: tuple[str, ...]
    out: Path | None = None
    purposes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `aoe sample-pairs --json`."""
        return {"out": None if self.out is None else str(self.out), **self.counts}

    def table(self) -> ResultTable:
        """Numbers of pairs, texts and queries."""
        names = [name for name in _COUNTS if name in self.counts]
        counts = ResultTable(
            "pairs to judge", *(name.replace("_", " ") for name in names)
        )
        counts.add_row(self.pairs.height, *(self.counts[name] for name in names))
        counts.caption = _QUERIES_NEEDED if "queries" in self.counts else _PAIRS_NEEDED
        return counts

    def next_steps(self) -> list[tuple[str, list[str]]]:
        """How to judge the pairs, and how to compare two models by the judgements."""
        if self.out is None:
            return []
        folder = str(self.out)
        if "queries" in self.counts:
            judge = ["pairs", "review", folder]
            if self.purposes == ("group",):
                judge += [
                    "--question",
                    "Which results have the topic or intent of the query?",
                ]
            return [
                ("judge the results in a browser", judge),
                (
                    "then compare the candidates",
                    ["aoe", "evaluate", "--data", f"{folder}.review"],
                ),
            ]
        purpose = next(iter(self.purposes), None)
        steps = [("judge the pairs in a browser", judge_command(folder, purpose))]
        if len(self.models) == 2:
            compare = compare_command(*self.models, f"{folder}.review")
            steps.append(("then compare the models", compare))
        return steps


class SamplePairsRequest(Request, shared=options):
    """The arguments of `sample_pairs`."""

    data: Source
    _: KW_ONLY
    model: str | Path | Encoder | Sequence[str | Path | Encoder] | None = optional(
        options["model"], read=one_or_several, repeat=True
    )
    out: str | Path | None = optional(FOLDER, main=False)
    queries: Source | None = optional(metavar="FILE", panel=INPUT, main=True)
    purpose: str | Sequence[str] | None = optional(
        metavar="NAME", panel=INPUT, main=True, repeat=True
    )
    top: int = parameter(default=1, panel=INPUT)
    columns: Mapping[str, str] | None = None
    precision: str | None = None
    seed: int = 42
    fresh: bool = False
    progress: bool | Listener = True


@takes(SamplePairsRequest)
def sample_pairs(request: SamplePairsRequest) -> PairSample:
    """Sample up to 400 pairs of your texts for people to judge, so that models can be compared.

    Half of them are the most similar pairs, by the mean cosine of all models; the others are spread over
    lower similarities. No text is in two pairs. Texts that a model was trained on are used last.

    With --queries, candidates search the texts: each model as it is and for each --purpose, and each of these
    without and with words (BM25). The pairs are queries with results: of queries on which candidates differ,
    in random order, all results that a candidate has first. Judging this sample is enough to
    estimate each candidate's P@1 gain over all queries; `aoe evaluate` does so without a model.

    Args:
        data: Texts: a text file with one per line, or a table. In Python also a list of texts.
        model: The models to be compared: a folder, a Hub id, minilm or smollm2; repeatable. In Python also
            an `Encoder`. Default: minilm.
        queries: Queries to search for, like `data`; the same file searches for each of its texts. Neither the
            query nor its near-duplicates are results.
        purpose: Also search for this purpose: group, search or match, as in `aoe index`; repeatable; without
            --queries, it only chooses the question to judges. In Python a list.
        top: Number of first results of each query to compare: 1 needs the fewest judgements, 5 also compares
            success@5.
        columns: Column with the texts, such as text=title. Default: text, or the only column.

    Raises:
        ConfigError: No such source, model or purpose, models with equal vectors, or `out` contains other
            files.
        DataError: Data that can't be read, fewer than two distinct texts, or no query with different results.
        RemoteError: The Hub could not be reached.
    """
    from pydantic import Field, NonNegativeInt

    from aoe_train.searching.mining.pair_sample import sample_pairs
    from aoe_train.settings.train_settings import Purpose
    from pairkit.base.settings import argument, between_commas

    folder = argument("out", request.out, Path | None)
    seed = argument("seed", request.seed, NonNegativeInt)
    top = argument("top", request.top, Annotated[int, Field(ge=1, le=100)])
    names = dict.fromkeys(between_commas(request.purpose))
    purposes = argument("purpose", [*names], list[Purpose])
    model = "minilm" if request.model is None else request.model
    models: list[str | Path | Encoder] = as_list(model)
    sources = [getattr(each, "folder", None) or each for each in models]
    if not models:
        raise ConfigError("--model: found an empty list, expected at least one model")
    say = notes(request.progress)
    with Display(request.progress) as show:
        encoders = [loaded(model, request.precision, show, say) for model in models]
        pairs, counts = sample_pairs(
            request.data,
            [*zip(sources, encoders, strict=True)],
            seed,
            folder,
            fresh=request.fresh,
            columns=request.columns,
            queries=request.queries,
            purposes=purposes,
            top=top,
            show=show,
        )
    return PairSample(pairs, counts, tuple(map(str, sources)), folder, tuple(purposes))

"""Sample pairs of texts, or search results, for people to judge: the function behind `aoe sample-pairs`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from aoe_train.api.parameters import FOLDER, loaded, notes, one_or_several, options
from aoe_train.api.trained import JUDGE_ALL, compare
from pairkit.base.cli.options import INPUT, Option
from pairkit.base.cli.result_table import Printed, ResultTable

if TYPE_CHECKING:
    import polars as pl

    from aoe_train.model.encoder import Encoder
    from pairkit.base.cli.progress import Listener
    from pairkit.dataset.reading.in_memory import Source


_COUNTS = ("texts", "compared_texts", "queries", "differing_queries", "sampled_queries")
_PAIRS_NEEDED = "400 judged pairs show a gain of 1 point of AUC in 7 of 10 cases, 200 pairs in 4 of 10"
_QUERIES_NEEDED = (
    "with --top 1, 400 judged pairs show a gain of 2 points of P@1 in 8 of 10 cases, 200 pairs in 5 of 10;"
    " fewer than 30 sampled queries give no verdict"
)


@dataclass(frozen=True, repr=False, eq=False)  # comparing data frames gives no single truth value
class PairSample(Printed):
    """Unjudged pairs of texts, or of queries and results.

    Attributes:
        pairs: text1, text2, and the mean cosine of the models as label.
        counts: Numbers of `pairs`, distinct `texts`, and `compared_texts`: those that were compared with each
            other or searched. With queries also `queries`, `differing_queries` and `sampled_queries`.
        models: The models, as they were named.
        out: The dataset's folder; None if nothing was written.
    """

    pairs: pl.DataFrame
    counts: Mapping[str, int]
    models: tuple[str, ...]
    out: Path | None = None

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `aoe sample-pairs --json`."""
        return {"out": None if self.out is None else str(self.out), **self.counts}

    def table(self) -> ResultTable:
        """Numbers of pairs, texts and queries."""
        names = [name for name in _COUNTS if name in self.counts]
        counts = ResultTable("pairs to judge", *(name.replace("_", " ") for name in names))
        counts.add_row(self.pairs.height, *(self.counts[name] for name in names))
        counts.caption = _QUERIES_NEEDED if "queries" in self.counts else _PAIRS_NEEDED
        return counts

    def next_steps(self) -> list[tuple[str, list[str]]]:
        """How to judge the pairs, and how to compare two models by the judgements."""
        if self.out is None:
            return []
        judge_all = () if "queries" in self.counts else JUDGE_ALL
        steps = [("judge the pairs in a browser", ["pairs", "review", str(self.out), *judge_all])]
        if len(self.models) == 2:
            steps.append(("then compare the models", compare(*self.models, str(self.out))))
        return steps


@options(
    model=replace(options["model"], read=one_or_several, repeat=True),
    out=replace(FOLDER, main=False),
    queries=Option(metavar="FILE", panel=INPUT, main=True),
    top=Option(panel=INPUT),
)
def sample_pairs(
    data: Source,
    *,
    model: str | Path | Encoder | Sequence[str | Path | Encoder] | None = None,
    out: str | Path | None = None,
    queries: Source | None = None,
    top: int = 1,
    columns: Mapping[str, str] | None = None,
    precision: str | None = None,
    seed: int = 42,
    fresh: bool = False,
    progress: bool | Listener = True,
) -> PairSample:
    """Sample up to 400 pairs of your texts for people to judge, so that two models can be compared.

    Half of them are the most similar pairs, by the mean cosine of all models; the others are spread over
    lower similarities. No text is in two pairs. Texts that a model was trained on are used last.

    With --queries, two models search the texts, and the pairs are queries with results: of queries on which
    the models differ, in random order, all results that either model has first. The answered sample gives the
    gain in P@1 over all queries.

    Args:
        data: Texts: a text file with one per line, or a table. In Python also a list of texts.
        model: The models to be compared: a folder, a Hub id, minilm or smollm2; repeatable. In Python also
            an `Encoder`. Default: minilm.
        queries: Queries to search for, like `data`; the same file searches for each of its texts. Neither the
            query nor its near-duplicates are results.
        top: Number of first results of each query to compare: 1 needs the fewest judgements, 5 also compares
            success@5.
        columns: Column with the texts, such as text=title. Default: text, or the only column.

    Raises:
        ConfigError: No such source or model, models with equal vectors, queries without two models, or `out`
            contains other files.
        DataError: Data that can't be read, fewer than two distinct texts, or no query with different results.
        RemoteError: The Hub could not be reached.
    """
    from pydantic import Field, NonNegativeInt

    from aoe_train.searching.mining.pair_sample import sample_pairs
    from pairkit.base.cli.progress import Display
    from pairkit.base.errors import ConfigError
    from pairkit.base.settings import argument

    folder, seed = argument("out", out, Path | None), argument("seed", seed, NonNegativeInt)
    top = argument("top", top, Annotated[int, Field(ge=1, le=100)])
    if model is None:
        model = "minilm"
    models = [model] if isinstance(model, str | Path) or not isinstance(model, Sequence) else [*model]
    if not models:
        raise ConfigError("--model: found an empty list, expected at least one model")
    with Display(progress) as show:
        opened = [(each, loaded(each, precision, show, notes(progress))) for each in models]
        pairs, counts = sample_pairs(
            data, opened, seed, folder, fresh=fresh, columns=columns, queries=queries, top=top, show=show
        )
    return PairSample(pairs, counts, tuple(map(str, models)), folder)

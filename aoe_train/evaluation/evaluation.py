"""What `evaluate` returns: scores by model and task, as tables, JSON and a data frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aoe_train.evaluation.embedders.quantized import VectorSize
from aoe_train.evaluation.gain import Gain
from aoe_train.evaluation.score import Resampling, Score
from aoe_train.evaluation.table import ahead, by_size, comparisons, figures, rankings, side_by_side
from aoe_train.evaluation.task import Result, defined
from pairkit.app.result_table import Printed, ResultTable
from pairkit.dataset import card

if TYPE_CHECKING:
    import polars as pl

Scores = Mapping[str, Score]


@dataclass(frozen=True, repr=False)
class Evaluation(Printed):
    """Figures of one model or several.

    Attributes:
        suite: What was measured, such as sts or gis.
        scores: By model and task.
        missing: Tasks that were left out, with the reason.
        against: The name of the model that it was compared with, if there is one.
        sizes: What the vectors were made, by the keys of `scores`, if sizes were asked for.
    """

    suite: str
    scores: Mapping[str, Scores]
    missing: Mapping[str, str] = field(default_factory=dict)
    against: str | None = None
    sizes: Mapping[str, VectorSize] = field(default_factory=dict)
    _resampling: Resampling = field(default_factory=Resampling)
    _rankings: bool = False

    def tables(self, *, subsets: bool = False) -> list[ResultTable]:
        """Tables of all figures, times 100, with 95 % intervals in brackets, as in papers.

        Args:
            subsets: Show the parts of each task too.
        """
        title = f"{self.suite}, times 100"
        if self._rankings:
            return list(self._ranked(subsets=subsets))
        if self.sizes:
            return [by_size(self.scores, self.sizes, title)]
        if len(self.scores) > 1:
            return [side_by_side(self.scores, title)]
        ((model, scores),) = self.scores.items()
        found = [figures(scores, title, subsets=subsets)]
        if self.against is not None:
            title = f"{self.suite}: {model} less {self.against}, times 100"
            found.append(comparisons(scores, model, self.against, title))
        return found

    @property
    def gains(self) -> dict[str, Gain]:
        """By task of pairs of your own, whether to ship the model in place of the one it is compared with.

        `.word` is `ship`, `not shown` or `worse`. Labels of `label judge` count as far as its judges are sure
        of them. Empty without such pairs, another model or intervals.
        """
        return {
            task: score.gain
            for scores in self.scores.values()
            for task, score in scores.items()
            if score.gain is not None
        }

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `aoe evaluate --json`, each figure in its own range.

        `{task: {spearman, pearson, n, ci95, overlap}}`, with a task's parts under `subsets`, and the other
        model's figures under `against`; such an object for each of several models. Pairs of your own against
        another model have `gain`, too. With sizes `{sizes: [{model, dim, quantize, bytes, tasks}]}`, where
        `tasks` is such an object, and `layers` if they were asked for.
        """
        found = {
            model: {name: one.to_dict() for name, one in scores.items()}
            for model, scores in self.scores.items()
        }
        if self.sizes:
            return {"sizes": [self._sized(key) | {"tasks": tasks} for key, tasks in found.items()]}
        return found if len(found) > 1 else next(iter(found.values()))

    def to_polars(self) -> pl.DataFrame:
        """A row a figure: model, suite, task, subset, metric, value, low and high (95 %), n.

        With sizes also dim, quantize and bytes, and layers if they were asked for.
        """
        import polars as pl

        schema = dict.fromkeys(("model", "suite", "task", "subset", "metric"), pl.String)
        numbers = {"value": pl.Float64, "low": pl.Float64, "high": pl.Float64, "n": pl.Int64}
        found = pl.DataFrame(list(self._rows()), schema={**schema, **numbers}, orient="row")
        if not self.sizes:
            return found
        sizes = pl.DataFrame([{"key": key, **self._sized(key)} for key in self.sizes])
        return found.rename({"model": "key"}).join(sizes, on="key").drop("key")

    def to_markdown(self) -> str:
        """All tables as a page of Markdown."""
        parts = []
        for table in self.tables(subsets=True):
            parts += [f"## {table.title}", card.table(table.headings, table.rows)]
        if self._resampling.number:
            resamples = f"{self._resampling.number:,} resamples, seed {self._resampling.seed}"
            parts.append(f"In brackets: 95 % bootstrap intervals ({resamples}).")
        leaks = [
            f"- {name}: {model} was {found.overlap}"
            for model, scores in self.scores.items()
            for name, found in scores.items()
            if found.overlap is not None and found.overlap.texts
        ]
        return "\n\n".join([*parts, *(["\n".join(leaks)] if leaks else [])]) + "\n"

    def __repr__(self) -> str:
        return "\n\n".join(map(str, self.tables()))

    def _ranked(self, *, subsets: bool) -> Iterator[ResultTable]:
        """The tables of the suite duplicates, whose models are rankings."""
        (task,) = next(iter(self.scores.values()))
        scores = {row: of_row[task] for row, of_row in self.scores.items()}
        yield rankings(scores, f"{task}: duplicates found, times 100", subsets=subsets)
        if self._resampling.number:
            yield ahead(scores, f"{task}: ahead by, times 100, with 95 % intervals over queries")

    def _sized(self, key: str) -> dict[str, Any]:
        size = self.sizes[key]
        depth = {} if size.layers is None else {"layers": size.layers}
        return {"model": size.model, **depth, "dim": size.dim, "quantize": size.quantize, "bytes": size.bytes}

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        for model, scores in self.scores.items():
            for task, score in scores.items():
                for subset, result in ((None, score.result), *score.result.subsets.items()):
                    for metric, value, low, high in _figures(result):
                        yield model, self.suite, task, subset, metric, value, low, high, result.n


def _figures(result: Result) -> Iterator[tuple[str, float | None, float | None, float | None]]:
    for metric, value in result.scores.items():
        low, high = result.intervals.get(metric, (None, None))
        yield metric, defined(value), low, high

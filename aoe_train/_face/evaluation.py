"""How good models are, as `aoe evaluate` tells it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    from aoe_train._encoder import Encoder
    from aoe_train._evaluate import Chosen, Draws, Gain, Overlap, Result, Score, Split
    from aoe_train._evaluate.embedders.embedder import Embedder, Endpoint
    from aoe_train._evaluate.embedders.small import Size
    from aoe_train._evaluate.table import Grid
    from aoe_train._small import Quantize
    from pairkit.in_memory import Source
    from pairkit.labels import Meaning
    from pairkit.progress import Listener
    from pairkit.result_table import ResultTable

Scores = Mapping[str, Mapping[str, "Score"]]
_MTEB = "mteb"


@dataclass(frozen=True, repr=False)
class Evaluation:
    """Figures of one model or several.

    Attributes:
        scores: By model, suite and task; empty for the suite mteb.
        missing: Tasks that were left out, with the reason.
        mteb: What the mteb library says by task, where that suite was asked for.
        against: The name of the model that it was compared with, if there is one.
        sizes: What the vectors were made, by the keys of `scores`, where sizes were asked for.
    """

    scores: Mapping[str, Scores]
    missing: Mapping[str, str] = field(default_factory=dict)
    mteb: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    against: str | None = None
    sizes: Mapping[str, Size] = field(default_factory=dict)
    _draws: Draws | None = None
    _by_suite: bool = False
    _rankings: bool = False

    def tables(self, *, subsets: bool = False) -> list[ResultTable]:
        """A table a suite, all figures times 100 with 95 % intervals in brackets, as in papers.

        Args:
            subsets: Show the parts of each task too.
        """
        from aoe_train._evaluate.table import by_size, comparisons, figures, mteb_figures, side_by_side

        if self.mteb:
            return [_table(mteb_figures(self.mteb), "mteb, times 100")]
        if self._rankings:
            return [_table(grid, title) for title, grid in self._ranked(subsets=subsets)]
        found: list[ResultTable] = []
        if self.sizes or len(self.scores) > 1:
            for suite in next(iter(self.scores.values())):
                of_suite = {name: one[suite] for name, one in self.scores.items()}
                grid = by_size(of_suite, self.sizes) if self.sizes else side_by_side(of_suite)
                found.append(_table(grid, f"{suite}, times 100"))
            return found
        for model, by_suite in self.scores.items():
            for suite, scores in by_suite.items():
                found.append(_table(figures(scores, subsets=subsets), f"{suite}, times 100"))
                if (ahead := comparisons(scores, model, self.against or "")) is not None:
                    found.append(_table(ahead, f"{suite}: {model} less {self.against}, times 100"))
        return found

    @property
    def gains(self) -> dict[str, Gain]:
        """By task of pairs of your own, whether to ship the model in place of the one it is compared with.

        `.word` is `ship`, `not shown` or `worse`. Labels of `label judge` count as far as its judges are sure
        of them. Empty without such pairs, another model or intervals.
        """
        return {
            task: score.gain
            for by_suite in self.scores.values()
            for scores in by_suite.values()
            for task, score in scores.items()
            if score.gain is not None
        }

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `aoe evaluate --json`, each figure in its own range.

        `{task: {spearman, pearson, n, ci95, overlap}}`, with a task's parts under `subsets`, and the other
        model's figures under `against`; such an object for each suite with `suites="all"`, and for each of
        several models. Pairs of your own against another model have `gain`, too. With sizes
        `{sizes: [{model, dim, quantize, bytes, tasks}]}`, where `tasks` is that;
        `layers` is there too where it was asked for.
        """
        if self.mteb:
            return {name: dict(told) for name, told in self.mteb.items()}
        told = {model: _told(scores, by_suite=self._by_suite) for model, scores in self.scores.items()}
        if self.sizes:
            return {"sizes": [self._sized(key) | {"tasks": tasks} for key, tasks in told.items()]}
        return told if len(told) > 1 else next(iter(told.values()))

    def to_polars(self) -> pl.DataFrame:
        """A row a figure: model, suite, task, subset, metric, value, low and high (95 %), n.

        With sizes also dim, quantize and bytes, and layers where they were asked for.
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
        """One model's figures as a page of Markdown, beside what the papers report.

        Raises:
            ConfigError: There are several models, or figures of mteb.
        """
        from aoe_train._evaluate.table_markdown import markdown, rankings_markdown
        from pairkit.errors import ConfigError

        if self._rankings and self._draws is not None:
            return rankings_markdown(dict(self._ranked(subsets=True)), draws=self._draws)
        if len(self.scores) != 1 or self._draws is None or self.sizes:
            raise ConfigError("a page of Markdown is of one model at one size, in suites other than mteb")
        ((model, by_suite),) = self.scores.items()
        return "\n".join(
            markdown(suite, scores, model, self.against, draws=self._draws)
            for suite, scores in by_suite.items()
        )

    def __repr__(self) -> str:
        return "\n\n".join(map(str, self.tables()))

    def _repr_html_(self) -> str:
        return "".join(table._repr_html_() for table in self.tables())

    def _ranked(self, *, subsets: bool) -> Iterator[tuple[str, Grid]]:
        """The tables of a suite that ranks, by title."""
        from aoe_train._evaluate import DUPLICATES
        from aoe_train._evaluate.table import ahead, rankings

        (task,) = next(iter(self.scores["BM25"].values()))
        scores = {row: by_suite[DUPLICATES][task] for row, by_suite in self.scores.items()}
        yield f"{task}: duplicates found, times 100", rankings(scores, subsets=subsets)
        if (grid := ahead(scores)) is not None:
            yield f"{task}: ahead by, times 100, with 95 % intervals over queries", grid

    def _sized(self, key: str) -> dict[str, Any]:
        size = self.sizes[key]
        depth = {} if size.layers is None else {"layers": size.layers}
        return {"model": size.model, **depth, "dim": size.dim, "quantize": size.quantize, "bytes": size.bytes}

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        for name, told in self.mteb.items():
            yield "", _MTEB, name, None, told["metric"], told["main_score"], None, None, None
        for model, by_suite in self.scores.items():
            for suite, scores in by_suite.items():
                for task, score in scores.items():
                    for subset, result in ((None, score.result), *score.result.subsets.items()):
                        for metric, value, low, high in _figures(result):
                            yield model, suite, task, subset, metric, value, low, high, result.n


def evaluate(
    model: str | Path | Encoder | Sequence[str | Path],
    *,
    suites: str | Sequence[str] | None = None,
    data_dir: str | Path | None = None,
    tasks: Sequence[str] = (),
    data: Source | None = None,
    reports: Source | None = None,
    columns: Mapping[str, str] | None = None,
    labels: Mapping[str, Meaning] | str | None = None,
    label_range: tuple[float, float] | str | None = None,
    split: str | None = None,
    against: str | Path | Encoder | None = None,
    endpoint: str | None = None,
    api_key_env: str | None = None,
    against_endpoint: str | None = None,
    against_api_key_env: str | None = None,
    plain_http: bool = False,
    prompt_name: str | None = None,
    prompt: str | None = None,
    precision: str | None = None,
    layers: int | Sequence[int] | str | None = None,
    dim: int | Sequence[int] | str | None = None,
    quantize: str | Sequence[str] | None = None,
    draws: int = 1000,
    seed: int = 42,
    keep_weights: bool = False,
    cache: bool = True,
    progress: bool | Listener = True,
) -> Evaluation:
    """Judge a model on what the papers measured, or on pairs of your own.

    Args:
        model: A folder, a Hub id, `minilm`, `smollm2`, an `Encoder`, a text file of word vectors, a function
            as `python:package.module:function`, whose module is imported, or a name at `endpoint`;
            several make one table.
        suites: sts, transfer, nli, retrieval, gis; all of them as `all`; mteb or duplicates alone. By default
            sts, and gis for `data` whose labels are 0 and 1.
        data_dir: Holds sts/STS12.tsv …, stsb/stsb-test.tsv and so on, or some of them; for gis, a dataset.
        tasks: Only these of one suite, such as `["STS-B"]`.
        data: Pairs of your own instead of a suite's: a path, a Hub id, or rows in memory.
        reports: All reports of the tracker whose duplicates `data` pairs, for the suite duplicates.
        columns: Which of the columns of `data` is which; see `train`. Beside `reports` they are duplicate and
            canonical.
        labels: What labels of `data` count as; see `train`.
        label_range: The scale of its scores; see `train`.
        split: test or dev.
        against: Another model, to be tested against on the same examples; of `data`, `gains` then says in a
            word whether to ship `model` in its place.
        endpoint: A server with OpenAI's /embeddings that has the model.
        api_key_env: The environment variable with its key; OPENAI_API_KEY at OpenAI, else none.
        against_endpoint: The same for `against`.
        against_api_key_env: The same for `against`.
        plain_http: Send keys to endpoints on other machines without encryption.
        prompt_name: The prompt of the model's for all texts, such as `query`; by default its default one. Not
            for `against`, and not for mteb, which chooses among the model's prompts itself.
        prompt: Words before each text, or around `{text}`, instead.
        precision: fp32, bf16, fp16, int8 (on a CPU) or auto.
        layers: Numbers of layers to judge models with, such as `[6, 4, 2]`: the first so many, each with
            every size and precision.
        dim: Sizes to judge vectors at, such as `[384, 128]`: the first so many numbers. A table of sizes
            then has a row for each size and precision.
        quantize: The same for what numbers become: float32, int8, binary, ubinary; see `encode`. The ranges
            of int8 are those of the suite's texts.
        draws: Bootstrap resamples for intervals and tests; 0 for none.
        seed: Decides which resamples are drawn.
        keep_weights: Leave the weights of hybrids that the suite duplicates chose on the validation split in
            the folder of each model, where `Hybrid(model=…)` finds them.
        cache: Keep vectors on disk, and use those that are there.
        progress: Shown on stderr, or not, or told to a function.

    Raises:
        ConfigError: No such model, suite or task, or a question that has no answer.
        DataError: Data that are damaged or not there, or vectors that allow no figure.
        RemoteError: The Hub or an endpoint could not be asked.

    Example:
        >>> import aoe_train
        >>> table = aoe_train.evaluate("model", data="pairs.tsv", draws=0, cache=False, progress=False)
        >>> sorted(table.to_dict()["pairs.tsv"])[:3]
        ['average_precision', 'best_accuracy', 'best_f1']
    """
    from pydantic import NonNegativeInt

    from aoe_train._evaluate import ALL, DUPLICATES, Draws, choose_pairs, score
    from aoe_train._evaluate.embedders.embedder import Prompted
    from aoe_train._evaluate.embedders.small import Small, in_sizes
    from aoe_train._face.notes import notes
    from aoe_train._settings import named_precision
    from pairkit.config import argument
    from pairkit.errors import ConfigError
    from pairkit.labels import label_rules
    from pairkit.progress import Display, stage

    names = [suites or "sts"] if isinstance(suites, str | None) else argument("suites", suites, list[str])
    models = list(model) if isinstance(model, Sequence) and not isinstance(model, str) else [model]
    if not models:
        raise ConfigError("no model to evaluate; give a folder, a Hub id or an Encoder")
    resamples = argument("draws", draws, int), argument("seed", seed, NonNegativeInt)
    sampled, say, numbers = Draws(*resamples), notes(progress), named_precision(precision)
    rules = label_rules(labels, label_range)
    depths, dims, hows = _sizes(layers, dim, quantize)
    is_sized = layers is not None or dim is not None or quantize is not None
    own = {"--columns": columns, "--labels": labels, "--label-range": label_range, "--reports": reports}
    _check_data(data, data_dir, tasks, own)
    if DUPLICATES in names and len(names) > 1:
        raise ConfigError("--suite duplicates stands alone; run the other suites by themselves")
    if keep_weights and (DUPLICATES not in names or is_sized or against is not None):
        raise ConfigError(
            "--keep-weights is for hybrids: give --suite duplicates, without --against and without sizes"
        )
    if against_endpoint is not None and against is None:
        raise ConfigError("--against-endpoint: no --against, the name of the model there; give it too")
    here, there = (
        _endpoint(endpoint, api_key_env, plain_http=plain_http),
        _endpoint(against_endpoint, against_api_key_env, plain_http=plain_http),
    )
    with Display(progress) as show:

        def opened(one: Any, at: Endpoint | None, depth: int | None = None) -> Embedder:
            from aoe_train._evaluate.embedders.open import open_embedder

            named = str(one) if isinstance(one, str | Path) else one
            with stage(f"load {one}", show):
                return open_embedder(
                    named,
                    endpoint=at,
                    precision=numbers,
                    layers=depth,
                    cache=cache,
                    progress=show,
                    say=say,
                )

        if _MTEB in names:
            given: dict[str, object] = {"--data": data, "--split": split, "--against": against}
            given |= {"--layers": layers, "--dim": dim, "--quantize": quantize}
            prompts = {"--prompt": prompt, "--prompt-name": prompt_name}
            _refuse_for_mteb(names, {**given, **prompts}, models, tasks)
            embedder = opened(models[0], here)
            told = _mteb(embedder, tasks, data_dir, cache=cache, progress=show)
            return Evaluation({}, mteb=told)
        if is_sized and against is not None:
            raise ConfigError(
                "--against is for vectors as they are; leave it out, or --layers, --dim and --quantize"
            )
        _check_models(models, against=against, here=endpoint is None)
        chosen = (
            _choose(names, data_dir, tasks, split)
            if data is None
            else choose_pairs(names[0] if suites else None, data, _part(split), rules, say, columns, reports)
        )
        for name, reason in chosen.missing.items():
            say(f"left out {name}: {reason}")
        rival = None
        if against is not None:
            rival = opened(against, there)
            _warn_of(rival.name, None if against_endpoint else _trained(against), chosen, say)
        found: dict[str, Scores] = {}
        sizes: dict[str, Size] = {}

        def each_model() -> Iterator[tuple[int | None, str, Embedder, np.ndarray | None]]:
            for one, depth in product(models, depths):
                embedder = opened(one, here, depth)
                if prompt is not None or prompt_name is not None:
                    embedder = Prompted(embedder, prompt=prompt, prompt_name=prompt_name)
                name = embedder.name if len(models) == 1 else str(one)
                yield depth, name, embedder, None if endpoint else _trained(one)

        if DUPLICATES in names and not is_sized and rival is None:
            keep = [Path(str(one)) for one in models] if keep_weights else []
            return _rankings(chosen, each_model(), sampled, show, say, keep)
        for depth, name, embedder, trained in each_model():
            made = in_sizes(embedder, name, dims, hows, depth) if is_sized else {name: embedder}
            scored: dict[str, dict[str, Mapping[str, Score]]] = {key: {} for key in made}
            for suite, chosen_tasks in chosen.tasks.items():
                for key, each in made.items():  # one after the other, as they share the suite's vectors
                    with _named(key if is_sized else None):
                        scored[key][suite] = score(
                            each,
                            chosen_tasks,
                            rival=rival,
                            trained=trained,
                            draws=sampled,
                            gains=data is not None,
                            progress=show,
                        )
            for scores in next(iter(scored.values())).values():
                _warn(embedder.name, {name: each.overlap for name, each in scores.items()}, say)
            found |= scored
            sizes |= {key: each.size() for key, each in made.items() if isinstance(each, Small)}
        return Evaluation(
            found,
            chosen.missing,
            against=None if rival is None else rival.name,
            sizes=sizes,
            _draws=sampled,
            _by_suite=ALL in names or len(names) > 1,
        )


def _rankings(
    chosen: Chosen,
    models: Iterable[tuple[int | None, str, Embedder, np.ndarray | None]],
    draws: Draws,
    progress: Listener,
    say: Callable[[str], None],
    keep: Sequence[Path],
) -> Evaluation:
    """Rankings by words, by models and by both, beside one another; `keep` are folders for their weights."""
    from aoe_train._encoder_settings import SETTINGS_FILE
    from aoe_train._evaluate import DUPLICATES
    from aoe_train._evaluate.duplicates.rows import BASELINES, hybrid_name, score_rows
    from aoe_train._evaluate.duplicates.task import DuplicatesTask
    from aoe_train._hybrid import store_weights
    from pairkit.errors import ConfigError

    (task,) = cast("Sequence[DuplicatesTask]", chosen.tasks[DUPLICATES])
    for folder in keep:
        if task.known is None or not (folder / SETTINGS_FILE).is_file():
            raise ConfigError(
                f"{folder}: --keep-weights leaves weights in the folders of models that `aoe train` made,"
                " where the data have a validation split to choose them on"
            )
    rows = score_rows(task, (model[1:] for model in models), draws=draws, progress=progress)
    names = [name for name in rows if name not in BASELINES.values() and rows[name].weight is None]
    for folder, name in zip(keep, names, strict=False):
        chosen_of = {words: rows[hybrid_name(name, row)].weight for words, row in BASELINES.items()}
        store_weights(folder, {words: w for words, w in chosen_of.items() if w is not None})
    for name, found in rows.items():
        if found.weight is None:
            _warn(name, {task.name: found.overlap}, say)
    scores = {name: {DUPLICATES: {task.name: found}} for name, found in rows.items()}
    return Evaluation(scores, _draws=draws, _rankings=True)


@contextmanager
def _named(key: str | None) -> Iterator[None]:
    """Say at which size vectors allow no figure."""
    from pairkit.errors import DataError

    try:
        yield
    except DataError as error:
        if key is None:
            raise
        raise DataError(f"{key}: {error}") from error


def _sizes(
    layers: int | Sequence[int] | str | None,
    dim: int | Sequence[int] | str | None,
    quantize: str | Sequence[str] | None,
) -> tuple[list[int | None], list[int | None], list[Quantize]]:
    """The depths, sizes and precisions that are asked for, of which there is one each in any case."""
    from pydantic import PositiveInt

    from aoe_train._evaluate.embedders.small import check_sizes
    from aoe_train._small import named_quantize
    from pairkit.config import argument, between_commas

    def numbers(name: str, given: int | Sequence[int] | str | None) -> list[int | None]:
        parts = given.split(",") if isinstance(given, str) else [given] if isinstance(given, int) else given
        return [None] if parts is None else argument(name, [*parts], list[PositiveInt])

    depths, dims = numbers("layers", layers), numbers("dim", dim)
    hows = [named_quantize(name) for name in between_commas(quantize) or ["float32"]]
    check_sizes(dims, hows, depths)
    return depths, dims, hows


def _endpoint(url: str | None, api_key_env: str | None, *, plain_http: bool) -> Endpoint | None:
    from aoe_train._evaluate.embedders.embedder import Endpoint

    return None if url is None else Endpoint(url, api_key_env, plain_http)


def _check_models(models: Sequence[Any], *, against: object, here: bool) -> None:
    """Refuse what several models can't have, and a model that isn't here before the first one is judged."""
    from aoe_train._backbones.load import find_folder
    from aoe_train._evaluate.embedders.open import is_other
    from pairkit.errors import ConfigError

    if len(models) == 1:
        return
    names = [str(one) for one in models]
    if len(set(names)) < len(names):
        raise ConfigError(f"--model: one is given twice among {', '.join(names)}")
    if against is not None:
        raise ConfigError("--against is for one --model; leave it out, or run each model by itself")
    for name in names if here else ():
        if not is_other(name):
            find_folder(name)


def _check_data(
    data: Source | None,
    data_dir: str | Path | None,
    names: Sequence[str],
    labels: Mapping[str, object],
) -> None:
    from pairkit.errors import ConfigError

    if data is not None and (data_dir is not None or names):
        raise ConfigError("--data stands instead of a suite's data; leave --data-dir and --task out")
    given = [flag for flag, value in labels.items() if value is not None]
    if data is None and given:
        raise ConfigError(f"{given[0]} is for --data, pairs of your own; a suite is read as it is known")


def _part(split: str | None) -> Split | None:
    from pairkit.errors import ConfigError

    if split not in (None, "test", "dev"):
        raise ConfigError(f"--split {split}: expected test or dev")
    return cast("Split | None", split)


def _choose(
    suites: Sequence[str], data_dir: str | Path | None, names: Sequence[str], split: str | None
) -> Chosen:
    from aoe_train._evaluate import Chosen, choose_tasks
    from pairkit.errors import ConfigError

    part = _part(split)
    if data_dir is None:
        raise ConfigError("give --data-dir, the folder with the suite's data, or --data, pairs of your own")
    if names and len(suites) > 1:
        raise ConfigError("--task chooses among the tasks of one suite; give one --suite")
    tasks: dict[str, Any] = {}
    missing: dict[str, str] = {}
    for suite in suites:
        found = choose_tasks(suite, Path(data_dir), names, part or "test")
        tasks |= found.tasks
        missing |= found.missing
    return Chosen(tasks, missing)


def _refuse_for_mteb(
    suites: Sequence[str], given: Mapping[str, object], models: Sequence[object], tasks: Sequence[str]
) -> None:
    from pairkit.errors import ConfigError

    refused = {
        **given,
        "a second --model": len(models) > 1 or None,
        "a second --suite": len(suites) > 1 or None,
    }
    for flag, value in refused.items():
        if value is not None:
            raise ConfigError(
                f"{flag}: does not go with --suite mteb, whose library has its own metrics; leave it out"
            )
    if not tasks:
        raise ConfigError("--suite mteb has over a thousand tasks: give --task, such as --task STSBenchmark")


def _mteb(
    embedder: Embedder,
    names: Sequence[str],
    data_dir: str | Path | None,
    *,
    cache: bool,
    progress: bool | Listener,
) -> dict[str, dict[str, Any]]:
    from tempfile import TemporaryDirectory

    from aoe_train._evaluate.mteb_tasks import run_mteb

    folder = None if data_dir is None else Path(data_dir)
    if cache:
        return run_mteb(embedder, names, data_dir=folder, progress=progress)
    with TemporaryDirectory() as results:
        return run_mteb(embedder, names, data_dir=folder, cache=Path(results), progress=progress)


def _trained(model: object) -> np.ndarray | None:
    from aoe_train._backbones.load import find_folder
    from aoe_train._evaluate import read_digests
    from aoe_train._evaluate.embedders.open import is_other

    if not isinstance(model, str | Path) or is_other(str(model)):
        return None
    return read_digests(find_folder(model))


def _warn(model: str, overlaps: Mapping[str, Overlap | None], say: Callable[[str], None]) -> None:
    for name, found in overlaps.items():
        if found is not None and found.texts:
            say(f"warning: {name}: {model} was {found}")


def _warn_of(model: str, trained: np.ndarray | None, chosen: Chosen, say: Callable[[str], None]) -> None:
    """Say what a rival was trained on, which flatters it as it would the model."""
    from aoe_train._evaluate import overlap

    if trained is not None:
        for tasks in chosen.tasks.values():
            _warn(model, {task.name: overlap(task, trained) for task in tasks}, say)


def _told(found: Scores, *, by_suite: bool) -> dict[str, Any]:
    """As in the JSON: by suite and task, or by task where there is one suite."""
    told = {suite: {name: one.to_dict() for name, one in scores.items()} for suite, scores in found.items()}
    return told if by_suite else next(iter(told.values()))


def _table(grid: Grid, title: str) -> ResultTable:
    from pairkit.result_table import ResultTable

    table = ResultTable(*grid.headings, title=title, left=("metric", "quantize"))
    for row in grid.rows:
        table.add_row(*row)
    return table


def _figures(result: Result) -> Iterator[tuple[str, float | None, float | None, float | None]]:
    from aoe_train._evaluate.tasks import defined

    for metric, value in result.scores.items():
        interval = result.intervals.get(metric)
        low, high = (None, None) if interval is None else interval
        yield metric, defined(value), low, high

"""Any task of the mteb library, evaluated by mteb itself on a model of ours; see `run_mteb`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aoe_train._cache_dir import cache_dir
from pairkit.errors import ConfigError, DataError, RemoteError
from pairkit.extras import needed_for
from pairkit.progress import Display, Listener, Progress

if TYPE_CHECKING:
    from mteb.abstasks.abstask import AbsTask
    from mteb.models.model_meta import ModelMeta
    from mteb.results import TaskResult

    from aoe_train._evaluate.embedders.embedder import Embedder
    from aoe_train._evaluate.mteb_tasks.model import Results


def run_mteb(
    embedder: Embedder,
    names: Sequence[str],
    *,
    data_dir: Path | None = None,
    cache: Path | None = None,
    progress: bool | Listener = True,
) -> dict[str, dict[str, Any]]:
    """Run tasks of the mteb library and give what it says.

    Args:
        embedder: The model.
        names: As mteb names its tasks: `STS12`, `Banking77Classification`, `NFCorpus`.
        data_dir: Where STS12 … STS16, `STSBenchmark` and `SICK-R` may lie as the suite `sts` wants them;
            those that do are read from there instead of the Hub.
        cache: Where mteb keeps results; a task that stands there for the same model is not run again.
            See `cache_dir`, kind `mteb`.
        progress: Shown on stderr, or told to a function.

    Returns:
        Task to `main_score`, `metric` (what the main score is) and `scores`: split to subset to all metrics,
        None for one that is undefined.

    Raises:
        ConfigError: mteb is not installed, or knows no such task, or it is not of texts alone; or the cache
            can't be written.
        DataError: A local file or a kept result is damaged, the model gives vectors that are not finite, or
            such that the main score is undefined.
        RemoteError: A dataset could not be fetched, or the model's endpoint not asked.
    """
    with needed_for("the suite mteb"):
        import mteb

        from aoe_train._evaluate.mteb_tasks.model import MtebModel, Results
    tasks = [_find(name, data_dir) for name in names]
    results = Results(cache or cache_dir("mteb"))
    model = MtebModel(embedder)
    found: dict[str, dict[str, Any]] = {}
    with _no_other_bars(), Display(progress) as show:
        for done, (name, task) in enumerate(zip(names, tasks, strict=True)):
            show(Progress("mteb", done, len(tasks), name))
            if not _is_known(task, results, model.mteb_model_meta):
                for part in getattr(task, "tasks", [task]):  # some tasks are means over others
                    _fetch(part)
            run = mteb.evaluate(model, task, cache=results, show_progress_bar=False, co2_tracker=False)
            found[name] = _figures(name, task, run.task_results[0])
        show(Progress("mteb", len(tasks), len(tasks), ended=True))
    return found


def _find(name: str, data_dir: Path | None) -> AbsTask:
    """The task, from the folder where it is there.

    Raises:
        ConfigError: mteb knows no such task, or it has more than texts.
    """
    import mteb

    from aoe_train._evaluate.mteb_tasks.local import local_task

    local = local_task(name, data_dir) if data_dir is not None else None
    if local is not None:
        return local
    try:
        task = mteb.get_task(name)
    except KeyError as error:
        raise ConfigError(f"no such mteb task: {error.args[0].removeprefix('KeyError: ')}") from error
    if other := sorted(set(task.modalities) - {"text"}):
        raise ConfigError(
            f"{name}: a task of {', '.join(other)}, but these models read text alone; leave it out"
        )
    return task


def _is_known(task: AbsTask, results: Results, meta: ModelMeta) -> bool:
    """Whether all results of a task are there, so that its data need not be fetched.

    Raises:
        DataError: What is there is damaged.
    """
    try:
        known = results.load_task_result(task.metadata.name, meta)
    except ValueError as error:
        path = results.get_task_result_path(task.metadata.name, meta)
        raise DataError("a damaged result of mteb; delete this file", path=path) from error
    return known is not None and not known.get_missing_evaluations(task)


def _fetch(task: AbsTask) -> None:
    """Load a task's data, here rather than in mteb, so that what fails is known to be the data.

    Raises:
        RemoteError: They could not be fetched.
    """
    try:
        task.load_data()
    except (OSError, ValueError, RuntimeError) as error:  # what datasets raises without a network, or a set
        dataset = task.metadata.dataset["path"]
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise RemoteError(
            f"{task.metadata.name}: the dataset {dataset} could not be fetched from the Hub ({reason}); check"
            " network and HF_HUB_OFFLINE, or copy HF_HOME from a machine that has it"
        ) from error


def _figures(name: str, task: AbsTask, result: TaskResult) -> dict[str, Any]:
    """What is told of a task.

    Raises:
        DataError: Its main score is no number.
    """
    main, metric = _rounded(result.get_score()), task.metadata.main_score
    if main is None:
        raise DataError(
            f"mteb's {metric} is not a number; look at the model's vectors, which may all be alike",
            path=name,
        )
    scores = {
        split: {subset["hf_subset"]: _numbers(subset) for subset in subsets}
        for split, subsets in result.scores.items()
    }
    return {"main_score": main, "metric": metric, "scores": scores}


def _numbers(scores: Mapping[str, Any]) -> dict[str, float | None]:
    """What is a figure, among names of subsets and languages."""
    return {name: _rounded(value) for name, value in scores.items() if isinstance(value, int | float)}


def _rounded(value: float) -> float | None:
    """As mteb keeps it, so that the first run says what all later ones will; None for what is no number."""
    return round(float(value), 6) if math.isfinite(value) else None


@contextmanager
def _no_other_bars() -> Iterator[None]:
    """No progress of the library that fetches the data: two displays would write over one another."""
    import datasets

    shown = datasets.is_progress_bar_enabled()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        if shown:
            datasets.enable_progress_bars()

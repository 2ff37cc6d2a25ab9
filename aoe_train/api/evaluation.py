"""Evaluate models: the function behind `aoe evaluate`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from aoe_train.api.parameters import (
    Data,
    Model,
    OtherData,
    Precision,
    Prompt,
    PromptName,
    notes,
    one_or_several,
)
from pairkit.app.flag import INPUT, RUN, Flag
from pairkit.dataset.flags import Columns, LabelRange, Labels, Seed

if TYPE_CHECKING:
    import numpy as np

    from aoe_train.evaluation.duplicates import DuplicatesTask
    from aoe_train.evaluation.embedders.embedder import Embedder, Endpoint, Function
    from aoe_train.evaluation.evaluation import Evaluation
    from aoe_train.evaluation.overlap import Overlap
    from aoe_train.evaluation.score import Score
    from aoe_train.evaluation.tasks import EvaluationTask
    from aoe_train.model.encoder import Encoder
    from aoe_train.model.quantization import Quantize
    from pairkit.app.progress import Listener
    from pairkit.dataset.in_memory import Source


def evaluate(
    model: Annotated[
        str | Path | Encoder | Function | Sequence[str | Path],
        replace(Model, repeat=True, read=one_or_several),
    ],
    *,
    suite: Annotated[str | None, Flag(metavar="NAME", panel=INPUT)] = None,
    data_dir: Annotated[str | Path | None, Flag(metavar="DIR", panel=INPUT, main=True)] = None,
    tasks: Annotated[
        Sequence[str | EvaluationTask], Flag("--task", metavar="NAME", panel=INPUT, repeat=True)
    ] = (),
    data: Annotated[Source | None, Data] = None,
    reports: OtherData = None,
    columns: Columns = None,
    labels: Labels = None,
    label_range: LabelRange = None,
    split: Annotated[str | None, Flag(metavar="NAME", panel=INPUT)] = None,
    against: Annotated[
        str | Path | Encoder | Function | None,
        Flag(metavar="MODEL", panel="Comparison and intervals", main=True),
    ] = None,
    endpoint: Annotated[str | None, Flag(metavar="URL", panel="Models behind a server")] = None,
    api_key_env: Annotated[str | None, Flag(metavar="NAME", panel="Models behind a server")] = None,
    against_endpoint: Annotated[str | None, Flag(metavar="URL", panel="Models behind a server")] = None,
    against_api_key_env: Annotated[str | None, Flag(metavar="NAME", panel="Models behind a server")] = None,
    plain_http: Annotated[bool, Flag(panel="Models behind a server")] = False,
    prompt_name: PromptName = None,
    prompt: Prompt = None,
    precision: Precision = None,
    layers: Annotated[int | Sequence[int] | str | None, Flag(metavar="N,…", panel="Small vectors")] = None,
    dim: Annotated[int | Sequence[int] | str | None, Flag(metavar="N,…", panel="Small vectors")] = None,
    quantize: Annotated[str | Sequence[str] | None, Flag(metavar="NAME,…", panel="Small vectors")] = None,
    resamples: Annotated[int, Flag(metavar="N", panel="Comparison and intervals")] = 1000,
    seed: Annotated[int, Seed] = 42,
    cache: Annotated[bool, Flag(panel=RUN)] = True,
    progress: bool | Listener = True,
) -> Evaluation:
    """Measure how good a model is, on pairs of your own or on STS test sets.

    In Python also on tasks of your own. Tables show figures times 100, as papers do, with 95 % bootstrap
    intervals in brackets. The JSON object has unscaled figures: {task: {spearman, pearson, n, ci95,
    overlap}}, with the parts of a task under `subsets` and the other model's figures under `against`. With
    --data and --against a last line says whether to ship the model: ship, not shown or worse (`gain` in the
    JSON). With --layers, --dim or --quantize it is {sizes: [{model, layers, dim, quantize, bytes, tasks}]},
    where `tasks` is such an object.

    Args:
        model: A folder, a Hub id, minilm, smollm2 or a name at --endpoint; repeatable. In Python
            also an `Encoder`, a function from a list of texts to an array (text, dim), or a list of names.
            Several names make one table.
        suite: sts, gis or duplicates. Default: sts; of --data with labels 0 and 1: gis.
        data_dir: The folder with the STS test sets: sts/, stsb/ and sick/. Or some of them, such as
            sts/STS12.tsv and stsb/stsb-test.tsv.
        tasks: Only this task, such as STS-B; repeatable. In Python a list of them, or tasks of your own, see
            `aoe_train.tasks`.
        data: Your own pairs instead of test sets: a folder, a file or a Hub id. In Python also rows in
            memory.
        reports: All reports of the tracker, for --suite duplicates: a table.
        columns: See `train`. Beside `reports` they are duplicate and canonical.
        labels: See `train`.
        label_range: See `train`.
        split: test or dev. Default: test.
        against: Another model, to test the difference. For `data`, `gains` then says whether to ship `model`
            in its place.
        endpoint: A server with OpenAI's /embeddings that has --model.
        api_key_env: Environment variable with the endpoint's key. Default: OPENAI_API_KEY at OpenAI.
        against_endpoint: Like --endpoint, for --against.
        against_api_key_env: Like --api-key-env, for --against.
        plain_http: Send keys to other machines unencrypted.
        prompt_name: See `encode`. Not for `against`.
        prompt: See `encode`.
        precision: See `serve`.
        layers: Evaluate the model with its first N layers; a row for each number. Such as 6,4,2: each with
            every size and precision.
        dim: Evaluate the first N numbers of vectors; a row for each size. Such as 384,128.
        quantize: float32, int8, binary, ubinary; a row for each. The ranges of int8 are those of the suite's
            texts.
        resamples: Bootstrap resamples for intervals and tests; 0: none.
        seed: Decides every random choice.
        cache: Keep vectors on disk for the next run.
        progress: Whether to show progress on stderr, or a function to be told of it.

    Raises:
        ConfigError: Unknown model, suite or task, or contradictory options.
        DataError: Missing or damaged data, or vectors on which no metric is defined.
        RemoteError: The Hub or an endpoint failed or could not be reached.

    Example:
        >>> import aoe_train
        >>> table = aoe_train.evaluate("model", data="pairs.tsv", resamples=0, cache=False, progress=False)
        >>> sorted(table.to_dict()["pairs.tsv"])[:3]
        ['average_precision', 'best_accuracy', 'best_f1']
    """
    from pydantic import NonNegativeInt

    from aoe_train.evaluation.duplicates import score_rows
    from aoe_train.evaluation.embedders.embedder import (
        Endpoint,
        PromptedEmbedder,
        QuantizedEmbedder,
        VectorSize,
        in_sizes,
    )
    from aoe_train.evaluation.embedders.open import open_embedder
    from aoe_train.evaluation.evaluation import Evaluation
    from aoe_train.evaluation.overlap import overlap
    from aoe_train.evaluation.score import Resampling, score
    from aoe_train.evaluation.suites import DUPLICATES, TaskRequest
    from aoe_train.settings.training import named_precision
    from pairkit.app.errors import ConfigError
    from pairkit.app.progress import Display, stage
    from pairkit.app.settings import argument
    from pairkit.dataset.labels import label_rules

    models = list(model) if isinstance(model, Sequence) and not isinstance(model, str) else [model]
    if not models:
        raise ConfigError("no model to evaluate; give a folder, a Hub id or an Encoder")
    sampled = Resampling(argument("resamples", resamples, int), argument("seed", seed, NonNegativeInt))
    say, numbers, rules = notes(progress), named_precision(precision), label_rules(labels, label_range)
    depths, dims, hows = _sizes(layers, dim, quantize)
    is_sized = layers is not None or dim is not None or quantize is not None
    _check_models(models, against=against, here=endpoint is None, there=against_endpoint is None)
    if against_endpoint is not None and against is None:
        raise ConfigError("--against-endpoint: no --against, the name of the model there; give it too")
    if is_sized and against is not None:
        raise ConfigError(
            "--against is for vectors as they are; leave it out, or --layers, --dim and --quantize"
        )
    wanted = TaskRequest(suite, data_dir, tuple(tasks or ()), data, reports, split, columns)
    wanted.check({"--labels": labels, "--label-range": label_range})
    here, there = (
        None if url is None else Endpoint(url, variable, plain_http)
        for url, variable in ((endpoint, api_key_env), (against_endpoint, against_api_key_env))
    )
    with Display(progress) as show:

        def opened(one: Any, at: Endpoint | None, depth: int | None = None) -> Embedder:
            named = str(one) if isinstance(one, str | Path) else one
            with stage(f"load {one}", show):
                return open_embedder(
                    named, endpoint=at, precision=numbers, layers=depth, cache=cache, progress=show, say=say
                )

        chosen = wanted.read(rules, say)
        for name, reason in chosen.missing.items():
            say(f"left out {name}: {reason}")
        rival = None
        if against is not None:
            rival = opened(against, there)
            seen = None if against_endpoint else _trained(against)
            if seen is not None:  # which flatters a rival as it would the model
                _warn(rival.name, {task.name: overlap(task, seen) for task in chosen.tasks}, say)

        def each_model() -> Iterator[tuple[int | None, str, Embedder, np.ndarray | None]]:
            for one, depth in product(models, depths):
                embedder = opened(one, here, depth)
                if prompt is not None or prompt_name is not None:
                    embedder = PromptedEmbedder(embedder, prompt=prompt, prompt_name=prompt_name)
                is_named = len(models) > 1 and isinstance(one, str | Path)
                name = str(one) if is_named else embedder.name
                yield depth, name, embedder, None if endpoint else _trained(one)

        if suite == DUPLICATES and not is_sized and rival is None:
            task = cast("DuplicatesTask", chosen.tasks[0])
            rows = score_rows(task, (each[1:] for each in each_model()), resamples=sampled, progress=show)
            for name, row in rows.items():
                if row.weight is None:
                    _warn(name, {task.name: row.overlap}, say)
            ranked = {name: {task.name: row} for name, row in rows.items()}
            return Evaluation(DUPLICATES, ranked, _resampling=sampled, _rankings=True)
        scores: dict[str, Mapping[str, Score]] = {}
        sizes: dict[str, VectorSize] = {}
        for depth, name, embedder, trained in each_model():
            made = in_sizes(embedder, name, dims, hows, depth) if is_sized else {name: embedder}
            for key, each in made.items():
                with _named(key if is_sized else None):
                    scores[key] = score(
                        each,
                        chosen.tasks,
                        rival=rival,
                        trained=trained,
                        resamples=sampled,
                        gains=data is not None,
                        progress=show,
                    )
                sizes |= {key: each.size()} if isinstance(each, QuantizedEmbedder) else {}
            _warn(embedder.name, {task: one.overlap for task, one in scores[next(iter(made))].items()}, say)
        result = Evaluation(chosen.suite, scores, chosen.missing, sizes=sizes, _resampling=sampled)
        return result if rival is None else replace(result, against=rival.name)


@contextmanager
def _named(key: str | None) -> Iterator[None]:
    """Name the size in errors about its vectors."""
    from pairkit.app.errors import DataError

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
    """The requested depths, sizes and precisions, at least one of each."""
    from pydantic import PositiveInt

    from aoe_train.evaluation.embedders.embedder import check_sizes
    from aoe_train.model.quantization import named_quantize
    from pairkit.app.settings import argument, between_commas

    def numbers(name: str, given: int | Sequence[int] | str | None) -> list[int | None]:
        parts = given.split(",") if isinstance(given, str) else [given] if isinstance(given, int) else given
        return [None] if parts is None else argument(name, [*parts], list[PositiveInt])

    depths, dims = numbers("layers", layers), numbers("dim", dim)
    hows = [named_quantize(name) for name in between_commas(quantize) or ["float32"]]
    check_sizes(dims, hows, depths)
    return depths, dims, hows


def _check_models(models: Sequence[Any], *, against: object, here: bool, there: bool) -> None:
    """Refuse options for one model only, and missing models, before the first model is evaluated."""
    from aoe_train.model.backbones.load import check_name, find_folder
    from pairkit.app.errors import ConfigError

    for one in (*(models if here else ()), *([against] if there else [])):
        if isinstance(one, str | Path):
            check_name(one)
    if len(models) == 1:
        return
    names = [str(one) for one in models]
    if len(set(names)) < len(names):
        raise ConfigError(f"--model: one is given twice among {', '.join(names)}")
    if against is not None:
        raise ConfigError("--against is for one --model; leave it out, or run each model by itself")
    for one in models if here else ():
        if isinstance(one, str | Path):
            find_folder(one)


def _trained(model: object) -> np.ndarray | None:
    from aoe_train.evaluation.overlap import read_digests
    from aoe_train.model.backbones.load import find_folder

    if not isinstance(model, str | Path):
        return None
    return read_digests(find_folder(model))


def _warn(model: str, overlaps: Mapping[str, Overlap | None], say: Callable[[str], None]) -> None:
    for name, found in overlaps.items():
        if found is not None and found.texts:
            say(f"warning: {name}: {model} was {found}")

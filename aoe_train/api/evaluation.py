"""The function behind `aoe evaluate`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from aoe_train.api.parameters import notes, one_or_several, options
from pairkit.base.cli.options import INPUT, Option

if TYPE_CHECKING:
    import numpy as np

    from aoe_train.evaluation.duplicates import DuplicatesTask
    from aoe_train.evaluation.embedders.embedder import Embedder, Endpoint, Function
    from aoe_train.evaluation.overlap import Overlap
    from aoe_train.evaluation.score import Score
    from aoe_train.evaluation.scores import Evaluation
    from aoe_train.evaluation.tasks import EvaluationTask
    from aoe_train.model.encoder import Encoder
    from aoe_train.model.quantization import Quantize
    from pairkit.base.cli.progress import Listener
    from pairkit.dataset.labels import Meaning
    from pairkit.dataset.reading.in_memory import Source

_COMPARISON, _SERVER, _SMALL = "Comparison and intervals", "Models behind a server", "Small vectors"


@options(
    model=replace(options["model"], read=one_or_several, repeat=True),
    suite=Option(metavar="NAME", panel=INPUT),
    data_dir=Option(metavar="DIR", panel=INPUT, main=True),
    tasks=Option(metavar="NAME,…", panel=INPUT),
    reports=Option(metavar="DATA", panel=INPUT),
    against=Option(metavar="MODEL", panel=_COMPARISON, main=True),
    endpoint=Option(metavar="URL", panel=_SERVER),
    api_key_env=Option(metavar="NAME", panel=_SERVER),
    against_endpoint=Option(metavar="URL", panel=_SERVER),
    plain_http=Option(panel=_SERVER),
    layers=Option(metavar="N,…", panel=_SMALL),
    dim=Option(metavar="N,…", panel=_SMALL),
    quantize=Option(metavar="NAME,…", panel=_SMALL),
    resamples=Option(panel=_COMPARISON),
)
def evaluate(
    model: str | Path | Encoder | Function | Sequence[str | Path],
    *,
    suite: str | None = None,
    data_dir: str | Path | None = None,
    tasks: str | Sequence[str | EvaluationTask] = (),
    data: Source | None = None,
    reports: Source | None = None,
    columns: Mapping[str, str] | None = None,
    labels: Mapping[str, Meaning] | str | None = None,
    label_range: tuple[float, float] | str | None = None,
    bad_rows: str = "error",
    split: str | None = None,
    against: str | Path | Encoder | Function | None = None,
    endpoint: str | None = None,
    api_key_env: str | None = None,
    against_endpoint: str | None = None,
    plain_http: bool = False,
    prompt_name: str | None = None,
    prompt: str | None = None,
    precision: str | None = None,
    layers: int | Sequence[int] | str | None = None,
    dim: int | Sequence[int] | str | None = None,
    quantize: str | Sequence[str] | None = None,
    resamples: int = 1000,
    seed: int = 42,
    cache: bool = True,
    progress: bool | Listener = True,
) -> Evaluation:
    """Measure the quality of models on your own pairs or on STS test sets.

    Scores are shown times 100, with 95 % intervals in brackets. With your own data and another model to
    compare with, the last line says whether the model is better, inconclusive or worse. Pairs are compared by
    AUC, scores by Spearman, positives by MRR, and judged results of `aoe sample-pairs --queries` by P@1.

    Args:
        model: A folder, a Hub id, minilm, smollm2 or a name at --endpoint; repeatable. In Python
            also an `Encoder`, a function from a list of texts to an array (text, dim), or a list of names.
            Several models share one table.
        suite: Test suite: sts, binary or tracker. Default: sts, or binary for --data with labels 0 and 1.
            Rows of anchor and positive get MRR and recall instead.
        data_dir: Folder with the STS test sets in sts/, stsb/ and sick/. Missing files are left out; their
            names are such as sts/STS12.tsv and stsb/stsb-test.tsv.
        tasks: Evaluate only these tasks, such as STS-B,SICK-R. In Python a list, which may have your own
            tasks; see `aoe_train.tasks`. Default: all of the suite.
        data: Your own pairs instead of test sets: a folder, a file or a Hub id. In Python also rows in
            memory.
        reports: Table of all reports of the tracker, for --suite tracker.
        split: Split to evaluate on: test or validation. Default: test, or validation if there is no test.
        against: Another model to compare with. With `data`, `gains` then recommends whether to replace it by
            `model`.
        endpoint: URL of a server with OpenAI's /embeddings that serves --model.
        api_key_env: Environment variable with the endpoint's key. Default: OPENAI_API_KEY at OpenAI.
        against_endpoint: URL of a server with OpenAI's /embeddings that serves --against.
        plain_http: Allow sending keys to other machines unencrypted.
        layers: Numbers of layers to evaluate, such as 6,4,2; one row each. Combined with each size and
            precision.
        dim: Vector sizes to evaluate, such as 384,128; one row each.
        quantize: Formats of vectors to evaluate: float32, int8, binary, ubinary; one row each. int8 is
            calibrated on the suite's texts.
        resamples: Bootstrap resamples for intervals and tests; 0 turns them off.
        cache: Cache vectors on disk for the next run.

    Returns:
        The scores. `to_dict()`, and --json, have them unscaled: {task: {spearman, pearson, n, ci95,
        overlap}}, with the parts of a task under `subsets`, the other model's scores under `against`, and the
        verdict under `gain`. With `layers`, `dim` or `quantize` they are {sizes: [{model, layers, dim,
        quantize, bytes, tasks}]}.

    Raises:
        ConfigError: Unknown model, suite or task, or contradictory options.
        DataError: Missing or damaged data, or no metric is defined for the vectors.
        RemoteError: The Hub or an endpoint failed or could not be reached.

    Example:
        >>> import aoe_train
        >>> table = aoe_train.evaluate("model", data="pairs.tsv", resamples=0, cache=False, progress=False)
        >>> sorted(table.to_dict()["pairs.tsv"])[:3]
        ['average_precision', 'best_accuracy', 'best_f1']
    """
    from pydantic import NonNegativeInt

    from aoe_train.evaluation.duplicates import score_rows
    from aoe_train.evaluation.embedders.cached import open_embedder
    from aoe_train.evaluation.embedders.embedder import (
        Endpoint,
        PromptedEmbedder,
        QuantizedEmbedder,
        VectorSize,
        in_sizes,
    )
    from aoe_train.evaluation.overlap import overlap
    from aoe_train.evaluation.score import Resampling, score
    from aoe_train.evaluation.scores import Evaluation
    from aoe_train.evaluation.suites import TRACKER, TaskRequest
    from aoe_train.settings.train_settings import named_precision
    from pairkit.base.cli.progress import Display, stage
    from pairkit.base.errors import ConfigError, DataError
    from pairkit.base.settings import argument, between_commas
    from pairkit.dataset.labels import label_rules

    models = list(model) if isinstance(model, Sequence) and not isinstance(model, str) else [model]
    if not models:
        raise ConfigError("no model to evaluate; give a folder, a Hub id or an Encoder")
    resampling = Resampling(argument("resamples", resamples, int), argument("seed", seed, NonNegativeInt))
    say, checked_precision = notes(progress), named_precision(precision)
    rules = label_rules(labels, label_range, bad_rows)
    depths, dims, formats = _sizes(layers, dim, quantize)
    is_sized = layers is not None or dim is not None or quantize is not None
    _check_models(models, against, local=endpoint is None, local_against=against_endpoint is None)
    if against_endpoint is not None and against is None:
        raise ConfigError("--against-endpoint without --against; give --against the model's name there")
    if is_sized and against is not None:
        raise ConfigError(
            "--against compares full vectors; leave it out, or leave out --layers, --dim and --quantize"
        )
    chosen = between_commas(tasks) if isinstance(tasks, str) else tasks or ()
    request = TaskRequest(suite, data_dir, tuple(chosen), data, reports, split, columns)
    request.check({"--labels": labels, "--label-range": label_range})
    model_endpoint, against_server = (
        None if url is None else Endpoint(url, api_key_env if url == endpoint else None, plain_http)
        for url in (endpoint, against_endpoint)
    )
    with Display(progress) as show:

        def load(source: Any, server: Endpoint | None, depth: int | None = None) -> Embedder:
            with stage(f"load {source}", show):
                return open_embedder(
                    str(source) if isinstance(source, str | Path) else source,
                    endpoint=server,
                    precision=checked_precision,
                    layers=depth,
                    cache=cache,
                    progress=show,
                    say=say,
                )

        read = request.read(rules, say)
        for name, reason in read.missing.items():
            say(f"left out {name}: {reason}")
        rival = None
        if against is not None:
            rival = load(against, against_server)
            hashes = None if against_endpoint else _training_hashes(against)
            if hashes is not None:
                _warn_overlap(rival.name, {task.name: overlap(task, hashes) for task in read.tasks}, say)

        def each_model() -> Iterator[tuple[int | None, str, Embedder, np.ndarray | None]]:
            for source, depth in product(models, depths):
                embedder = load(source, model_endpoint, depth)
                if prompt is not None or prompt_name is not None:
                    embedder = PromptedEmbedder(embedder, prompt=prompt, prompt_name=prompt_name)
                is_named = len(models) > 1 and isinstance(source, str | Path)
                name = str(source) if is_named else embedder.name
                yield depth, name, embedder, None if endpoint else _training_hashes(source)

        if suite == TRACKER and not is_sized and rival is None:
            task = cast("DuplicatesTask", read.tasks[0])
            rows = score_rows(task, (each[1:] for each in each_model()), resamples=resampling, progress=show)
            for name, row in rows.items():
                if row.weight is None:
                    _warn_overlap(name, {task.name: row.overlap}, say)
            ranked = {name: {task.name: row} for name, row in rows.items()}
            return Evaluation(TRACKER, ranked, _resampling=resampling, _rankings=True)
        scores: dict[str, Mapping[str, Score]] = {}
        sizes: dict[str, VectorSize] = {}
        for depth, name, embedder, trained in each_model():
            variants = in_sizes(embedder, name, dims, formats, depth) if is_sized else {name: embedder}
            for key, variant in variants.items():
                try:
                    scores[key] = score(
                        variant,
                        read.tasks,
                        rival=rival,
                        trained=trained,
                        resamples=resampling,
                        gains=data is not None,
                        progress=show,
                    )
                except DataError as error:
                    if not is_sized:
                        raise
                    raise DataError(f"{key}: {error}") from error
                sizes |= {key: variant.size()} if isinstance(variant, QuantizedEmbedder) else {}
            overlaps = {task: each.overlap for task, each in scores[next(iter(variants))].items()}
            _warn_overlap(embedder.name, overlaps, say)
        result = Evaluation(read.suite, scores, read.missing, sizes=sizes, _resampling=resampling)
        return result if rival is None else replace(result, against=rival.name)


def _sizes(
    layers: int | Sequence[int] | str | None,
    dim: int | Sequence[int] | str | None,
    quantize: str | Sequence[str] | None,
) -> tuple[list[int | None], list[int | None], list[Quantize]]:
    """The requested depths, sizes and formats, at least one of each."""
    from pydantic import PositiveInt

    from aoe_train.evaluation.embedders.embedder import check_sizes
    from aoe_train.model.quantization import named_quantize
    from pairkit.base.settings import argument, between_commas

    def numbers(name: str, given: int | Sequence[int] | str | None) -> list[int | None]:
        parts = given.split(",") if isinstance(given, str) else [given] if isinstance(given, int) else given
        return [None] if parts is None else argument(name, [*parts], list[PositiveInt])

    depths, dims = numbers("layers", layers), numbers("dim", dim)
    formats = [named_quantize(name) for name in between_commas(quantize) or ["float32"]]
    check_sizes(dims, formats, depths)
    return depths, dims, formats


def _check_models(models: Sequence[Any], against: object, *, local: bool, local_against: bool) -> None:
    """Refuse missing models before the first one is evaluated, and options for a single model."""
    from aoe_train.model.backbones.load_backbone import check_name, find_folder
    from pairkit.base.errors import ConfigError

    local_models = [model for model in models if local and isinstance(model, str | Path)]
    for model in [*local_models, *([against] if local_against else [])]:
        if isinstance(model, str | Path):
            check_name(model)
    if len(models) == 1:
        return
    names = [str(model) for model in models]
    if len(set(names)) < len(names):
        raise ConfigError(f"--model: a duplicate among {', '.join(names)}; give each model once")
    if against is not None:
        raise ConfigError("--against: found several --model, expected one; run once for each model")
    for model in local_models:
        find_folder(model)


def _training_hashes(model: object) -> np.ndarray | None:
    """Hashes of the texts that a model was trained on, if it has them."""
    from aoe_train.evaluation.overlap import read_digests
    from aoe_train.model.backbones.load_backbone import find_folder

    if not isinstance(model, str | Path):
        return None
    return read_digests(find_folder(model))


def _warn_overlap(model: str, overlaps: Mapping[str, Overlap | None], say: Callable[[str], None]) -> None:
    for task, found in overlaps.items():
        if found is not None and found.texts:
            say(f"warning: {task}: {model} was {found}")

"""The function behind `aoe evaluate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from aoe_train.api.parameters import notes, one_or_several, options
from pairkit.base.cli.options import INPUT, Option

if TYPE_CHECKING:
    from aoe_train.encoding.embedders.embedder import Function
    from aoe_train.evaluation.evaluate_models import Sizes
    from aoe_train.evaluation.scores import Evaluation
    from aoe_train.evaluation.tasks import EvaluationTask
    from aoe_train.model.encoder import Encoder
    from pairkit.base.cli.progress import Listener
    from pairkit.dataset.labels import Meaning
    from pairkit.dataset.reading.in_memory import Source

_COMPARISON, _SERVER, _SMALL = "Comparison and intervals", "Models behind a server", "Small vectors"


@options(
    model=replace(options["model"], read=one_or_several, repeat=True),
    suite=Option(metavar="NAME", panel=INPUT),
    purpose=Option(metavar="NAME", panel=INPUT, main=True),
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
    model: str | Path | Encoder | Function | Sequence[str | Path] | None = None,
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
    purpose: str | None = None,
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

    Such results need no model: without --model, all candidates that were sampled are compared with the first
    one. Their intervals hold together, so that a candidate isn't `better` because there were many.

    Args:
        model: The model: a folder, a Hub id, minilm, smollm2 or a name at --endpoint; repeatable. In Python
            also an `Encoder`, a function from a list of texts to an array (text, dim), or a list of names.
            Several models share one table. None is needed for judged results of `aoe sample-pairs --queries`.
        suite: Test suite: sts (similarity scores), binary (labels 0 and 1) or tracker (search for
            duplicates). Default: sts, or binary for --data with labels 0 and 1. Rows of anchor and positive
            get MRR and recall instead.
        data_dir: Folder with the STS test sets in sts/, stsb/ and sick/. Missing files are left out; their
            names are such as sts/STS12.tsv and stsb/stsb-test.tsv.
        tasks: Evaluate only these tasks, such as STS-B,SICK-R. In Python a list, which may have your own
            tasks. Default: all of the suite.
        data: Your own pairs instead of test sets: a folder, a file or a Hub id; also a folder in BEIR's
            layout (corpus.jsonl, queries.jsonl, qrels). In Python also rows in memory.
        reports: Table of all reports of the tracker, as `gis render` writes it, for --suite tracker.
        split: Split to evaluate on: test or validation. Default: test, or validation if there is no test.
        purpose: Compare vectors as in an index for this purpose (group, search or match) of the task's texts;
            words don't count. Default: the model's vectors as they are.
        against: Another model to compare with. With `data`, `gains` then recommends whether to replace it by
            `model`.
        endpoint: URL of a server with OpenAI's /embeddings that serves --model.
        api_key_env: Environment variable with the endpoint's key. Default: OPENAI_API_KEY at OpenAI.
        against_endpoint: URL of a server with OpenAI's /embeddings that serves --against.
        plain_http: Allow sending keys to other machines unencrypted.
        layers: Numbers of layers to evaluate, such as 6,4,2, each as a row of the table. Combined with each
            size and precision.
        dim: Vector sizes to evaluate, such as 384,128, each as a row of the table.
        quantize: Vector formats to evaluate: float32, int8, binary, ubinary, each as a row of the table. int8
            is calibrated on the suite's texts.
        resamples: Number of bootstrap resamples for intervals and tests; 0 turns them off.
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

    from aoe_train.encoding.embedders.embedder import Endpoint
    from aoe_train.evaluation.evaluate_models import ModelRequest, evaluate_models
    from aoe_train.evaluation.resample import Resampling
    from aoe_train.evaluation.suites import TaskRequest
    from aoe_train.settings.train_settings import Purpose, named_precision
    from pairkit.base.cli.progress import Display
    from pairkit.base.settings import argument, between_commas
    from pairkit.dataset.labels import label_rules

    resampling = Resampling(
        argument("resamples", resamples, int), argument("seed", seed, NonNegativeInt)
    )
    say = notes(progress)
    checked_precision = named_precision(precision)
    rules = label_rules(labels, label_range, bad_rows)

    def server(url: str | None) -> Endpoint | None:
        if url is None:
            return None
        key = api_key_env if url == endpoint else None
        return Endpoint(url, key, plain_http)

    if model is None or isinstance(model, str) or not isinstance(model, Sequence):
        given = [] if model is None else [model]
    else:
        given = [*model]
    models = ModelRequest(
        given,
        against,
        endpoint=server(endpoint),
        against_endpoint=server(against_endpoint),
        sizes=_sizes(layers, dim, quantize),
        purpose=argument("purpose", purpose, Purpose | None),
        prompt=prompt,
        prompt_name=prompt_name,
        precision=checked_precision,
        cache=cache,
    )
    chosen = between_commas(tasks) if isinstance(tasks, str) else tasks or ()
    request = TaskRequest(suite, data_dir, tuple(chosen), data, reports, split, columns)
    models.check()
    request.check({"--labels": labels, "--label-range": label_range})
    with Display(progress) as show:
        read = request.read(rules, say)
        for name, reason in read.missing.items():
            say(f"left out {name}: {reason}")
        return evaluate_models(models, read, resampling, gains=data is not None, show=show, say=say)


def _sizes(
    layers: int | Sequence[int] | str | None,
    dim: int | Sequence[int] | str | None,
    quantize: str | Sequence[str] | None,
) -> Sizes | None:
    """The requested sizes of vectors; None without any."""
    from pydantic import PositiveInt

    from aoe_train.evaluation.evaluate_models import Sizes
    from aoe_train.model.quantization import named_quantize
    from pairkit.base.settings import argument, between_commas

    def numbers(name: str, given: int | Sequence[int] | str | None) -> list[int | None]:
        if given is None:
            return [None]
        if isinstance(given, int):
            given = [given]
        parts = given.split(",") if isinstance(given, str) else [*given]
        return argument(name, parts, list[PositiveInt])  # type: ignore[no-any-return]

    if layers is None and dim is None and quantize is None:
        return None
    formats = [named_quantize(name) for name in between_commas(quantize) or ["float32"]]
    return Sizes(numbers("layers", layers), numbers("dim", dim), formats)

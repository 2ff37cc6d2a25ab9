"""The function behind `aoe evaluate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY
from pathlib import Path
from typing import TYPE_CHECKING

from aoe_train.api.parameters import as_list, notes, one_or_several, optional, options
from pairkit.base.cli.options import INPUT, Request, parameter, takes
from pairkit.base.cli.progress import Display, Listener
from pairkit.base.errors import ConfigError

if TYPE_CHECKING:
    from aoe_train.encoding.embedders.embedder import Endpoint, Function
    from aoe_train.evaluation.evaluate_models import ModelRequest, Sizes
    from aoe_train.evaluation.scores import Evaluation
    from aoe_train.evaluation.tasks import EvaluationTask
    from aoe_train.model.encoder import Encoder
    from pairkit.dataset.labels import Meaning
    from pairkit.dataset.reading.in_memory import Source

_COMPARISON = "Comparison and intervals"
_SERVER = "Models behind a server"
_SMALL = "Small vectors"


class EvaluateRequest(Request, shared=options):
    """The arguments of `evaluate`."""

    model: str | Path | Encoder | Function | Sequence[str | Path] | None = optional(
        options["model"], read=one_or_several, repeat=True
    )
    _: KW_ONLY
    suite: str | None = optional(metavar="NAME", panel=INPUT)
    data_dir: str | Path | None = optional(metavar="DIR", panel=INPUT, main=True)
    tasks: str | Sequence[str | EvaluationTask] = parameter(
        default=(), metavar="NAME,…", panel=INPUT
    )
    data: Source | None = None
    reports: Source | None = optional(metavar="DATA", panel=INPUT)
    columns: Mapping[str, str] | None = None
    labels: Mapping[str, Meaning] | str | None = None
    label_range: tuple[float, float] | str | None = None
    bad_rows: str = "error"
    split: str | None = None
    purpose: str | None = optional(metavar="NAME", panel=INPUT, main=True)
    against: str | Path | Encoder | Function | None = optional(
        metavar="MODEL", panel=_COMPARISON, main=True
    )
    endpoint: str | None = optional(metavar="URL", panel=_SERVER)
    api_key_env: str | None = optional(metavar="NAME", panel=_SERVER)
    against_endpoint: str | None = optional(metavar="URL", panel=_SERVER)
    plain_http: bool = parameter(default=False, panel=_SERVER)
    prompt_name: str | None = None
    prompt: str | None = None
    precision: str | None = None
    layers: int | Sequence[int] | str | None = optional(metavar="N,…", panel=_SMALL)
    dim: int | Sequence[int] | str | None = optional(metavar="N,…", panel=_SMALL)
    quantize: str | Sequence[str] | None = optional(metavar="NAME,…", panel=_SMALL)
    resamples: int = parameter(default=1000, panel=_COMPARISON)
    seed: int = 42
    cache: bool = True
    progress: bool | Listener = True


@takes(EvaluateRequest)
def evaluate(request: EvaluateRequest) -> Evaluation:
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
        against: Another model to compare with; it keeps its default prompt, whatever --prompt and
            --prompt-name are. With `data`, `gains` then recommends whether to replace it by `model`.
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
        verdict under `gain`, whose `ci95` has the `level` given there if several candidates are compared.
        With `layers`, `dim` or `quantize` they are {sizes: [{model, layers, dim, quantize, bytes, tasks}]}.

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

    from aoe_train.evaluation.evaluate_models import evaluate_models
    from aoe_train.evaluation.suites import TaskRequest
    from aoe_train.evaluation.tasks import Resampling
    from pairkit.base.settings import argument, between_commas
    from pairkit.dataset.labels import label_rules

    resampling = Resampling(
        argument("resamples", request.resamples, int),
        argument("seed", request.seed, NonNegativeInt),
    )
    rules = label_rules(request.labels, request.label_range, request.bad_rows)
    models = _model_request(request)
    names_or_tasks = request.tasks or ()
    if isinstance(names_or_tasks, str):
        names_or_tasks = between_commas(names_or_tasks)
    tasks = TaskRequest(
        suite=request.suite,
        data_dir=request.data_dir,
        tasks=as_list(names_or_tasks),
        data=request.data,
        reports=request.reports,
        split=request.split,
        columns=request.columns,
    )
    models.check()
    tasks.check(
        {
            "--labels": request.labels,
            "--label-range": request.label_range,
            "--bad-rows": None if request.bad_rows == "error" else request.bad_rows,
        }
    )

    say = notes(request.progress)
    with Display(request.progress) as show:
        chosen = tasks.read(rules, say)
        for name, reason in chosen.missing.items():
            say(f"left out {name}: {reason}")
        return evaluate_models(
            models,
            chosen,
            resampling,
            gains=request.data is not None,
            show=show,
            say=say,
        )


def _model_request(request: EvaluateRequest) -> ModelRequest:
    """The models; their options are checked before the data is read."""
    from aoe_train.evaluation.evaluate_models import ModelRequest
    from aoe_train.settings.train_settings import Purpose, named_precision
    from pairkit.base.settings import argument

    if request.api_key_env is not None and request.endpoint is None:
        raise ConfigError(
            "--api-key-env is for the server of --endpoint; give that, or leave it out"
        )
    if request.plain_http and not (request.endpoint or request.against_endpoint):
        raise ConfigError(
            "--plain-http is for --endpoint or --against-endpoint; give one, or leave it out"
        )
    return ModelRequest(
        as_list(request.model),
        request.against,
        endpoint=_server(request, request.endpoint),
        against_endpoint=_server(request, request.against_endpoint),
        sizes=_sizes(request),
        purpose=argument("purpose", request.purpose, Purpose | None),
        prompt=request.prompt,
        prompt_name=request.prompt_name,
        precision=named_precision(request.precision),
        cache=request.cache,
    )


def _server(request: EvaluateRequest, url: str | None) -> Endpoint | None:
    """The server at a URL; only that of --endpoint gets the key."""
    from aoe_train.encoding.embedders.embedder import Endpoint

    if url is None:
        return None
    key_env = request.api_key_env if url == request.endpoint else None
    return Endpoint(url, key_env, request.plain_http)


def _sizes(request: EvaluateRequest) -> Sizes | None:
    """The requested sizes of vectors; None if no option names one."""
    from aoe_train.evaluation.evaluate_models import Sizes
    from aoe_train.model.quantization import named_quantize
    from pairkit.base.settings import between_commas

    if request.layers is None and request.dim is None and request.quantize is None:
        return None
    formats = between_commas(request.quantize) or ["float32"]
    return Sizes(
        layers=_numbers("layers", request.layers),
        dims=_numbers("dim", request.dim),
        formats=list(map(named_quantize, formats)),
    )


def _numbers(
    option: str, values: int | Sequence[int] | str | None
) -> Sequence[int | None]:
    """The numbers given with an option; None is the model's own number."""
    from pydantic import PositiveInt

    from pairkit.base.settings import argument, split_at_commas

    listed = as_list(split_at_commas(values))
    return argument(option, listed, list[PositiveInt]) or [None]

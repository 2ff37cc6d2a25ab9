"""The function behind `aoe evaluate`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
from pairkit.dataset.flags import BadRows, Columns, LabelRange, Labels, Seed

if TYPE_CHECKING:
    from aoe_train.evaluation.embedders.embedder import Function
    from aoe_train.evaluation.evaluate_models import Sizes
    from aoe_train.evaluation.evaluation import Evaluation
    from aoe_train.evaluation.tasks import EvaluationTask
    from aoe_train.model.encoder import Encoder
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
    tasks: Annotated[str | Sequence[str | EvaluationTask], Flag(metavar="NAME,…", panel=INPUT)] = (),
    data: Annotated[Source | None, Data] = None,
    reports: OtherData = None,
    columns: Columns = None,
    labels: Labels = None,
    label_range: LabelRange = None,
    bad_rows: BadRows = "error",
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
    """Measure the quality of models on your own pairs or on STS test sets.

    Scores are shown times 100, with 95 % intervals in brackets. With your own data and another model to
    compare with, the last line says whether the model is better, inconclusive or worse. Pairs are compared by
    AUC, scores by Spearman, positives by MRR, and judged results of `aoe sample --queries` by P@1.

    Args:
        model: A folder, a Hub id, minilm, smollm2 or a name at --endpoint; repeatable. In Python
            also an `Encoder`, a function from a list of texts to an array (text, dim), or a list of names.
            Several models share one table.
        suite: Test suite: sts, gis or duplicates. Default: sts, or gis for --data with labels 0 and 1. Rows
            of anchor and positive get MRR and recall instead.
        data_dir: Folder with the STS test sets in sts/, stsb/ and sick/. Missing files are left out; their
            names are such as sts/STS12.tsv and stsb/stsb-test.tsv.
        tasks: Evaluate only these tasks, such as STS-B,SICK-R. In Python a list, which may have your own
            tasks; see `aoe_train.tasks`. Default: all of the suite.
        data: Your own pairs instead of test sets: a folder, a file or a Hub id. In Python also rows in
            memory.
        reports: Table of all reports of the tracker, for --suite duplicates.
        columns: See `train`. With `reports` the roles are duplicate and canonical; with text=NAME,group=NAME,
            texts of one group are searched for each other (P@1, MAP@10).
        labels: See `train`.
        label_range: See `train`.
        bad_rows: Rows without a text or label: error, or skip them with a note.
        split: Split to evaluate on: test or dev. Default: test, or dev if there is no test.
        against: Another model to compare with. With `data`, `gains` then recommends whether to replace it by
            `model`.
        endpoint: URL of a server with OpenAI's /embeddings that serves --model.
        api_key_env: Environment variable with the endpoint's key. Default: OPENAI_API_KEY at OpenAI.
        against_endpoint: URL of a server with OpenAI's /embeddings that serves --against.
        against_api_key_env: Environment variable with the key of --against-endpoint. Default: OPENAI_API_KEY
            at OpenAI.
        plain_http: Allow sending keys to other machines unencrypted.
        prompt_name: See `encode`. Not used for `against`.
        prompt: See `encode`. Not used for `against`.
        precision: See `serve`.
        layers: Numbers of layers to evaluate, such as 6,4,2; one row each. Combined with each size and
            precision.
        dim: Vector sizes to evaluate, such as 384,128; one row each.
        quantize: Formats of vectors to evaluate: float32, int8, binary, ubinary; one row each. int8 is
            calibrated on the suite's texts.
        resamples: Bootstrap resamples for intervals and tests; 0 turns them off.
        seed: Random seed.
        cache: Cache vectors on disk for the next run.
        progress: Whether to show progress on stderr, or a function that receives it.

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

    from aoe_train.evaluation.embedders.embedder import Endpoint
    from aoe_train.evaluation.evaluate_models import ModelRequest, evaluate_models
    from aoe_train.evaluation.score import Resampling
    from aoe_train.evaluation.suites import TaskRequest
    from aoe_train.settings.training import named_precision
    from pairkit.app.progress import Display
    from pairkit.app.settings import argument, between_commas
    from pairkit.dataset.labels import label_rules

    resampling = Resampling(argument("resamples", resamples, int), argument("seed", seed, NonNegativeInt))
    say, checked_precision = notes(progress), named_precision(precision)
    rules = label_rules(labels, label_range, bad_rows)
    model_server, against_server = (
        None if url is None else Endpoint(url, variable, plain_http)
        for url, variable in ((endpoint, api_key_env), (against_endpoint, against_api_key_env))
    )
    models = ModelRequest(
        list(model) if isinstance(model, Sequence) and not isinstance(model, str) else [model],
        against,
        endpoint=model_server,
        against_endpoint=against_server,
        sizes=_sizes(layers, dim, quantize),
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
    from pairkit.app.settings import argument, between_commas

    def numbers(name: str, given: int | Sequence[int] | str | None) -> list[int | None]:
        parts = given.split(",") if isinstance(given, str) else [given] if isinstance(given, int) else given
        return [None] if parts is None else argument(name, [*parts], list[PositiveInt])

    if layers is None and dim is None and quantize is None:
        return None
    formats = [named_quantize(name) for name in between_commas(quantize) or ["float32"]]
    return Sizes(numbers("layers", layers), numbers("dim", dim), formats)

"""The public functions of `llm_labeler`: one for each command, with the flags as keyword arguments.

The functions import what they need, so that `--help` is fast.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairkit.base.cli.options import (
    INPUT,
    OUTPUT,
    RUN,
    Option,
    Request,
    parameter,
    takes,
)
from pairkit.base.settings import argument
from pairkit.dataset.labels import label_rules
from pairkit.dataset.shared_options import SHARED

if TYPE_CHECKING:
    from llm_labeler.clients.llms import Llms, LlmsGiven
    from llm_labeler.judging.scoring import ScoreReport
    from llm_labeler.runs.asking import LabelCall
    from llm_labeler.runs.judge_pairs import JudgedPairs
    from llm_labeler.runs.run_report import Report, Shown
    from llm_labeler.runs.run_result import Labelled, Plan
    from pairkit.base.cli.progress import Listener
    from pairkit.dataset.labels import Meaning
    from pairkit.dataset.reading.in_memory import Source

_LLMS = "LLMs"
_LABELS = "Labels"
_LIMITS = "Limits"

options = SHARED.extended(
    data=Option(short="-d", metavar="DATA", panel=INPUT, main=True),
    llm=Option(
        "LLMs to use: chatgpt, llama, chatglm, ensemble (those of the three that are available), wordnet"
        " (rules, English only), or names from the configuration. In Python also your own functions from"
        " prompt to answer, plain or async, or a dict from names to functions or entries.",
        setting="llms",
        short="-l",
        metavar="NAME,…",
        panel=_LLMS,
        main=True,
    ),
    work=Option(
        "Folder of the stored answers.", short="-w", metavar="DIR", panel=INPUT
    ),
    task=Option(setting="task", metavar="NAME", panel=_LLMS, main=True),
    size=Option(setting="size", short="-n", panel=_LLMS, main=True),
    samples=Option(setting="samples", panel=_LLMS),
    examples=Option(setting="prompt.examples", metavar="FILE", panel=_LLMS),
    prompt=Option(setting="prompt.template", metavar="NAME", panel=_LLMS),
    polarity=Option(setting="prompt.polarities", metavar="NAME", panel=_LLMS),
    aggregation=Option(setting="ensemble.aggregation", metavar="NAME", panel=_LABELS),
    judges=Option(setting="judge.llms", metavar="NAME,…", panel=_LABELS),
    limit=Option(setting="input.limit", panel=INPUT),
    draw=Option(setting="input.draw", panel=INPUT, main=True),
    max_cost=Option(setting="budget.max_cost", metavar="USD", panel=_LIMITS, main=True),
    max_tokens=Option(setting="budget.max_tokens", panel=_LIMITS),
    max_requests=Option(setting="budget.max_requests", panel=_LIMITS),
    batch=Option(
        "Use OpenAI's Batch API: it costs half, and takes up to a day.", panel=_LLMS
    ),
    keep_going=Option(
        "Make the dataset even if some LLMs or questions failed. The result's `problem` reports which; the"
        " command exits with 4.",
        panel=RUN,
    ),
    retry_failed=Option(
        "Repeat questions that a server rejected or answered without text. Without `batch`, pending batches"
        " are abandoned.",
        panel=RUN,
    ),
    local_only=Option(setting="local_only", long="--local-only", panel=_LLMS),
    seed=Option(setting="seed", panel=RUN),
    config=replace(
        SHARED["config"], text="A TOML file of settings, with LLMs as [llm.NAME]."
    ),
)
_NEW_WORK = Option(
    "Folder of the stored answers. Default: OUT.work.",
    short="-w",
    metavar="DIR",
    panel=OUTPUT,
)
_SETTINGS = "llm_labeler.settings:LabelSettings"


class _RunRequest(Request, shared=options, settings=_SETTINGS):
    """The common arguments of `generate` and `judge`."""

    data: Source
    _: KW_ONLY
    llm: LlmsGiven | None = None
    out: str | Path = "pairs"
    work: str | Path | None = parameter(_NEW_WORK, default=None)
    columns: Mapping[str, str] | None = None
    limit: int | None = None
    draw: int | None = None
    max_cost: float | None = None
    max_tokens: int | None = None
    max_requests: int | None = None
    batch: bool = False
    keep_going: bool = False
    retry_failed: bool = False
    local_only: bool | None = None
    seed: int | None = None
    config: str | Path | None = None
    settings: Mapping[str, Any] | Iterable[str] | None = None
    fresh: bool = False
    progress: bool | Listener = True


class GenerateRequest(_RunRequest, shared=options, settings=_SETTINGS):
    """The arguments of `generate` and `plan`."""

    _: KW_ONLY
    task: str | None = None
    size: int | None = None
    samples: int | None = None
    examples: str | Path | None = None
    prompt: str | Path | None = None
    polarity: str | None = None
    aggregation: str | None = None
    judges: LlmsGiven | None = None


@takes(GenerateRequest)
def generate(request: GenerateRequest) -> Labelled:
    r"""Ask LLMs for sentences with the same and with the opposite meaning, and write a dataset of pairs.

    Run the same command again to continue: answers are stored, and only unanswered questions are sent.

    Args:
        data: Sentences: a file, a dataset or a Hub id. A text file has one per line; CSV, TSV, JSONL and
            Parquet have a column of them. In Python also a list of sentences or of dicts, a DataFrame, or a
            `datasets.Dataset`.
        columns: Column with the sentences, as text=NAME. Default: recognised.

    Returns:
        The result; `.pairs` reads the dataset.

    Raises:
        ConfigError: A setting, key, model or folder can't be used, or the aggregation can't give any pair.
        DataError: No usable sentence, a damaged store, or no remaining pair.
        RemoteError: A server failed; the same call continues.

    Example:
        >>> import llm_labeler
        >>> def my_llm(prompt: str) -> str:
        ...     return "1. An aircraft is taking off.\n2. A plane leaves the ground."
        >>> result = llm_labeler.generate(
        ...     ["A plane is taking off."], llm=my_llm, polarity="positive", out="pairs", progress=False
        ... )
        >>> result.positives
        2
        >>> result.pairs.splits["train"]["text2"].sort().to_list()
        ['A plane leaves the ground.', 'An aircraft is taking off.']
    """
    from llm_labeler.runs import label as _label

    return _label.generate(_checked(request))


@takes(GenerateRequest, same_texts=generate)
def plan(request: GenerateRequest) -> Plan:
    """Estimate the calls, tokens and cost of `generate` without making a call.

    A limit that is too low for the whole run is reported.

    Returns:
        A table with one row per LLM.

    Example:
        >>> import llm_labeler
        >>> plan = llm_labeler.plan(["A plane is taking off.", "A man sings."], llm="chatgpt", size=5)
        >>> plan.texts, plan.estimates[0].missing, plan.cost < 0.01
        (2, 4, True)
    """
    from llm_labeler.runs import label as _label

    return _label.plan(_checked(request))


@options(_SETTINGS, aggregation=replace(options["aggregation"], main=True))
def parse(
    work: str | Path,
    *,
    out: str | Path = "pairs",
    aggregation: str | None = None,
    seed: int | None = None,
    settings: Mapping[str, object] | Iterable[str] | None = None,
    fresh: bool = False,
    progress: bool | Listener = True,
) -> Labelled:
    """Make a dataset from stored answers, for example with other filters or another aggregation.

    Args:
        settings: A setting to change, such as filters.min_differing_words=5; repeatable. In Python a mapping
            from dotted keys to values. Other settings are those of the run.

    Raises:
        ConfigError: No such folder, an output that can't be replaced, or a setting that changes the
            questions.
        DataError: A damaged store, or no remaining pair.
    """
    from llm_labeler.runs import label as _label

    return _label.parse(
        argument("work", work, Path),
        argument("out", out, Path),
        {"ensemble.aggregation": aggregation, "seed": seed},
        settings,
        fresh=fresh,
        progress=progress,
    )


class JudgeRequest(_RunRequest, shared=options, settings=_SETTINGS):
    """The arguments of `judge`."""

    _: KW_ONLY
    out: str | Path = "judged"
    labels: Mapping[str, Meaning] | str | None = None
    label_range: tuple[float, float] | str | None = None


@takes(JudgeRequest)
def judge(request: JudgeRequest) -> JudgedPairs:
    """Let LLMs judge the pairs of a dataset, without its labels, as same, related or different.

    The result is a dataset with the judges' labels, and a list of the pairs whose original label they
    contradict. Votes are weighted by the judges' estimated accuracies, as with the aggregation `weighted`.
    Run the same command again to continue.

    Args:
        data: Pairs: a file, a dataset or a Hub id. In Python whatever `pairkit.read` takes. Triplets become
            pairs.

    Raises:
        ConfigError: A setting, key, model or folder can't be used; rules can't judge.
        DataError: The pairs can't be read, or every pair stayed undecided.
        RemoteError: A server failed; the same call continues.
    """
    from llm_labeler.runs.judge_pairs import judge_pairs

    rules = label_rules(request.labels, request.label_range)
    return judge_pairs(_checked(request), rules)


def _checked(request: _RunRequest) -> LabelCall:
    """Check the arguments of a request, and merge its settings."""
    from llm_labeler.clients.llms import read_arguments
    from llm_labeler.runs.asking import LabelCall
    from pairkit.base.system.folders import check_apart, work_beside

    out = argument("out", request.out, Path)
    work = argument("work", request.work, Path | None) or work_beside(out)
    check_apart(out, work)
    settings, functions = read_arguments(
        request.flags(), config=request.config, settings=request.settings
    )
    return LabelCall(
        source=request.data,
        out=out,
        work=work,
        columns=argument("columns", request.columns, dict[str, str] | None),
        settings=settings,
        functions=functions,
        batch=request.batch,
        keep_going=request.keep_going,
        retry_failed=request.retry_failed,
        fresh=request.fresh,
        progress=request.progress,
    )


@options(sentence=Option(metavar="SENTENCE", positional=True))
def show(sentence: str, *, work: str | Path) -> Shown:
    """Show one sentence with its prompts, raw answers, proposals, reasons for drops, and votes.

    `pairs show` shows a pair of the dataset.

    Args:
        sentence: The sentence, row:N, or a text_id or its beginning.

    Raises:
        ConfigError: Not a working folder.
        DataError: No such sentence, or several.
    """
    from llm_labeler.runs.run_report import show_sentence

    return show_sentence(
        argument("work", work, Path), argument("sentence", sentence, str)
    )


@options()
def report(work: str | Path) -> Report:
    """Count kept and dropped proposals by reason, with the yield and cost of each LLM.

    `pairs report` describes the dataset.

    Raises:
        ConfigError: Not a working folder.
        DataError: The folder is damaged.
    """
    from llm_labeler.runs.run_report import report_run

    return report_run(argument("work", work, Path))


@options(
    gold=Option(metavar="FILE", panel=INPUT),
    gold_threshold=Option(metavar="X", panel=INPUT, main=True),
)
def evaluate(
    gold: Source,
    *,
    work: str | Path,
    columns: Mapping[str, str] | None = None,
    labels: Mapping[str, Meaning] | str | None = None,
    label_range: tuple[float, float] | str | None = None,
    gold_threshold: float | None = None,
) -> ScoreReport:
    """Compare labels with human labels: precision, recall and kappa by LLM, polarity and aggregation.

    Args:
        gold: Pairs that people labelled, with text1, text2 and label. A file; in Python also a DataFrame or a
            list of dicts. Rows without a label are left out and counted.
        gold_threshold: Lowest gold label that counts as the same meaning. Default: half of the range.

    Raises:
        ConfigError: Not a working folder, or no such file.
        DataError: Gold pairs without text or label, or a damaged folder.
    """
    from llm_labeler.judging.scoring import score_candidates
    from llm_labeler.runs.label_folder import (
        CANDIDATES_FILE,
        load_run_record,
        read_private,
    )
    from pairkit.dataset.reading.reader import read_pairs

    folder = argument("work", work, Path)
    threshold = argument("gold_threshold", gold_threshold, float | None)
    # People may not have labelled every row.
    rules = label_rules(labels, label_range, "skip")
    record = load_run_record(folder)
    gold_pairs = read_pairs(gold, columns=columns, rules=rules)
    candidates = read_private(folder / CANDIDATES_FILE)
    ensemble = record.settings.ensemble
    report = score_candidates(gold_pairs.rows, candidates, ensemble, threshold)
    return replace(report, labels=gold_pairs.labels)


@options(config=replace(options["config"], panel=INPUT, main=True))
def llms(
    *,
    config: str | Path | None = None,
    settings: Mapping[str, object] | Iterable[str] | None = None,
) -> Llms:
    """List the built-in and configured LLMs with their prices and whether their keys are set.

    Raises:
        ConfigError: An entry is incomplete or inconsistent.

    Example:
        >>> import llm_labeler
        >>> [llm.name for llm in llm_labeler.llms()]
        ['chatglm', 'chatgpt', 'llama', 'wordnet']
    """
    from llm_labeler.clients.llms import known_llms, read_arguments

    return known_llms(read_arguments({}, config=config, settings=settings)[0])

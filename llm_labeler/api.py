"""The public functions of `llm_labeler`: one for each command, with the flags as keyword arguments.

The functions import what they need, so that `--help` is fast.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pairkit.base.cli.flag import INPUT, RUN, Flag, same_arguments, setting_keys
from pairkit.dataset.flags import Columns, Config, Fresh, LabelRange, Labels, Out, SettingsGiven

if TYPE_CHECKING:
    from llm_labeler.clients.llms import Llms
    from llm_labeler.judging.scoring import ScoreReport
    from llm_labeler.runs.arguments import LlmsGiven
    from llm_labeler.runs.assemble import Labelled
    from llm_labeler.runs.judge_pairs import JudgedPairs
    from llm_labeler.runs.label_plan import Plan
    from llm_labeler.runs.run_report import Report, Shown
    from pairkit.base.cli.progress import Listener
    from pairkit.dataset.reading.in_memory import Source

_LLMS, _LABELS, LIMITS = "LLMs", "Labels", "Limits"

Data = Annotated["Source", Flag("-d", metavar="DATA", panel=INPUT, main=True)]
AskedLlms = Annotated["LlmsGiven", Flag("-l", metavar="NAME,…", panel=_LLMS, setting="llms")]
OutFolder = Annotated[str | Path, Out]
Work = Annotated[str | Path, Flag("-w", metavar="DIR", panel=INPUT)]
NewWork = Annotated[str | Path | None, Flag("-w", metavar="DIR", panel="Output")]
Task = Annotated[str | None, Flag(metavar="NAME", panel=_LLMS, main=True, setting="task")]
Size = Annotated[int | None, Flag("-n", metavar="N", panel=_LLMS, main=True, setting="size")]
Samples = Annotated[int | None, Flag(metavar="N", panel=_LLMS, setting="samples")]
Examples = Annotated[str | Path | None, Flag(metavar="FILE", panel=_LLMS, setting="prompt.examples")]
Prompt = Annotated[str | Path | None, Flag(metavar="NAME", panel=_LLMS, setting="prompt.template")]
Polarity = Annotated[str | None, Flag(metavar="NAME", panel=_LLMS, setting="prompt.polarities")]
_AGGREGATION = Flag(metavar="NAME", panel=_LABELS, setting="ensemble.aggregation")
Aggregation = Annotated[str | None, _AGGREGATION]
Judges = Annotated["LlmsGiven | None", Flag(metavar="NAME,…", panel=_LABELS, setting="judge.llms")]
Limit = Annotated[int | None, Flag(metavar="N", panel=INPUT, setting="input.limit")]
Draw = Annotated[int | None, Flag(metavar="N", panel=INPUT, main=True, setting="input.draw")]
MaxCost = Annotated[float | None, Flag(metavar="USD", panel=LIMITS, main=True, setting="budget.max_cost")]
MaxTokens = Annotated[int | None, Flag(metavar="N", panel=LIMITS, setting="budget.max_tokens")]
MaxRequests = Annotated[int | None, Flag(metavar="N", panel=LIMITS, setting="budget.max_requests")]
Batch = Annotated[bool, Flag(panel=_LLMS)]
RunFlag = Annotated[bool, Flag(panel=RUN)]
LocalOnly = Annotated[bool | None, Flag(long="--local-only", panel=_LLMS, setting="local_only")]
Seed = Annotated[int | None, Flag(metavar="N", panel=RUN, setting="seed")]


def generate(
    data: Data,
    *,
    llm: AskedLlms,
    out: OutFolder = "pairs",
    work: NewWork = None,
    columns: Columns = None,
    task: Task = None,
    size: Size = None,
    samples: Samples = None,
    examples: Examples = None,
    prompt: Prompt = None,
    polarity: Polarity = None,
    aggregation: Aggregation = None,
    judges: Judges = None,
    limit: Limit = None,
    draw: Draw = None,
    max_cost: MaxCost = None,
    max_tokens: MaxTokens = None,
    max_requests: MaxRequests = None,
    batch: Batch = False,
    keep_going: RunFlag = False,
    retry_failed: RunFlag = False,
    local_only: LocalOnly = None,
    seed: Seed = None,
    config: Config = None,
    settings: SettingsGiven = None,
    fresh: Fresh = False,
    progress: bool | Listener = True,
) -> Labelled:
    r"""Ask LLMs for sentences with the same and with the opposite meaning, and write a dataset of pairs.

    Run the same command again to continue: answers are stored, and only unanswered questions are sent.

    Args:
        data: Sentences: a file, a dataset or a Hub id. A text file has one per line; CSV, TSV, JSONL and
            Parquet have a column of them. In Python also a list of sentences or of dicts, a DataFrame, or a
            `datasets.Dataset`.
        llm: chatgpt, llama, chatglm, ensemble (those of the three that are available), wordnet (rules,
            English only), or names from the configuration. In Python also your own functions from prompt to
            answer, plain or async, or a dict from names to functions or entries.
        out: Folder of the dataset.
        work: Folder of the stored answers. Default: OUT.work.
        columns: Column with the sentences, as text=NAME. Default: recognised.
        task: paraphrase (same and opposite), triplet or query. `triplet` asks for paraphrases and hard
            negatives, `query` for questions about a passage; both make triplets.
        size: Sentences to request from each LLM, for each text and polarity.
        samples: Answers to request for each question. `llm.NAME.temperature` must not be 0.
        examples: File of pairs or triplets to send as few-shot examples.
        prompt: hardened, paper, or a file with {text}, {size} and {polarity}. The tasks triplet and query
            have their own prompt; a file replaces it.
        polarity: positive, negative or both. Default: both.
        aggregation: How proposals become labels: union, vote or weighted.
        judges: LLMs that judge the proposals, for the aggregations vote and weighted. Default: the LLMs of
            `llm`.
        limit: Use only the first N usable sentences.
        draw: Use a random sample of N sentences, for example of a file that is sorted by topic.
        max_cost: Maximum cost in US dollars, summed over all runs with the same `work`.
        max_tokens: Maximum tokens of prompts and answers, over all runs.
        max_requests: Maximum number of calls, over all runs.
        batch: Use OpenAI's Batch API: half the price, up to a day.
        keep_going: Make the dataset even if LLMs or questions failed. `Labelled.problem` reports which; the
            command exits with 4.
        retry_failed: Repeat questions that a server rejected. Without `batch`, pending batches are abandoned.
        local_only: Refuse LLMs that may send text to another machine.
        seed: Seed of every random choice.
        config: TOML file with settings; LLMs are [llm.NAME].
        settings: One setting, such as filters.min_shared=0.3; repeatable. In Python a mapping from dotted
            keys to values, such as `{"llm.chatgpt.temperature": 0.7}`. They override `config`; the arguments
            above override them.
        fresh: Replace a dataset that was made with other settings.
        progress: True shows progress on stderr, False hides it; a function receives each `pairkit.Progress`.

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
    from llm_labeler.runs.arguments import read_arguments
    from llm_labeler.runs.label import AskOptions
    from pairkit.base.settings import argument

    resolved, functions = read_arguments(setting_keys(generate), locals(), config=config, settings=settings)
    folders = argument("out", out, Path), argument("work", work, Path | None)
    options = AskOptions(batch=batch, retry_failed=retry_failed, keep_going=keep_going)
    return _label.generate(
        *(data, *folders, resolved, functions),
        columns=argument("columns", columns, dict[str, str] | None),
        options=options,
        fresh=fresh,
        progress=progress,
    )


@same_arguments(generate)
def plan(arguments: dict[str, Any]) -> Plan:
    """Estimate the calls, tokens and cost of `generate` without making a call.

    Arguments and errors are those of `generate`. A limit that is too low for the whole run is reported.

    Returns:
        A table with one row per LLM.

    Example:
        >>> import llm_labeler
        >>> plan = llm_labeler.plan(["A plane is taking off.", "A man sings."], llm="chatgpt", size=5)
        >>> plan.texts, plan.estimates[0].missing, plan.cost < 0.01
        (2, 4, True)
    """
    from llm_labeler.runs import label as _label
    from llm_labeler.runs.arguments import read_arguments
    from pairkit.base.settings import argument

    config, settings = arguments["config"], arguments["settings"]
    resolved, functions = read_arguments(setting_keys(generate), arguments, config=config, settings=settings)
    folders = argument("out", arguments["out"], Path), argument("work", arguments["work"], Path | None)
    return _label.plan(
        arguments["data"],
        *folders,
        resolved,
        functions,
        columns=argument("columns", arguments["columns"], dict[str, str] | None),
    )


def parse(
    work: Work,
    *,
    out: OutFolder = "pairs",
    aggregation: Annotated[str | None, replace(_AGGREGATION, main=True)] = None,
    seed: Seed = None,
    settings: SettingsGiven = None,
    fresh: Fresh = False,
    progress: bool | Listener = True,
) -> Labelled:
    """Make a dataset from stored answers, for example with other filters or another aggregation.

    Args:
        work: Folder of the stored answers.
        out: Folder of the dataset.
        aggregation: How proposals become labels: union, vote or weighted. Default: the run's.
        seed: Seed of every random choice. Default: the run's.
        settings: A setting to change, such as filters.min_differing_words=5; repeatable. In Python a mapping
            from dotted keys to values. Other settings are those of the run.
        fresh: See `generate`.
        progress: See `generate`.

    Raises:
        ConfigError: No such folder, an output that can't be replaced, or a setting that changes the
            questions.
        DataError: A damaged store, or no remaining pair.
    """
    from llm_labeler.runs import label as _label
    from llm_labeler.runs.arguments import read_arguments
    from llm_labeler.runs.label_folder import load_run_record
    from pairkit.base.settings import argument

    folders = argument("work", work, Path), argument("out", out, Path)
    recorded = load_run_record(folders[0]).settings.model_dump(mode="json")
    resolved, _ = read_arguments(setting_keys(parse), locals(), below=recorded, settings=settings)
    return _label.parse(*folders, resolved, fresh=fresh, progress=progress)


def judge(
    data: Data,
    *,
    llm: AskedLlms,
    out: OutFolder = "judged",
    work: NewWork = None,
    columns: Columns = None,
    labels: Labels = None,
    label_range: LabelRange = None,
    limit: Limit = None,
    draw: Draw = None,
    max_cost: MaxCost = None,
    max_tokens: MaxTokens = None,
    max_requests: MaxRequests = None,
    batch: Batch = False,
    keep_going: RunFlag = False,
    retry_failed: RunFlag = False,
    local_only: LocalOnly = None,
    seed: Seed = None,
    config: Config = None,
    settings: SettingsGiven = None,
    fresh: Fresh = False,
    progress: bool | Listener = True,
) -> JudgedPairs:
    """Let LLMs judge the pairs of a dataset, without its labels, as same, related or different.

    The result is a dataset with the judges' labels, and a list of the pairs whose original label they
    contradict. Votes are weighted by the judges' estimated accuracies, as with the aggregation `weighted`.
    Run the same command again to continue.

    Args:
        data: Pairs: a file, a dataset or a Hub id. In Python whatever `pairkit.read` takes. Triplets become
            pairs.
        llm: See `generate`.
        out: Folder of the dataset.
        work: See `generate`.
        columns: Names of the columns, such as text1=title,label=same. See `pairkit.read`.
        labels: New values for labels, such as 0=1,1=skip,2=0. See `pairkit.read`.
        label_range: Lowest and highest score, such as 0,100. They become 0 and 1.
        limit: Use only the first N usable pairs.
        draw: Use a random sample of N pairs.
        max_cost: See `generate`.
        max_tokens: See `generate`.
        max_requests: See `generate`.
        batch: See `generate`.
        keep_going: Make the dataset even if LLMs or questions failed. `JudgedPairs.problem` reports which;
            the command exits with 4.
        retry_failed: See `generate`.
        local_only: See `generate`.
        seed: See `generate`.
        config: See `generate`.
        settings: See `generate`.
        fresh: See `generate`.
        progress: See `generate`.

    Raises:
        ConfigError: A setting, key, model or folder can't be used; rules can't judge.
        DataError: The pairs can't be read, or every pair stayed undecided.
        RemoteError: A server failed; the same call continues.
    """
    from llm_labeler.runs.arguments import read_arguments
    from llm_labeler.runs.judge_pairs import judge_pairs
    from llm_labeler.runs.label import AskOptions
    from pairkit.base.settings import argument
    from pairkit.dataset.labels import label_rules

    resolved, functions = read_arguments(setting_keys(judge), locals(), config=config, settings=settings)
    folders = argument("out", out, Path), argument("work", work, Path | None)
    return judge_pairs(
        *(data, *folders, resolved, functions),
        columns=columns,
        rules=label_rules(labels, label_range),
        options=AskOptions(batch=batch, retry_failed=retry_failed, keep_going=keep_going),
        fresh=fresh,
        progress=progress,
    )


def show(sentence: Annotated[str, Flag(metavar="SENTENCE", positional=True)], *, work: Work) -> Shown:
    """Show one sentence with its prompts, raw answers, proposals, reasons for drops, and votes.

    `pairs show` shows a pair of the dataset.

    Args:
        sentence: A text_id or its beginning, row:N, or the sentence.
        work: See `parse`.

    Raises:
        ConfigError: Not a working folder.
        DataError: No such sentence, or several.
    """
    from llm_labeler.runs.run_report import show_sentence
    from pairkit.base.settings import argument

    return show_sentence(argument("work", work, Path), argument("sentence", sentence, str))


def report(work: Work) -> Report:
    """Count kept and dropped proposals by reason, with the yield and cost of each LLM.

    `pairs report` describes the dataset.

    Args:
        work: See `parse`.

    Raises:
        ConfigError: Not a working folder.
        DataError: The folder is damaged.
    """
    from llm_labeler.runs.run_report import report_run
    from pairkit.base.settings import argument

    return report_run(argument("work", work, Path))


def evaluate(
    gold: Annotated[Source, Flag(metavar="FILE", panel=INPUT)],
    *,
    work: Work,
    columns: Columns = None,
    labels: Labels = None,
    label_range: LabelRange = None,
    gold_threshold: Annotated[float | None, Flag(metavar="X", panel=INPUT, main=True)] = None,
) -> ScoreReport:
    """Compare labels with human labels: precision, recall and kappa by LLM, polarity and aggregation.

    Args:
        gold: Pairs that people labelled, with text1, text2 and label. A file; in Python also a DataFrame or a
            list of dicts. Rows without a label are left out and counted.
        work: See `parse`.
        columns: See `judge`.
        labels: See `judge`.
        label_range: See `judge`.
        gold_threshold: Lowest gold label that counts as the same meaning. Default: half of the range.

    Raises:
        ConfigError: Not a working folder, or no such file.
        DataError: Gold pairs without text or label, or a damaged folder.
    """
    import polars as pl

    from llm_labeler.judging.scoring import score_candidates
    from llm_labeler.runs.label_folder import CANDIDATES_FILE, load_run_record, read_private
    from pairkit.base.settings import argument
    from pairkit.dataset.labels import label_rules
    from pairkit.dataset.reading.reader import read_pairs

    folder = argument("work", work, Path)
    threshold = argument("gold_threshold", gold_threshold, float | None)
    rules = label_rules(labels, label_range, "skip")  # people may not have labelled every row
    record = load_run_record(folder)
    gold_pairs = read_pairs(gold, columns=columns, rules=rules)
    rows = pl.concat(gold_pairs.splits.values(), how="diagonal_relaxed")
    candidates = read_private(folder / CANDIDATES_FILE)
    report = score_candidates(rows, candidates, record.settings.ensemble, threshold)
    return replace(report, labels=gold_pairs.labels)


def llms(
    *,
    config: Annotated[str | Path | None, Flag("-c", metavar="FILE", panel=INPUT, main=True)] = None,
    settings: SettingsGiven = None,
) -> Llms:
    """List the built-in and configured LLMs with their prices and whether their keys are set.

    Args:
        config: See `generate`.
        settings: See `generate`.

    Raises:
        ConfigError: An entry is incomplete or inconsistent.

    Example:
        >>> import llm_labeler
        >>> [llm.name for llm in llm_labeler.llms()]
        ['chatglm', 'chatgpt', 'llama', 'wordnet']
    """
    from llm_labeler.clients.llms import known_llms
    from llm_labeler.runs.arguments import read_arguments

    return known_llms(read_arguments({}, {}, config=config, settings=settings)[0])

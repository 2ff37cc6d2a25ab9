"""The public functions of `llm_labeler`: one for each command, with its flags as keyword arguments.

Nothing heavy is imported before a function is called.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pairkit.app.flag import INPUT, RUN, Flag, setting_keys
from pairkit.dataset.flags import Columns, Config, Fresh, LabelRange, Labels, Out, SettingsGiven

if TYPE_CHECKING:
    from llm_labeler.clients.llms import Llms
    from llm_labeler.judging.scoring import ScoreReport
    from llm_labeler.runs.arguments import LlmsGiven
    from llm_labeler.runs.assemble import Labelled
    from llm_labeler.runs.judge import JudgedPairs
    from llm_labeler.runs.plan import Plan
    from llm_labeler.runs.report import Report, Shown
    from pairkit.app.progress import Listener
    from pairkit.dataset.in_memory import Source

_LLMS, _LABELS, LIMITS = "LLMs", "Labels", "Limits"

Data = Annotated["Source", Flag("--data -d", metavar="DATA", panel=INPUT, main=True)]
AskedLlms = Annotated["LlmsGiven", Flag("--llm --llms -l", metavar="NAME,…", panel=_LLMS, setting="llms")]
OutFolder = Annotated[str | Path, Out]
Work = Annotated[str | Path, Flag("--work -w", metavar="DIR", panel=INPUT)]
NewWork = Annotated[str | Path | None, Flag("--work -w", metavar="DIR", panel="Output")]
TextColumn = Annotated[str | None, Flag(metavar="NAME", panel=INPUT)]
Task = Annotated[str | None, Flag(metavar="NAME", panel=_LLMS, main=True, setting="task")]
Size = Annotated[int | None, Flag("--size -n", metavar="N", panel=_LLMS, main=True, setting="size")]
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
LocalOnly = Annotated[bool | None, Flag("--local-only", panel=_LLMS, setting="local_only")]
Seed = Annotated[int | None, Flag(metavar="N", panel=RUN, setting="seed")]


def generate(
    source: Data,
    *,
    llms: AskedLlms,
    out: OutFolder = "pairs",
    work: NewWork = None,
    text_column: TextColumn = None,
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
    r"""Ask LLMs for sentences of the same and the opposite meaning; write a dataset of pairs.

    Run it again to continue: each answer is stored, and only unanswered questions are asked.

    Args:
        source: Sentences: a file, a dataset or a Hub id. A text file has one per line; CSV, TSV, JSONL and
            Parquet have a column of them. In Python also a list of sentences or of dicts, a DataFrame, or a
            `datasets.Dataset`.
        llms: chatgpt, llama, chatglm, ensemble (those of the three that are available), wordnet (rules,
            English only), or names from the configuration. In Python also your own functions from a prompt to
            an answer, plain or async, or a dict of names to functions or entries.
        out: The dataset's folder.
        work: The folder of the answers. Default: OUT.work.
        text_column: The column of the sentences. Default: recognised.
        task: papers (same and opposite), triplet or query. `triplet` asks for a paraphrase and hard
            negatives, `query` for questions to a passage; both make triplets.
        size: Sentences asked of each LLM and polarity.
        samples: Answers to request for each question. `llm.NAME.temperature` must not be 0.
        examples: Pairs or triplets to send as few-shot examples of answers.
        prompt: hardened, paper, or a file with {text}, {size} and {polarity}. The tasks triplet and query
            use their own prompt, or a file.
        polarity: positive, negative or both. Default: both.
        aggregation: How proposals become labels: union, vote or weighted.
        judges: LLMs that judge the proposals, if the aggregation needs judges. Default: the LLMs of `llms`.
        limit: Take only the first N usable sentences.
        draw: Take a random sample of N sentences, drawn by the seed. Useful for a file sorted by topic.
        max_cost: US dollars at most, summed over all runs with the same `work`.
        max_tokens: Tokens of prompts and answers at most, over all runs.
        max_requests: Calls at most, over all runs.
        batch: Use OpenAI's Batch API: half the price, up to a day.
        keep_going: Make the dataset even if LLMs or questions failed. `Labelled.problem` reports which; the
            command exits with 4.
        retry_failed: Repeat questions that a server rejected. Without `batch`, pending batches are abandoned.
        local_only: Refuse LLMs that may send text to another machine.
        seed: Decides every random choice.
        config: Settings in TOML, with LLMs as [llm.NAME].
        settings: One setting, such as filters.min_shared=0.3; repeatable. In Python a mapping of dotted keys
            to values, such as `{"llm.chatgpt.temperature": 0.7}`. They override `config`; the arguments above
            override them.
        fresh: Replace a dataset made with other settings.
        progress: True shows progress on stderr, False hides it; a function receives each `pairkit.Progress`.

    Returns:
        The dataset; `.pairs` reads it.

    Raises:
        ConfigError: A setting, key, model or folder can't be used, or the aggregation could give no pair.
        DataError: No usable sentence, a damaged store, or no remaining pair.
        RemoteError: A server failed; the same call continues.

    Example:
        >>> import llm_labeler
        >>> def mine(prompt: str) -> str:
        ...     return "1. An aircraft is taking off.\n2. A plane leaves the ground."
        >>> made = llm_labeler.generate(
        ...     ["A plane is taking off."], llms=mine, polarity="positive", out="pairs", progress=False
        ... )
        >>> made.positives
        2
        >>> made.pairs.splits["train"]["text2"].sort().to_list()
        ['A plane leaves the ground.', 'An aircraft is taking off.']
    """
    from llm_labeler.runs import label as _label
    from llm_labeler.runs.arguments import read_arguments
    from llm_labeler.runs.label import AskOptions
    from pairkit.app.settings import argument

    found, functions = read_arguments(setting_keys(generate), locals(), config=config, settings=settings)
    places = argument("out", out, Path), argument("work", work, Path | None)
    options = AskOptions(batch=batch, retry_failed=retry_failed, keep_going=keep_going)
    return _label.generate(
        source, *places, found, functions, column=text_column, options=options, fresh=fresh, progress=progress
    )


def plan(
    source: Data,
    *,
    llms: AskedLlms,
    out: OutFolder = "pairs",
    work: NewWork = None,
    text_column: TextColumn = None,
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
    local_only: LocalOnly = None,
    seed: Seed = None,
    config: Config = None,
    settings: SettingsGiven = None,
) -> Plan:
    """Estimate the calls, tokens and money of `generate`, without a call.

    The arguments and errors are as for `generate`. A limit that is too low for the whole run is reported.

    Returns:
        A table with a row for each LLM.

    Example:
        >>> import llm_labeler
        >>> plan = llm_labeler.plan(["A plane is taking off.", "A man sings."], llms="chatgpt", size=5)
        >>> plan.texts, plan.estimates[0].missing, plan.cost < 0.01
        (2, 4, True)
    """
    from llm_labeler.runs import label as _label
    from llm_labeler.runs.arguments import read_arguments
    from pairkit.app.settings import argument

    found, functions = read_arguments(setting_keys(plan), locals(), config=config, settings=settings)
    place, folder = argument("work", work, Path | None), argument("out", out, Path)
    return _label.plan(source, folder, place, found, functions, column=text_column)


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
        work: The folder of the answers.
        out: The dataset's folder.
        aggregation: How proposals become labels: union, vote or weighted. Default: the run's.
        seed: Decides every random choice. Default: the run's.
        settings: A setting to change, such as filters.min_differing_words=5; repeatable. In Python a mapping
            of dotted keys to values. Other settings are those of the run.
        fresh: See `generate`.
        progress: See `generate`.

    Raises:
        ConfigError: No such folder, an output that can't be replaced, or a setting that changes the
            questions.
        DataError: A damaged store, or no pair is left.
    """
    from llm_labeler.runs import label as _label
    from llm_labeler.runs.arguments import read_arguments
    from llm_labeler.runs.run_folder import load_run_record
    from pairkit.app.settings import argument

    place, folder = argument("work", work, Path), argument("out", out, Path)
    below = load_run_record(place).settings.model_dump(mode="json")
    found, _ = read_arguments(setting_keys(parse), locals(), below=below, settings=settings)
    return _label.parse(place, folder, found, fresh=fresh, progress=progress)


def judge(
    source: Data,
    *,
    llms: AskedLlms,
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
    """Have LLMs judge the pairs of any dataset, blind to its labels: same, related or different.

    Writes a dataset with the judges' labels, and a list of the pairs whose original label they contradict.
    Votes are weighted by the judges' estimated accuracies, as with `aggregation="weighted"`. Run the same
    command again to continue.

    Args:
        source: Pairs: a file, a dataset or a Hub id. In Python whatever `pairkit.read` takes. Triplets become
            pairs.
        llms: See `generate`.
        out: The dataset's folder.
        work: See `generate`.
        columns: Which column is which, such as text1=title,label=same. See `pairkit.read`.
        labels: New values for labels, such as 0=1,1=skip,2=0. See `pairkit.read`.
        label_range: The lowest and highest score, such as 0,100. They become 0 and 1.
        limit: Take only the first N usable pairs.
        draw: Take N of the pairs, drawn by the seed.
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
        DataError: The pairs can't be read, or the judges decided no pair.
        RemoteError: A server failed; the same call continues.
    """
    from llm_labeler.runs.arguments import read_arguments
    from llm_labeler.runs.judge import judge_pairs
    from llm_labeler.runs.label import AskOptions
    from pairkit.app.settings import argument
    from pairkit.dataset.labels import label_rules

    found, functions = read_arguments(setting_keys(judge), locals(), config=config, settings=settings)
    return judge_pairs(
        source,
        argument("out", out, Path),
        argument("work", work, Path | None),
        found,
        functions,
        columns=columns,
        rules=label_rules(labels, label_range),
        options=AskOptions(batch=batch, retry_failed=retry_failed, keep_going=keep_going),
        fresh=fresh,
        progress=progress,
    )


def show(sentence: Annotated[str, Flag(metavar="SENTENCE", positional=True)], *, work: Work) -> Shown:
    """Show the answers of LLMs to one sentence: prompts, raw answers, proposals, drops and votes.

    `pairs show` shows a pair of the dataset itself.

    Args:
        sentence: A text_id or its beginning, row:N, or the sentence.
        work: See `parse`.

    Raises:
        ConfigError: Not a working folder.
        DataError: No such sentence, or several.
    """
    from llm_labeler.runs.report import show as look_up
    from pairkit.app.settings import argument

    return look_up(argument("work", work, Path), argument("sentence", sentence, str))


def report(work: Work) -> Report:
    """Count kept and dropped answers by reason, with the yield and cost of each LLM.

    `pairs report` describes the dataset itself.

    Args:
        work: See `parse`.

    Raises:
        ConfigError: Not a working folder.
        DataError: The folder is damaged.
    """
    from llm_labeler.runs.report import report as count
    from pairkit.app.settings import argument

    return count(argument("work", work, Path))


def score(
    gold: Annotated[Source, Flag(metavar="FILE", panel=INPUT)],
    *,
    work: Work,
    columns: Columns = None,
    labels: Labels = None,
    label_range: LabelRange = None,
    gold_threshold: Annotated[float | None, Flag(metavar="X", panel=INPUT, main=True)] = None,
) -> ScoreReport:
    """Compare labels with those of people: precision, recall and kappa by LLM, polarity and aggregation.

    Args:
        gold: Pairs that people labelled, with text1, text2 and label. A file; in Python also a DataFrame or a
            list of dicts. Rows without a label are left out and counted.
        work: See `parse`.
        columns: See `judge`.
        labels: See `judge`.
        label_range: See `judge`.
        gold_threshold: The lowest gold label that counts as the same meaning. Default: half of the range.

    Raises:
        ConfigError: Not a working folder, or no such file.
        DataError: Gold pairs without text or label, or a damaged folder.
    """
    import polars as pl

    from llm_labeler.judging.scoring import score as compare
    from llm_labeler.runs.run_folder import CANDIDATES_FILE, load_run_record, read_private
    from pairkit.app.settings import argument
    from pairkit.dataset.labels import label_rules
    from pairkit.dataset.reader import read_pairs

    place = argument("work", work, Path)
    threshold = argument("gold_threshold", gold_threshold, float | None)
    rules = label_rules(labels, label_range, "skip")  # a sheet that people have not filled to its end
    record = load_run_record(place)
    known = read_pairs(gold, columns=columns, rules=rules)
    people = pl.concat(known.splits.values(), how="diagonal_relaxed")
    candidates = read_private(place / CANDIDATES_FILE)
    found = compare(people, candidates, record.settings.ensemble, threshold)
    return replace(found, labels=known.labels)


def llms(
    *,
    config: Annotated[str | Path | None, Flag("--config -c", metavar="FILE", panel=INPUT, main=True)] = None,
    settings: SettingsGiven = None,
) -> Llms:
    """List the built-in and configured LLMs, with prices and whether their keys are set.

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

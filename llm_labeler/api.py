"""What `llm_labeler` offers: each command as a function, with the command's flags as keyword arguments."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from llm_labeler.clients.llms import Llms
    from llm_labeler.judging.ensemble import StrategyFunction
    from llm_labeler.judging.scoring import ScoreReport
    from llm_labeler.runs.given import LlmsGiven
    from llm_labeler.runs.judged_pairs import JudgedPairs
    from llm_labeler.runs.labelled import Labelled
    from llm_labeler.runs.plan import Plan
    from llm_labeler.runs.report import Report
    from llm_labeler.runs.show import Shown
    from pairkit.app.progress import Listener
    from pairkit.dataset.in_memory import Source
    from pairkit.dataset.labels import Meaning

_Settings: TypeAlias = Mapping[str, Any] | list[str]


def generate(
    source: Source,
    *,
    llms: LlmsGiven,
    out: str | Path = "pairs",
    work: str | Path | None = None,
    text_column: str | None = None,
    task: str | None = None,
    size: int | None = None,
    samples: int | None = None,
    examples: str | Path | None = None,
    prompt: str | Path | None = None,
    polarity: str | None = None,
    strategy: str | StrategyFunction | None = None,
    judges: LlmsGiven | None = None,
    limit: int | None = None,
    draw: int | None = None,
    max_cost: float | None = None,
    max_tokens: int | None = None,
    max_requests: int | None = None,
    batch: bool = False,
    keep_going: bool = False,
    retry_failed: bool = False,
    local_only: bool | None = None,
    seed: int | None = None,
    config: str | Path | None = None,
    settings: _Settings | None = None,
    fresh: bool = False,
    progress: bool | Listener = True,
) -> Labelled:
    r"""Ask LLMs for sentences of same and of opposite meaning, and make a pair dataset of their answers.

    If it was stopped, the same call asks only what has no answer yet. Every answer is kept in `work`.
    It works in notebooks too, where an event loop runs already.

    Args:
        source: The sentences: a list of them, a list of dicts, a DataFrame, a `datasets.Dataset`, or where
            they are: a text file (one per line), CSV, TSV, JSONL or Parquet, a dataset's folder, a Hub id.
        llms: Who proposes: names (`chatgpt`, `llama`, `chatglm`, `wordnet` for rules, `ensemble` for the
            papers' three, or of `config`), your own functions from a prompt to an answer, plain or async, or
            a dict of names to functions or entries.
        out: The dataset's folder.
        work: The folder of the answers; by default OUT.work.
        text_column: The column of the sentences; by default recognised.
        task: What is asked of each text: `papers` (default; the same and the opposite meaning), `triplet` (a
            paraphrase and hard negatives) or `query` (questions to a passage). Both of these make triplets.
        size: Sentences wanted of each LLM and polarity (3).
        samples: How often each LLM is asked the same (1); it has to sample (`llm.NAME.temperature`).
        examples: A file of pairs or triplets that go along with each question as examples of answers.
        prompt: `hardened` (default), `paper`, or a file with {text}, {size} and {polarity}. Other tasks have
            a prompt of their own, or a file.
        polarity: `positive`, `negative` or `both` (default).
        strategy: How proposals become labels: `union` (default), `vote`, `weighted`, or your own function
            of a `Proposed`.
        judges: Who judges; by default, where the strategy asks for judges, those that propose.
        limit: Take the first so many usable sentences.
        draw: Take so many of the sentences, drawn by the seed: of a file in order of topics, some of each.
        max_cost: US dollars that may be spent in all sessions of `work`.
        max_tokens: Tokens likewise.
        max_requests: Calls likewise.
        batch: Use OpenAI's Batch API: half the price, up to a day.
        keep_going: Make the dataset even where LLMs or questions failed; `Labelled.problem` says which.
        retry_failed: Ask again what servers rejected for good, and, without `batch`, give up batches.
        local_only: Refuse LLMs that may send text to another machine.
        seed: Decides every random choice (42).
        config: A TOML file with [llm.NAME] entries and other settings.
        settings: Settings by their dotted names, such as `{"llm.chatgpt.temperature": 0.7}`.
        fresh: Replace a dataset that was made with other settings.
        progress: Show it on stderr, or hand it to a function; False shows nothing.

    Returns:
        What was made; `.pairs` reads it.

    Raises:
        ConfigError: A setting, key, model or folder can't be used, or the strategy could give no pair.
        DataError: No usable sentence, a damaged store, or no pair is left.
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
    from llm_labeler.runs.asking import AskOptions
    from llm_labeler.runs.given import read_given
    from pairkit.app.settings import argument

    found, own = read_given(locals(), config=config, settings=settings)
    places = argument("out", out, Path), argument("work", work, Path | None)
    options = AskOptions(batch=batch, retry_failed=retry_failed, keep_going=keep_going)
    return _label.generate(
        source, *places, found, own, column=text_column, options=options, fresh=fresh, progress=progress
    )


def plan(
    source: Source,
    *,
    llms: LlmsGiven,
    out: str | Path = "pairs",
    work: str | Path | None = None,
    text_column: str | None = None,
    task: str | None = None,
    size: int | None = None,
    samples: int | None = None,
    examples: str | Path | None = None,
    prompt: str | Path | None = None,
    polarity: str | None = None,
    strategy: str | StrategyFunction | None = None,
    judges: LlmsGiven | None = None,
    limit: int | None = None,
    draw: int | None = None,
    local_only: bool | None = None,
    seed: int | None = None,
    config: str | Path | None = None,
    settings: _Settings | None = None,
) -> Plan:
    """What `generate` would ask, and what that would cost; makes no calls.

    Args:
        source: As of `generate`, and so are all others.
        llms: Who would propose.
        out: The dataset's folder.
        work: The folder of the answers, which need not be there.
        text_column: The column of the sentences.
        task: What would be asked.
        size: Sentences wanted of each LLM and polarity.
        samples: How often each LLM would be asked the same.
        examples: A file of examples that would go along.
        prompt: The template.
        polarity: `positive`, `negative` or `both`.
        strategy: Judges cost as well.
        judges: Who would judge.
        limit: Take the first so many usable sentences.
        draw: Take so many of the sentences, drawn by the seed: of a file in order of topics, some of each.
        local_only: Refuse LLMs that may send text to another machine.
        seed: Decides which sentences are drawn.
        config: A TOML file.
        settings: Settings by their dotted names.

    Returns:
        A table with a row for each LLM.

    Raises:
        ConfigError: A setting or key can't be used.
        DataError: No usable sentence, or a damaged store.

    Example:
        >>> import llm_labeler
        >>> plan = llm_labeler.plan(["A plane is taking off.", "A man sings."], llms="chatgpt", size=5)
        >>> plan.texts, plan.estimates[0].missing, plan.cost < 0.01
        (2, 4, True)
    """
    from llm_labeler.runs import label as _label
    from llm_labeler.runs.given import read_given
    from pairkit.app.settings import argument

    found, own = read_given(locals(), config=config, settings=settings)
    place, folder = argument("work", work, Path | None), argument("out", out, Path)
    return _label.plan(source, folder, place, found, own, column=text_column)


def parse(
    work: str | Path,
    *,
    out: str | Path = "pairs",
    strategy: str | StrategyFunction | None = None,
    seed: int | None = None,
    settings: _Settings | None = None,
    fresh: bool = False,
    progress: bool | Listener = True,
) -> Labelled:
    """Make the dataset once more from stored answers, perhaps with other filters or another ensemble.

    Args:
        work: The folder of the answers: `Labelled.work`.
        out: The dataset's folder.
        strategy: As of `generate`.
        seed: As of `generate`.
        settings: What else is to differ from the run's, such as `{"filters.min_differing_words": 5}`.
        fresh: Replace a dataset that was made with other settings.
        progress: As of `generate`.

    Raises:
        ConfigError: No such folder, an output that can't be replaced, or a setting that asking hangs on.
        DataError: A damaged store, or no pair is left.
    """
    from llm_labeler.runs import label as _label
    from llm_labeler.runs.given import read_given
    from llm_labeler.store.run_folder import load_run_record
    from pairkit.app.settings import argument

    place, folder = argument("work", work, Path), argument("out", out, Path)
    below = load_run_record(place).settings.model_dump(mode="json")
    found, own = read_given(locals(), below=below, settings=settings)
    return _label.parse(place, folder, found, own, fresh=fresh, progress=progress)


def judge(
    source: Source,
    *,
    llms: LlmsGiven,
    out: str | Path = "judged",
    work: str | Path | None = None,
    columns: Mapping[str, str] | None = None,
    labels: Mapping[str, Meaning] | str | None = None,
    label_range: tuple[float, float] | str | None = None,
    limit: int | None = None,
    draw: int | None = None,
    max_cost: float | None = None,
    max_tokens: int | None = None,
    max_requests: int | None = None,
    batch: bool = False,
    keep_going: bool = False,
    retry_failed: bool = False,
    local_only: bool | None = None,
    seed: int | None = None,
    config: str | Path | None = None,
    settings: _Settings | None = None,
    fresh: bool = False,
    progress: bool | Listener = True,
) -> JudgedPairs:
    """Have LLMs judge the pairs of any dataset, blind to its labels: same, related or different, or a score.

    Votes are weighed by the judges' estimated accuracies, as with the strategy `weighted`; of scores the mean
    becomes the label, from 0 to 1. If it was stopped, the same call asks only what has no answer yet.

    Args:
        source: Pairs, as `pairkit.read` takes them: of `gis`, mined, anybody's; triplets become pairs.
        llms: The judges, as of `generate`; several of different makers err less than one.
        out: The folder of the dataset with their labels.
        work: The folder of the answers; by default OUT.work.
        columns: `text1`, `text2` and `label` to the names of columns; by default recognised.
        labels: What the source's labels count as, as of `score`.
        label_range: The lowest and the highest score, as of `score`.
        limit: Take the first so many usable pairs.
        draw: Take so many of the pairs, drawn by the seed.
        max_cost: US dollars that may be spent in all sessions of `work`.
        max_tokens: Tokens likewise.
        max_requests: Calls likewise.
        batch: Use OpenAI's Batch API.
        keep_going: Go on where LLMs or questions failed.
        retry_failed: Ask again what servers rejected for good.
        local_only: Refuse LLMs that may send text to another machine.
        seed: Decides in which order judges see texts, and which pairs are drawn (42).
        config: A TOML file with [llm.NAME] entries and other settings.
        settings: Settings by their dotted names.
        fresh: Replace a dataset that was made with other settings.
        progress: As of `generate`.

    Raises:
        ConfigError: A setting, key, model or folder can't be used; rules can't judge.
        DataError: Pairs that can't be read, or the judges decided on none.
        RemoteError: A server failed; the same call continues.
    """
    from llm_labeler.runs.asking import AskOptions
    from llm_labeler.runs.given import read_given
    from llm_labeler.runs.judge import judge_pairs
    from pairkit.app.settings import argument
    from pairkit.dataset.labels import label_rules

    found, own = read_given(locals(), config=config, settings=settings)
    return judge_pairs(
        source,
        argument("out", out, Path),
        argument("work", work, Path | None),
        found,
        own,
        columns=columns,
        rules=label_rules(labels, label_range),
        options=AskOptions(batch=batch, retry_failed=retry_failed, keep_going=keep_going),
        fresh=fresh,
        progress=progress,
    )


def show(sentence: str, *, work: str | Path) -> Shown:
    """One sentence with all that is known of it: prompts, raw answers, what became of each, votes.

    Args:
        sentence: The sentence, its text_id or the beginning of it, or `row:N`.
        work: The folder of the answers.

    Raises:
        ConfigError: Not a working folder.
        DataError: No such sentence, or several.
    """
    from llm_labeler.runs.show import show as look_up
    from pairkit.app.settings import argument

    return look_up(argument("work", work, Path), argument("sentence", sentence, str))


def report(work: str | Path) -> Report:
    """What became of everything: yield, reasons and cost, by LLM.

    Args:
        work: The folder of the answers.

    Raises:
        ConfigError: Not a working folder, or no dataset was made yet.
        DataError: Damaged.
    """
    from llm_labeler.runs.report import report as count
    from pairkit.app.settings import argument

    return count(argument("work", work, Path))


def score(
    gold: Source,
    *,
    work: str | Path,
    columns: Mapping[str, str] | None = None,
    labels: Mapping[str, Meaning] | str | None = None,
    label_range: tuple[float, float] | str | None = None,
    threshold: float | None = None,
) -> ScoreReport:
    """Compare labels with people's: precision, recall and kappa by LLM, polarity and strategy.

    Args:
        gold: Pairs that people labelled, with text1, text2 and label: a file, a DataFrame, a list of dicts.
        work: The folder of the answers.
        columns: `text1`, `text2` and `label` to the names of columns; by default recognised.
        labels: What labels of `gold` count as where that is not certain: a number, or "skip" to leave their
            rows out, such as `{"entailment": 1, "neutral": "skip", "contradiction": 0}`.
        label_range: The lowest and the highest score, such as `(0, 100)`; they become 0 and 1.
        threshold: The gold label from which on a pair means the same; by default half of the labels' range.

    Raises:
        ConfigError: Not a working folder, or no such file.
        DataError: Gold pairs without text or label, or a damaged folder.
    """
    from dataclasses import replace

    import polars as pl

    from llm_labeler.judging.scoring import score as compare
    from llm_labeler.store.run_folder import CANDIDATES_FILE, load_run_record, read_private
    from pairkit.app.settings import argument
    from pairkit.dataset.labels import label_rules
    from pairkit.dataset.reader import read_pairs

    place, threshold = argument("work", work, Path), argument("threshold", threshold, float | None)
    rules = label_rules(labels, label_range)
    record = load_run_record(place)
    known = read_pairs(gold, columns=columns, rules=rules)
    people = pl.concat(known.splits.values(), how="diagonal_relaxed")
    candidates = read_private(place / CANDIDATES_FILE)
    found = compare(people, candidates, record.settings.ensemble, threshold)
    return replace(found, labels=known.labels)


def llms(*, config: str | Path | None = None, settings: _Settings | None = None) -> Llms:
    """The LLMs there are, built in or configured, with prices and whether their keys are set.

    Raises:
        ConfigError: An entry lacks something or contradicts itself.

    Example:
        >>> import llm_labeler
        >>> [llm.name for llm in llm_labeler.llms()]
        ['chatglm', 'chatgpt', 'llama', 'wordnet']
    """
    from llm_labeler.clients.llms import known_llms
    from llm_labeler.runs.given import read_given

    return known_llms(read_given({}, config=config, settings=settings)[0])

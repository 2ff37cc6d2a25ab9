"""`label judge`: let LLMs judge existing pairs, and list the labels that they contradict."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from llm_labeler.clients.llms import Provider, build_all, parameters_of
from llm_labeler.dataset.dataset_rows import CARD_TEXTS, VOTES
from llm_labeler.dataset.texts import GIVEN, PAIR, ExistingPairs, read_existing_pairs
from llm_labeler.judging.ensemble import (
    CLASSES,
    Judges,
    fit_judges,
    most_probable,
    votes_by_judge,
)
from llm_labeler.judging.questions import PAIRS, Scale
from llm_labeler.records import JudgeVote, format_counts
from llm_labeler.runs.asking import (
    AskSession,
    LabelCall,
    ask_judges,
    open_session,
    refuse_unanswered,
    remote_llms,
)
from llm_labeler.runs.label_folder import RunRecord, check_out
from llm_labeler.runs.prompts import Template
from llm_labeler.runs.questions_and_votes import (
    TextCandidates,
    add_votes,
    judge_questions,
)
from llm_labeler.runs.run_result import AskSummary, RunResult, accuracy_text
from llm_labeler.settings import LabelSettings
from pairkit.base.cli.terminal import say
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.openai_api.channel import run_anywhere
from pairkit.base.printable import escape_formulas
from pairkit.base.system.files import write_bytes
from pairkit.dataset.labels import LabelRules
from pairkit.dataset.making.dataset_folder import (
    card_files,
    dataset_card,
    table,
    write_dataset,
)
from pairkit.dataset.table_files import write_parquet

VERDICTS = ("same", "related", "different")

Votes = dict[str, list[JudgeVote]]  # by pair
_WORDS = PAIRS["match"]  # the same words for all purposes
_DECIDED = {
    "judged": pl.String,
    "confidence": pl.Float32,
    "probability": pl.Float32,
    "reason": pl.String,
}
ALL_FILE = "judged.parquet"
CONTRADICTIONS_FILE = "contradictions.csv"


def judged_card(
    statistics: Mapping[str, Any],
    run: Mapping[str, Any],
    files: Mapping[str, Mapping[str, str]],
) -> str:
    """The README of the dataset."""
    texts = CARD_TEXTS["judge"]
    splits = statistics["splits"]
    rows = [
        (name, *(split.get(name, 0) for split in splits.values()))
        for name in ("pairs", *VERDICTS)
    ]
    same = statistics["contradictions"]["given_same"]
    different = statistics["contradictions"]["given_other"]
    judges = []
    for name, judge in statistics["judges"]["by_name"].items():
        model = run["llms"][name]["model"]
        judges.append((f"`{name}`", f"`{model}`", accuracy_text(judge["accuracy"])))
    counts = (
        f"{table(['', *splits], rows)}\n\nThe judges contradict the source in {same + different:,} pairs:"
        f" {same:,} that it labels as the same, and {different:,} that it does not."
    )
    return dataset_card(
        "Pairs judged by LLMs",
        configs=files,
        rows=sum(split["pairs"] for split in splits.values()),
        sections=[
            ("", texts["about"]),
            ("Counts", counts),
            ("Columns", texts["columns"]),
            ("Judges", table(("name", "model", "estimated accuracy"), judges)),
            ("Limitations", texts["limits"]),
            ("Licence", "The texts keep the licence of their source."),
        ],
        tags=("llm-labelled",),
    )


@dataclass(frozen=True, repr=False, kw_only=True)
class JudgedPairs(RunResult):
    """A dataset with silver labels.

    Attributes:
        out: Folder of the dataset.
        work: Folder of the answers; its `judged.parquet` has all pairs, including undecided ones.
        contradictions: CSV file of the pairs whose label the judges contradict, by falling confidence.
        statistics: Content of the dataset's statistics.json.
        judges: The judges' estimated accuracies.
        asked: Calls, spending and failures of this session.
        spent_in_all: Calls, tokens and cost of all sessions in `work`.
        seconds: Duration of this session.
    """

    contradictions: Path
    _COUNTED = ("pairs", *VERDICTS)

    @property
    def contradicted(self) -> int:
        """Number of labels that the judges contradict."""
        return sum(self.statistics["contradictions"].values())

    def next_steps(self) -> list[tuple[str, list[str]]]:
        """The command to read the contradictions, if there are any."""
        read = ("read the contradicted labels", ["less", str(self.contradictions)])
        return [read] if self.contradicted else []

    def to_dict(self) -> dict[str, Any]:
        """The result for JSON."""
        return {
            "out": str(self.out),
            "splits": self.statistics["splits"],
            "contradictions": self.statistics["contradictions"],
            "contradictions_file": str(self.contradictions),
            "dropped": self.statistics["dropped"],
            "judges": self.statistics["judges"],
            **self._calls(),
        }

    def __repr__(self) -> str:
        pairs = sum(split["pairs"] for split in self.statistics["splits"].values())
        return f"JudgedPairs({str(self.out)!r}: {pairs:,} pairs; {self._caption()})"

    def _caption(self) -> str:
        left_out = sum(self.statistics["dropped"].values())
        return (
            f"{self.contradicted:,} labels contradicted, {left_out:,} pairs left out; {self._cost()};"
            f" {self.seconds:.1f} s"
        )


def judge_pairs(call: LabelCall, rules: LabelRules) -> JudgedPairs:
    """See `llm_labeler.judge`."""
    start = time.monotonic()
    settings = call.settings
    _check_judges(settings)
    pairs = read_existing_pairs(
        call.source, call.columns, rules, settings.input, settings.seed
    )
    providers = build_all(settings.proposers, settings, call.functions)
    note = partial(say, quiet=call.progress is not True)
    for reason, count in pairs.dropped.items():
        note(f"{count:,} pairs are not judged: {reason} (see the [input] settings)")
    remote = remote_llms(settings, providers)
    if remote:
        note(f"the pairs may leave this machine: {', '.join(remote)}")

    scale = PAIRS[settings.judge.purpose]
    record = _record(pairs, settings, providers, scale)
    run = _run_json(record, scale)
    check_out(call.out, run, fresh=call.fresh)
    votes: Votes = {}
    endings = Counter[str]()
    with open_session(record, providers, call, note) as session:
        asked = _ask(session, pairs, scale)
        for text in _as_candidates(pairs):
            add_votes(text, settings.proposers, session.store, record, scale)
            votes |= text.votes
            endings += text.endings
        spent_in_all = session.store.spent()

    judges = fit_judges(chain.from_iterable(votes.values()), settings.ensemble)
    minimum = settings.ensemble.min_confidence
    judged = _judged(pairs, votes, judges, minimum)
    return JudgedPairs(
        out=call.out,
        work=call.work,
        statistics=_write(call, judged, judges, pairs, run, endings),
        judges=judges,
        asked=asked,
        spent_in_all=spent_in_all,
        seconds=time.monotonic() - start,
        contradictions=call.work / CONTRADICTIONS_FILE,
    )


def _check_judges(settings: LabelSettings) -> None:
    for name in settings.proposers:
        if settings.llm[name].is_rules:
            raise ConfigError(
                f"{name} is a set of rules, which can't judge; name LLMs in --llm"
            )


def _record(
    pairs: ExistingPairs,
    settings: LabelSettings,
    providers: Mapping[str, Provider],
    scale: Scale,
) -> RunRecord:
    prompts = dict.fromkeys(settings.prompt.polarities, scale.instructions)
    return RunRecord(
        settings=settings,
        template=Template("judge", prompts),
        parameters=parameters_of(providers),
        source=pairs.name,
        sha256=pairs.sha256,
        dropped_texts=pairs.dropped,
    )


def _run_json(record: RunRecord, scale: Scale) -> dict[str, object]:
    """The content of run.json, with the settings that affect judging."""
    run = record.run_json()
    affecting = ("llms", "seed", "input", "judge", "ensemble")
    settings = {name: run["settings"][name] for name in affecting}
    return {
        **run,
        "settings": {"task": "judge", **settings},
        "prompts": {"system": scale.instructions},
    }


def _ask(session: AskSession, pairs: ExistingPairs, scale: Scale) -> AskSummary:
    settings = session.record.settings
    questions = {
        name: judge_questions(_as_candidates(pairs), name, session.record, scale)
        for name in settings.proposers
    }
    step = settings.judge.candidates_per_call
    calls = sum(-(-len(seconds) // step) for seconds in pairs.by_text.values())
    asked = run_anywhere(ask_judges(session, questions, total=len(questions) * calls))
    if not session.call.keep_going:
        refuse_unanswered(asked, ", or make the dataset without them with --keep-going")
    return asked


def _as_candidates(pairs: ExistingPairs) -> Iterator[TextCandidates]:
    """Each first text with its second texts as candidates."""
    for text, seconds in pairs.by_text.items():
        yield TextCandidates(text, (), seconds, seconds, Counter())


def _write(
    call: LabelCall,
    judged: pl.DataFrame,
    judges: Judges,
    pairs: ExistingPairs,
    run: Mapping[str, object],
    endings: Mapping[str, int],
) -> dict[str, object]:
    write_parquet(call.work / ALL_FILE, judged, private=True)
    contradictions = judged.filter("contradicts").sort(
        "confidence", descending=True, maintain_order=True
    )
    _write_csv(call.work / CONTRADICTIONS_FILE, contradictions)

    dropped = Counter(pairs.dropped)
    dropped.update(judged["reason"].drop_nulls())
    decided = judged.filter(pl.col("reason").is_null())
    if not decided.height:
        raise DataError(
            f"every pair stayed undecided ({format_counts(dropped)}; answers: {format_counts(endings)});"
            " raise max_tokens in [llm.NAME] if they are cut, or name other LLMs",
            path=call.out,
        )
    splits = {}
    counts = {}
    for split in pairs.splits:
        rows = decided.filter(split=split)
        verdicts = Counter(rows["judged"].to_list())
        splits[split] = rows.drop("reason", PAIR, "contradicts", "split")
        counts[split] = {"pairs": rows.height, **dict(sorted(verdicts.items()))}
    given_same = int((contradictions[GIVEN] >= pairs.half).sum())
    statistics = {
        "splits": counts,
        "contradictions": {
            "given_same": given_same,
            "given_other": contradictions.height - given_same,
        },
        "dropped": dict(sorted(dropped.items())),
        "judges": judges.to_dict(),
    }
    frames = {"default": splits}
    card = judged_card(statistics, run, card_files(frames))
    write_dataset(call.out, frames, card=card, statistics=statistics, run=run)
    return statistics


def _write_csv(path: Path, rows: pl.DataFrame) -> None:
    """Write the votes as text; only the owner may read the file."""
    votes = [
        "; ".join(f"{vote['judge']}: {vote['vote']}" for vote in pair_votes)
        for pair_votes in rows["votes"].to_list()
    ]
    table = rows.select("split", "text1", "text2", GIVEN, "judged", "confidence")
    table = table.with_columns(pl.Series("votes", votes, pl.String))
    write_bytes(
        path,
        escape_formulas(table).write_csv().encode("utf-8", "replace"),
        private=True,
    )


class _PairDecision(NamedTuple):
    """The judges' verdict on a pair and its probability, the probability of `same`, or why there is none."""

    verdict: str | None = None
    confidence: float | None = None
    same: float | None = None
    reason: str | None = None


def _decision(
    votes: list[JudgeVote], judges: Judges, min_confidence: float
) -> _PairDecision:
    by_judge = votes_by_judge(votes)
    if not by_judge:
        return _PairDecision(reason="unsure" if votes else "not_judged")
    probabilities = judges.probabilities(by_judge)
    winner, best = most_probable(dict(zip(CLASSES, probabilities, strict=True)))
    if winner is None:
        return _PairDecision(None, best, probabilities.same, "undecided")
    if best < min_confidence:
        return _PairDecision(None, best, probabilities.same, "unsure")
    return _PairDecision(_WORDS.word(winner), best, probabilities.same)


def _judged(
    pairs: ExistingPairs, votes: Votes, judges: Judges, min_confidence: float
) -> pl.DataFrame:
    """The pairs with the columns that the votes decide."""
    decisions = []
    votes_of_pairs = []
    for pair in pairs.rows[PAIR]:
        pair_votes = votes.get(pair, [])
        decisions.append(_decision(pair_votes, judges, min_confidence))
        words = [(vote.judge, _WORDS.word(vote.vote)) for vote in pair_votes]
        votes_of_pairs.append([{"judge": judge, "vote": word} for judge, word in words])
    decided = pl.DataFrame(decisions, schema=_DECIDED, orient="row")
    is_same = decided["judged"] == "same"
    contradicts = is_same != (pairs.rows[GIVEN] >= pairs.half)
    judged = pairs.rows.with_columns(
        *decided,
        pl.Series("votes", votes_of_pairs, VOTES),
        label=is_same.cast(pl.Int64),
        contradicts=contradicts & decided["reason"].is_null(),
    )
    verdict = ("judged", "confidence", "probability")
    first = ("text1", "text2", "label", *verdict, GIVEN, "votes")
    return judged.select(*first, pl.exclude(*first, "split"), "split")

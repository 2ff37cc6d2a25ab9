"""`label judge`: what judges say of existing pairs, and where that contradicts their labels."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from llm_labeler.clients.function import LlmFunction
from llm_labeler.clients.llms import build
from llm_labeler.dataset.splits import VOTES
from llm_labeler.dispatch.answers import AnswerStore
from llm_labeler.dispatch.budget import check_prices
from llm_labeler.judging.ensemble import cast_votes
from llm_labeler.judging.existing_pairs import GIVEN, PAIR, ExistingPairs, read_existing_pairs
from llm_labeler.judging.judges import CLASSES, Judges, fit_judges
from llm_labeler.judging.questions import PAIRS
from llm_labeler.records import JudgeVote, Provider
from llm_labeler.runs.assemble import RunResult
from llm_labeler.runs.label import AskOptions, ask_judges, refuse_unanswered, remote_llms
from llm_labeler.runs.prompts import Template
from llm_labeler.runs.run_folder import IN_USE, STORE_FILE, RunRecord, check_out, format_counts
from llm_labeler.runs.tasks import TextCandidates, add_votes, judge_questions
from llm_labeler.settings import RULES, LabelSettings
from pairkit.app.errors import ConfigError, DataError
from pairkit.app.printable import inert
from pairkit.app.progress import Display, Listener
from pairkit.app.result_table import ResultTable
from pairkit.app.terminal import say as tell
from pairkit.dataset.card import dataset_card, table
from pairkit.dataset.in_memory import Source
from pairkit.dataset.labels import LabelRules
from pairkit.dataset.parquet import write_parquet
from pairkit.dataset.records import card_files, write_dataset
from pairkit.openai_api.channel import run_anywhere
from pairkit.system.files import write_bytes
from pairkit.system.folders import check_apart, held_folder, work_beside

WORDS = ("same", "related", "different")

_ABOUT = """
Pairs of texts from another dataset, judged anew by large language models that saw neither the label that
stood there nor one another's answers. `label` is what they decided: *silver*, as no person checked it. Built
with `label judge`.
"""
_WORD_SCHEMA = """
| column | type | meaning |
|---|---|---|
| text1, text2 | string | the pair |
| label | int64 | 1 where the judges found that both say the same, else 0 |
| judged | string | `same`, `related` or `different` |
| confidence | float32 | how likely that is by the judges' votes and accuracies, from 0 to 1 |
| probability | float32 | how likely `same` is, by the same; its doubt widens the intervals of `aoe` |
| given_label | number | the label of the source |
| votes | list of (judge, vote) | what each judge said |
"""
_FURTHER = """
Further columns are the source's; one that had such a name has `source_` before it.
"""
_LIMITS = """
* **The labels are machines'.** Judges of one family err alike. Measure a sample by hand before you rely
  on them.
* Pairs on which the judges did not agree well enough are left out, so what is left is easier than the source.
* A label that contradicts the source's may be the source's error or the judges'.
"""


def judged_card(
    statistics: Mapping[str, Any], run: Mapping[str, Any], files: Mapping[str, Mapping[str, str]]
) -> str:
    """The README of the dataset."""
    splits = statistics["splits"]
    names = ("pairs", *WORDS)
    rows = [(name, *(split.get(name, 0) for split in splits.values())) for name in names]
    found = statistics["contradictions"]
    counts = (
        f"{table(['', *splits], rows)}\n\nThe judges contradict the source in {sum(found.values()):,} pairs:"
        f" {found['given_same']:,} that it calls the same, and {found['given_other']:,} that it does not."
    )
    return dataset_card(
        "Pairs judged by LLMs",
        configs=files,
        rows=sum(split["pairs"] for split in splits.values()),
        sections=[
            ("", _ABOUT),
            ("Counts", counts),
            ("Columns", _WORD_SCHEMA + _FURTHER),
            ("Judges", _judges(statistics, run)),
            ("Limitations", _LIMITS),
            ("Licence", "The texts keep the terms of the dataset that they came from."),
        ],
        tags=("llm-labelled",),
    )


def _judges(statistics: Mapping[str, Any], run: Mapping[str, Any]) -> str:
    known = statistics["judges"]["by_name"]
    judges = [
        (
            f"`{name}`",
            f"`{run['llms'][name]['model']}`",
            round(judge["accuracy"], 2) if known.keys() - {name} else "-",
        )
        for name, judge in known.items()
    ]
    return table(("name", "model", "estimated accuracy"), judges)


@dataclass(frozen=True, repr=False, kw_only=True)
class JudgedPairs(RunResult):
    """A dataset with silver labels.

    Attributes:
        out: The dataset's folder.
        work: The folder of the answers; `judged.parquet` there has all pairs, also those left undecided.
        contradictions: A CSV file of the pairs whose given label the judges contradict, the surest first.
        statistics: As in the dataset's statistics.json.
        judges: The judges' estimated accuracies.
        asked: Calls, spending and failures of this session.
        spent_in_all: Calls, tokens and money of all sessions in `work`.
        seconds: Of this session.
    """

    contradictions: Path

    @property
    def contradicted(self) -> int:
        """How many given labels the judges contradict."""
        return sum(self.statistics["contradictions"].values())

    def table(self) -> ResultTable:
        """Counts by split."""
        names = ("pairs", *WORDS)
        found = ResultTable("split", *names, title=str(self.out), caption=self._caption())
        for split, counts in self.statistics["splits"].items():
            found.add_row(split, *(counts.get(name, 0) for name in names))
        return found

    def next_steps(self) -> list[tuple[str, list[str]]]:
        """What to read first."""
        return [("read where they contradict the labels", ["less", str(self.contradictions)])]

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data, for JSON."""
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
        contradicted = f"{self.contradicted:,} contradict the given label, {left_out:,} left out"
        return f"{contradicted}; {self._cost()}; {self.seconds:.1f} s"


COLUMNS = ("judged", "confidence", "probability")
Votes = dict[str, list[JudgeVote]]  # by pair
ALL_FILE, CONTRADICTIONS_FILE = "judged.parquet", "contradictions.csv"


def judge_pairs(
    source: Source,
    out: Path,
    work: Path | None,
    settings: LabelSettings,
    functions: Mapping[str, LlmFunction],
    *,
    columns: Mapping[str, str] | None,
    rules: LabelRules,
    options: AskOptions,
    fresh: bool,
    progress: bool | Listener,
) -> JudgedPairs:
    """See `llm_labeler.judge`."""
    start = time.monotonic()
    work = work or work_beside(out)
    check_apart(out, work)
    if unable := [name for name in settings.proposers if settings.llm[name].kind == RULES]:
        raise ConfigError(
            f"{unable[0]} is rules over a dictionary, which can't judge; name LLMs in llms (--llm)"
        )
    if not settings.proposers:
        raise ConfigError("no LLM is named; give llms (--llm), several of different makers if you can")
    given = read_existing_pairs(source, columns, rules, settings.input, settings.seed, COLUMNS)
    providers = {name: build(name, settings.llm[name], functions.get(name)) for name in settings.proposers}
    for reason, count in given.dropped.items():
        tell(
            f"{count:,} pairs are not judged: {reason} (see the [input] settings)", quiet=progress is not True
        )
    if names := remote_llms(settings, providers):
        tell(f"the pairs may leave this machine: {', '.join(names)}", quiet=progress is not True)
    record = _record(settings, providers, given)
    run = _made_of(record)
    check_out(out, run, fresh=fresh)
    with (
        held_folder(work, IN_USE),
        AnswerStore.open(work / STORE_FILE, create=True) as store,
        Display(progress) as show,
    ):
        store.recover()
        check_prices(settings.budget, {name: p.prices for name, p in providers.items()}, store.spent())
        questions = {
            name: judge_questions(_texts_of_pairs(given), name, record, PAIRS) for name in settings.proposers
        }
        step = settings.judge.candidates_per_call
        total = len(questions) * sum(-(-len(beside) // step) for beside in given.about.values())
        heard = replace(options, tell=partial(tell, quiet=progress is not True))
        asked = run_anywhere(ask_judges(record, questions, providers, store, heard, show, total=total))
        if not options.keep_going:
            refuse_unanswered(asked, ", or do without them with keep_going (--keep-going)")
        votes: Votes = {}
        for about in _texts_of_pairs(given):
            add_votes(about, settings.proposers, store, record, PAIRS)
            votes |= about.votes
        in_all = store.spent()
    judges = fit_judges(chain.from_iterable(votes.values()), settings.ensemble)
    least = settings.ensemble.min_confidence
    judged = {split: _judged(rows, votes, judges, given.half, least) for split, rows in given.splits.items()}
    statistics = _write(out, work, judged, judges, given, run)
    return JudgedPairs(
        out=out,
        work=work,
        statistics=statistics,
        judges=judges,
        asked=asked,
        spent_in_all=in_all,
        seconds=time.monotonic() - start,
        contradictions=work / CONTRADICTIONS_FILE,
    )


def _record(settings: LabelSettings, providers: Mapping[str, Provider], given: ExistingPairs) -> RunRecord:
    parameters = {name: (p.parameters, p.parameters_text) for name, p in providers.items()}
    template = Template("judge", dict.fromkeys(settings.prompt.polarities, PAIRS.instructions))
    return RunRecord(settings, template, parameters, given.name, given.sha256, given.dropped)


def _made_of(record: RunRecord) -> dict[str, Any]:
    """What run.json says: of the settings those that judging hangs on."""
    made = record.made_of()
    kept = {name: made["settings"][name] for name in ("llms", "seed", "input", "judge", "ensemble")}
    return {**made, "settings": {"task": "judge", **kept}, "prompts": {"system": PAIRS.instructions}}


def _texts_of_pairs(given: ExistingPairs) -> Iterator[TextCandidates]:
    """Each first text with those beside it, as if they had been proposed."""
    for text, beside in given.about.items():
        yield TextCandidates(text, (), beside, Counter())


def _write(
    out: Path,
    work: Path,
    judged: Mapping[str, pl.DataFrame],
    judges: Judges,
    given: ExistingPairs,
    run: Mapping[str, Any],
) -> dict[str, Any]:
    everything = pl.concat(
        [rows.with_columns(pl.lit(split).alias("split")) for split, rows in judged.items()],
        how="diagonal_relaxed",
    )
    write_parquet(work / ALL_FILE, everything, private=True)
    contradictions = everything.filter("contradicts").sort("confidence", descending=True, maintain_order=True)
    _write_csv(work / CONTRADICTIONS_FILE, contradictions)
    splits = {
        split: rows.filter(pl.col("reason").is_null()).drop("reason", PAIR, "contradicts")
        for split, rows in judged.items()
    }
    dropped = Counter(given.dropped) + Counter(everything["reason"].drop_nulls().to_list())
    if not any(rows.height for rows in splits.values()):
        raise DataError(
            f"the judges decided on no pair ({format_counts(dropped)}); name other LLMs", path=out
        )
    statistics = {
        "splits": {
            split: {"pairs": rows.height, **dict(sorted(rows["judged"].value_counts().iter_rows()))}
            for split, rows in splits.items()
        },
        "contradictions": {
            "given_same": int((contradictions[GIVEN] >= given.half).sum()),
            "given_other": int((contradictions[GIVEN] < given.half).sum()),
        },
        "dropped": dict(sorted(dropped.items())),
        "judges": judges.to_dict(),
    }
    frames = {"default": splits}
    card = judged_card(statistics, run, card_files(frames))
    write_dataset(out, frames, card=card, statistics=statistics, run=run)
    return statistics


def _write_csv(path: Path, rows: pl.DataFrame) -> None:
    """For people: the votes as words, for its owner alone."""
    said = [
        "; ".join(f"{vote['judge']}: {vote['vote']}" for vote in cast) for cast in rows["votes"].to_list()
    ]
    table = rows.select("split", "text1", "text2", GIVEN, "judged", "confidence").with_columns(
        pl.Series("votes", said, pl.String)
    )
    write_bytes(path, inert(table).write_csv().encode("utf-8", "replace"), private=True)


class _PairDecision(NamedTuple):
    """The word that the votes speak for, how likely it is, how likely `same` is, and why it is none."""

    word: str | None = None
    confidence: float | None = None
    same: float | None = None
    reason: str | None = None


def _decision(cast: list[JudgeVote], judges: Judges, min_confidence: float) -> _PairDecision:
    heard = cast_votes(cast)
    if not heard:
        return _PairDecision(reason="unsure" if cast else "not_judged")
    belief = judges.belief(heard)
    best, same = max(belief), belief[CLASSES.index("same")]
    if sum(math.isclose(one, best, rel_tol=1e-9) for one in belief) > 1:
        return _PairDecision(None, best, same, "undecided")
    if best < min_confidence:
        return _PairDecision(None, best, same, "unsure")
    return _PairDecision(PAIRS.word(CLASSES[belief.index(best)]), best, same)


def _judged(
    rows: pl.DataFrame, votes: Votes, judges: Judges, half: float, min_confidence: float
) -> pl.DataFrame:
    """The rows with a word for each, how sure it is, the votes, and whether it contradicts."""
    cast = [votes.get(pair, []) for pair in rows[PAIR]]
    decided = [_decision(one, judges, min_confidence) for one in cast]
    said = [[{"judge": vote.judge, "vote": PAIRS.word(vote.vote)} for vote in one] for one in cast]
    words = pl.Series("judged", [one.word for one in decided], pl.String)
    found = rows.with_columns(
        words,
        pl.Series("confidence", [one.confidence for one in decided], pl.Float32),
        pl.Series("probability", [one.same for one in decided], pl.Float32),
        pl.Series("reason", [one.reason for one in decided], pl.String),
        pl.Series("votes", said, VOTES),
        (words == "same").cast(pl.Int64).alias("label"),
    )
    contradicts = (pl.col("judged") == "same") != (pl.col(GIVEN) >= half)
    found = found.with_columns(contradicts=contradicts & pl.col("reason").is_null())
    first = ["text1", "text2", "label", "judged", "confidence", "probability", GIVEN, "votes"]
    return found.select(*first, pl.exclude(first))

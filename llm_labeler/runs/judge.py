"""Silver labels: what judges say of pairs that are there already, and where that contradicts their labels.

Judges choose a word: same, related or different. Votes are weighed by what is known of the judges.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from llm_labeler.clients import build
from llm_labeler.clients.provider import Provider
from llm_labeler.judging.existing_pairs import GIVEN, PAIR, ExistingPairs, counts_of, read_existing_pairs
from llm_labeler.judging.judges import CLASSES, Judges, cast_votes, fit_judges
from llm_labeler.judging.questions import PAIRS
from llm_labeler.prompts.templates import Template
from llm_labeler.records import JudgeVote
from llm_labeler.runs.arguments import UserFunctions
from llm_labeler.runs.asking import AskOptions, ask_judges
from llm_labeler.runs.judged_pairs import JudgedPairs, judged_card
from llm_labeler.runs.plan import remote_llms
from llm_labeler.runs.tasks import TextCandidates, add_votes, judge_questions
from llm_labeler.settings.kinds import LLM_KINDS
from llm_labeler.settings.labelling import LabelSettings
from llm_labeler.store import AnswerStore
from llm_labeler.store.budget import check_prices
from llm_labeler.store.run_folder import IN_USE, STORE_FILE, RunRecord, check_out, format_counts
from pairkit.app.errors import ConfigError, DataError, RemoteError
from pairkit.app.printable import inert
from pairkit.app.progress import Display, Listener
from pairkit.app.terminal import say as tell
from pairkit.dataset.in_memory import Source
from pairkit.dataset.labels import LabelRules
from pairkit.dataset.parquet import write_parquet
from pairkit.dataset.records import card_files, write_dataset
from pairkit.openai_api.channel import run_anywhere
from pairkit.system.files import write_bytes
from pairkit.system.folders import check_apart, held_folder, work_beside

COLUMNS = ("judged", "confidence", "probability")
_VOTES = pl.List(pl.Struct({"judge": pl.String, "vote": pl.String}))
ALL_FILE, CONTRADICTIONS_FILE = "judged.parquet", "contradictions.csv"


def judge_pairs(
    source: Source,
    out: Path,
    work: Path | None,
    settings: LabelSettings,
    functions: UserFunctions,
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
    if unable := [name for name in settings.proposers if not LLM_KINDS[settings.llm[name].kind].is_llm]:
        raise ConfigError(
            f"{unable[0]} is rules over a dictionary, which can't judge; name LLMs in llms (--llm)"
        )
    if not settings.proposers:
        raise ConfigError("no LLM is named; give llms (--llm), several of different makers if you can")
    labels = _PairDecisions(settings)
    given = read_existing_pairs(source, columns, rules, settings.input, settings.seed, COLUMNS)
    providers = {
        name: build(name, settings.llm[name], functions.llms.get(name)) for name in settings.proposers
    }
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
        for digest, words in record.parameters.values():
            store.save_parameters(digest, words)
        questions = {
            name: judge_questions(_texts_of_pairs(given), name, record, PAIRS) for name in settings.proposers
        }
        step = settings.judge.candidates_per_call
        total = len(questions) * sum(-(-len(beside) // step) for beside in given.about.values())
        asked = run_anywhere(ask_judges(record, questions, providers, store, options, show, total=total))
        if asked.unanswered and not options.keep_going:
            raise RemoteError(
                f"{sum(asked.unanswered.values()):,} questions got no answer"
                f" ({format_counts(asked.unanswered)}); run the same command again to ask them, or do without"
                " them with keep_going (--keep-going)"
            )
        labels.hear(_texts_of_pairs(given), store, record)
        in_all = store.spent()
    statistics = _write(out, work, labels, given, run)
    sheet, seconds = work / CONTRADICTIONS_FILE, time.monotonic() - start
    return JudgedPairs(out, work, sheet, statistics, labels.judges, asked, in_all, seconds)


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
    labels: _PairDecisions,
    given: ExistingPairs,
    run: Mapping[str, Any],
) -> dict[str, Any]:
    judged = {split: labels.judged(rows, given) for split, rows in given.splits.items()}
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
            split: {"pairs": rows.height, **counts_of(rows, "judged")} for split, rows in splits.items()
        },
        "contradictions": {
            "given_same": int((contradictions[GIVEN] >= given.half).sum()),
            "given_other": int((contradictions[GIVEN] < given.half).sum()),
        },
        "dropped": dict(sorted(dropped.items())),
        "judges": labels.judges.to_dict(),
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


class _PairDecisions:
    """What judges said in words; the votes and what follows from them."""

    judges: Judges

    def __init__(self, settings: LabelSettings) -> None:
        self._settings = settings
        self._votes: dict[str, list[JudgeVote]] = {}

    def hear(self, texts: Iterable[TextCandidates], store: AnswerStore, record: RunRecord) -> None:
        """Take in what the judges said of each text's pairs."""
        for about in texts:
            add_votes(about, self._settings.proposers, store, record, PAIRS)
            self._votes |= about.votes
        everything = (vote for cast in self._votes.values() for vote in cast)
        self.judges = fit_judges(everything, self._settings.ensemble)

    def judged(self, rows: pl.DataFrame, given: ExistingPairs) -> pl.DataFrame:
        """The rows with a word for each, how sure it is, the votes, and whether it contradicts."""
        decided = [self._decision(self._votes.get(pair, [])) for pair in rows[PAIR]]
        words = pl.Series("judged", [one.word for one in decided], pl.String)
        said = [
            [{"judge": vote.judge, "vote": PAIRS.word(vote.vote)} for vote in self._votes.get(pair, [])]
            for pair in rows[PAIR]
        ]
        found = rows.with_columns(
            words,
            pl.Series("confidence", [one.confidence for one in decided], pl.Float32),
            pl.Series("probability", [one.same for one in decided], pl.Float32),
            pl.Series("reason", [one.reason for one in decided], pl.String),
            pl.Series("votes", said, _VOTES),
            (words == "same").cast(pl.Int64).alias("label"),
        )
        contradicts = (pl.col("judged") == "same") != (pl.col(GIVEN) >= given.half)
        found = found.with_columns(contradicts=contradicts & pl.col("reason").is_null())
        first = ["text1", "text2", "label", "judged", "confidence", "probability", GIVEN, "votes"]
        return found.select(*first, pl.exclude(first))

    def _decision(self, cast: list[JudgeVote]) -> _PairDecision:
        heard = cast_votes(cast)
        if not heard:
            return _PairDecision(reason="unsure" if cast else "not_judged")
        belief = self.judges.belief(heard)
        best, same = max(belief), belief[CLASSES.index("same")]
        if sum(math.isclose(one, best, rel_tol=1e-9) for one in belief) > 1:
            return _PairDecision(None, best, same, "undecided")
        if best < self._settings.ensemble.min_confidence:
            return _PairDecision(None, best, same, "unsure")
        return _PairDecision(PAIRS.word(CLASSES[belief.index(best)]), best, same)


class _PairDecision(NamedTuple):
    """The word that the votes speak for, how likely it is, how likely `same` is, and why it is none."""

    word: str | None = None
    confidence: float | None = None
    same: float | None = None
    reason: str | None = None

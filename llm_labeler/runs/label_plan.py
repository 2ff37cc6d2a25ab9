"""Estimate the calls and the cost of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from llm_labeler.clients.llms import Provider
from llm_labeler.dispatch.answer_store import AnswerStore, chunks
from llm_labeler.dispatch.budget import PROMISE, Spending, money
from llm_labeler.records import Text, TokenUsage
from llm_labeler.runs.label_folder import RunRecord
from llm_labeler.runs.questions_and_votes import GenerationTask
from llm_labeler.settings import RULES, BudgetSettings
from pairkit.base.cli.result_table import Printed, ResultTable
from pairkit.base.errors import spoken

_BYTES_PER_TOKEN = 4  # of English; other scripts have fewer
_EXPANSION = (
    1.3  # length of a sentence in an answer relative to its text, with its number and line break
)


@dataclass(frozen=True, slots=True)
class Estimate:
    """The likely and the maximum tokens and cost of one LLM.

    Attributes:
        questions: Number of all questions for proposals.
        missing: Number of unanswered ones.
        tokens: Likely tokens, estimated from the lengths of the texts.
        at_most: Upper bound that budgets are checked against, without judging, which depends on the answers.
        cost: US dollars of `tokens`; None: unknown price.
        cost_at_most: US dollars of `at_most`.
        leaves_machine: Whether texts go to another machine.
    """

    llm: str
    model: str
    questions: int
    missing: int
    tokens: int
    at_most: int
    cost: float | None
    cost_at_most: float | None
    leaves_machine: bool

    def to_dict(self) -> dict[str, Any]:
        """The estimate for JSON."""
        fields = asdict(self)
        del fields["llm"]
        return {"tokens_at_most": fields.pop("at_most"), **fields}


@dataclass(frozen=True, slots=True, repr=False)
class Plan(Printed):
    """The estimated calls, tokens and cost of a run."""

    texts: int
    dropped_texts: Mapping[str, int]
    estimates: tuple[Estimate, ...]
    limits: BudgetSettings
    spent: Spending

    @property
    def cost(self) -> float | None:
        """Likely cost in US dollars; None if a price is unknown."""
        costs = [estimate.cost for estimate in self.estimates]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    def short_of(self) -> tuple[str, ...]:
        """A line for each limit that the run will probably reach before its end."""
        calls = sum(estimate.missing for estimate in self.estimates)
        tokens = sum(estimate.tokens for estimate in self.estimates)
        checks = [
            (
                "max-requests",
                self.limits.max_requests,
                self.spent.requests,
                calls,
                "{:,} calls".format,
            ),
            ("max-tokens", self.limits.max_tokens, self.spent.tokens, tokens, "{:,} tokens".format),
            ("max-cost", self.limits.max_cost, self.spent.known_cost, self.cost or 0.0, money),
        ]
        return tuple(
            spoken(
                f"the run is expected to take {shown(spent + likely)}, of which {shown(spent)} are spent;"
                f" --{name}={limit:,} covers about {limit / (spent + likely):.0%} of it: raise it, or use"
                " fewer sentences with --draw"
            )
            for name, limit, spent, likely, shown in checks
            if limit is not None and spent + likely > limit
        )

    def table(self) -> ResultTable:
        """One row per LLM."""
        table = ResultTable(
            *("LLM", "missing", "tokens", "at most", "cost", "at most", "text"),
            title=f"{self.texts:,} sentences",
            caption="\n".join((f"at most: {PROMISE}", *self.short_of())),
            left=("text",),
        )
        for estimate in self.estimates:
            table.add_row(
                *(estimate.llm, f"{estimate.missing:,} of {estimate.questions:,}"),
                *(
                    estimate.tokens,
                    estimate.at_most,
                    money(estimate.cost),
                    money(estimate.cost_at_most),
                ),
                "may leave" if estimate.leaves_machine else "stays",
            )
        return table

    def to_dict(self) -> dict[str, Any]:
        """The plan for JSON."""
        return {
            "texts": self.texts,
            "dropped": dict(self.dropped_texts),
            "calls": sum(estimate.missing for estimate in self.estimates),
            "tokens": sum(estimate.tokens for estimate in self.estimates),
            "tokens_at_most": sum(estimate.at_most for estimate in self.estimates),
            "cost": self.cost,
            "short_of": [*self.short_of()],
            "llms": {estimate.llm: estimate.to_dict() for estimate in self.estimates},
        }


def estimate(
    record: RunRecord,
    texts: tuple[Text, ...],
    providers: Mapping[str, Provider],
    store: AnswerStore | None,
) -> Plan:
    """Count the unanswered questions and estimate their tokens and cost."""
    estimates = tuple(
        _estimate_llm(record, texts, provider, store) for provider in providers.values()
    )
    spent = Spending() if store is None else store.spent()
    return Plan(len(texts), record.dropped_texts, estimates, record.settings.budget, spent)


def _estimate_llm(
    record: RunRecord, texts: tuple[Text, ...], provider: Provider, store: AnswerStore | None
) -> Estimate:
    settings = record.settings
    task = GenerationTask(record)
    is_proposer = provider.name in settings.proposers
    questions = len(texts) * task.questions_per_text(provider.name) if is_proposer else 0
    asks = task.asks(texts, provider.name) if is_proposer else iter(())
    missing = 0
    likely = TokenUsage(0, 0)
    at_most = TokenUsage(0, 0)
    unanswered = (
        ask for chunk in chunks(asks) for ask in (store.unanswered(chunk) if store else chunk)
    )
    for ask in unanswered:
        missing += 1
        prompt = sum(len(message.content.encode("utf-8", "replace")) for message in ask.messages)
        answer = ask.size * len(ask.text.encode("utf-8", "replace")) * _EXPANSION
        likely += TokenUsage(round(prompt / _BYTES_PER_TOKEN), round(answer / _BYTES_PER_TOKEN))
        at_most += provider.max_usage(ask)
    if provider.name in settings.judges:
        share = (
            missing / questions if questions else 1.0
        )  # of the candidates that are not judged yet
        likely += _judging(record, texts, len(settings.proposers) - is_proposer, share)
    if is_free := settings.llm[provider.name].kind == RULES:
        likely = at_most = TokenUsage(0, 0)
    return Estimate(
        *(provider.name, provider.model, questions, missing, likely.total, at_most.total),
        0.0 if is_free else provider.prices.cost(likely),
        0.0 if is_free else provider.prices.cost(at_most),
        provider.leaves_machine,
    )


def _judging(
    record: RunRecord, texts: tuple[Text, ...], proposers: int, missing_share: float
) -> TokenUsage:
    """Likely tokens for judging the candidates of the other `proposers`."""
    settings = record.settings
    candidates = settings.size * settings.samples * len(settings.prompt.polarities) * proposers
    if not candidates:
        return TokenUsage(0, 0)
    calls = -(-candidates // settings.judge.candidates_per_call)
    instructions, vote = 250, 6  # tokens of a judge's prompt without its sentences; of a vote
    characters = sum(len(text.text) for text in texts)
    prompt = (
        calls * instructions * len(texts) + (calls + candidates) * characters / _BYTES_PER_TOKEN
    )
    return TokenUsage(
        round(prompt * missing_share), round(candidates * vote * len(texts) * missing_share)
    )

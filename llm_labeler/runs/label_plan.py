"""Estimate the calls and the cost of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from llm_labeler.clients.llms import Provider
from llm_labeler.dispatch.answer_store import QUESTIONS, AnswerStore
from llm_labeler.dispatch.budget import PROMISE, Spending, money
from llm_labeler.records import Ask, Text, TokenUsage
from llm_labeler.runs.label_folder import RunRecord
from llm_labeler.runs.questions_and_votes import GenerationTask
from llm_labeler.settings import BudgetSettings
from pairkit.base.cli.result_table import Printed, ResultTable
from pairkit.base.errors import spoken
from pairkit.base.system.machine import batched

_BYTES_PER_TOKEN = 4  # of English; other scripts have fewer
# Length of a sentence in an answer relative to its text, with its number and line break.
_EXPANSION = 1.3
_JUDGE_TOKENS = 250  # of a judge's prompt without its sentences
_VOTE_TOKENS = 6


@dataclass(frozen=True, slots=True)
class Estimate:
    """The likely and the maximum tokens and cost of one LLM.

    Attributes:
        questions: Number of all questions for proposals.
        missing: Number of unanswered ones.
        judge_calls: Likely number of questions for votes.
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
    judge_calls: int
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
        total = 0.0
        for estimate in self.estimates:
            if estimate.cost is None:
                return None
            total += estimate.cost
        return total

    @property
    def calls(self) -> int:
        """Likely number of calls."""
        return sum(each.missing + each.judge_calls for each in self.estimates)

    def short_of(self) -> tuple[str, ...]:
        """A line for each limit that the run will probably reach before its end."""
        spent = self.spent
        tokens = sum(estimate.tokens for estimate in self.estimates)
        amounts: tuple[tuple[str, float, float, Callable[[float], str]], ...] = (
            ("max_requests", spent.requests, self.calls, "{:,} calls".format),
            ("max_tokens", spent.tokens, tokens, "{:,} tokens".format),
            ("max_cost", spent.known_cost, self.cost or 0.0, money),
        )
        lines = []
        for name, so_far, likely, shown in amounts:
            limit = getattr(self.limits, name)
            total = so_far + likely
            if limit is not None and total > limit:
                flag = f"--{name.replace('_', '-')}={limit}"
                line = (
                    f"the run is expected to take {shown(total)}, of which {shown(so_far)} are spent;"
                    f" {flag} covers about {limit / total:.0%} of it: raise it, or use fewer"
                    " sentences with --draw"
                )
                lines.append(spoken(line))
        return tuple(lines)

    def table(self) -> ResultTable:
        """One row per LLM."""
        table = ResultTable(
            "LLM",
            "missing",
            "tokens",
            "at most",
            "cost",
            "at most",
            "text",
            title=f"{self.texts:,} sentences",
            caption="\n".join((f"at most: {PROMISE}", *self.short_of())),
            left=("text",),
        )
        for estimate in self.estimates:
            table.add_row(
                estimate.llm,
                f"{estimate.missing:,} of {estimate.questions:,}",
                estimate.tokens,
                estimate.at_most,
                money(estimate.cost),
                money(estimate.cost_at_most),
                "may leave" if estimate.leaves_machine else "stays",
            )
        return table

    def to_dict(self) -> dict[str, Any]:
        """The plan for JSON."""
        return {
            "texts": self.texts,
            "dropped": dict(self.dropped_texts),
            "calls": self.calls,
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
    estimates = [
        _estimate_llm(record, texts, provider, store) for provider in providers.values()
    ]
    spent = Spending() if store is None else store.spent()
    budget = record.settings.budget
    return Plan(len(texts), record.dropped_texts, tuple(estimates), budget, spent)


def _estimate_llm(
    record: RunRecord,
    texts: tuple[Text, ...],
    provider: Provider,
    store: AnswerStore | None,
) -> Estimate:
    settings = record.settings
    task = GenerationTask(record)
    is_proposer = provider.name in settings.proposers
    questions = 0
    asks: Iterable[Ask] = ()
    if is_proposer:
        questions = len(texts) * task.questions_per_text(provider.name)
        asks = task.asks(texts, provider.name)
    missing = 0
    likely = TokenUsage(0, 0)
    at_most = TokenUsage(0, 0)
    for batch in batched(asks, QUESTIONS):
        for ask in store.unanswered(batch) if store else batch:
            missing += 1
            bound = provider.max_usage(ask)
            at_most += bound
            if bound.total:  # rules use no tokens
                likely += _likely_usage(ask)
    judge_calls = 0
    if provider.name in settings.judges:
        others = len(settings.proposers) - is_proposer
        candidates = others * settings.size * settings.samples
        candidates *= len(settings.prompt.polarities)
        calls = -(-candidates // settings.judge.candidates_per_call)
        unjudged_share = missing / questions if questions else 1.0
        judge_calls = round(calls * len(texts) * unjudged_share)
        likely += _judging(texts, candidates, calls, unjudged_share)
    return Estimate(
        llm=provider.name,
        model=provider.model,
        questions=questions,
        missing=missing,
        judge_calls=judge_calls,
        tokens=likely.total,
        at_most=at_most.total,
        cost=provider.prices.cost(likely),
        cost_at_most=provider.prices.cost(at_most),
        leaves_machine=provider.leaves_machine,
    )


def _likely_usage(ask: Ask) -> TokenUsage:
    prompt = "".join(message.content for message in ask.messages)
    prompt_bytes = len(prompt.encode("utf-8", "replace"))
    answer_bytes = ask.size * len(ask.text.encode("utf-8", "replace")) * _EXPANSION
    return TokenUsage(
        round(prompt_bytes / _BYTES_PER_TOKEN), round(answer_bytes / _BYTES_PER_TOKEN)
    )


def _judging(
    texts: tuple[Text, ...], candidates: int, calls: int, share: float
) -> TokenUsage:
    """Likely tokens for judging a share of the texts, by the numbers of each."""
    characters = sum(len(text.text) for text in texts)
    instructions = calls * _JUDGE_TOKENS * len(texts)
    sentences = (calls + candidates) * characters / _BYTES_PER_TOKEN
    votes = candidates * _VOTE_TOKENS * len(texts)
    prompt = instructions + sentences
    return TokenUsage(round(prompt * share), round(votes * share))

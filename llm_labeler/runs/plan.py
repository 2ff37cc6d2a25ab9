"""What a run would ask and cost, before it asks anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from llm_labeler.dispatch.answers import AnswerStore
from llm_labeler.dispatch.budget import PROMISE, Spending, money
from llm_labeler.records import Ask, Provider, Text, TokenUsage
from llm_labeler.runs.run_folder import RunRecord
from llm_labeler.runs.tasks import GenerationTask
from llm_labeler.settings import RULES, BudgetSettings
from pairkit.app.result_table import Printed, ResultTable

_BYTES_A_TOKEN = 4  # of English, with any of today's tokenizers; other scripts have fewer
_LONGER = 1.3  # an answer's sentences against the text: numbers, line breaks, other words


@dataclass(frozen=True, slots=True)
class Estimate:
    """One LLM's share of a run: what it is likely to take and what it can take at most.

    Attributes:
        questions: All of the run, for proposals.
        missing: Those not answered yet.
        tokens: A guess from the lengths of the texts.
        at_most: The bound that budgets are checked against, without judging, which depends on the answers.
        cost: US dollars of `tokens`; None: the price is unknown.
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
        """For JSON."""
        fields = asdict(self)
        del fields["llm"]
        return {"tokens_at_most": fields.pop("at_most"), **fields}


@dataclass(frozen=True, slots=True, repr=False)
class Plan(Printed):
    """What a run would do."""

    texts: int
    dropped_texts: Mapping[str, int]
    estimates: tuple[Estimate, ...]
    limits: BudgetSettings
    spent: Spending

    @property
    def cost(self) -> float | None:
        """US dollars, likely; None where a price is unknown."""
        costs = [estimate.cost for estimate in self.estimates]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    def short_of(self) -> tuple[str, ...]:
        """A line for each limit that the run is likely to reach before its end."""
        calls, tokens = (sum(getattr(one, name) for one in self.estimates) for name in ("missing", "tokens"))
        found = [
            ("max_requests", self.limits.max_requests, self.spent.requests, calls, "{:,} calls".format),
            ("max_tokens", self.limits.max_tokens, self.spent.tokens, tokens, "{:,} tokens".format),
            ("max_cost", self.limits.max_cost, self.spent.known_cost, self.cost or 0.0, money),
        ]
        return tuple(
            f"{name} (--{name.replace('_', '-')}) {shown(limit)} is too low for the whole run: it has spent"
            f" {shown(spent)} and is likely to take {shown(likely)} more; raise it, or take fewer sentences"
            " with draw (--draw)"
            for name, limit, spent, likely, shown in found
            if limit is not None and spent + likely > limit
        )

    def table(self) -> ResultTable:
        """One LLM a row."""
        found = ResultTable(
            *("LLM", "missing", "tokens", "at most", "cost", "at most", "text"),
            title=f"{self.texts:,} sentences",
            caption="\n".join((f"at most: {PROMISE}", *self.short_of())),
            left=("text",),
        )
        for one in self.estimates:
            found.add_row(
                *(one.llm, f"{one.missing:,} of {one.questions:,}", one.tokens, one.at_most),
                *(money(one.cost), money(one.cost_at_most)),
                "may leave" if one.leaves_machine else "stays",
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "texts": self.texts,
            "dropped": dict(self.dropped_texts),
            "calls": sum(estimate.missing for estimate in self.estimates),
            "tokens": sum(estimate.tokens for estimate in self.estimates),
            "tokens_at_most": sum(estimate.at_most for estimate in self.estimates),
            "cost": self.cost,
            "short_of": [*self.short_of()],
            "llms": {one.llm: one.to_dict() for one in self.estimates},
        }


def estimate(
    record: RunRecord, texts: tuple[Text, ...], providers: Mapping[str, Provider], store: AnswerStore | None
) -> Plan:
    """Count what is missing and guess what it takes."""
    estimates = tuple(_of(record, texts, provider, store) for provider in providers.values())
    spent = Spending() if store is None else store.spent()
    return Plan(len(texts), record.dropped_texts, estimates, record.settings.budget, spent)


def _of(
    record: RunRecord, texts: tuple[Text, ...], provider: Provider, store: AnswerStore | None
) -> Estimate:
    settings = record.settings
    task = GenerationTask(record)
    is_proposer = provider.name in settings.proposers
    questions = len(texts) * task.questions_a_text(provider.name) if is_proposer else 0
    asks = task.asks(texts, provider.name) if is_proposer else iter(())
    missing = prompt = completion = prompt_bound = completion_bound = 0
    for ask in asks if store is None else store.missing(asks):
        missing += 1
        likely, bound = _likely(ask), provider.bound(ask)
        prompt, completion = prompt + likely.prompt_tokens, completion + likely.completion_tokens
        prompt_bound += bound.prompt_tokens
        completion_bound += min(bound.completion_tokens, settings.llm[provider.name].max_tokens)
    if provider.name in settings.judges:
        share = missing / questions if questions else 1.0  # of what is still to be judged
        judging = _judging(record, texts, len(settings.proposers) - is_proposer, missing_share=share)
        prompt, completion = prompt + judging.prompt_tokens, completion + judging.completion_tokens
    if bound_is_free := settings.llm[provider.name].kind == RULES:
        prompt = completion = prompt_bound = completion_bound = 0
    return Estimate(
        provider.name,
        provider.model,
        questions,
        missing,
        prompt + completion,
        prompt_bound + completion_bound,
        0.0 if bound_is_free else provider.prices.cost(TokenUsage(prompt, completion)),
        0.0 if bound_is_free else provider.prices.cost(TokenUsage(prompt_bound, completion_bound)),
        provider.leaves_machine,
    )


def _likely(ask: Ask) -> TokenUsage:
    words = sum(len(message.content.encode("utf-8", "replace")) for message in ask.messages)
    answer = ask.size * len(ask.text.encode("utf-8", "replace")) * _LONGER
    return TokenUsage(round(words / _BYTES_A_TOKEN), round(answer / _BYTES_A_TOKEN))


def _judging(record: RunRecord, texts: tuple[Text, ...], others: int, missing_share: float) -> TokenUsage:
    """Every candidate of the others, once."""
    settings = record.settings
    candidates = settings.size * settings.samples * len(settings.prompt.polarities) * others
    if not candidates:
        return TokenUsage(0, 0)
    calls = -(-candidates // settings.judge.candidates_per_call)
    instructions, vote = 250, 6  # tokens of a judge's prompt without its sentences; of a vote
    characters = sum(len(text.text) for text in texts)
    prompt = calls * instructions * len(texts) + (calls + candidates) * characters / _BYTES_A_TOKEN
    return TokenUsage(round(prompt * missing_share), round(candidates * vote * len(texts) * missing_share))

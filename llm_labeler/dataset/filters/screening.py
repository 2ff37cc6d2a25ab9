"""All that the LLMs proposed for one text: each kept once, or dropped with a reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from llm_labeler.dataset.filters.rules import turned_down as _turned_down
from llm_labeler.parsing.scripts import fold
from llm_labeler.records import POLARITIES, AskKey, Candidate, Item, Polarity, Proposal, Text
from llm_labeler.settings.labelling import FilterSettings

# Why an item can't stand for a text as a polarity; None if it can.
TurnedDown: TypeAlias = Callable[[Item, str, Polarity, FilterSettings], str | None]
Answers = Sequence[tuple[AskKey, Sequence[Item]]]


@dataclass(frozen=True, slots=True)
class Screened:
    """What became of everything that was proposed for one text."""

    proposals: tuple[Proposal, ...]  # one for each item, by LLM, polarity, prompt and place in the answer
    candidates: tuple[Candidate, ...]  # positives first, each polarity by its spelling


def rewritten(item: Item, text: str, polarity: Polarity, settings: FilterSettings) -> str | None:
    """Why an item is no rewrite of a text, see `rules`."""
    return _turned_down(item.text, text, polarity, settings)


def screen(
    text: Text, answers: Answers, settings: FilterSettings, turned_down: TurnedDown = rewritten
) -> Screened:
    """Decide about every item of every answer to a question about `text`.

    A candidate that several LLMs proposed, looks aside, is one in the spelling of the first by name;
    one proposed in both polarities is none. The order of `answers` changes nothing.
    """
    proposals = list(_proposals(text, answers, settings, turned_down))
    folds = [fold(proposal.candidate) if proposal.reason is None else "" for proposal in proposals]
    contested: set[str] = set.intersection(
        *(
            {
                key
                for key, proposal in zip(folds, proposals, strict=True)
                if proposal.reason is None and proposal.polarity == polarity
            }
            for polarity in POLARITIES
        )
    )
    seen: set[tuple[str, Polarity, str]] = set()
    sources: dict[tuple[Polarity, str], list[Proposal]] = {}
    for place, (key, proposal) in enumerate(zip(folds, proposals, strict=True)):
        if proposal.reason is not None:
            continue
        once = (proposal.llm, proposal.polarity, key)
        if key in contested:
            proposals[place] = replace(proposal, reason="both_polarities")
        elif once in seen:
            proposals[place] = replace(proposal, reason="repeated")
        if key not in contested:
            sources.setdefault((proposal.polarity, key), []).append(proposal)
        seen.add(once)
    candidates = [_candidate(found) for found in sources.values()]
    candidates.sort(key=lambda c: (POLARITIES.index(c.polarity), c.candidate))
    return Screened(tuple(proposals), tuple(candidates))


def _proposals(
    text: Text, answers: Answers, settings: FilterSettings, turned_down: TurnedDown
) -> Iterator[Proposal]:
    """A proposal for each item, with the reason it is turned down for by itself."""
    for key, items in sorted(answers, key=_order):
        if key.text_id != text.text_id or key.task == "judge":
            raise ValueError(f"an answer to {key.task} {key.text_id} proposes nothing for {text.text_id}")
        for item in items:
            reason = item.reason or turned_down(item, text.text, key.task, settings)
            yield Proposal(text.text_id, key.llm, key.task, key.prompt_hash, item.text, reason, item.change)


def _order(answer: tuple[AskKey, Sequence[Item]]) -> tuple[object, ...]:
    key, items = answer
    said = tuple((item.text, item.reason or "") for item in items)
    return (
        key.llm,
        POLARITIES.index(key.task) if key.task in POLARITIES else 2,
        key.prompt_hash,
        key.parameters,
        said,
    )


def _candidate(found: list[Proposal]) -> Candidate:
    """One candidate of the proposals that say the same, which stand in the order of their LLMs' names."""
    first = found[0]
    return Candidate(
        first.text_id,
        first.candidate,
        first.polarity,
        tuple(sorted({proposal.llm for proposal in found})),
        tuple(sorted({proposal.prompt_hash for proposal in found})),
        next((proposal.change for proposal in found if proposal.change), None),
    )

"""What a run would ask and cost."""

from __future__ import annotations

import pytest

from llm_labeler.clients.llms import build
from llm_labeler.records import Text
from llm_labeler.runs.label import check_strategy_can_work
from llm_labeler.runs.plan import estimate
from llm_labeler.runs.prompts import Template
from llm_labeler.runs.run_folder import RunRecord
from llm_labeler.settings import LabelSettings
from pairkit.app.errors import ConfigError

TEXT = Text.of("x" * 40, 1)
SERVER = {"kind": "openai_compatible", "model": "m", "base_url": "http://llm.example/v1", "max_tokens": 100}


def planned(**more: object):
    tree = {"llms": ["a"], "size": 2, "llm": {"a": SERVER, "b": SERVER, "c": SERVER}, **more}
    settings = LabelSettings.model_validate(tree)
    template = Template("own", {"positive": "{size} of {text}", "negative": "{size} un {text}"})
    names = dict.fromkeys((*settings.proposers, *settings.judges))
    providers = {name: build(name, settings.llm[name]) for name in names}
    parameters = {name: (one.parameters, one.parameters_text) for name, one in providers.items()}
    return estimate(RunRecord(settings, template, parameters, "s", "", {}), (TEXT,), providers, None)


def test_by_hand() -> None:
    (one,) = planned(llm={"a": {**SERVER, "price_in": 1.0, "price_out": 10.0}}).estimates
    assert (one.questions, one.missing) == (2, 2)
    # A prompt of 45 bytes is 11 tokens; two sentences of 40 bytes, a third longer, are 26. Twice.
    assert one.tokens == 2 * (11 + 26)
    assert one.cost == pytest.approx((2 * 11 * 1.0 + 2 * 26 * 10.0) / 1e6)
    assert one.at_most > 2 * (45 + 100)
    assert one.cost_at_most > one.cost
    assert one.leaves_machine


def test_an_unknown_price_is_not_zero() -> None:
    plan = planned()
    assert plan.cost is None
    assert plan.to_dict()["llms"]["a"]["cost"] is None


def test_judging_is_part_of_the_guess() -> None:
    three = {"llms": ["a", "b", "c"]}
    plain, judged = planned(**three), planned(**three, ensemble={"strategy": "vote"})
    assert all(
        more.tokens > less.tokens for more, less in zip(judged.estimates, plain.estimates, strict=True)
    )
    only_judge = planned(llms=["a"], judge={"llms": ["b"]}, ensemble={"strategy": "vote"}).estimates[1]
    assert (only_judge.questions, only_judge.missing) == (0, 0)
    assert only_judge.tokens > 250  # one proposes to it: a judge's instructions at least


@pytest.mark.parametrize(
    ("budget", "short"),
    [
        ({}, []),
        ({"max_cost": 1.0, "max_tokens": 10_000, "max_requests": 2}, []),
        ({"max_cost": 0.0004}, ["max_cost (--max-cost) $0.0004 is too low for the whole run"]),
        ({"max_tokens": 70, "max_requests": 1}, ["max_requests (--max-requests) 1 calls", "max_tokens"]),
    ],
)
def test_a_limit_that_is_too_low_for_the_run_is_reported(budget: dict[str, float], short: list[str]) -> None:
    plan = planned(llm={"a": {**SERVER, "price_in": 1.0, "price_out": 10.0}}, budget=budget)
    lines = plan.to_dict()["short_of"]
    assert len(lines) == len(short)
    assert all(map(str.startswith, lines, short))
    assert all(line in str(plan.table().caption) for line in lines)


def test_rules_cost_nothing() -> None:
    (one,) = planned(llms=["wordnet"]).estimates
    assert (one.tokens, one.at_most, one.cost, one.leaves_machine) == (0, 0, 0.0, False)


@pytest.mark.parametrize(
    ("tree", "refused"),
    [
        ({"ensemble": {"strategy": "vote"}}, True),
        ({"ensemble": {"strategy": "weighted"}}, True),
        ({"ensemble": {"strategy": "vote"}, "judge": {"llms": ["a"]}}, True),
        ({"ensemble": {"strategy": "vote"}, "judge": {"llms": ["b"]}}, False),
        ({"ensemble": {"strategy": "weighted"}, "llms": ["a", "b"]}, False),
        ({}, False),
    ],
)
def test_a_strategy_that_can_give_no_pair_is_refused(tree: dict[str, object], refused: bool) -> None:
    settings = LabelSettings.model_validate({"llms": ["a"], "llm": {"a": SERVER, "b": SERVER}, **tree})
    if not refused:
        check_strategy_can_work(settings)
        return
    with pytest.raises(ConfigError, match="no pair could come of it") as caught:
        check_strategy_can_work(settings)
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)

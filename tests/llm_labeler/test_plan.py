"""What a run would ask and cost."""

from __future__ import annotations

import pytest

from llm_labeler.plan import estimate
from llm_labeler.prompts import Template
from llm_labeler.providers import build
from llm_labeler.records import Text
from llm_labeler.settings import LabelSettings
from llm_labeler.workplace import RunRecord

TEXT = Text.of("x" * 40, 1)
SERVER = {"kind": "openai_compatible", "model": "m", "base_url": "http://llm.example/v1", "max_tokens": 100}


def planned(**more: object):
    tree = {"llms": ["a"], "size": 2, "llm": {"a": SERVER, "b": SERVER, "c": SERVER}, **more}
    settings = LabelSettings.model_validate(tree)
    template = Template("own", {"positive": "{size} of {text}", "negative": "{size} un {text}"})
    names = dict.fromkeys((*settings.proposers, *settings.judges))
    providers = {name: build(name, settings.llm[name], environ={}) for name in names}
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


def test_rules_cost_nothing() -> None:
    (one,) = planned(llms=["wordnet"]).estimates
    assert (one.tokens, one.at_most, one.cost, one.leaves_machine) == (0, 0, 0.0, False)

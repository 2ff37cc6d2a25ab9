"""The TOML in the documents is what the commands read."""

from __future__ import annotations

import tomllib
from pathlib import Path

import llm_labeler
from gis_builder._emulator.faults import FaultPlan
from tests.docs.blocks import ROOT, blocks_of

DOCS = ROOT / "docs"


def _toml(page: str) -> str:
    (block,) = [block for block in blocks_of(DOCS / page) if block.language == "toml"]
    return block.text


def test_llms_of_ones_own(tmp_path: Path) -> None:
    config = tmp_path / "llms.toml"
    config.write_text(_toml("howto/own-llm.md"), encoding="utf-8")
    told = {one.name: one for one in llm_labeler.llms(config=config)}
    assert {"llama", "small", "chatgpt", "team"} <= told.keys()
    assert told["team"].key_variable == "TEAM_API_KEY"
    assert told["chatgpt"].price_out == 0.6


def test_a_fault_plan() -> None:
    plan = FaultPlan.model_validate(tomllib.loads(_toml("formats/faults.md")))
    assert [rule.kind.value for rule in plan.rules] == ["502", "secondary_403", "502"]

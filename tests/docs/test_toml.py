"""The commands can read the TOML examples in the documents."""

import llm_labeler
from aoe_train.settings.train_settings import TrainSettings
from pairkit.base.settings import load_settings
from tests.docs.blocks import ROOT, blocks_of

DOCS = ROOT / "docs"


def _toml(page):
    (block,) = [block for block in blocks_of(DOCS / page) if block.language == "toml"]
    return block.text


def test_llm_example(tmp_path):
    config = tmp_path / "llms.toml"
    config.write_text(_toml("howto/own-llm.md"), encoding="utf-8")
    llms = {llm.name: llm for llm in llm_labeler.llms(config=config)}
    assert {"llama", "small", "chatgpt", "team"} <= llms.keys()
    assert llms["team"].key_variable == "TEAM_API_KEY"
    assert llms["chatgpt"].price_out == 0.6


def test_mixture_example(tmp_path):
    config = tmp_path / "mixture.toml"
    config.write_text(_toml("howto/mixtures.md"), encoding="utf-8")
    settings = load_settings(TrainSettings, config=config)
    assert settings.of("nli").objective.weights.active == {"contrastive": 1}
    assert settings.of("stsb").objective.margin == 0.5
    assert settings.of("stsb").data.label_range == (0, 5)
    assert settings.datasets["faq"].columns == {
        "anchor": "question",
        "positive": "answer",
    }

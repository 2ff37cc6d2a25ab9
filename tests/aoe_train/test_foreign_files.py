"""Mutated JSON of model folders is refused in one line, and every parser takes linear time."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aoe_train.evaluation.overlap import read_digests
from aoe_train.model.encoder_settings import stored_settings
from aoe_train.model.folder_checks import check_modules, check_settings
from aoe_train.settings.training import EncoderSettings
from benchmarks.aoe_parsers import AOE, SIGNS
from benchmarks.hostile_texts import MARKUP
from benchmarks.mutated import mutated
from pairkit.app.errors import PairkitError
from tests.support.linear import assert_linear, repeated

HOME = "sentence_transformers.models"
FILES: dict[str, Any] = {
    "modules.json": [
        {"idx": 0, "name": "0", "path": "", "type": f"{HOME}.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": f"{HOME}.Pooling"},
        {"idx": 2, "name": "2", "path": "2_Dense", "type": f"{HOME}.Dense"},
    ],
    "1_Pooling/config.json": {"word_embedding_dimension": 8, "pooling_mode_mean_tokens": True},
    "2_Dense/config.json": {"in_features": 8, "out_features": 4},
    "sentence_bert_config.json": {"max_seq_length": 16, "model_args": {"dtype": "float32"}},
    "config_sentence_transformers.json": {"prompts": {"q": "find: "}, "default_prompt_name": "q"},
    "tokenizer_config.json": {"model_max_length": 16},
    "config.json": {"model_type": "bert", "hidden_size": 8, "max_position_embeddings": 32},
    "adapter_config.json": {"peft_type": "LORA", "r": 4, "target_modules": ["query"], "auto_mapping": None},
    "aoe.json": {"format": 1, **EncoderSettings(dense=[{"size": 4}]).model_dump()},  # type: ignore[list-item]
}
READERS: tuple[Callable[[Path], object], ...] = (stored_settings, check_settings, check_modules)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(list(FILES)), st.sampled_from(READERS), st.integers(0, 2**48))
def test_mutated_values_are_refused_in_one_line(name: str, read: Callable[[Path], object], seed: int) -> None:
    with TemporaryDirectory() as made:
        folder = Path(made)
        for file, content in FILES.items():
            (folder / file).parent.mkdir(exist_ok=True)
            if file != "aoe.json" or name == file:
                (folder / file).write_text(json.dumps(content))
        (folder / name).write_text(json.dumps(mutated(FILES[name], random.Random(seed))))
        refusal = None
        try:
            read(folder)
        except PairkitError as error:
            refusal = error
        if refusal is not None:
            assert "\n" not in str(refusal)
            assert len(str(refusal)) < 2000
            assert refusal.exit_code in (2, 3)


@pytest.mark.parametrize("content", [b"\x93NUMPY", b"PK\x03\x04", b"", b"\x93NUMPY\x01\x00\xff\xff"])
def test_digests_that_are_no_array(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "training_texts.npy").write_bytes(content)
    with pytest.raises(PairkitError):
        read_digests(tmp_path)


UNITS = [*SIGNS[::4], *MARKUP[::40], "[CLS]##", "\r\n\u0301", "a/..", "{text} "]


@pytest.mark.parametrize("name", AOE)
def test_repetitions_take_linear_time(name: str) -> None:
    parse = AOE[name]()
    for unit in UNITS:
        assert_linear(parse, repeated(unit))

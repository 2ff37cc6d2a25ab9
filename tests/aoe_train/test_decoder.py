import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoTokenizer, PreTrainedModel

import aoe_train
from aoe_train import Encoder
from aoe_train.model.backbones.decoder import (
    absorb_lora,
    add_lora,
    add_padding,
    four_bit_config,
    has_lora,
    is_causal,
    make_bidirectional,
    merge_lora,
)
from aoe_train.model.backbones.load_backbone import outline
from aoe_train.settings.train_settings import LoraSettings
from pairkit import ConfigError, DataError
from tests.aoe_train.tiny import save_llama

TEXTS = ["a cat is playing", "large error when opening the file", "no", "bread or apple " * 30]
IDS = torch.tensor([[10, 11, 12, 13], [10, 11, 12, 99]])


def load(folder: Path) -> PreTrainedModel:
    return AutoModel.from_pretrained(folder).eval()


def first_token(backbone: PreTrainedModel, ids: torch.Tensor = IDS) -> torch.Tensor:
    with torch.no_grad():
        return backbone(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state[:, 0]


def train(encoder: Encoder, steps: int = 4) -> list[float]:
    """Train for a few steps to make two texts similar."""
    model = encoder.model.train()
    learning = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(learning, lr=0.02)
    batch = encoder.tokens(TEXTS).batch([0, 1])
    losses = []
    for _ in range(steps):
        vectors = model(**batch)
        loss = 1 - torch.cosine_similarity(vectors[:1], vectors[1:]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    model.eval()
    return losses


@pytest.fixture
def tuned(llama):
    encoder = Encoder.load(llama, device="cpu", pooling="last")
    torch.manual_seed(0)
    add_lora(encoder.model.backbone, LoraSettings(rank=4, alpha=8, dropout=0.0))
    train(encoder)
    return encoder


def test_lora_learns_and_does_not_change_the_backbone(llama):
    encoder = Encoder.load(llama, device="cpu", pooling="last")
    before = {name: weight.clone() for name, weight in encoder.model.backbone.named_parameters()}
    untouched = encoder.encode(TEXTS)
    torch.manual_seed(0)
    add_lora(encoder.model.backbone, LoraSettings(rank=4, dropout=0.0))
    assert abs(encoder.encode(TEXTS) - untouched).max() < 1e-6  # B is zero at first
    losses = train(encoder)
    assert losses[-1] < 0.5 * losses[0]
    after = dict(encoder.model.backbone.named_parameters())
    adapters = {name for name, weight in after.items() if weight.requires_grad}
    assert all("lora_" in name for name in adapters)
    for name, weight in before.items():
        kept = after.get(name, after.get(name.replace("proj.", "proj.base_layer.")))
        assert kept is not None
        assert torch.equal(kept, weight)


def test_auto_adapts_every_linear_layer(llama):
    backbone = load(llama)
    linear = {name for name, module in backbone.named_modules() if isinstance(module, torch.nn.Linear)}
    for settings, message in (
        (LoraSettings(targets=("query",)), r"query.*down_proj.*q_proj"),  # the layers there are
        (LoraSettings(four_bit=True), "aren't 4-bit"),
    ):
        with pytest.raises(ConfigError, match=message):
            add_lora(load(llama), settings)
    add_lora(backbone, LoraSettings(rank=2))
    adapted = {name.partition(".lora_A")[0] for name, _ in backbone.named_parameters() if "lora_A" in name}
    assert adapted == linear
    assert len(linear) == 14  # q, k, v, o, gate, up, down in two layers


def test_adapters_reload_and_merge_to_the_same_vectors(tuned, tmp_path):
    expected, folder = tuned.encode(TEXTS), tmp_path / "adapters"
    tuned.save(folder)
    assert not (folder / "model.safetensors").exists()
    for again in (Encoder.load(folder, device="cpu"), SentenceTransformer(str(folder), device="cpu")):
        assert abs(again.encode(TEXTS) - expected).max() < 1e-5
    backbone = tuned.model.backbone
    names = {name for name, _ in load(Path(backbone.name_or_path)).named_parameters()}
    assert has_lora(backbone)
    merge_lora(backbone)
    assert not has_lora(backbone)
    assert {name for name, _ in backbone.named_parameters()} == names
    assert abs(tuned.encode(TEXTS) - expected).max() < 1e-5
    weights = load_file(folder / "adapter_model.safetensors")
    del weights[sorted(weights)[0]]
    save_file(weights, folder / "adapter_model.safetensors")
    with pytest.raises(DataError, match=r"don't match config\.json: 1 are missing"):
        Encoder.load(folder, device="cpu")


def test_adapters_store_the_commit_of_a_hub_base(llama, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    kept = tmp_path / "hub" / "models--org--llama"
    commits = {"a" * 40: llama, "b" * 40: save_llama(tmp_path / "other", seed=1)}
    for commit, folder in commits.items():
        shutil.copytree(folder, kept / "snapshots" / commit)
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text("a" * 40)
    encoder = Encoder.load("org/llama", device="cpu")
    add_lora(encoder.model.backbone, LoraSettings(rank=2))
    encoder.save(tmp_path / "adapters")
    about = json.loads((tmp_path / "adapters" / "adapter_config.json").read_text())
    assert (about["base_model_name_or_path"], about["revision"]) == ("org/llama", "a" * 40)
    (kept / "refs" / "main").write_text("b" * 40)  # the Hub's model goes on, the adapters stay where they are
    again = Encoder.load(tmp_path / "adapters", device="cpu")
    assert abs(again.encode(TEXTS) - encoder.encode(TEXTS)).max() < 1e-5
    again.save(tmp_path / "copied")
    copied = json.loads((tmp_path / "copied" / "adapter_config.json").read_text())
    for written in (about, copied):
        written["target_modules"].sort()  # peft writes a set
    assert {**copied, "inference_mode": False} == about
    assert abs(Encoder.load("org/llama", device="cpu").encode(TEXTS) - encoder.encode(TEXTS)).max() > 1e-3


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_bidirectional_ignores_padding(llama, attention):
    backbone = load(llama)
    backbone.set_attn_implementation(attention)
    make_bidirectional(backbone)
    mask = torch.ones(1, 7, dtype=torch.int64)
    mask[0, 4:] = 0
    padded = torch.nn.functional.pad(IDS[:1], (0, 3), value=5)
    with torch.no_grad():
        found = backbone(input_ids=padded, attention_mask=mask).last_hidden_state[:, 0]
    assert abs(found - first_token(backbone, IDS[:1])).max() < 1e-5


def test_bidirectional_refuses_a_model_that_stays_causal(llama):
    class Stubborn(type(load(llama))):  # type: ignore[misc]
        def forward(self, **inputs: object) -> object:
            return super().forward(**{**inputs, "is_causal": True})

    with pytest.raises(ConfigError, match="both directions"):
        make_bidirectional(Stubborn.from_pretrained(llama))


def test_padding_token_is_an_existing_token(llama):
    tokenizer = AutoTokenizer.from_pretrained(llama)
    size = len(tokenizer)
    assert tokenizer.pad_token is None
    add_padding(tokenizer)
    assert (tokenizer.pad_token, len(tokenizer)) == ("</s>", size)
    tokenizer = AutoTokenizer.from_pretrained(llama)
    tokenizer.eos_token = tokenizer.bos_token = None
    with pytest.raises(ConfigError, match="no padding token"):
        add_padding(tokenizer)


def test_four_bit_needs_cuda(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert four_bit_config(LoraSettings()) is None
    with pytest.raises(ConfigError, match="CUDA"):
        four_bit_config(LoraSettings(four_bit=True))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="4-bit weights need a CUDA device")
def test_qlora_learns(llama):
    pytest.importorskip("bitsandbytes", reason="4-bit weights need bitsandbytes")
    settings = LoraSettings(rank=4, dropout=0.0, four_bit=True)
    encoder = Encoder.load(llama, device="cuda", pooling="last", quantization=four_bit_config(settings))
    add_lora(encoder.model.backbone, settings)
    model = encoder.model.train()
    batch = encoder.tokens(TEXTS).batch([0, 1])
    model(batch["input_ids"].cuda(), batch["lengths"], batch["pieces"]).square().sum().backward()
    assert any(w.grad is not None and w.grad.abs().sum() > 0 for w in model.parameters())


def test_absorbed_adapters_leave_a_trainable_backbone(tuned):
    backbone, expected = tuned.model.backbone, tuned.encode(TEXTS)
    backbone.pooler = torch.nn.Linear(32, 32)
    absorb_lora(backbone)
    assert abs(tuned.encode(TEXTS) - expected).max() < 1e-5
    assert {name for name, weight in backbone.named_parameters() if not weight.requires_grad} == {
        "pooler.weight",
        "pooler.bias",
    }
    assert backbone.name_or_path == ""


ROWS = [{"text1": text, "text2": other, "label": float(text == other)} for text in TEXTS for other in TEXTS]


def test_a_run_without_flags_trains_adapters_in_the_papers_prompt(llama, tmp_path, capsys):
    def run(backbone: Path, name: str, **given: Any) -> Encoder:
        aoe_train.train(ROWS, backbone=backbone, out=tmp_path / name, epochs=1, **given)
        return Encoder.load(tmp_path / name)

    plain = run(llama, "plain")
    assert has_lora(plain.model.backbone)
    assert plain.settings.named_prompts.chosen() == "Summarize sentence {text} in one word:"
    assert "only adapters of rank 32 are trained (lora=False" in capsys.readouterr().err
    again = run(tmp_path / "plain", "again")  # an encoder by now
    assert again.settings == plain.settings
    whole = run(llama, "whole", lora=False, prompts="{text}")
    assert not has_lora(whole.model.backbone)
    assert whole.settings.prompts == {}
    assert "a decoder" not in capsys.readouterr().err


def test_outline_of_a_network_without_weights(llama, bert, tuned, tmp_path):
    tuned.save(tmp_path / "adapted")
    for folder, causal in {llama: True, tmp_path / "adapted": True, bert: False}.items():
        network = outline(folder)
        assert {weight.device.type for weight in network.parameters()} == {"meta"}
        assert is_causal(network) == causal

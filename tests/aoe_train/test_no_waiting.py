"""A training step never waits for the device, and is compiled once for all lengths.

There are no GPUs where these tests run. Tensors on torch's `meta` device have no numbers, so whatever would
wait for a GPU to give one away (`tolist`, `item`, picking by a mask, `unique`) is an error there. Assignment
by index isn't, but it waits if the value is a number of the host, so a step may not use it.
"""

from contextlib import contextmanager, nullcontext
from functools import partial

import numpy as np
import pytest
import torch
from torch._dynamo.testing import CompileCounter
from torch.testing import assert_close
from transformers import AutoModel, BertConfig, BertModel, LlamaConfig, LlamaModel

from aoe_train.model.packing import attention, sequences
from aoe_train.model.packing.sequences import register, use_fast_layers
from aoe_train.model.ran import RanConfig, RanModel
from aoe_train.model.text_model import TextModel
from aoe_train.objectives.objective import make_objective
from aoe_train.objectives.objective_checks import TeacherInfo, TeacherSample
from aoe_train.objectives.objective_settings import ObjectiveSettings, Weights
from aoe_train.settings.train_settings import TrainSettings
from aoe_train.training.pair_model import PairModel
from tests.support.shorthand import parametrize, table


@pytest.fixture(autouse=True)
def no_autocast(monkeypatch):
    """`meta` doesn't support autocast, even if it is off."""
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda _: False)
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())


META = torch.device("meta")
SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}
BACKBONES = {
    "bert": lambda: BertModel(BertConfig(vocab_size=90, **SIZES)),
    "ran": lambda: RanModel(
        RanConfig(vocab_size=90, **SIZES, window_size=4, min_window_size=2)
    ),
    "llama": lambda: LlamaModel(
        LlamaConfig(vocab_size=90, **SIZES, num_key_value_heads=2)
    ),
}


def model(backbone="bert", pooling="avg", preset="angle", **more):
    return pair_model(BACKBONES[backbone](), pooling, preset, **more).to(META).train()


def pair_model(backbone, pooling, preset, **more):
    register()
    use_fast_layers(backbone)
    given = {"preset": preset, "objective": {"dims": [32, 8]}}
    chosen = TrainSettings.model_validate(given).objective
    objective = make_objective(chosen, dim=32, kind="pair", label_range=(0, 1))
    return PairModel(TextModel(backbone, pooling, packed=True), objective, **more)


def batch(lengths, columns=2):
    integers = partial(torch.empty, dtype=torch.int64, device=META)
    made = {
        "input_ids": integers(sum(lengths)),
        "lengths": np.array(lengths),
        "rows": integers(8, columns),
        "texts": integers(len(lengths)),
    }
    return made if columns > 2 else made | {"labels": torch.empty(8, device=META)}


@contextmanager
def no_assignment():
    """Refuse assignment by index."""

    def refuse(*_):
        raise RuntimeError("assigned by index")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.Tensor, "__setitem__", refuse)
        yield


def step(trained, lengths, columns=2, **more):
    with no_assignment():
        trained(**batch(lengths, columns) | more)["loss"].backward()
    assert any(weight.grad is not None for weight in trained.text_model.parameters())


@parametrize("backbone", BACKBONES)
def test_backbones(backbone):
    step(model(backbone), [14, 3, 5, 5])


@table(
    """
    preset, columns, pooling
    aoe | 5 | max
    angle | 2 | cls
    cosent | 2 | weighted-mean
    sbert | 2 | first-last-avg
    sbert | 5 | last
    simcse | 5 | cls-avg
    """,
)
def test_objectives_and_poolings(preset, columns, pooling):
    step(model(preset=preset, pooling=pooling), [3, 5, 9], columns)


@parametrize("columns", [2, 5])
def test_guides_and_teachers(columns):
    parts = ["contrastive", "embed_distill", "score_distill"]
    if columns > 2:
        parts.append("margin_mse")
    settings = ObjectiveSettings(
        weights=Weights(**dict.fromkeys(parts, 1.0)),
        contrast_anchors=True,
        contrast_positives=True,
        symmetric=True,
    )
    sample = TeacherSample(torch.randn(50, 32), torch.randn(50, 40))
    teachers = TeacherInfo(guide=True, teacher_dim=40, sample=sample)
    kind = "triplet" if columns > 2 else "positive"
    trained = model()
    objective = make_objective(settings, dim=32, kind=kind, teachers=teachers)
    trained.objective = objective.to(META)
    told = {
        name: torch.empty(8, columns, 40, device=META) for name in ("guide", "teacher")
    }
    step(trained, [3, 5, 9], columns, labels=None, **told)


def test_chunks():
    step(model(chunk=2), [3, 5, 5, 9, 12])


def test_synchronisation_is_detected():
    numbers = torch.ones(3, device=META)
    assigns = lambda: numbers.__setitem__(0, 1.0)  # noqa: E731
    for waits in (
        numbers.tolist,
        numbers.max().item,
        lambda: numbers[numbers > 0],
        numbers.unique,
        assigns,
    ):
        with no_assignment(), pytest.raises((NotImplementedError, RuntimeError)):
            waits()


LENGTHS = ([3, 5, 9], [4, 6, 6, 7], [2, 7, 11, 12, 12])


def attended(query, key, value, bounds, longest, options):
    """FlashAttention's result, computed with a mask."""
    assert options.window is None
    place = torch.arange(len(query), device=query.device)
    sequence = torch.searchsorted(bounds[1:].long(), place, right=True)
    seen = sequence[:, None] == sequence
    if options.causal:
        seen = seen & (place[:, None] >= place)
    q, k, v = (part.transpose(0, 1) for part in (query, key, value))
    out = torch.nn.functional.scaled_dot_product_attention(
        q, k, v, attn_mask=seen, scale=options.scaling, enable_gqa=True
    )
    # The kernel is told how long the longest is.
    return out.transpose(0, 1) + query.new_zeros(longest).sum()


def test_with_flash_attention_a_backbone_is_one_graph(shallow, monkeypatch):
    monkeypatch.undo()  # this one computes
    monkeypatch.setattr(sequences, "has_flash", lambda _: True)
    monkeypatch.setattr(attention, "flash", attended)
    backbone = AutoModel.from_pretrained(shallow).eval()  # without dropout
    model = pair_model(backbone, "avg", "aoe")
    counter = CompileCounter()
    compiled = torch.compile(model, backend=counter)
    counts = []
    for number, lengths in enumerate(LENGTHS):
        generator = torch.Generator().manual_seed(number)
        given = batch(lengths) | {
            "input_ids": torch.randint(5, 30, (sum(lengths),), generator=generator),
            "rows": torch.randint(0, len(lengths), (8, 2), generator=generator),
            "texts": torch.arange(len(lengths)),
            "labels": torch.arange(8) / 8,
        }
        with torch.autocast("cpu", torch.bfloat16):
            losses = [each(**given)["loss"] for each in (compiled, model)]
        gradients = [
            torch.autograd.grad(loss, backbone.get_input_embeddings().weight)
            for loss in losses
        ]
        assert_close(*losses)
        assert_close(*gradients)
        counts.append(counter.frame_count)
    torch.compiler.reset()
    # Backbone and pooling: 2 with Python 3.11, 4 with 3.13; without FlashAttention, attention parts it: 9.
    assert counts[0] <= 4
    assert counts[1] == counts[-1]

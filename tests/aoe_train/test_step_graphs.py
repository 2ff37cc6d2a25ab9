"""Steps of fixed shapes: the same loss and gradients as other steps, and when they are used.

There are no GPUs where these tests run. FlashAttention is computed with a mask, and a captured graph is
replaced by a function that runs the step again.
"""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.testing import assert_close
from transformers import BertConfig, BertModel, LlamaConfig, LlamaModel

from aoe_train.model.device import upload_batch
from aoe_train.model.packing import attention, sequences
from aoe_train.model.packing.sequences import register, use_fast_layers
from aoe_train.model.text_model import TextModel
from aoe_train.objectives.objective import make_objective
from aoe_train.objectives.training_rows import TeacherOutputs
from aoe_train.settings.train_settings import TrainSettings
from aoe_train.training import step_graphs, training_arguments
from aoe_train.training.pair_model import PairModel
from aoe_train.training.step_graphs import (
    StepGraphs,
    choose_shape,
    make_step_graphs,
    padded,
)
from pairkit.base.settings import load_settings
from tests.aoe_train.test_no_waiting import META, SIZES, attended, no_assignment
from tests.aoe_train.test_train import run
from tests.aoe_train.test_trainer_parts import built, settings
from tests.aoe_train.tiny import weights
from tests.support.shorthand import table, values

LONG = {"vocab_size": 90, "max_position_embeddings": 40, **SIZES}
ROWS, LIMIT, WORDS = 8, 40, 90
CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def backbone(name, dropout):
    if name == "llama":
        llama = LlamaModel(LlamaConfig(num_key_value_heads=2, **LONG))
        llama.embed_tokens.requires_grad_(requires_grad=False)  # as with adapters
        return llama
    rates = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": 0.0}
    return BertModel(BertConfig(**LONG, **rates), add_pooling_layer=False)


def pair_model(name="bert", pooling="avg", dropout=0.0, **objective):
    torch.manual_seed(0)
    register()
    network = backbone(name, dropout)
    use_fast_layers(network)
    kind = objective.pop("kind", "graded")
    given = {"preset": "aoe", "objective": objective}
    chosen = TrainSettings.model_validate(given).objective
    loss = make_objective(chosen, dim=32, kind=kind, label_range=(0, 1))
    return PairModel(TextModel(network, pooling, packed=True), loss).train()


def batch(seed=0, columns=2, texts=13, longest=30):
    random = np.random.default_rng(seed)
    lengths = np.sort(random.integers(2, longest, texts))
    rows = random.integers(0, texts, (ROWS, columns))
    if columns > 2:
        rows[::3, -1] = -1
    made = {
        "input_ids": torch.from_numpy(random.integers(5, WORDS, lengths.sum())),
        "lengths": lengths,
        "rows": torch.from_numpy(rows),
        "texts": torch.from_numpy(random.permutation(texts)),
    }
    if columns == 2:
        made["labels"] = torch.from_numpy(random.random(ROWS, np.float32))
    return made


@pytest.fixture
def flash(monkeypatch):
    """FlashAttention on a CPU."""
    monkeypatch.setattr(sequences, "has_flash", lambda _: True)
    monkeypatch.setattr(attention, "is_for_flash", lambda _: True)
    monkeypatch.setattr(attention, "flash", attended)


@pytest.fixture
def captured(flash, monkeypatch):
    """Shapes whose step was captured; a replay runs the step again."""
    found = []

    def capture(self, inputs, step):
        values = step()
        found.append(
            next(shape for shape in self._seen if shape not in [*self._graphs, *found])
        )
        return step_graphs._Graph(inputs, values, lambda: values.copy_(step()))

    monkeypatch.setattr(StepGraphs, "_capture", capture)
    monkeypatch.setattr(StepGraphs, "_has_room", lambda _: True)
    return found


def graphs(model, say=print):
    args = SimpleNamespace(device=CPU, bf16=False, per_device_train_batch_size=ROWS)
    return StepGraphs(model, args, LIMIT, say)


def gradients(model):
    found = {
        name: weight.grad.clone()
        for name, weight in model.named_parameters()
        if weight.grad is not None
    }
    model.zero_grad()
    return found


def eager(model, made):
    parts = model(**upload_batch(made, CPU))
    parts["loss"].backward()
    return {name: part.detach() for name, part in parts.items()}


@table(
    """
    name, pooling, columns, objective
    bert | avg | 2 | {'dims': [32, 8]}
    bert | cls | 4 | {'kind': 'triplet'}
    bert | max | 2 | {'weights': {'cosent': 1, 'in_batch': 1, 'sbert': 1}}
    bert | cls-avg | 3 | {'kind': 'triplet', 'contrast_anchors': True, 'symmetric': True}
    bert | first-last-avg | 2 | {}
    llama | last | 2 | {}
    llama | weighted-mean | 4 | {'kind': 'triplet'}
    """,
)
def test_loss_and_gradients_are_those_of_the_plain_step(
    name, pooling, columns, objective, request
):
    model = pair_model(name, pooling, **objective)
    made = [batch(seed, columns) for seed in range(3)]
    expected = [(eager(model, each), gradients(model)) for each in made]
    found_shapes = request.getfixturevalue("captured")  # from here on
    steps = graphs(model)
    for each, (parts, slopes) in zip(made, expected, strict=True):
        found = steps(each)
        assert found is not None
        assert_close(found, parts, rtol=1e-5, atol=1e-6)
        assert_close(gradients(model), slopes, rtol=1e-3, atol=1e-5)
    assert len(found_shapes) == 1  # at the second batch


@table(
    """
    numbers, most, limit, expected
    {5: 16} | 16 | 512 | (256, 21, 64)
    # no longer than the longest text of the run
    {5: 16} | 16 | 12 | (256, 38, 12)
    # full: five padding texts need a token each
    {16: 16} | 16 | 512 | (384, 23, 64)
    {10: 15, 65: 1} | 16 | 512 | (256, 19, 128)
    {100: 127, 400: 1} | 128 | 512 | (15104, 158, 512)
    # 130 padding texts
    {2: 3} | 128 | 512 | (256, 133, 64)
    """,
)
def test_choice_of_a_shape(numbers, most, limit, expected):
    lengths = np.repeat([*numbers], [*numbers.values()])
    count = len(lengths)
    shape = choose_shape(lengths, most, limit)
    assert tuple(shape) == expected
    made = batch() | {"lengths": lengths, "texts": torch.arange(count)}
    made["input_ids"] = torch.ones(lengths.sum(), dtype=torch.int64)
    sizes = padded(made, shape, 0)[shape.tokens : shape.tokens + shape.texts]
    assert sizes[:count].tolist() == lengths.tolist()
    assert sizes[count:].sum() == shape.tokens - lengths.sum()
    assert sizes.min() >= 1
    assert sizes[count:].max() <= min(limit, shape.longest)


def test_captures_change_no_random_number(captured):
    def losses(fresh):
        model, found = pair_model(dropout=0.1), []
        steps = graphs(model)
        torch.manual_seed(1)
        for seed in range(5):
            steps = graphs(model) if fresh else steps  # fresh ones never capture
            found.append((steps(batch(seed)), gradients(model)))
        return found

    expected = losses(fresh=True)
    assert not captured
    assert_close(losses(fresh=False), expected, rtol=0, atol=0)
    assert captured


@table(
    """
    name, value
    prompt_lengths | ONES
    guide | VECTORS
    teacher | VECTORS
    scores | SCORES
    dataset | 1
    rows | FEWER
    """,
    ONES=np.ones(13, np.int64),
    VECTORS=torch.ones(ROWS, 2, 4),
    SCORES=torch.ones(ROWS, 1),
    FEWER=torch.zeros(ROWS - 1, 2, dtype=torch.int64),
)
def test_other_batches_run_eagerly(name, value):
    assert graphs(pair_model())(batch() | {name: value}) is None


@table(
    """
    error, noted
    REFUSED | True
    FULL | False
    """,
    REFUSED=RuntimeError("operation not permitted\nwhen capturing"),
    FULL=torch.OutOfMemoryError("CUDA out of memory"),
)
def test_without_a_capture_the_batch_runs_eagerly(error, noted, captured, monkeypatch):
    model, notes = pair_model(dropout=0.1), []
    steps = graphs(model, notes.append)
    short, long = batch(), batch(texts=16, longest=38)
    assert all(steps(short) is not None for _ in range(2))  # captured
    assert steps(long) is not None
    model.zero_grad()

    def fail(_, __, step):
        step()
        raise error

    monkeypatch.setattr(StepGraphs, "_capture", fail)
    before = torch.get_rng_state()
    assert steps(long) is None
    assert torch.equal(torch.get_rng_state(), before)
    assert not gradients(model)
    assert steps(long) is None  # nothing is tried again
    assert (steps(short) is None) is noted  # existing graphs need no further memory
    assert len(notes) == noted
    if noted:
        assert "RuntimeError: operation not permitted" in notes[0]


def test_a_model_without_fixed_shapes_runs_eagerly(monkeypatch):
    notes = []
    monkeypatch.setattr(PairModel, "fixed_shape", lambda *_, **__: 1 / 0)
    steps = graphs(pair_model(), notes.append)
    assert steps(batch()) is steps(batch()) is None
    assert len(notes) == 1


@table("free, captures\n10 | True\n7 | False")
def test_a_capture_leaves_memory_for_an_eager_step(free, captures, monkeypatch):
    steps = graphs(pair_model())
    steps._args.device = CUDA
    for name, value in {
        "max_memory_allocated": 9,
        "memory_allocated": 5,
        "mem_get_info": (free, 80),
        "empty_cache": None,
    }.items():
        monkeypatch.setattr(torch.cuda, name, lambda value=value: value)
    assert steps._has_room() is captures


def test_nothing_waits(flash, monkeypatch):
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda _: False)
    made = batch()
    shape = choose_shape(made["lengths"], 16, LIMIT)
    inputs = padded(made, shape, 0).to(META)
    for name in ("bert", "llama"):
        model = pair_model(name).to(META)
        with monkeypatch.context() as patch, no_assignment():
            patch.setattr(torch, "autocast", lambda *_, **__: torch.enable_grad())
            graphs(model)._losses_and_gradients(inputs, shape, 2)
        assert any(weight.grad is not None for weight in model.parameters())


def test_plain_runs_use_graphs_and_others_dont(shallow, data, tmp_path, monkeypatch):
    plain = settings(**{"run.precision": "bf16"})
    setup = built(plain, data["data"], shallow, tmp_path)
    monkeypatch.setattr(step_graphs, "has_flash", lambda device: device.type == "cuda")
    on_gpu = {
        "device": CUDA,
        "bf16": True,
        "world_size": 1,
        "per_device_train_batch_size": 16,
    }

    def uses(*assignments, args=on_gpu, **other):
        given = ["preset=angle-paper", "run.precision=bf16", "run.graphs=true"]
        chosen = load_settings(TrainSettings, settings=[*given, *assignments])
        notes: list[str] = []
        process = SimpleNamespace(say=notes.append)
        loaded = replace(setup.loaded, settings=chosen, process=process)
        changed = replace(setup, args=SimpleNamespace(**args), loaded=loaded, **other)
        graphs = make_step_graphs(changed)
        is_ignored = chosen.run.graphs and graphs is None
        assert notes == ["run.graphs has no effect on this run"] * is_ignored
        return graphs is not None

    def changed(thing, **fields):
        return SimpleNamespace(**{**vars(thing), **fields})

    assert uses()
    for (setting,) in values("""
            run.graphs=false
            run.chunk=8
            run.compile=true
            run.deterministic=true
            run.gradient_checkpointing=true
            optim.accumulation=2
            lora.four_bit=true
            """):
        assert not uses(setting), setting
    for fields in ({"device": CPU}, {"bf16": False}, {"world_size": 2}):
        assert not uses(args=on_gpu | fields), fields
    (dataset,) = setup.datasets
    assert not uses(datasets=[dataset, dataset])
    for taught in (TeacherOutputs({"guide": None}), TeacherOutputs(scores=np.ones(3))):
        assert not uses(datasets=[changed(dataset, teacher_outputs=taught)])
    custom, layers = (
        make_objective(
            plain.objective, dim=32, kind="graded", label_range=(0, 1), **more
        )
        for more in ({"custom_loss": lambda v, _: v.sum()}, {"layers": (1,)})
    )
    text_model = setup.model.text_model
    for objective in (custom, layers, torch.nn.ModuleList([setup.model.objective])):
        assert not uses(
            model=changed(setup.model, text_model=text_model, objective=objective)
        )
    with monkeypatch.context() as patch:
        # Of 4 numbers.
        patch.setattr(text_model.backbone.config, "num_attention_heads", 8)
        assert not uses()
    monkeypatch.setattr(step_graphs, "has_flash", lambda _: True)
    monkeypatch.setattr(text_model, "packed", False)
    assert not uses()


@pytest.fixture
def on_cpu(captured, monkeypatch):
    """Runs on a CPU use graphs."""

    def make(built):
        longest = int(built.datasets[0].store.lengths.max())
        return StepGraphs(built.model, built.args, longest, print)

    monkeypatch.setattr(training_arguments, "make_step_graphs", make)


def test_a_killed_run_continues_to_the_same_weights_but_for_rounding(
    data, shallow, tmp_path, kill_at, on_cpu
):
    flags = {"optim__epochs": 3, "log__checkpoint_steps": 2}
    run(data, shallow, tmp_path / "a", **flags)
    kill_at(9, lambda: run(data, shallow, tmp_path / "b", **flags))
    whole, resumed = weights(tmp_path / "a"), weights(tmp_path / "b")
    assert_close(resumed, whole, rtol=0, atol=1e-6)

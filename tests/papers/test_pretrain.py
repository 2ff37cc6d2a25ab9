from __future__ import annotations

import random
import tomllib
from pathlib import Path

import pytest
from safetensors.torch import load_file
from torch.testing import assert_close
from transformers import AutoModel, AutoTokenizer, Trainer

from papers.ran.pretrain import _read_embeddings as read_embeddings
from papers.ran.pretrain import pretrain
from papers.ran.settings import PretrainSettings
from tests.aoe_train.conftest import Killed
from tests.aoe_train.tiny import read_json
from tests.support.shorthand import config_error, parametrize, table


@pytest.fixture
def texts(tmp_path):
    draw = random.Random(0)
    rows = []
    for _ in range(60):
        who, size = draw.choice(["dog", "cat", "bird"]), draw.choice(["large", "small"])
        rows.append(
            f"the {size} {who} is eating the {size} apple and the {who} is running"
        )
    path = tmp_path / "texts.txt"
    path.write_text("\n".join([*rows, " ".join(rows[:6])]))
    return path


def settings(texts, bert, **changes):
    values = tomllib.loads("""
        sizes = { dim = 32, layers = 1, heads = 2, head_dim = 8, window = 16, dropout = 0 }
        length = 32
        steps = 6
        batch_size = 8
        lr = 1e-2
        warmup = 2
        log_steps = 2
        checkpoint_steps = 2
        """)
    paths = {"texts": (texts,), "out": texts.with_name("ran"), "tokenizer": bert}
    return PretrainSettings(**values | paths | changes)


def test_the_loss_falls_and_the_output_is_a_model_folder(texts, bert):
    result = pretrain(settings(texts, bert, steps=40, log_steps=10))
    assert result["steps"] == 40
    assert result["loss_last"] < 0.6 * result["loss_first"]
    out = Path(result["out"])
    assert not out.with_name("ran.work").exists()
    run = read_json(out / "run.json")
    assert run["corpus"]["texts"] == 61
    assert run["corpus"]["sequences"] > 61
    assert run["inputs"].keys() == {str(texts)}
    assert run["result"] == result
    batch = AutoTokenizer.from_pretrained(out)(
        ["a dog"], return_tensors="pt", return_token_type_ids=False
    )
    assert AutoModel.from_pretrained(out)(**batch).pooler_output.shape == (1, 32)


@table(
    r"""
    changes, sign
    {'lr': 1e30, 'steps': 30} | the loss became nan
    {'lr': 3, 'steps': 30, 'log_steps': 1} | the loss rose from 5\.\d+ to \d+
    # no entry but the first
    {'lr': 1e30, 'steps': 5, 'log_steps': 100} | the loss became nan
    """
)
def test_a_diverged_run_stops(texts, bert, changes, sign):
    run = settings(texts, bert, **changes)
    with config_error(
        rf"diverged at step \d+: {sign}.* --fresh .* --set lr="
    ) as caught:
        pretrain(run)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(
        f"its newest checkpoint is {max(run.out.parent.glob('ran.work/c*-*'))}"
    )
    assert not run.out.exists()


@parametrize("checkpointing", [False, True])
def test_a_killed_run_continues_to_the_same_weights(
    texts, bert, monkeypatch, checkpointing
):
    undisturbed = settings(
        texts, bert, out=texts.with_name("whole"), gradient_checkpointing=checkpointing
    )
    expected = pretrain(undisturbed)
    broken = settings(texts, bert, gradient_checkpointing=checkpointing)
    step = Trainer.training_step

    def killed_later(trainer, *args, **kwargs):
        if trainer.state.global_step == 5:
            raise Killed
        return step(trainer, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "training_step", killed_later)
        with pytest.raises(Killed):
            pretrain(broken)
    assert not broken.out.exists()
    # The newest checkpoint was not whole yet.
    (texts.with_name("ran.work") / "checkpoint-4/trainer_state.json").write_text("")
    with config_error("other settings or texts"):
        pretrain(broken.model_copy(update={"lr": 0.5}))
    result = pretrain(broken)
    names = ("steps", "tokens", "loss_first", "loss_last")
    assert [result[name] for name in names] == [expected[name] for name in names]
    weights = load_file(undisturbed.out / "model.safetensors")
    found = load_file(broken.out / "model.safetensors")
    assert_close(found, weights, rtol=0, atol=0)


def test_embeddings_of_another_encoder_and_fresh(texts, bert):
    still = {"steps": 1, "lr": 1e-9, "weight_decay": 0, "sizes": {"dim": 999}}
    run = settings(texts, bert, tokenizer=None, init_from=bert, **still)
    pretrain(run)
    found = AutoModel.from_pretrained(run.out).embed_tokens.weight
    assert_close(found, read_embeddings(bert), atol=1e-6, rtol=0)
    with config_error("already exists"):
        pretrain(settings(texts, bert, steps=1))
    assert pretrain(settings(texts, bert, steps=2, fresh=True))["steps"] == 2

"""Settings, data and objectives that a run refuses in one line, before it writes anything."""

import pytest
import torch
from transformers import BertModel
from transformers.integrations import integration_utils

from aoe_train import plan, train
from pairkit import ConfigError, DataError
from tests.aoe_train.test_keep_if_better import judged_rows
from tests.aoe_train.test_train_teachers import sentences
from tests.aoe_train.test_train_texts import Halves
from tests.aoe_train.tiny import WORDS, refusal, write_pairs, write_triplets

POSITIVES = [{"anchor": f"the man {n} is eating", "positive": f"a man eats {n}"} for n in range(20)]
BINARY = [
    {"text1": f"a {word}", "text2": f"the {word}", "label": n % 2}
    for n, word in enumerate(WORDS[:16])
]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    graded = write_pairs(folder / "train.tsv", 90, 1)
    nli = write_triplets(folder / "nli.jsonl", 40, 3)
    return {
        "graded": graded,
        "binary": BINARY,
        "alike": [row | {"label": 1} for row in BINARY],
        "texts": sentences(20),
        "one text": ["a b", "a b"],
        "three": {"stsb": graded, "nli": nli, "qa": POSITIVES},
        "mixed": {"one": sentences(20), "two": BINARY},
    }


class ForgetsLabels(torch.nn.Module):
    """A module whose `forward` lacks the labels."""

    def forward(self, vectors):
        return vectors.sum()


async def is_async(vectors, labels):
    return vectors.sum() * labels.sum()


def trainer(**options):
    return {"settings": {"run.trainer": options}}


def setting(**settings):
    return {"settings": {name.replace("__", "."): value for name, value in settings.items()}}


def judged(**change):
    return [row | change for row in judged_rows(1, 40)]


REFUSED = {
    "binary": [
        (setting(encoder__prompts__a="{text} {text}"), r"setting .*has \{text\} 2 times"),
        (setting(optim__learning_rate=1), "unknown setting 'optim.learning_rate'"),
        ({"lr": float("nan")}, "finite"),
        ({"layers": [1, 5]}, "objective.layers .*as the last layer is always trained"),
        ({"top_layers": 4}, r"optim\.top_layers 4: this backbone has 1 layer"),
        (
            setting(objective__weights=dict.fromkeys(("cosent", "in_batch", "angle"), 0)),
            "all weights are 0",
        ),
        (setting(objective__tau__angle=20), "angle = 20: is a scale; the temperature is 0.05"),
        (setting(optim__scheduler="bent"), "transformers rejects"),
        (trainer(max_steps=3), "run.trainer.max_steps: expected one of adam_beta1"),
        (trainer(fsdp=True), "run.trainer.fsdp.*run.shard"),
        (trainer(optim="schedule_free_adamw"), "starts with adamw"),
        (trainer(optim_args="fast"), "run.trainer.optim or an option for it isn't usable"),
        (trainer(adam_beta1="x"), "run.trainer.optim or an option for it isn't usable"),
        (
            {
                "settings": {
                    "optim.scheduler": "polynomial",
                    "run.trainer": {"lr_scheduler_kwargs": {"x": 1}},
                }
            },
            "run.trainer.lr_scheduler_kwargs or an option",
        ),
        (
            setting(log__report_to=["tensorbord"]),
            "log.report_to 'tensorbord': .*only .*tensorboard",
        ),
        ({"precision": "fp16"}, "fp16: not available on a CPU"),
        (setting(run__shard=True), "run.shard: needs several processes; .* `torchrun"),
        ({"preset": "domain", "purpose": "group"}, "purpose: no effect here"),
        (
            {"preset": "simcse", "labels": "0=0,1=skip"},
            "highest label is 0, so there are no positives, which",
        ),
        (
            {"objective": lambda vectors: vectors.sum()},
            r"the parameters \(vectors\), expected \(vectors",
        ),
        (
            {"objective": ForgetsLabels()},
            r"ForgetsLabels: found the parameters \(vectors: .*\), expected",
        ),
        ({"objective": is_async}, "is_async: is async; expected a plain function"),
        (
            {"objective": lambda vectors, _: vectors.sum(-1)},
            "returned a torch.float32 tensor of shape",
        ),
        ({"objective": lambda *_: 3.0}, "returned float; expected one number"),
        ({"objective": torch.nn.MSELoss}, "an instance, not a class"),
        ({"prompts": "find \ud800: "}, "lone surrogate"),
        (
            {"objective": lambda vectors, _: vectors.sum().detach()},
            "does not depend on the vectors",
        ),
        ({"accept_on": judged(), **setting(run__shard=True)}, "accept_on= with run.shard"),
        ({"accept_on": judged(), **setting(encoder__dense=16)}, "accept_on= with encoder.dense"),
        ({"accept_on": judged(label=1)}, "all labels are equal"),
        (
            {"accept_on": judged(query_top=1, query_share=1, query_results=1)},
            "has judged search results",
        ),
        ({"if_not_better": "model"}, "without accept_on= has no effect; give accept_on=PAIRS"),
    ],
    "graded": [
        (setting(optim__patience=2), "patience.*dev_data="),
        (setting(batches__strategy="tokens"), "the strategy tokens needs max_tokens"),
        (setting(batches__max_tokens=5), "only it uses max_tokens"),
    ],
    "alike": [
        ({}, "the list given: all 16 labels are 1, so there is nothing to rank.*preset='simcse'")
    ],
    "texts": [
        ({"preset": "simcse", "purpose": "group"}, "purpose: no effect here"),
        ({"preset": "domain", "purpose": "clustering"}, "group"),
        *(
            ({"objective": Halves(), **given}, f"a TextObjective doesn't support .*{named}")
            for given, named in (
                (setting(run__chunk=4), "run.chunk"),
                (setting(encoder__long_text="chunks"), "long_text=chunks"),
                ({"dims": [32, 8]}, "dims and layers"),
                ({"teacher": "minilm"}, "a guide or teacher"),
            )
        ),
    ],
    "mixed": [({"preset": "domain"}, "in a run of their own")],
    "one text": [({"preset": "domain", "top_layers": 1}, "fewer than two distinct texts")],
    "three": [
        (
            setting(datasets__nil__weight=2),
            r"datasets\.nil: no such dataset; expected nli, qa, stsb",
        ),
        (setting(mix__dev="x"), r"mix\.dev: no dev set 'x'; there is none: give dev_data="),
        (
            setting(mix={"order": "round-robin", "temperature": 2}),
            r"mix\.temperature = 2: .* round-robin",
        ),
        (
            setting(mix={"epoch": "once", "temperature": 2}),
            r"mix\.temperature = 2: .* once an epoch",
        ),
        (
            setting(mix__epoch="once", datasets__nli__weight=2),
            r"datasets\.nli\.weight: has no effect",
        ),
        (
            setting(datasets__qa__preset="cosent"),
            "dataset qa: objective cosent: found positive data",
        ),
        (
            setting(datasets__nli__preset="x"),
            r"'datasets\.nli\.preset' = 'x': expected one of auto, angle",
        ),
        (
            setting(datasets__nli__wieght=2),
            r"unknown setting 'datasets\.nli\.wieght'; known here: .*weight",
        ),
        (
            setting(datasets__nli__objective__layers=[1]),
            "objective.layers: differs between datasets",
        ),
        ({"objective": {"nil": torch.sum}}, r"objective: no dataset 'nil'; expected nli, qa, stsb"),
    ],
}


CASES = [(kind, *case) for kind, cases in REFUSED.items() for case in cases]


@pytest.mark.parametrize(("kind", "given", "message"), CASES, ids=[case[2] for case in CASES])
def test_refused_runs(kind, given, message, data, shallow, out):
    with pytest.raises((ConfigError, DataError), match=message) as raised:
        train(data[kind], backbone=shallow, out=out, **given)
    assert "\n" not in str(raised.value)
    assert not (out).exists()


def test_dry_runs_are_not_sharded(shallow):
    with refusal("a dry run doesn't support run.shard"):
        plan(BINARY, backbone=shallow, **setting(run__shard=True))


@pytest.mark.parametrize("name", ["tensorboard", "wandb", "trackio"])
def test_missing_tracker_package_is_refused(shallow, out, monkeypatch, name):
    monkeypatch.setattr(integration_utils, f"is_{name}_available", lambda: False)
    with refusal(f"log.report_to '{name}': its package is not installed; pip install {name}$"):
        train(BINARY, backbone=shallow, out=out, **setting(log__report_to=name))


@pytest.mark.parametrize("name", ["ACCELERATE_USE_FSDP", "ACCELERATE_USE_DEEPSPEED"])
def test_sharding_by_accelerate_launch_is_refused(shallow, out, monkeypatch, name):
    monkeypatch.setenv(name, "true")
    with refusal(f"{name} is set: .*run.shard"):
        train(BINARY, backbone=shallow, out=out)


def test_unsupported_gradient_checkpointing_is_refused(shallow, out, monkeypatch):
    monkeypatch.setattr(BertModel, "supports_gradient_checkpointing", False)
    with refusal(r"gradient_checkpointing: BertModel.*run\.chunk"):
        train(BINARY, backbone=shallow, out=out, **setting(run__gradient_checkpointing=True))

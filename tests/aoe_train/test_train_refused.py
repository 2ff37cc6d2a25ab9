"""Defaults by rows and backbone; settings, data and objectives that a run refuses in one line."""

import torch
from transformers import BertModel
from transformers.integrations import integration_utils

from aoe_train import Encoder, TextObjective, plan, train
from tests.aoe_train.shorthand import python, stderr
from tests.aoe_train.test_keep_if_better import judged_rows
from tests.aoe_train.test_train_teachers import sentences
from tests.aoe_train.test_train_texts import Halves
from tests.aoe_train.tiny import (
    POSITIVES,
    WORDS,
    refusal,
    save_bert,
    write_pairs,
    write_triplets,
)
from tests.support.shorthand import (
    approx,
    input_error,
    module_fixture,
    pair,
    parametrize,
    table,
)

BINARY = [pair(f"a {word}", f"the {word}", n % 2) for n, word in enumerate(WORDS[:16])]


@module_fixture
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


class OfVectors(TextObjective):
    """A function of a batch's vectors."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, model, batch):
        return self.function(batch.vectors(model))


@table(
    r"""
    kind, settings, message
    binary | encoder.prompts.a={text} {text} | setting .*has \{text\} 2 times
    binary | optim.learning_rate=1 | unknown setting 'optim.learning_rate'
    binary | optim.lr=nan | finite
    binary | objective.layers=[1, 5] | objective.layers .*as the last layer is always trained
    binary | optim.top_layers=4 | optim\.top_layers 4: this backbone has 1 layer
    binary | objective.weights={cosent = 0, in_batch = 0, angle = 0} | all weights are 0
    binary | objective.tau.angle=20 | angle = 20: is a scale; the temperature is 0.05
    binary | optim.scheduler=bent | transformers rejects
    binary | optim.scheduler=greedy | greedy: not supported; choose one such as cosine
    binary | run.trainer={max_steps = 3} | run.trainer.max_steps: expected one of adam_beta1
    binary | run.trainer={optim = "schedule_free_adamw"} | starts with adamw
    binary | run.trainer={optim_args = "fast"} | run.trainer.optim or an option for it isn't usable
    binary | run.trainer={adam_beta1 = "x"} | run.trainer.optim or an option for it isn't usable
    binary | optim.scheduler=polynomial; run.trainer={lr_scheduler_kwargs = {x = 1}} | lr_scheduler_kwargs or an option
    binary | log.report_to=["tensorbord"] | log.report_to 'tensorbord': .*only .*tensorboard
    binary | run.precision=fp16 | fp16: not available on a CPU
    binary | run.shard=true | run.shard: needs several processes; .* `torchrun
    graded | optim.patience=2 | patience.*dev_data=
    graded | batches.strategy=tokens | the strategy tokens needs max_tokens
    graded | batches.max_tokens=5 | only it uses max_tokens
    alike | seed=1 | the list given: all 16 labels are 1, so there is nothing to rank.*preset='simcse'
    mixed | preset=domain | in a run of their own
    one text | preset=domain; optim.top_layers=1 | fewer than two distinct texts
    three | datasets.nil.weight=2 | datasets\.nil: no such dataset; expected nli, qa, stsb
    three | mix.dev=x | mix\.dev: no dev set 'x'; there is none: give dev_data=
    three | mix={order = "round-robin", temperature = 2} | mix\.temperature = 2: .* round-robin
    three | mix={epoch = "once", temperature = 2} | mix\.temperature = 2: .* once an epoch
    three | mix.epoch=once; datasets.nli.weight=2 | datasets\.nli\.weight: has no effect
    three | datasets.qa.preset=cosent | dataset qa: objective cosent: found positive data
    three | datasets.nli.preset=x | nli\.preset' = 'x': expected one of auto, angle
    three | datasets.nli.wieght=2 | unknown setting 'datasets\.nli\.wieght'; known here: .*weight
    three | datasets.nli.objective.layers=[1] | objective.layers: differs between datasets
    """,
)
def test_refused_settings(kind, settings, message, data, shallow, out):
    refused(data[kind], message, shallow, out, settings=settings.split("; "))


def refused(rows, message, backbone, out, **given):
    with input_error(message) as raised:
        train(rows, backbone=backbone, out=out, **given)
    assert "\n" not in str(raised.value)
    assert not out.exists()


@table(
    r"""
    kind, given, message
    binary | {'preset': 'domain', 'purpose': 'group'} | purpose: no effect here
    binary | {'preset': 'simcse', 'labels': '0=0,1=skip'} | highest label is 0, so there are no positives, which
    binary | {'prompts': 'find \ud800: '} | lone surrogate
    binary | {'if_not_better': 'model'} | without accept_on= has no effect; give accept_on=PAIRS
    texts | {'preset': 'simcse', 'purpose': 'group'} | purpose: no effect here
    texts | {'preset': 'domain', 'purpose': 'clustering'} | group
    """,
)
def test_refused_arguments(kind, given, message, data, shallow, out):
    refused(data[kind], message, shallow, out, **given)


@table(
    r"""
    objective, message
    WITHOUT_LABELS | the parameters \(vectors\), expected \(vectors
    MODULE | ForgetsLabels: found the parameters \(vectors.*\), expected
    BY_ROW | returned a torch.float32 tensor of shape
    CONSTANT | returned float; expected one number
    CLASS | an instance, not a class
    DETACHED | does not depend on the vectors
    TEXTS_BY_ROW | OfVectors: returned a torch.float32 tensor of shape
    TEXTS_WITHOUT_LOSS | OfVectors: returned NoneType; expected one number
    TEXTS_DETACHED | OfVectors: the loss does not depend on the vectors
    """,
    WITHOUT_LABELS=lambda vectors: vectors.sum(),
    MODULE=ForgetsLabels(),
    BY_ROW=lambda vectors, _: vectors.sum(-1),
    CONSTANT=lambda *_: 3.0,
    CLASS=torch.nn.MSELoss,
    DETACHED=lambda vectors, _: vectors.sum().detach(),
    TEXTS_BY_ROW=OfVectors(lambda vectors: vectors.sum(-1)),
    TEXTS_WITHOUT_LOSS=OfVectors(lambda vectors: {"mean": vectors.mean()}),
    TEXTS_DETACHED=OfVectors(lambda vectors: {"loss": vectors.mean().detach()}),
)
def test_refused_objectives(objective, message, shallow, out):
    refused(BINARY, message, shallow, out, objective=objective)


def test_an_objective_for_no_dataset(data, shallow, out):
    message = r"objective: no dataset 'nil'; expected nli, qa, stsb"
    refused(data["three"], message, shallow, out, objective={"nil": torch.sum})


@table(
    """
    given, message
    {'settings': ['run.chunk=4']} | a TextObjective doesn't support .*run.chunk
    {'dims': [32, 8]} | a TextObjective doesn't support .*dims and layers
    {'teacher': 'minilm'} | a TextObjective doesn't support .*a guide or teacher
    """,
)
def test_settings_that_text_objectives_do_not_support(
    given, message, data, shallow, out
):
    refused(data["texts"], message, shallow, out, objective=Halves(), **given)


@table(
    """
    change, settings, message
    {} | run.shard=true | accept_on= with run.shard
    {} | encoder.dense=16 | accept_on= with encoder.dense
    {'label': 1} | seed=1 | all labels are equal
    {'query_top': 1, 'query_share': 1, 'query_results': 1} | seed=1 | has judged search results
    """,
)
def test_refused_judged_pairs(change, settings, message, shallow, out):
    pairs = [row | change for row in judged_rows(1, 40)]
    refused(BINARY, message, shallow, out, accept_on=pairs, settings=[settings])


def test_dry_runs_are_not_sharded(shallow):
    with refusal("a dry run doesn't support run.shard"):
        plan(BINARY, backbone=shallow, settings=["run.shard=true"])


@parametrize("name", ["tensorboard", "wandb", "trackio"])
def test_missing_tracker_package_is_refused(shallow, out, monkeypatch, name):
    monkeypatch.setattr(integration_utils, f"is_{name}_available", lambda: False)
    message = (
        f"log.report_to '{name}': its package is not installed; pip install {name}$"
    )
    refused(BINARY, message, shallow, out, settings=[f"log.report_to={name}"])


@parametrize("name", ["ACCELERATE_USE_FSDP", "ACCELERATE_USE_DEEPSPEED"])
def test_sharding_by_accelerate_launch_is_refused(shallow, out, monkeypatch, name):
    monkeypatch.setenv(name, "true")
    refused(BINARY, f"{name} is set: .*run.shard", shallow, out)


def test_unsupported_gradient_checkpointing_is_refused(shallow, out, monkeypatch):
    monkeypatch.setattr(BertModel, "supports_gradient_checkpointing", False)
    message = r"gradient_checkpointing: BertModel.*run\.chunk"
    given = ["run.gradient_checkpointing=true"]
    refused(BINARY, message, shallow, out, settings=given)


TEXTS = [" ".join(WORDS[n : n + 5]) for n in range(40)]
LABELLED = [pair(text, f"a {text[:9]}", n % 2) for n, text in enumerate(TEXTS)]


@module_fixture
def sources(tmp_path_factory):
    """Forty rows of each kind."""
    folder = tmp_path_factory.mktemp("kinds")
    graded = write_pairs(folder / "graded.tsv", 40, 1)
    requests = [
        {"anchor": f"my {text}", "positive": text, "negative": f"not {text}"}
        for text in TEXTS
    ]
    return {
        "binary": LABELLED,
        "graded": graded,
        "graded of a wide model": graded,
        "triplet": write_triplets(folder / "triplets.jsonl", 40, 1),
        "positive": [{"anchor": text, "positive": f"a {text}"} for text in TEXTS],
        "single": TEXTS,
        "requests": requests,
    }


# Learning rate, epochs and rows a batch are expected.
@table(
    """
    kind, settings, parts, lr, epochs, batch_size
    binary | seed=1 | cosent in_batch angle | 5e-5 | 3 | 16
    graded | seed=1 | cosent in_batch angle | 5e-5 | 3 | 16
    graded | preset=aoe | angle contrastive | 5e-5 | 3 | 16
    triplet | seed=1 | angle contrastive | 5e-5 | 3 | 16
    positive | seed=1 | contrastive | 2e-5 | 8 | 16
    single | seed=1 | contrastive | 1e-5 | 1 | 16
    graded | lora={} | cosent in_batch angle | 3e-4 | 3 | 16
    graded of a wide model | seed=1 | cosent in_batch angle | 2e-5 | 3 | 16
    single | teacher.model=TEACHER | embed_distill | 3e-4 | 8 | 16
    triplet | teacher.model=TEACHER | angle contrastive embed_distill | 5e-5 | 3 | 16
    triplet | teacher.model=TEACHER; objective.weights.score_distill=1 | angle contrastive score_distill | 5e-5 | 3 | 16
    triplet | preset=domain | angle contrastive | 1e-4 | 1 | 32
    positive | preset=domain | contrastive | 1e-4 | 1 | 32
    triplet | preset=domain; data.author=people | angle contrastive | 1e-4 | 2 | 32
    requests | preset=domain; data.author=rules; optim.epochs=3 | angle contrastive | 1e-4 | 3 | 32
    graded | preset=cosent-paper | cosent | 5e-5 | 1 | 32
    binary | optim.lr=1e-6; optim.epochs=2; optim.batch_size=8 | cosent in_batch angle | 1e-6 | 2 | 8
    """,
)
def test_defaults(
    kind, settings, parts, lr, epochs, batch_size, sources, bert, tmp_path, monkeypatch
):
    # No test of the time of steps.
    monkeypatch.setattr("aoe_train.training.train_plan._PROBES", 1)
    backbone = (
        save_bert(tmp_path / "wide", dim=768, layers=1) if "wide" in kind else bert
    )
    teacher = save_bert(tmp_path / "teacher", layers=1, seed=7)
    settings = settings.replace("TEACHER", str(teacher)).split("; ")
    planned = plan(sources[kind], backbone=backbone, settings=settings).record
    assert {*planned["datasets"].popitem()[1]["objective"]} == {*parts.split()}
    assert planned["optim"] == {
        "lr": approx(lr),
        "epochs": epochs,
        "batch_size": batch_size,
    }


def test_rules_negatives_of_requests_are_reported(sources, bert, out, capsys):
    given = {"preset": "domain", "settings": ["data.author=rules"]}
    run = train(sources["requests"], backbone=bert, out=out, **given)
    told = stderr(capsys)
    assert "warning: rules wrote the negatives of these first-person texts" in told
    unchanged = Encoder.load(bert).encode(TEXTS)
    assert run.encoder.encode(TEXTS) == approx(unchanged, abs=1e-6)


@table(
    """
    given, rank, prompt, told
    {} | 32 | PROMPT | rank 32 are trained (lora=False trains all weights), and texts get the prompt
    {'lora': False, 'prompts': '{text}'} | None | {text} | ''
    {'settings': ['lora.rank=4']} | 4 | PROMPT | the backbone is a decoder: texts get the prompt
    {'top_layers': 1} | None | PROMPT | the backbone is a decoder: texts get the prompt
    # the prompt is for the last token
    {'pooling': 'avg'} | 32 | None | decoder: only adapters
    {'preset': 'angle-paper'} | None | None | ''
    """,
    PROMPT="Summarize sentence {text} in one word:",
)
def test_decoders(given, rank, prompt, told, sources, llama, out, capsys):
    run = train(sources["graded"], backbone=llama, out=out, **{"epochs": 0.3, **given})
    found = run.record["origin"]["settings"]
    assert (found["lora"] and found["lora"]["rank"]) == rank
    assert found["prompts"] == prompt
    said = stderr(capsys)
    assert told in said
    assert ("the backbone is a decoder" in said) == bool(told)


WITHOUT_TORCH = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
from aoe_train.__main__ import main
main()
"""


def test_missing_torch_is_reported(bert, tmp_path):
    (tmp_path / "t.txt").write_text("a\n")
    arguments = f"encode {tmp_path}/t.txt -m {bert} -o {tmp_path}/v.npy".split()
    found = python(WITHOUT_TORCH, *arguments)
    assert found.returncode == 2
    assert "pip install 'aoe-toolkit[train]'" in found.stderr
    assert "Traceback" not in found.stderr

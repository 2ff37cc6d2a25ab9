"""Killed runs continue to the same weights; diverged ones are stopped and keep the last sound weights."""

from shutil import copytree

import torch
from transformers import TrainerCallback

from aoe_train import Encoder, train
from tests.aoe_train.conftest import Killed
from tests.aoe_train.test_keep_if_better import judged_rows
from tests.aoe_train.test_train import run, score
from tests.aoe_train.test_train_teachers import PARTS, sentences, triplets
from tests.aoe_train.tiny import (
    POSITIVES,
    WORDS,
    edit,
    refusal,
    same_weights,
    save_bert,
    weights,
    write_lines,
    write_pairs,
    write_triplets,
)
from tests.support.shorthand import (
    approx,
    config_error,
    module_fixture,
    parametrize,
    raises,
    table,
    values,
)

PAPERS = "preset=angle-paper; optim.lr=1e-3; optim.batch_size=16; log.steps=2"
# Data, settings, step before which the run is killed, steps between checkpoints.


@module_fixture
def sources(tmp_path_factory):
    """The inputs of each case."""
    folder = tmp_path_factory.mktemp("sources")
    graded = write_pairs(folder / "train.tsv", 90, 1)
    dev = write_pairs(folder / "dev.tsv", 30, 2)
    some, held_out = (
        write_triplets(folder / f"{rows}.jsonl", rows, 3) for rows in (60, 20)
    )
    teacher = save_bert(folder / "teacher", dim=16, layers=1, seed=7)
    return {
        "graded": {"data": graded, "dev_data": dev},
        "triplets": {"data": some, "dev_data": held_out},
        "three": {
            "data": {"stsb": graded, "nli": some, "qa": POSITIVES},
            "dev_data": {"stsb": dev, "nli": held_out},
        },
        "texts": {"data": sentences(80)},
        "taught": {
            "data": triplets(),
            "guide": teacher,
            "teacher": teacher,
            "prompts": {"anchor": "is "},
        },
        "judged": {"data": judged_rows(7, 96), "accept_on": judged_rows(1)},
    }


@table(
    """
    kind, settings, killed_before, every
    # at the end of an epoch
    graded | PAPERS; optim.epochs=2 | 6 | 3
    # averages and early stopping
    graded | PAPERS; optim.epochs=2; optim.patience=9; optim.average=0.9; optim.interpolate=0.25 | 8 | 3
    # batches by tokens
    triplets | PAPERS; batches.strategy=tokens; batches.max_tokens=400 | 2 | 1
    # several datasets
    three | mix={order = "round-robin", epoch = "longest"}; optim={accumulation = 2, lr = 1e-3, epochs = 2} | 5 | 3
    texts | preset=domain; optim.top_layers=1; optim.epochs=1 | 3 | 1
    # guide and teacher
    taught | preset=simcse; optim.batch_size=8; objective.dims=[32, 8]; run.chunk=5; TAUGHT | 2 | 1
    judged | preset=cosent; optim.epochs=1; optim.if_not_better=model | 5 | 2
    """,
)
def test_killed_run_continues_to_the_same_weights(
    kind, settings, killed_before, every, sources, shallow, tmp_path, kill_at
):
    seen = []
    taught = "; ".join(f"objective.weights.{part}=1" for part in PARTS)
    given = settings.replace("PAPERS", PAPERS).replace("TAUGHT", taught).split("; ")

    def fit(out, *more):
        how = {**sources[kind], "settings": [*given, *more]}
        return train(backbone=shallow, out=tmp_path / out, **how)

    def again():
        step = killed_before // every * every
        seen.append((tmp_path / "b.work" / f"step-{step}.pt").is_file())
        assert not (tmp_path / "b").exists()
        return fit("b", f"log.checkpoint_steps={every}")

    whole = fit("a")
    resumed = kill_at(killed_before, again)
    assert seen == [False, True]
    assert same_weights(tmp_path / "a", tmp_path / "b")
    assert not same_weights(tmp_path / "a", shallow)
    # The losses before the checkpoint count in the log.
    assert resumed.history == whole.history
    for name in ("steps", "pairs", "dev", "dev_sets", "judged"):
        assert resumed.to_dict().get(name) == whole.to_dict().get(name)
    assert not (tmp_path / "b.work").exists()


def test_killed_run_continues_only_with_its_own_settings(
    sources, shallow, out, tmp_path, kill_at
):
    def fit(*settings, backbone=shallow, fresh=False):
        given = [*PAPERS.split("; "), "log.checkpoint_steps=1", *settings]
        data = sources["graded"]["data"]
        return train(data, backbone=backbone, out=out, settings=given, fresh=fresh)

    kill_at(2)
    with raises(Killed):
        fit("prompts=the ")
    for change, message in values(r"""
            prompts=a  | other settings: settings\.prompts
            optim.lr=1e-3 | other settings: settings\.prompts
            optim.lr=2e-3 | m\.work: made from other inputs.*optim\.lr
            """):
        with refusal(message):
            fit(change)
    changed = copytree(shallow, tmp_path / "changed")
    edit(changed / "config.json", hidden_dropout_prob=0.3)
    with refusal("other settings: config"):
        fit("prompts=the ", backbone=changed)
    assert fit("optim.lr=2e-3", fresh=True).steps == 6


@table(
    """
    flags
    {}
    {'run__chunk': 20, 'run__packing': False, 'optim__accumulation': 2, 'preset': 'cosent'}
    """
)
def test_collapse_is_detected(data, bert, out, tmp_path, flags):
    sign = r"diverged at step \d+: embeddings have collapsed .* lower lr= \(now 1\)"
    with config_error(sign) as caught:
        run(data, bert, out, optim__lr=1, optim__epochs=2, **flags)
    assert "\n" not in str(caught.value)
    assert not out.exists()
    assert not (tmp_path / "m.work").exists()  # nothing to keep


def test_best_weights_are_saved_as_a_model(sources, bert, out, tmp_path):
    with_dev = sources["graded"]
    scores = {}

    class Scores(TrainerCallback):
        def on_evaluate(self, _, state, *__, metrics, **___):
            scores[state.global_step] = metrics["eval_dev"]

    flags = {"optim__lr": 0.1, "optim__epochs": 6, "optim__warmup": 0.5}
    kept = tmp_path / "m.work" / "before-divergence"
    with config_error(f"the best weights of step .* are in {kept}$") as caught:
        run(with_dev, bert, out, callbacks=[Scores()], **flags)
    best = max(scores, key=scores.get)
    assert f"the best weights of step {best} are" in str(caught.value)
    assert score(kept, with_dev["dev_data"]) == approx(max(scores.values()), abs=1e-4)

    with config_error(r"m\.work: training diverged at step \d+: .*before-divergence$"):
        run(with_dev, bert, out, **flags)  # not gone on with
    run(with_dev, bert, out, fresh=True)
    assert not (tmp_path / "m.work").exists()


def test_without_dev_data_the_newest_checkpoint_is_saved(data, llama, tmp_path):
    kept = tmp_path / "m.work" / "before-divergence"
    flags = {"optim__epochs": 3, "optim__warmup": 0.9, "log__checkpoint_steps": 1}
    with config_error(r"; the weights of step \d+ are in ") as caught:
        run(data, llama, tmp_path / "m", optim__lr=1, **flags)
    assert Encoder.load(kept).encode(["the man", "a red boat"]).shape == (2, 32)
    (checkpoint,) = (tmp_path / "m.work").glob("step-*.pt")
    assert f"the weights of step {checkpoint.stem[5:]} are" in str(caught.value)


def test_diverged_checkpoint_is_not_continued(data, bert, out, tmp_path, kill_at):
    kill_at(4)
    with raises(Killed):
        run(data, bert, out, log__checkpoint_steps=2)
    (path,) = (tmp_path / "m.work").glob("step-*.pt")
    content = torch.load(path)
    for weight in content["weights"].values():
        weight.zero_()
    torch.save(content, path)
    with config_error(r"training diverged at step [24]: embeddings .*fresh=True$"):
        run(data, bert, out, log__checkpoint_steps=2)


def test_infinite_gradient_is_detected(data, bert, out):
    calls = []

    def loss(vectors, _):
        calls.append(1)
        vectors.register_hook(
            lambda gradient: gradient * (float("inf") if len(calls) == 3 else 1)
        )
        return vectors.square().mean()

    how = {"lr": 1e-3, "batch_size": 16, "settings": {"log.steps": 1}}
    with config_error(r"at step 3: the gradient became (inf|nan); .*lr= \(now 0.001\)"):
        train(data["data"], backbone=bert, out=out, objective=loss, **how)


@parametrize(
    "lines",
    [
        ["text", *WORDS[:33]],
        [
            "text1\ttext2\tlabel",
            *(f"{WORDS[n]}\t{WORDS[n + 20]}\t{int(n < 16)}" for n in range(33)),
        ],
        ["anchor\tpositive", "the man\tthe man is", "the man\ta man"],
    ],
    ids=["single texts", "batches of one label, one of one row", "two rows"],
)
def test_unusual_batches_are_no_divergence(lines, bert, out, tmp_path):
    rows = write_lines(tmp_path / "rows.tsv", lines)
    preset = "cosent" if "label" in lines[0] else "simcse"
    flags = {"preset": preset, "batches__strategy": "shuffle", "optim__epochs": 2}
    run({"data": str(rows)}, bert, out, **flags)
    assert all(weight.isfinite().all() for weight in weights(out).values())

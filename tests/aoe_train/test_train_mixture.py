"""Several datasets in one run: objectives, labels, prompts and resuming."""

import json
from pathlib import Path

import pytest
import yaml

from aoe_train import plan, train
from pairkit import ConfigError, DataError
from tests.aoe_train.test_train import score
from tests.aoe_train.tiny import card_of, same_weights, write_pairs, write_triplets
from tests.support.shorthand import (
    approx,
    config_error,
    data_error,
    module_fixture,
    values,
)

FAST = {"lr": 1e-3, "epochs": 2, "batch_size": 16}


@module_fixture
def files(tmp_path_factory):
    """Graded pairs, triplets, positives and held-out rows."""
    folder = tmp_path_factory.mktemp("mixture")
    positives = [
        {"anchor": f"the man {n} is eating", "positive": f"a man eats {n}"}
        for n in range(20)
    ]
    (folder / "positives.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in positives)
    )
    paths = {
        "stsb": write_pairs(folder / "stsb.tsv", 90, 1),
        "nli": write_triplets(folder / "nli.jsonl", 40, 3),
        "qa": folder / "positives.jsonl",
        "stsb-dev": write_pairs(folder / "stsb-dev.tsv", 30, 2),
        "nli-dev": write_triplets(folder / "nli-dev.jsonl", 20, 4),
    }
    return {name: str(path) for name, path in paths.items()}


def three(files):
    return {name: files[name] for name in ("stsb", "nli", "qa")}


def dev_of(files):
    return {"stsb": files["stsb-dev"], "nli": files["nli-dev"]}


def test_three_kinds_in_one_run(files, shallow, out):
    dev = dev_of(files)
    settings = {
        "log.steps": 2,
        "datasets.nli.preset": "simcse",
        "datasets.qa.weight": 2,
        "mix.dev": "nli",
    }
    settings |= {
        f"datasets.{name}.prompts": {"anchor": f"the {name} "} for name in ("nli", "qa")
    }
    run = train(
        three(files), dev_data=dev, backbone=shallow, out=out, settings=settings, **FAST
    )
    # 6 + 3 + 2 * 2 batches an epoch
    assert (run.steps, run.pairs) == (2 * 13, 2 * (90 + 40 + 2 * 20))
    datasets = run.record["datasets"]
    kinds = {"stsb": "graded", "nli": "triplet", "qa": "positive"}
    assert {name: own["kind"] for name, own in datasets.items()} == kinds
    epoch = {
        "batches": 4,
        "passes": 2,
        "rows_seen": 40,
        "rows_repeated": 20,
        "rows_waiting": 0,
    }
    assert datasets["qa"]["epoch"] == epoch
    logged = {name for entry in run.history for name in entry}
    assert {
        "stsb.loss",
        "stsb.cosent",
        "nli.loss",
        "nli.contrastive",
        "qa.loss",
        "loss",
    } <= logged
    assert not {"cosent", "nli.cosent", "qa.cosent"} & logged
    assert all(
        entry["eval_dev"] == entry["eval_dev.nli"]
        for entry in run.record["dev_history"]
    )
    metrics = {"stsb": "spearman", "nli": "triplet_accuracy"}
    assert {name: found["metric"] for name, found in run.dev_sets.items()} == metrics
    assert (run.dev, run.dev_metric) == (run.dev_sets["nli"]["dev"], "triplet_accuracy")
    assert score(run.out, dev["stsb"]) == approx(run.dev_sets["stsb"]["dev"], abs=1e-4)
    settled = run.record["origin"]["settings"]["datasets"]
    assert settled["nli"]["objective"]["weights"]["contrastive"] == 1
    assert settled["stsb"]["objective"]["tau"]["cosent"] == 0.2
    assert run.to_dict()["dev_sets"] == run.dev_sets
    assert run.encoder.prompts == {
        "query": "the nli ",
        "query-qa": "the qa ",
        "document": "",
    }
    assert run.encoder.settings.default_prompt_name is None
    _told_by_the_card(run.out)


def _told_by_the_card(out):
    _, head, body = card_of(out).split("---\n", 2)
    ((model),) = yaml.safe_load(head)["model-index"]
    named = [result["dataset"]["name"] for result in model["results"]]
    assert named == [
        "stsb-dev.tsv, held-out rows",
        "nli-dev.jsonl, held-out rows that chose the weights",
    ]
    for words in (
        "- **nli**: 40 triplets from `nli.jsonl`.",
        "2 times each row (20 rows repeat)",
        "### qa\n",
        "`nli` chose the best weights",
        "| weights | triplet_accuracy on nli | stsb: spearman | nli: triplet_accuracy |",
    ):
        assert words in body


def test_one_named_dataset_equals_a_plain_run(files, shallow, tmp_path):
    plain = train(
        files["stsb"], backbone=shallow, out=tmp_path / "a", preset="cosent", **FAST
    )
    settings = {
        "datasets.x.preset": "cosent",
        "datasets.x.data": files["stsb"],
        "mix.order": "round-robin",
    }
    named = train(backbone=shallow, out=tmp_path / "b", settings=settings, **FAST)
    assert same_weights(named.out, plain.out)
    assert named.record["batches"] == plain.record["batches"]
    assert named.record["datasets"] == {"x": plain.record["datasets"]["stsb"]}


def test_one_objective_per_dataset(files, shallow, out):
    seen = []

    def own(vectors, labels):
        assert labels is None
        seen.append(tuple(vectors.shape))
        return (vectors[:, 0] - vectors[:, 1]).square().mean()

    run = train(
        {"stsb": files["stsb"], "qa": files["qa"]},
        backbone=shallow,
        out=out,
        objective={"qa": own},
        settings={"datasets.stsb.preset": "sbert", "datasets.stsb.batch_size": 8},
        **FAST,
    )
    assert {*seen} == {(16, 2, 32), (4, 2, 32)}
    assert "stsb.sbert" in {name for entry in run.history for name in entry}
    assert run.record["origin"]["objective"] == [f"{__name__}.{own.__qualname__}", None]
    # 90 rows, 8 a batch.
    assert run.record["datasets"]["stsb"]["epoch"]["batches"] == 12


def test_labels_and_columns_of_each_dataset(files, shallow, out):
    rows = [
        {"q": f"the man {n}", "d": f"a woman {n}", "label": "yes" if n % 2 else "no"}
        for n in range(20)
    ]
    data = {"stsb": files["stsb"], "faq": rows}
    settings = {
        "datasets.faq.columns": {"text1": "q", "text2": "d", "label": "label"},
        "datasets.faq.labels": {"yes": 1, "no": 0},
    }
    run = train(data, backbone=shallow, out=out, settings=settings, **FAST)
    assert run.record["datasets"]["faq"]["kind"] == "binary"
    assert run.record["datasets"]["faq"]["reading"]["labels"]
    assert run.record["sources"]["data"] == {
        "stsb": files["stsb"],
        "faq": "the list given",
    }
    del settings["datasets.faq.labels"]
    data["faq"] = [row | {"label": "perhaps"} for row in rows]
    with data_error(r"^dataset faq: the list given"):
        plan(data, backbone=shallow, settings=settings, **FAST)


def test_dev_sets_without_a_dataset(files, shallow, out):
    given, settings = {"stsb": files["stsb"]}, {"datasets.other.weight": 2}
    with config_error(
        r"datasets\.other\.weight: has no effect, as other is only held out; expected stsb"
    ):
        plan(
            given,
            dev_data={"other": files["stsb-dev"]},
            backbone=shallow,
            settings=settings,
        )
    dev = {"one": files["stsb-dev"], "other": files["nli-dev"]}
    run = train(files["stsb"], dev_data=dev, backbone=shallow, out=out, **FAST)
    mean = sum(found["dev"] for found in run.dev_sets.values()) / 2
    assert (run.dev, run.dev_metric) == (approx(mean), "mean")
    assert "their mean score chose" in card_of(run.out)


def test_validation_splits_are_dev_sets(files, shallow, tmp_path):
    folder = tmp_path / "set"
    folder.mkdir()
    for split, name in values("""
            train | stsb
            validation | stsb-dev
            """):
        (folder / f"{split}.tsv").write_text(Path(files[name]).read_text())
    run = train(
        [folder, Path(files["nli"])], backbone=shallow, out=tmp_path / "m", **FAST
    )
    assert run.record["dev_sets"] == {"set": 30}
    assert run.dev_metric == "spearman"
    assert [*run.record["datasets"]] == ["nli", "set"]


def test_nan_loss_names_the_dataset(files, shallow, out):
    objective = {"qa": lambda vectors, _: vectors.sum() * float("nan")}
    with pytest.raises(
        (ConfigError, DataError), match=r"rows [\d, ]+ of qa \(counted from 0"
    ):
        train(three(files), backbone=shallow, out=out, objective=objective, **FAST)

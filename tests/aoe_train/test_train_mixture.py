"""Several datasets in one run: objectives, labels, prompts and resuming."""

import shutil
from pathlib import Path

import yaml

from aoe_train import plan, train
from tests.aoe_train.test_train import score
from tests.aoe_train.tiny import (
    POSITIVES,
    card_of,
    same_weights,
    write_pairs,
    write_rows,
    write_triplets,
)
from tests.support.shorthand import (
    approx,
    config_error,
    data_error,
    input_error,
    module_fixture,
    text_lines,
    values,
)

FAST = {"lr": 1e-3, "epochs": 2, "batch_size": 16}


def fit(data, backbone, out, **how):
    return train(data, backbone=backbone, out=out, **FAST, **how)


@module_fixture
def files(tmp_path_factory):
    """Graded pairs, triplets, positives and held-out rows."""
    folder = tmp_path_factory.mktemp("mixture")
    paths = {
        "stsb": write_pairs(folder / "stsb.tsv", 90, 1),
        "nli": write_triplets(folder / "nli.jsonl", 40, 3),
        "qa": write_rows(folder / "positives.jsonl", POSITIVES),
        "stsb-dev": write_pairs(folder / "stsb-dev.tsv", 30, 2),
        "nli-dev": write_triplets(folder / "nli-dev.jsonl", 20, 4),
    }
    return {name: str(path) for name, path in paths.items()}


def three(files):
    return {name: files[name] for name in ("stsb", "nli", "qa")}


def test_three_kinds_in_one_run(files, shallow, out):
    dev = {"stsb": files["stsb-dev"], "nli": files["nli-dev"]}
    settings = {
        "log.steps": 2,
        "datasets.nli.preset": "simcse",
        "datasets.qa.weight": 2,
        "mix.dev": "nli",
    }
    settings |= {
        f"datasets.{name}.prompts": {"anchor": f"the {name} "} for name in ("nli", "qa")
    }
    run = fit(three(files), shallow, out, dev_data=dev, settings=settings)
    # 6 + 3 + 2 * 2 batches an epoch
    assert (run.steps, run.pairs) == (2 * 13, 2 * (90 + 40 + 2 * 20))
    datasets = run.record["datasets"]
    kinds = {"stsb": "graded", "nli": "triplet", "qa": "positive"}
    assert {name: own["kind"] for name, own in datasets.items()} == kinds
    assert [*datasets["qa"]["epoch"].items()] == values("""
        batches | 4
        passes | 2
        rows_seen | 40
        rows_repeated | 20
        rows_waiting | 0
    """)
    logged = {name for entry in run.history for name in entry}
    losses = "stsb.loss stsb.cosent nli.loss nli.contrastive qa.loss loss"
    assert {*losses.split()} <= logged
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
    prompts = {"query": "the nli ", "query-qa": "the qa ", "document": ""}
    assert run.encoder.prompts == prompts
    assert run.encoder.settings.default_prompt_name is None
    _told_by_the_card(run.out)


def _told_by_the_card(out):
    _, head, body = card_of(out).split("---\n", 2)
    ((model),) = yaml.safe_load(head)["model-index"]
    assert [result["dataset"]["name"] for result in model["results"]] == [
        "stsb-dev.tsv, held-out rows",
        "nli-dev.jsonl, held-out rows that chose the weights",
    ]
    for words in text_lines("""
            - **nli**: 40 triplets from `nli.jsonl`.
            2 times each row (20 rows repeat)
            ### qa
            `nli` chose the best weights
            | weights | triplet_accuracy on nli | stsb: spearman | nli: triplet_accuracy |
            """):
        assert words in body


def test_one_named_dataset_equals_a_plain_run(files, shallow, tmp_path):
    plain = fit(files["stsb"], shallow, tmp_path / "a", preset="cosent")
    settings = {
        "datasets.x.preset": "cosent",
        "datasets.x.data": files["stsb"],
        "mix.order": "round-robin",
    }
    named = fit(None, shallow, tmp_path / "b", settings=settings)
    assert same_weights(named.out, plain.out)
    assert named.record["batches"] == plain.record["batches"]
    assert named.record["datasets"] == {"x": plain.record["datasets"]["stsb"]}


def test_one_objective_per_dataset(files, shallow, out):
    seen = []

    def own(vectors, labels):
        assert labels is None
        seen.append(tuple(vectors.shape))
        return (vectors[:, 0] - vectors[:, 1]).square().mean()

    data = {"stsb": files["stsb"], "qa": files["qa"]}
    settings = {"datasets.stsb.preset": "sbert", "datasets.stsb.batch_size": 8}
    run = fit(data, shallow, out, objective={"qa": own}, settings=settings)
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
    run = fit(data, shallow, out, settings=settings)
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
    how = {"backbone": shallow, "dev_data": {"other": files["stsb-dev"]}}
    with config_error(
        r"datasets\.other\.weight: has no effect, as other is only held out; expected stsb"
    ):
        plan(given, settings=settings, **how)
    dev = {"one": files["stsb-dev"], "other": files["nli-dev"]}
    run = fit(files["stsb"], shallow, out, dev_data=dev)
    mean = sum(found["dev"] for found in run.dev_sets.values()) / 2
    assert (run.dev, run.dev_metric) == (approx(mean), "mean")
    assert "their mean score chose" in card_of(run.out)


def test_validation_splits_are_dev_sets(files, shallow, tmp_path):
    folder = tmp_path / "set"
    folder.mkdir()
    shutil.copy(files["stsb"], folder / "train.tsv")
    shutil.copy(files["stsb-dev"], folder / "validation.tsv")
    run = fit([folder, Path(files["nli"])], shallow, tmp_path / "m")
    assert run.record["dev_sets"] == {"set": 30}
    assert run.dev_metric == "spearman"
    assert [*run.record["datasets"]] == ["nli", "set"]


def test_nan_loss_names_the_dataset(files, shallow, out):
    objective = {"qa": lambda vectors, _: vectors.sum() * float("nan")}
    with input_error(r"rows [\d, ]+ of qa \(counted from 0"):
        fit(three(files), shallow, out, objective=objective)

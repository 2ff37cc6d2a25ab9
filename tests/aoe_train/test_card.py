"""The YAML header and the text of a model card."""

from typing import Any

import pytest
import yaml

from aoe_train.model.backbones.packaged import PACKAGED
from aoe_train.objectives.objective_settings import ObjectiveSettings, Weights
from aoe_train.settings.train_settings import TrainSettings
from aoe_train.training.model_card import model_card
from aoe_train.training.train_record import RunRecord
from tests.aoe_train.tiny import around


def card(objective: Any = {}, **changes: Any) -> str:  # noqa: B006
    """The card of a run with these parts of its record."""
    whole: dict[str, Any] = {
        "made_by": "aoe 1",
        "origin": {"processes": 2, "precision": "no"},
        "sources": {"data": "/home/me/secret/pairs.tsv", "backbone": "minilm", "dev_data": None},
        "files": {},
        "encoder": {"pooling": "avg", "max_length": 64, "prompts": {}, "default_prompt_name": None},
        "rows": {"train": 5749, "kind": "graded", "dev": 1500},
        "batches": {"truncated_texts": 3},
        "languages": ["de"],
        "training_texts": True,
        "versions": {},
        "wall_s": 1,
        "history": [],
        "dev_history": [{"step": 40, "eval_dev": 0.87}],
        "best_step": 40,
        **changes,
    }
    whole["result"] = RESULT | changes.get("result", {})
    given = TrainSettings.model_validate({"preset": "angle", "objective": {"tau": {"in_batch": 0.05}}})
    chosen = given.objective.model_copy(update={"weights": WEIGHTS})
    if objective:
        chosen = ObjectiveSettings.model_validate(chosen.model_dump() | objective)
    return model_card(
        "model", RunRecord.model_validate(whole), given.model_copy(update={"objective": chosen}), 384
    )


WEIGHTS = Weights(cosent=1, in_batch=1, angle=1)
RESULT = {"out": "m", "steps": 40, "pairs": 9, "seconds": 1, "pairs_per_s": 9, "peak_rss_mb": 1}
RESULT |= {"dev": 0.87, "dev_before": 0.86, "dev_metric": "spearman"}


@pytest.mark.parametrize(
    ("metric", "on_the_hub"),
    [("spearman", "spearman_cosine"), ("triplet_accuracy", "cosine_accuracy"), ("mrr", "cosine_mrr")],
)
def test_header_for_the_hub(metric, on_the_hub):
    _, head, body = card(result={"dev_metric": metric}).split("---\n", 2)
    found = yaml.safe_load(head)
    assert (found["library_name"], found["pipeline_tag"]) == ("sentence-transformers", "sentence-similarity")
    assert "sentence-transformers" in found["tags"]
    assert body.startswith("\n# model\n")
    ((result,),) = [model["results"] for model in found["model-index"]]
    assert result["metrics"] == [{"type": on_the_hub, "value": 0.87, "name": metric}]


def advisers(prompts: dict[str, str]) -> dict[str, Any]:
    guide = {"model": "/home/me/secret/guide", "revision": None, "dim": 384, "weights": "ab" * 32}
    teacher = {"model": "someone/teacher", "revision": "c0ffee", "dim": 768, "weights": "cd" * 32}
    return {"guide": {**guide, "prompts": {}}, "teacher": {**teacher, "prompts": prompts}}


ENCODER = {"pooling": "last", "max_length": 64}
NAMED = {"prompts": {"query": "q: ", "document": ""}, "default_prompt_name": "query"}


@pytest.mark.parametrize(
    ("changes", "objective", "words"),
    [
        (
            *({}, {}),
            [
                *("5,749 graded pairs from `pairs.tsv`", "3 texts longer than 64 tokens were truncated"),
                *(
                    "| in_batch | 1 | 0.05 |",
                    "| batch size | 32 × 2 processes |",
                    "| before training | 0.8600 |",
                ),
                *("those of step 40", "`license:`"),
            ],
        ),
        (
            *({"rows": {"train": 1200, "kind": "triplet", "negatives": {"3": 200, "5": 1000}}}, {}),
            ["1,200 triplets from `pairs.tsv`. Negatives: 3 to 5 a row; 200 of 1,200 rows have fewer"],
        ),
        (
            *({}, {"dims": [384, 32], "dim_weights": [1.0, 0.5]}),
            ["Vector sizes (Matryoshka): 384, 32 (weight 0.5).", "truncate_dim=32"],
        ),
        (
            *({"encoder": {**ENCODER, **around("Say {text}:")}}, {}),
            ["`Say {text}:` to each text; don't add it"],
        ),
        (
            *({"encoder": {**ENCODER, **NAMED}}, {}),
            ["| `query` | `q: ` |", "| `document` | (none) |", "The default is `query`"],
        ),
        ({"result": {"dev": None}, "dev_history": []}, {}, ["There was no held-out data."]),
        (
            *({}, {"weights": {"score_distill": 2.0}}),
            ["| score_distill | 2 | – |", "Form of score_distill: `mse`."],
        ),
        (
            *({"advisers": advisers({"anchor": "query: ", "positive": ""})}, {"guide_margin": 0.05}),
            [
                "Guide: `guide`, 384 numbers, SHA-256 of its weights `abababababababab…`.",
                "than the positive minus a margin of 0.05 (absolute) are not negatives",
                "Teacher: `someone/teacher` at `c0ffee`, 768 numbers",
                "Its prompts: anchor `query:`.",
            ],
        ),
    ],
)
def test_body_shows_the_record(changes, objective, words):
    found, plain = card(objective, **changes), card()
    assert [line for line in words if line not in found] == []
    assert "secret" not in found
    assert not any(line in plain for line in words) or not (changes or objective)


@pytest.mark.parametrize(("backbone", "model"), PACKAGED.items())
def test_card_has_the_hub_id_of_a_packaged_backbone(backbone, model):
    found = card(sources={"data": "pairs.tsv", "backbone": backbone, "dev_data": None})
    head = yaml.safe_load(found.split("---\n", 2)[1])
    assert (head["base_model"], head["language"], head["license"]) == (model.hub_id, ["de"], "unknown")
    assert "The backbone's is `apache-2.0`." in found

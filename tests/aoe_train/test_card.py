"""The card's head is YAML that hubs know, its body tells what the record holds."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from aoe_train.model.backbones.packaged import PACKAGED, Packaged
from aoe_train.settings.training import TrainSettings
from aoe_train.training.card import model_card
from tests.aoe_train.tiny import around


def record(**changes: Any) -> dict[str, Any]:
    settings = TrainSettings.model_validate({"preset": "angle"}).model_dump(mode="json")
    return {
        "origin": {"settings": settings, "processes": 2, "precision": "no"},
        "sources": {"data": "/home/me/secret/pairs.tsv", "backbone": "minilm"},
        "encoder": {"pooling": "avg", "max_length": 64, "prompts": {}, "default_prompt_name": None},
        "rows": {"train": 5749, "kind": "graded", "dev": 1500},
        "batches": {"truncated_texts": 3},
        "training_texts": True,
        "result": {"dev": 0.87, "dev_before": 0.86, "dev_metric": "spearman"},
        "dev_history": [{"step": 40, "eval_dev": 0.87}],
        "best_step": 40,
        **changes,
    }


def test_head_is_what_hubs_read() -> None:
    _, head, body = model_card("model", record(), 384).split("---\n", 2)
    found = yaml.safe_load(head)
    assert found["library_name"] == "sentence-transformers"
    assert found["pipeline_tag"] == "sentence-similarity"
    assert "sentence-transformers" in found["tags"]
    assert body.startswith("\n# model\n")


@pytest.mark.parametrize(
    ("metric", "on_the_hub"),
    [("spearman", "spearman_cosine"), ("triplet_accuracy", "cosine_accuracy"), ("mrr", "cosine_mrr")],
)
def test_a_figure_is_called_what_it_is(metric: str, on_the_hub: str) -> None:
    measured = record(result={"dev": 0.87, "dev_before": 0.86, "dev_metric": metric})
    _, head, _ = model_card("model", measured, 384).split("---\n", 2)
    ((result,),) = [model["results"] for model in yaml.safe_load(head)["model-index"]]
    assert result["metrics"] == [{"type": on_the_hub, "value": 0.87, "name": metric}]


def test_rows_that_have_fewer_negatives_are_told() -> None:
    rows = {"train": 1200, "kind": "triplet", "negatives": {"3": 200, "5": 1000}}
    assert (
        "1,200 triplets from `pairs.tsv`. Negatives: 3 to 5 a row; 200 of 1,200 rows have fewer than 5."
        in model_card("model", record(rows=rows), 384)
    )


def test_body_tells_data_objective_and_results() -> None:
    card = model_card("model", record(), 384)
    for words in (
        "5,749 graded pairs from `pairs.tsv`",
        "3 texts were longer than 64 tokens",
        "| ibn | 1 | 0.05 |",
        "| batch size | 32 × 2 processes |",
        "| before training | 0.8600 |",
        "those of step 40",
        "`license:`",
    ):
        assert words in card
    assert "secret" not in card


def test_sizes_are_told_where_there_are_any() -> None:
    assert "Matryoshka" not in model_card("model", record(), 384)
    found = record()
    found["origin"]["settings"]["objective"] |= {"dims": [384, 32], "dim_weights": [1.0, 0.5]}
    card = model_card("model", found, 384)
    assert "Sizes (Matryoshka): 384, 32 (weight 0.5)." in card
    assert "truncate_dim=32" in card


def test_prompt_is_told_where_there_is_one() -> None:
    assert "don't add it" not in model_card("model", record(), 384)
    encoder = {"pooling": "last", "max_length": 64}
    prompted = record(encoder={**encoder, **around("Say {text}:")})
    assert "`Say {text}:` around each text; don't add it" in model_card("model", prompted, 384)
    named = {"prompts": {"query": "q: ", "document": ""}, "default_prompt_name": "query"}
    card = model_card("model", record(encoder={**encoder, **named}), 384)
    for line in ("| `query` | `q: ` |", "| `document` | (none) |", "none is asked have `query`"):
        assert line in card


@pytest.mark.parametrize(("backbone", "model"), PACKAGED.items())
def test_a_packaged_backbone_is_known_by_its_name_on_the_hub(backbone: str, model: Packaged) -> None:
    sources = {"data": "pairs.tsv", "backbone": backbone}
    card = model_card("model", record(sources=sources), 384)
    head = yaml.safe_load(card.split("---\n", 2)[1])
    assert (head["base_model"], head["language"], head["license"]) == (model.hub_id, ["en"], "unknown")
    assert "The backbone's is `apache-2.0`." in card


def test_without_dev_data_there_are_no_results() -> None:
    bare = record(result={"dev": None}, dev_history=[])
    assert "No held-out data was given." in model_card("model", bare, 384)


def test_guide_and_teacher_are_named() -> None:
    told = record(
        advisers={
            "guide": {
                "model": "/home/me/secret/guide",
                "revision": None,
                "dim": 384,
                "weights": "ab" * 32,
                "prompts": {},
            },
            "teacher": {
                "model": "someone/teacher",
                "revision": "c0ffee",
                "dim": 768,
                "weights": "cd" * 32,
                "prompts": {"anchor": "query: ", "positive": ""},
            },
        }
    )
    told["origin"]["settings"]["objective"]["guide_margin"] = 0.05
    card = model_card("model", told, 384)
    assert "Guide: `guide`, 384 numbers, SHA-256 of its weights `abababababababab…`." in card
    assert (
        "nearer to the anchor than the positive, less a margin of 0.05 (absolute), are no negatives" in card
    )
    assert "Teacher: `someone/teacher` at `c0ffee`, 768 numbers" in card
    assert "Its prompts: anchor `query:`." in card
    assert "secret" not in card


def test_a_part_without_its_temperature_has_none() -> None:
    told = record()
    told["origin"]["settings"]["objective"]["weights"] = {"score_distill": 2.0}
    assert "| score_distill | 2 | – |" in model_card("model", told, 384)
    assert "Form of score_distill: `mse`." in model_card("model", told, 384)

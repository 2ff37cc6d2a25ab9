"""What the Python page promises: pairs and sentences from a path, from memory, or from another function."""

import polars as pl

import aoe_train
import gis_builder
import llm_labeler
import pairkit
from tests.aoe_train.tiny import WORDS, save_bert, write_pairs
from tests.contract.conftest import SAMPLE
from tests.pairkit.review_material import judge_all
from tests.support.shorthand import module_fixture, parametrize

quiet = {}
SENTENCES = [
    f"the {one} is near a {other}" for one in WORDS[5:25] for other in WORDS[25:30]
]


@module_fixture
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sources")
    save_bert(folder / "bert", dropout=0.0)
    write_pairs(folder / "pairs.tsv", 60, 1)
    (folder / "sentences.txt").write_text("\n".join(SENTENCES))
    gis_builder.import_tracker(SAMPLE / "quarryhq", folder / "gis.work", **quiet)
    gis_builder.detect(folder / "gis.work", **quiet)
    return folder


def in_memory(place):
    return pairkit.read(place / "pairs.tsv")["train"]


def mined(place, out=None):
    rows = pl.DataFrame(
        {"question": SENTENCES, "answer": [f"about {text}" for text in SENTENCES]}
    )
    return pairkit.extract(rows.to_pandas(), out, split_sizes=(0.5, 0, 0.5), **quiet)


def reviewed(place):
    review = pairkit.review(
        place / "pairs.tsv", place / "pairs.review", n=40, grades=True
    )
    judge_all(review, lambda text: str(len(text) % 6))
    return review


PAIRS = {
    "path": lambda place: place / "pairs.tsv",
    "polars": in_memory,
    "read": lambda place: pairkit.read(place / "pairs.tsv"),
    "write": lambda place: pairkit.write(in_memory(place), place / "written"),
    "split": lambda place: pairkit.split(place / "pairs.tsv", split_sizes=(1, 0, 0)),
    "merge": lambda place: pairkit.merge(
        [pairkit.split(place / "pairs.tsv", split_sizes=(1, 0, 0))]
    ),
    "mine": mined,
    "mine, .pairs": lambda place: mined(place).pairs,
    "mine, written": lambda place: mined(place, place / "mined"),
    "gis": lambda place: gis_builder.pair(place / "gis.work", place / "gis", **quiet),
    "gis, .pairs": lambda place: (
        gis_builder.pair(place / "gis.work", place / "gis", **quiet).pairs
    ),
    "label": lambda place: llm_labeler.generate(
        SENTENCES, llm="wordnet", out=place / "label", **quiet
    ),
    "review": reviewed,
    "aoe mine": lambda place: aoe_train.mine(
        mined(place), model=place / "bert", **quiet
    ),
}


@parametrize("kind", PAIRS)
def test_pairs_are_read_trained_on_and_evaluated(place, tmp_path, kind):
    source = PAIRS[kind](place)
    assert len(pairkit.read(source)) > 20
    run = aoe_train.train(
        source,
        backbone=place / "bert",
        out=tmp_path / "model",
        epochs=1,
        max_length=16,
        **quiet,
    )
    assert run.steps > 0
    assert aoe_train.evaluate(run.encoder, data=source, resamples=0, **quiet).to_dict()
    assert pairkit.audit(source).splits


TEXTS = {
    "path": lambda place: place / "sentences.txt",
    "list": lambda _: SENTENCES,
    "polars": lambda _: pl.DataFrame({"text": SENTENCES}),
    "render": lambda place: gis_builder.render(
        place / "gis.work", place / "issues.parquet", **quiet
    ),
}


@parametrize("kind", TEXTS)
def test_sentences_are_indexed_sampled_and_labelled(place, tmp_path, kind):
    source = TEXTS[kind](place)
    model = place / "bert"
    assert (
        aoe_train.index(source, model=model, out=tmp_path / "index", **quiet).rows > 20
    )
    assert aoe_train.sample_pairs(source, model=model, **quiet).pairs.height > 5
    assert llm_labeler.generate(
        source, llm="wordnet", out=tmp_path / "label", **quiet
    ).pairs

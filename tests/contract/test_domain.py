"""The packages together: from sentences without labels to a model; suggestions of older issues."""

import json
import shlex
from itertools import cycle

import polars as pl
import pytest

import aoe_train
import gis_builder
import llm_labeler
import pairkit
from tests.aoe_train.tiny import save_bert
from tests.contract.conftest import SAMPLE, environment, run_here
from tests.docs.blocks import ROOT, to_run
from tests.pairkit.review_material import judge_all
from tests.support.shorthand import approx, module_fixture, text_lines

WORDS = text_lines("""
    doctor
    pain
    fever
    medicine
    child
    treatment
    letter
    book
    house
    river
""")
SENTENCES = [
    f"The {one} {verb} the {adjective} {other}."
    for one, other in zip(WORDS, WORDS[3:] + WORDS[:3], strict=True)
    for verb in ("helps", "causes")
    for adjective in ("big", "cold", "good")
]


@module_fixture
def place(tmp_path_factory):
    """A folder with sentences and a tiny backbone."""
    folder = tmp_path_factory.mktemp("domain")
    save_bert(folder / "bert")
    (folder / "sentences.txt").write_text("\n".join(SENTENCES) + "\n")
    return folder


def run(place, package, arguments):
    """Run a command line in the folder."""
    environ = environment(AOE_CACHE="cache")
    done = run_here(package, *shlex.split(arguments), cwd=place, environ=environ)
    assert done.code == 0, done.err
    return done


DOMAIN = "--preset domain --top-layers 1 --lr 1e-2 --batch-size 8 --backbone bert"


@module_fixture
def pairs(place):
    """The command that writes pairs of the sentences."""
    flags = "--data sentences.txt --llm wordnet --draw 50 --set split.test=0.4 --json"
    return run(place, "llm_labeler", f"generate {flags} --out pairs")


@module_fixture
def own(place, pairs):
    """The command that trains the model `own` on these pairs."""
    return run(place, "aoe_train", f"train --data pairs/triplet --out own {DOMAIN}")


def test_from_sentences_to_figures_beside_baselines(place, pairs):
    assert pairs.result["positives"] > 10
    trained = run(
        place, "aoe_train", f"train --data pairs/triplet --out model {DOMAIN} --json -q"
    )
    assert trained.result["steps"] > 0
    simcse = "--preset simcse --lr 1e-4 --epochs 1 --backbone bert --batch-size 8"
    run(place, "aoe_train", f"train --data sentences.txt --out simcse {simcse}")
    models = "--model bert --model simcse --model model"
    told = run(
        place, "aoe_train", f"evaluate {models} --data pairs --resamples 0 --json"
    ).result
    assert list(told) == ["bert", "simcse", "model"]
    figures = {name: told[name]["pairs"]["spearman"] for name in told}
    assert len(set(figures.values())) == 3
    # The tests' sentences were among those that SimCSE saw without labels, and it says so.
    assert told["simcse"]["pairs"]["overlap"]["texts"] > 0
    assert told["model"]["pairs"]["overlap"]["texts"] == 0
    assert told["bert"]["pairs"]["overlap"] is None


def test_rules_on_texts_in_the_first_person_keep_the_backbone(place):
    asked = (f"I know that {line[:1].lower()}{line[1:]}\n" for line in SENTENCES)
    (place / "requests.txt").write_text("".join(asked))
    run(place, "llm_labeler", "generate --data requests.txt --llm wordnet --out asked")
    how = "--data asked/triplet --backbone bert --preset domain --top-layers 1"
    told = run(place, "aoe_train", f"train --out kept {how}")
    assert "the backbone's weights are kept" in told.err
    assert "aoe sample-pairs" not in told.err
    run(place, "aoe_train", f"train --out people {how} --set data.author=people")
    before, kept, moved = (
        aoe_train.Encoder.load(place / name).encode(SENTENCES[:4])
        for name in ("bert", "kept", "people")
    )
    assert (before == kept).all()
    assert not (before == moved).all()


def test_suggestions_are_the_hits_of_a_search(place, tmp_path):
    repo, issue = "quarryhq/quarry", 603
    gis_builder.import_tracker(SAMPLE / "quarryhq", tmp_path / "work")
    gis_builder.detect(tmp_path / "work")
    gis_builder.render(tmp_path / "work", tmp_path / "issues.parquet")
    issues = pl.read_parquet(tmp_path / "issues.parquet")
    aoe_train.index(issues, model=place / "bert", out=tmp_path / "index", cache=False)
    found = gis_builder.suggest(
        repo, issue, index=tmp_path / "index", work=tmp_path / "work"
    )
    assert len(found.suggestions) == 5
    hits = aoe_train.search_every(tmp_path / "index", before="created_at")
    own = hits.hits.filter(id_1=f"{repo}#{issue}").sort("rank").head(5)
    assert [f"{repo}#{one.number}" for one in found.suggestions] == own[
        "id_2"
    ].to_list()
    for name in ("cosine", "words"):
        assert own[name].to_list() == approx(
            [getattr(one, name) for one in found.suggestions], abs=1e-5
        )


def test_pairs_of_own_texts_are_judged_and_compare_a_model_with_its_backbone(
    place, own
):
    lines = [line.strip() for line in own.err.splitlines() if line.startswith("  ")][
        -3:
    ]
    draw, review_it, evaluate = lines
    assert draw.startswith("aoe sample-pairs")
    assert review_it.startswith("pairs review")
    assert evaluate.startswith("aoe evaluate")
    draw = f"{draw.removeprefix('aoe ')} --json"
    drawn = run(place, "aoe_train", draw).result
    assert drawn["pairs"] >= 15
    assert run(place, "aoe_train", draw).result == drawn
    pairs = pl.read_parquet(place / "to-judge" / "data" / "test-*.parquet")
    sides = pairs["text1"].to_list() + pairs["text2"].to_list()
    assert len(set(sides)) == len(sides)
    assert set(sides) <= set(SENTENCES)
    review = pairkit.review(place / "to-judge", grades=False, n=400)
    answers = cycle(["no", "yes"])
    judge_all(review, lambda _: next(answers))
    assert review.judgements().height == drawn["pairs"]
    told = run(place, "aoe_train", f"{evaluate.removeprefix('aoe ')} --json").result
    found = told["to-judge.review"]
    assert found["gain"]["pairs"] == drawn["pairs"]
    low, high = found["gain"]["ci95"]
    assert low <= found["gain"]["difference"] <= high


@pytest.mark.usefixtures("own")
def test_people_and_llms_judge_search_results_alike(place):
    """Both find texts with the same last word relevant."""
    models, sheet = [str(place / name) for name in ("bert", "own")], place / "searched"
    drawn = aoe_train.sample_pairs(
        SENTENCES, model=models, queries=SENTENCES, out=sheet
    )

    def relevant(query, result):
        return query.split()[-1] == result.split()[-1]

    def judge(prompt):
        data = json.loads(prompt[prompt.index('{"text"') :])
        pairs = (
            (number, relevant(data["text"], text))
            for number, text in data["sentences"].items()
        )
        return json.dumps(
            {number: "same" if fits else "different" for number, fits in pairs}
        )

    review = pairkit.review(sheet)
    judge_all(review, lambda pair: "yes" if relevant(*pair.splitlines()) else "no")
    llm_labeler.judge(sheet, llm={"a": judge}, out=place / "judged")
    gains = [
        gain.to_dict()
        for data in (review.path, place / "judged")
        for gain in aoe_train.evaluate(
            models[1], against=models[0], data=data
        ).gains.values()
    ]
    assert gains[0] == gains[1]
    by_people, by_llm = (
        {
            name: gain.to_dict()
            for name, gain in aoe_train.evaluate(data=data).gains.items()
        }
        for data in (review.path, place / "judged")
    )
    assert by_people == by_llm
    # The tiny model has near ties, which another batch may order otherwise.
    assert by_people[models[1]]["difference"] == approx(gains[0]["difference"], abs=0.1)
    assert gains[0]["metric"] == "P@1"
    assert gains[0]["pairs"] == drawn.counts["sampled_queries"]


def test_the_commands_of_the_page_index_and_search(tmp_path):
    (tmp_path / "data").mkdir()
    head, *rows = (ROOT / "data" / "sample_requests.csv").read_text().splitlines()
    half = "\n".join([head, *rows[::2]])
    (tmp_path / "data" / "sample_requests.csv").write_text(half)
    save_bert(tmp_path / "deep", layers=3)
    (block,) = to_run(ROOT / "docs" / "howto" / "domain.md", "sh")
    lines = [line.removeprefix("aoe ") for line in block.text.splitlines()]
    done = [
        run(tmp_path, "aoe_train", line.replace("minilm", "deep")) for line in lines
    ]
    assert [line.split()[0] for line in lines] == ["index", "search"]
    assert len(done[1].out.splitlines()) == 5  # two lines of heading, and three texts

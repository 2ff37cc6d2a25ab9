"""The command line of `aoe evaluate`, with tiny models and a file of the published size."""

import json
import shutil

import torch
from safetensors.torch import load_file, save_file

import gis_builder
from tests.aoe_train.tiny import WORDS, save_bert
from tests.contract.conftest import SAMPLE, environment, run_here
from tests.support.shorthand import approx, each_line, module_fixture

ROWS = 1379  # pairs in the published test part of STS-B


@module_fixture
def place(tmp_path_factory):
    """A folder with two models, one that returns NaN, one without weights, and data."""
    folder = tmp_path_factory.mktemp("aoe")
    save_bert(folder / "bert", dropout=0.0)
    save_bert(folder / "wide", dim=48, seed=1, dropout=0.0)
    shutil.copytree(folder / "bert", folder / "nan")
    weights = load_file(folder / "nan" / "model.safetensors")
    name = next(name for name in weights if "LayerNorm.weight" in name)
    save_file(
        {**weights, name: torch.full_like(weights[name], torch.nan)},
        folder / "nan/model.safetensors",
    )
    shutil.copytree(
        folder / "bert",
        folder / "hollow",
        ignore=shutil.ignore_patterns("*.safetensors"),
    )
    words = [f"{a} {b}" for a in WORDS[:40] for b in WORDS[:40]]
    lines = [
        f"{row % 6}\t{words[row]}\t{words[(7 * row) % 1600]}" for row in range(ROWS)
    ]
    for data, rows in (("data", lines), ("cut", lines[:-1])):
        (folder / data / "stsb").mkdir(parents=True)
        (folder / data / "stsb" / "stsb-test.tsv").write_text(
            "\n".join(["score\tsentence1\tsentence2", *rows]) + "\n"
        )
    (folder / "same.tsv").write_text(
        "text1\ttext2\tlabel\na dog\ta dog\t1\na cat\ta cat\t0\n"
    )
    return folder


def run(place, *arguments, code=0, cache="cache"):
    environ = environment(AOE_CACHE=cache, HF_HUB_OFFLINE="1")
    found = run_here("aoe_train", "evaluate", *arguments, cwd=place, environ=environ)
    assert found.code == code, found.err
    return found


def test_json_output_is_one_object_and_reproducible(place):
    cache = "cache-of-two"
    flags = [
        "--model",
        "bert",
        "--suite",
        "sts",
        "--data-dir",
        "data",
        "--resamples",
        "200",
        "--json",
    ]
    more = ["--out", "told.json", "--markdown", "told.md", "--against", "wide"]
    done = run(place, *flags, *more, cache=cache)
    assert len(done.out.splitlines()) == 1
    (figures,) = done.result.values()
    assert list(done.result) == ["STS-B"]
    assert {"spearman", "pearson", "n", "ci95", "overlap", "against"} == set(figures)
    assert figures["n"] == ROWS
    assert figures["overlap"] is None
    low, high = figures["ci95"]["spearman"]
    assert -1 <= low < figures["spearman"] < high <= 1
    # Of another length of vectors, which is no hindrance.
    ahead = figures["against"]["spearman"]
    assert ahead["difference"] == approx(figures["spearman"] - ahead["value"])
    assert json.loads((place / "told.json").read_text()) == done.result
    assert f"| {ROWS:,} |" in (place / "told.md").read_text()
    assert "left out STS12: no file" in done.err
    assert len(list((place / cache / "vectors").glob("*.sqlite"))) == 2
    again = run(place, *flags, "--quiet", cache=cache).result["STS-B"]
    assert again == {key: value for key, value in figures.items() if key != "against"}


def test_columns_by_number_for_a_file_without_header(place):
    (place / "bare.tsv").write_text(
        "1\tdog\ta dog\n0\tcat\ta car\n1\tboat\ta boat\n0\tthe man\ta bird\n"
    )
    flags = "--model bert --suite binary --data bare.tsv --resamples 0 --columns 2,3,1"
    done = run(place, *flags.split())
    assert (
        "bare.tsv: no header line; column 2 is text1, column 3 is text2, column 1 is label"
        in done.err
    )
    assert "best_accuracy, cross-validated" in " ".join(done.out.split())


def test_duplicates_suite_searches_all_issues_of_a_crawl(place):
    gis_builder.import_tracker(SAMPLE / "quarryhq", place / "gis.work")
    gis_builder.detect(place / "gis.work")
    gis_builder.pair(place / "gis.work", place / "gis")
    gis_builder.render(place / "gis.work", place / "issues.parquet")
    flags = "--suite tracker --data gis --reports issues.parquet --resamples 100 --json"
    done = run(place, *f"--model bert --model wide {flags} --markdown told.md".split())
    found = {row: tasks["gis"] for row, tasks in done.result.items()}
    hybrids = [
        f"{model} + {words}"
        for model in ("bert", "wide")
        for words in ("BM25", "TF-IDF")
    ]
    assert {*found} == {"BM25", "TF-IDF", "bert", "wide", *hybrids}
    best = found["bert + BM25"]
    assert {*best["over"]} == {"BM25", "bert"}
    assert {*found["wide + BM25"]["over"]} == {"BM25", "wide", "bert + BM25"}
    assert best["recall@20"] >= found["bert"]["recall@20"]
    for kind in ("tokens", "days"):
        parts = [name for name in best["subsets"] if name.endswith(kind)]
        assert sum(best["subsets"][name]["n"] for name in parts) == best["n"]
    assert "| BM25 |" in (place / "told.md").read_text()


@each_line("""
    code, words, arguments
    2 | hollow: no weights; expected *.safetensors | --model hollow
    3 | contain NaN or infinity, first | --model nan
    3 | has 1,378 rows instead of the published 1,379 | --model bert --data-dir cut
    3 | stsb-dev.tsv | --model bert --tasks STS-B --split validation
    2 | --split train: expected test or validation | --model bert --split train
    2 | --precision 'int3' | --model bert --precision int3
    2 | --resamples 9 | --model bert --resamples 9
    2 | --against-endpoint without --against | --model bert --against-endpoint http://h/v1
    2 | --api-key-env is for the server of --endpoint | --model bert --api-key-env A_KEY
    2 | --plain-http is for --endpoint or | --model bert --plain-http
    2 | --labels has no effect, because x.tsv | --model bert --suite tracker --data x.tsv --reports x.tsv --labels 1=1
    2 | --model: a duplicate among bert, bert | --model bert --model bert
    2 | --against: found several --model | --model bert --model wide --against bert
    2 | none: no such folder | --model bert --model ./none
    3 | same.tsv: all cosines are 1: the model's vectors | --model bert --data same.tsv
""")
def test_bad_input_gives_one_line_and_an_exit_code(place, code, words, arguments):
    data = "" if "--data " in arguments else "--data-dir data "
    done = run(place, *f"{data}{arguments}".split(), code=int(code))
    assert words in done.error
    assert not done.out


def test_several_models_in_one_table(place):
    flags = ["--model", "wide", "--data-dir", "data", "--resamples", "100"]
    both = ["--model", "bert", *flags]
    told = run(place, *both, "--json").result
    assert {name: list(tasks) for name, tasks in told.items()} == {
        "bert": ["STS-B"],
        "wide": ["STS-B"],
    }
    alone = run(place, *flags, "--json").result
    assert told["wide"] == alone
    shown = run(place, *both).out
    assert "STS-B, spearman" in shown
    assert all(
        f"{100 * tasks['STS-B']['spearman']:.2f} [" in shown for tasks in told.values()
    )

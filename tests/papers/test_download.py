"""`papers data`: files from a local server and a stand-in for the Hub become the suites' test sets."""

from __future__ import annotations

import gzip
import io
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import polars as pl
import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, Value

from pairkit import RemoteError
from papers.__main__ import app
from papers.suites import download, find_tasks, nli, retrieval, transfer
from tests.aoe_train.shorthand import read_rows

SIZES = {"MR": 4, "CR": 4, "SUBJ": 4, "MPQA": 4, "SST2": 1, "TREC": 1, "MRPC": 1}


class Silent(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def packed(files):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return data.getvalue()


@pytest.fixture
def served(tmp_path, monkeypatch):
    """The folder of a local server with a few rows of each source."""
    root = tmp_path / "served"
    files = {
        "SICK.zip": packed(
            {
                "SICK.txt": "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tSemEval_set\n"
                '1\tA "dog runs\tA dog\t4.5\tTEST\n2\tA cat\tA dog\t1\tTRIAL\n3\tA\tB\t1\tTRAIN\n'
            }
        ),
        "datasmall_NB_ACL12.zip": packed(
            {
                f"data/{file}": "it's café\nfine\n"
                for two in download._SPLIT_INTO_WORDS.values()
                for file in two
            }
        ),
        "facebookresearch/SentEval/HEAD/data/downstream/tokenizer.sed": b"s/'s/ 's/g\n",
        "train_5500.label": b"NUM:dist How `far ' ?\n",
        "TREC_10.label": b"HUM:ind Who ?\n",
    }
    for part in ("train", "dev", "test"):
        files[f"PrincetonML/SIF/master/data/sentiment-{part}"] = b"a film\t1\n"
    for part in ("train", "test"):
        files[f"msr_paraphrase_{part}.txt"] = b"Quality\t#1 ID\t#2 ID\t#1\t#2\n1\t2\t3\tone\ttwo\n"
    for name in ("test_2016", "val"):
        for number in range(1, 6):
            files[f"captions/{name}.{number}.en.gz"] = gzip.compress(
                f"A  dog {number}\nA cat\n".encode()
            )
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=str(root)))
    Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    for name, value in {
        "_GITHUB": "",
        "_SENTEVAL": "",
        "_TREC": "",
        "_SICK": "/SICK.zip",
        "_CAPTIONS": "/captions",
    }.items():
        monkeypatch.setattr(download, name, address + value)
    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    yield root
    server.shutdown()
    server.server_close()


def load_dataset(name, _=None):
    """The Hub's datasets with three rows."""
    if name.startswith("mteb/"):
        rows = Dataset.from_dict(
            {"sentence1": ["a\n b", "c", "d"], "sentence2": ["x"] * 3, "score": [5.0, 0.5, 1.0]}
        )
        return DatasetDict(train=rows, validation=rows, test=rows)
    text, label = Value("string"), ClassLabel(names=["entailment", "neutral", "contradiction"])
    columns = {"premise": ["a", "b", "c"], "hypothesis": ["x"] * 3, "label": [2, -1, 0]}
    rows = Dataset.from_dict(
        columns, Features({"premise": text, "hypothesis": text, "label": label})
    )
    splits = (
        ["train", "validation_matched", "validation_mismatched"]
        if "multi" in name
        else ["train", "validation", "test"]
    )
    return DatasetDict(dict.fromkeys(splits, rows))


def test_the_downloaded_files_are_those_of_the_suites(served, tmp_path, monkeypatch):
    data = tmp_path / "data"
    app(["data", "--data-dir", str(data)], standalone_mode=False)
    sizes = {
        task: tuple((name, SIZES[task]) for name, _ in files)
        for task, files in transfer._FILES.items()
    }
    monkeypatch.setattr(transfer, "_FILES", sizes)
    monkeypatch.setattr(nli, "_ROWS", dict.fromkeys(nli._ROWS, 2))
    monkeypatch.setattr(retrieval, "_FILES", {"test": (retrieval._FILES["test"][0], 2)})
    for suite, missing in read_rows("""
            transfer | {}
            nli | {'TaxiNLI'}
            retrieval | {}
            """):
        assert set(find_tasks(suite, data)[1]) == set(missing), suite
    (movies,), _ = find_tasks("transfer", data, ["MR"])
    assert movies.parts[0].columns == (
        ["fine", "fine", "it 's cafM-CM-)", "it 's cafM-CM-)"],
    )  # as SentEval has it
    (captions,), _ = find_tasks("retrieval", data)
    assert captions.rows[0][0] == "A dog 1"
    assert (
        data / "sick/sick-test.tsv"
    ).read_text() == 'score\tsentence1\tsentence2\n4.5\tA "dog runs\tA dog\n'
    assert (
        data / "nli/snli-dev.tsv"
    ).read_text() == "label\tpremise\thypothesis\ncontradiction\ta\tx\nentailment\tc\tx\n"
    rows = pl.read_csv(data / "stsb/stsb-train.tsv", separator="\t", quote_char=None)
    assert rows.row(0) == (5.0, "a b", "x")
    assert sorted(path.name for path in (data / "sts").iterdir()) == [
        f"STS{year}.tsv" for year in range(12, 17)
    ]
    (served / "SICK.zip").unlink()
    with pytest.raises(RemoteError, match=r"SICK\.zip: can't be downloaded \(404"):
        download.download("sts", data)

"""`papers data`: files from a local server and a stand-in for the Hub become the suites' test sets."""

from __future__ import annotations

import gzip
import io
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from threading import Thread

import polars as pl
import pytest
from datasets import ClassLabel, Dataset, DatasetDict

from pairkit import RemoteError
from papers.__main__ import app
from papers.suites import download, find_tasks
from tests.papers.hub import few_rows
from tests.support.shorthand import raises


class Silent(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def packed(**files):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return data.getvalue()


SICK = """pair_ID\tsentence_A\tsentence_B\trelatedness_score\tSemEval_set
1\tA "dog runs\tA dog\t4.5\tTEST
2\tA cat\tA dog\t1\tTRIAL
3\tA\tB\t1\tTRAIN
"""


@pytest.fixture
def served(tmp_path, monkeypatch):
    """The folder of a local server with a few rows of each source."""
    root = tmp_path / "served"
    polarity = {}
    for file in chain(*download._SPLIT_INTO_WORDS.values()):
        polarity[f"data/{file}"] = "it's café\nfine\n"
    files = {
        "SICK.zip": packed(**{"SICK.txt": SICK}),
        "datasmall_NB_ACL12.zip": packed(**polarity),
        "facebookresearch/SentEval/HEAD/data/downstream/tokenizer.sed": b"s/'s/ 's/g\n",
        "train_5500.label": b"NUM:dist How `far ' ?\n",
        "TREC_10.label": b"HUM:ind Who ?\n",
    }
    for part in ("train", "dev", "test"):
        files[f"PrincetonML/SIF/master/data/sentiment-{part}"] = b"a film\t1\n"
        files[f"msr_paraphrase_{part}.txt"] = (
            b"Quality\t#1 ID\t#2 ID\t#1\t#2\n1\t2\t3\tone\ttwo\n"
        )
    for number in range(1, 6):
        captions = gzip.compress(f"A  dog\u2028{number}\nA cat\n".encode())
        for name in ("test_2016", "val"):
            files[f"captions/{name}.{number}.en.gz"] = captions
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=str(root)))
    Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    for name in ("_GITHUB", "_SENTEVAL", "_TREC"):
        monkeypatch.setattr(download, name, address)
    monkeypatch.setattr(download, "_SICK", f"{address}/SICK.zip")
    monkeypatch.setattr(download, "_CAPTIONS", f"{address}/captions")
    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    yield root
    server.shutdown()
    server.server_close()


def load_dataset(name, _=None):
    """The Hub's datasets with three rows."""
    splits = ["train", "validation", "test"]
    if name.startswith("mteb/"):
        row = {"sentence1": "a\n b", "sentence2": "x", "score": 5.0}
        return DatasetDict(dict.fromkeys(splits, Dataset.from_list([row])))
    if "multi" in name:
        splits = ["train", "validation_matched", "validation_mismatched"]
    columns = {"premise": ["a", "b", "c"], "hypothesis": ["x"] * 3, "label": [2, -1, 0]}
    label = ClassLabel(names=["entailment", "neutral", "contradiction"])
    rows = Dataset.from_dict(columns).cast_column("label", label)
    return DatasetDict(dict.fromkeys(splits, rows))


def test_the_downloaded_files_are_those_of_the_suites(served, tmp_path, monkeypatch):
    data = tmp_path / "data"
    app(["data", "--data-dir", str(data)], standalone_mode=False)
    few_rows(monkeypatch)
    for suite, missing in (("transfer", []), ("nli", ["TaxiNLI"]), ("retrieval", [])):
        assert [*find_tasks(suite, data)[1]] == missing, suite
    (movies,), _ = find_tasks("transfer", data, ["MR"])
    text = "it 's cafM-CM-)"  # as SentEval has it
    assert movies.parts[0].columns == (["fine", "fine", text, text],)
    (captions,), _ = find_tasks("retrieval", data)
    assert captions.rows[0][0] == "A dog 1"
    found = (data / "sick/sick-test.tsv").read_text()
    assert found == 'score\tsentence1\tsentence2\n4.5\tA "dog runs\tA dog\n'
    _, *rows = (data / "nli/snli-dev.tsv").read_text().splitlines()
    assert rows == ["contradiction\ta\tx", "entailment\tc\tx"]
    rows = pl.read_csv(data / "stsb/stsb-train.tsv", separator="\t", quote_char=None)
    assert rows.row(0) == (5.0, "a b", "x")
    years = sorted(path.stem for path in (data / "sts").iterdir())
    assert years == ["STS12", "STS13", "STS14", "STS15", "STS16"]
    (served / "SICK.zip").unlink()
    with raises(RemoteError, match=r"SICK\.zip: can't be downloaded \(404"):
        download.download("sts", data)

"""Downloads the public test sets of a suite, in the layout of `docs/formats/data-dir.md`."""

from __future__ import annotations

import gzip
import io
import subprocess
import zipfile
from pathlib import Path

import polars as pl
import requests

from pairkit.base.errors import ConfigError, RemoteError
from pairkit.base.printable import one_line
from pairkit.base.system.files import write_bytes
from pairkit.dataset.reading.parts import fetch_dataset

_TIMEOUT_S = 60
_GITHUB = "https://raw.githubusercontent.com"
_SENTEVAL = "https://dl.fbaipublicfiles.com/senteval/senteval_data"
_TOKENIZER = "facebookresearch/SentEval/HEAD/data/downstream/tokenizer.sed"
_SST = "PrincetonML/SIF/master/data"
_SICK = "https://zenodo.org/records/2787612/files/SICK.zip?download=1"
_TREC = "https://cogcomp.seas.upenn.edu/Data/QA/QC"
_CAPTIONS = f"{_GITHUB}/multi30k/dataset/master/data/task2/raw"
# Our names of the Hub's splits.
_DEV = {"train": "train", "validation": "dev", "test": "test"}
_SCORED = ("score", "sentence1", "sentence2")
_INFERENCE = ("label", "premise", "hypothesis")
# Files of SentEval's archive that its script splits into words.
_SPLIT_INTO_WORDS = {
    "MR": ("rt10662/rt-polarity.pos", "rt10662/rt-polarity.neg"),
    "CR": ("customerr/custrev.pos", "customerr/custrev.neg"),
    "SUBJ": ("subj/subj.subjective", "subj/subj.objective"),
    "MPQA": ("mpqa/mpqa.pos", "mpqa/mpqa.neg"),
}


def download(suite: str, folder: Path) -> None:
    """Write the files of a suite."""
    downloads = {
        "sts": _sts,
        "transfer": _transfer,
        "nli": _nli,
        "retrieval": _retrieval,
    }
    if suite not in downloads:
        raise ConfigError(f"--suite {suite}: expected {', '.join(downloads)}")
    downloads[suite](folder)


def _sts(folder: Path) -> None:
    for year in range(12, 17):
        rows = fetch_dataset(f"mteb/sts{year}-sts")["test"].to_polars()
        _write(folder / f"sts/STS{year}.tsv", rows.select(_SCORED))
    for split, rows in fetch_dataset("mteb/stsbenchmark-sts").items():
        _write(
            folder / f"stsb/stsb-{_DEV[split]}.tsv", rows.to_polars().select(_SCORED)
        )
    with zipfile.ZipFile(io.BytesIO(_fetch(_SICK))) as archive:
        sick = pl.read_csv(archive.read("SICK.txt"), separator="\t", quote_char=None)
    names = dict(
        zip(("relatedness_score", "sentence_A", "sentence_B"), _SCORED, strict=True)
    )
    for part in ("trial", "test"):
        rows = sick.filter(pl.col("SemEval_set") == part.upper()).rename(names)
        _write(folder / f"sick/sick-{part}.tsv", rows.select(_SCORED))


def _nli(folder: Path) -> None:
    for source, name in (("stanfordnlp/snli", "snli"), ("nyu-mll/multi_nli", "mnli")):
        for split, rows in fetch_dataset(source).items():
            part = _DEV.get(split, split.replace("_", "-"))
            classes = dict(enumerate(rows.features["label"].names))
            labels = pl.col("label").replace_strict(classes, return_dtype=pl.String)
            named = rows.to_polars().filter(pl.col("label") >= 0).with_columns(labels)
            _write(folder / f"nli/{name}-{part}.tsv", named.select(_INFERENCE))


def _retrieval(folder: Path) -> None:
    for name, part in (("test_2016", "test"), ("val", "val")):
        captions = {}
        for number in range(1, 6):
            packed = _fetch(f"{_CAPTIONS}/{name}.{number}.en.gz")
            text = gzip.decompress(packed).decode()
            captions[f"caption{number}"] = text.removesuffix("\n").split("\n")
        _write(folder / f"flickr30k/flickr30k-{part}.tsv", pl.DataFrame(captions))


def _transfer(folder: Path) -> None:
    """The steps of SentEval's `get_transfer_data.bash` for its seven tasks."""
    rules = folder / "tokenizer.sed"
    write_bytes(rules, _fetch(f"{_GITHUB}/{_TOKENIZER}"))
    with zipfile.ZipFile(
        io.BytesIO(_fetch(f"{_SENTEVAL}/datasmall_NB_ACL12.zip"))
    ) as archive:
        for task, files in _SPLIT_INTO_WORDS.items():
            for file in files:
                visible = _piped(archive.read(f"data/{file}"), "cat", "-v")
                words = _piped(visible, "sed", "-f", str(rules))
                write_bytes(folder / task / Path(file).name, words)
    rules.unlink()
    for part in ("train", "dev", "test"):
        file = f"sentiment-{part}"
        write_bytes(folder / "SST/binary" / file, _fetch(f"{_GITHUB}/{_SST}/{file}"))
    for file in ("train_5500.label", "TREC_10.label"):
        write_bytes(
            folder / "TREC" / file, _fetch(f"{_TREC}/{file}").translate(None, b"`'")
        )
    for part in ("train", "test"):
        file = f"msr_paraphrase_{part}.txt"
        write_bytes(folder / "MRPC" / file, _fetch(f"{_SENTEVAL}/{file}"))


def _piped(data: bytes, *command: str) -> bytes:
    return subprocess.check_output(command, input=data)  # noqa: S603 - fixed commands


def _fetch(url: str) -> bytes:
    try:
        reply = requests.get(url, timeout=_TIMEOUT_S)
        reply.raise_for_status()
    except requests.RequestException as error:
        reason = one_line(str(error), 200)
        raise RemoteError(
            f"{url}: can't be downloaded ({reason}); check the network, or try later"
        ) from error
    return reply.content


def _write(path: Path, rows: pl.DataFrame) -> None:
    """Write a table without quotes; white space in texts becomes single spaces."""
    texts = pl.col(pl.String).str.replace_all(r"\s+", " ").str.strip_chars()
    table = rows.with_columns(texts).write_csv(separator="\t", quote_style="never")
    write_bytes(path, table.encode())

"""Promise 5: every public function with `out` treats a finished result alike."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import aoe_train
import gis_builder
import llm_labeler
import pairkit
from pairkit import ConfigError
from tests.aoe_train.tiny import WORDS, save_bert, write_pairs, write_triplets
from tests.contract.conftest import SAMPLE
from tests.gis_builder.archive_world import (
    events_of,
    files,
    lines_of,
    saved_threads,
    write_hours,
)
from tests.pairkit.review_material import judge_all

quiet: dict[str, Any] = {"progress": False}
TEXTS = [
    f"the {noun} is near a {place}" for noun in WORDS[5:25] for place in WORDS[25:32]
]


def judge(prompt: str) -> str:
    data = json.loads(prompt[prompt.index('{"text"') :])
    return json.dumps(dict.fromkeys(data["sentences"], "same"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, sample_url: str) -> Path:
    folder = tmp_path_factory.mktemp("out")
    save_bert(folder / "bert", dropout=0.0, layers=1)
    for number in (0, 1):
        write_pairs(folder / f"{number}.tsv", 60, number)
        (folder / f"{number}.txt").write_text("\n".join(TEXTS[number:]))
    write_triplets(folder / "triplets.jsonl", 40, 3)
    (folder / "url").write_text(sample_url)
    for number, trackers in enumerate((SAMPLE / "orrery3d", SAMPLE / "quarryhq")):
        gis_builder.import_tracker(trackers, folder / f"{number}.work", **quiet)
    gis_builder.detect(folder / "1.work", **quiet)
    events = lines_of(
        events_of(7, next(iter(saved_threads(folder / "1.work").values())))
    )
    write_hours(folder / "hours", events, ["2015-01-01-0", "2015-01-01-1"])
    llm_labeler.generate(
        TEXTS[:9], llm="wordnet", out=folder / "l", work=folder / "label.work", **quiet
    )
    review = pairkit.review(folder / "0.tsv", folder / "0.review", n=20, grades=True)
    judge_all(review, lambda text: str(len(text) % 6))
    return folder


def archive(place: Path, out: Path, n: int, **more: Any) -> Any:
    hours = ("2015-01-01-0..2015-01-01-0", "2015-01-01-0..2015-01-01-1")[n]
    return gis_builder.archive(
        hours, place / "hours", out, workers=1, seed=n, **quiet, **more
    )


def build(place: Path, out: Path, n: int, **more: Any) -> Any:
    given = {"api_url": (place / "url").read_text(), "token": "any", **quiet, **more}
    return gis_builder.build(
        ["quarryhq/quarry"], out, settings={"seed": 1 + n}, **given
    )


def demo(place: Path, out: Path, n: int, **more: Any) -> Any:
    if n:
        return gis_builder.pair(place / "1.work", out, seed=5, **quiet)
    return gis_builder.demo(out, **quiet, **more)


# The result of the inputs or settings number `n`, of 0 and 1.
CALLS: dict[str, Callable[..., Any]] = {
    "pairkit.apply_review": lambda at, out, n, **more: pairkit.apply_review(
        at / "0.tsv", out, store=at / "0.review", relabel=bool(n), **more
    ),
    "pairkit.audit": lambda _, out, n, **more: pairkit.audit(
        [
            {"text1": text, "text2": "a b", "label": 1}
            for text in (TEXTS[n], f"{TEXTS[n]}!")
        ],
        out,
        **more,
    ),
    "pairkit.export": lambda at, out, n, **more: pairkit.export(
        at / f"{n}.tsv", out, **more
    ),
    "pairkit.merge": lambda at, out, n, **more: pairkit.merge(
        [at / f"{n}.tsv"], out, **more
    ),
    "pairkit.extract": lambda at, out, n, **more: pairkit.extract(
        [{"question": text, "answer": f"it's {text}"} for text in TEXTS[n:]],
        out,
        **quiet,
        **more,
    ),
    "pairkit.report": lambda at, out, n, **more: pairkit.report(
        at / f"{n}.tsv", out, **quiet, **more
    ),
    "pairkit.split": lambda at, out, n, **more: pairkit.split(
        at / f"{n}.tsv", out, **more
    ),
    "pairkit.write": lambda at, out, n, **more: pairkit.write(
        at / f"{n}.tsv", out, **more
    ),
    "gis_builder.archive": archive,
    "gis_builder.build": build,
    "gis_builder.demo": demo,
    "gis_builder.pair": lambda at, out, n, **more: gis_builder.pair(
        at / "1.work", out, seed=n, **quiet, **more
    ),
    "gis_builder.render": lambda at, out, n, **more: gis_builder.render(
        at / f"{n}.work", out, **quiet, **more
    ),
    "llm_labeler.generate": lambda at, out, n, **more: llm_labeler.generate(
        TEXTS[n : n + 9], llm="wordnet", out=out, **quiet, **more
    ),
    "llm_labeler.judge": lambda at, out, n, **more: llm_labeler.judge(
        at / f"{n}.tsv",
        llm={"a": judge, "b": judge, "c": judge},
        out=out,
        **quiet,
        **more,
    ),
    "llm_labeler.parse": lambda at, out, n, **more: llm_labeler.parse(
        at / "label.work", out=out, seed=n, **quiet, **more
    ),
    "aoe_train.distill": lambda at, out, n, **more: aoe_train.distill(
        at / f"{n}.txt", model=at / "bert", out=out, **quiet, **more
    ),
    "aoe_train.encode": lambda at, out, n, **more: aoe_train.encode(
        at / f"{n}.txt", model=at / "bert", out=out, **quiet, **more
    ),
    "aoe_train.export": lambda at, out, n, **more: aoe_train.export(
        at / "bert", out=out, dtype=("fp32", "bf16")[n], **quiet, **more
    ),
    "aoe_train.index": lambda at, out, n, **more: aoe_train.index(
        at / f"{n}.txt",
        model=at / "bert",
        out=out,
        quantize=("float32", "int8")[n],
        **quiet,
        **more,
    ),
    "aoe_train.mine": lambda at, out, n, **more: aoe_train.mine(
        at / "triplets.jsonl",
        model=at / "bert",
        out=out,
        num_negatives=1 + n,
        **quiet,
        **more,
    ),
    "aoe_train.sample_pairs": lambda at, out, n, **more: aoe_train.sample_pairs(
        at / f"{n}.txt", model=at / "bert", out=out, **quiet, **more
    ),
    "aoe_train.train": lambda at, out, n, **more: aoe_train.train(
        at / f"{n}.tsv",
        backbone=at / "bert",
        out=out,
        epochs=1,
        max_length=16,
        **quiet,
        **more,
    ),
}
ENDINGS = {
    "pairkit.audit": ".csv",
    "pairkit.report": ".html",
    "gis_builder.render": ".parquet",
    "aoe_train.encode": ".npy",
}
WRITING_NOTHING = {
    "gis_builder.plan",
    "gis_builder.read_hours",
    "llm_labeler.plan",
    "aoe_train.plan",
}


def with_out() -> set[str]:
    found = set()
    for package in ("pairkit", "gis_builder", "llm_labeler", "aoe_train"):
        module = import_module(package)
        for name in module.__all__:
            function = getattr(module, name)
            if (
                inspect.isfunction(function)
                and "out" in inspect.signature(function).parameters
            ):
                found.add(f"{package}.{name}")
    return found - WRITING_NOTHING


def content(out: Path) -> dict[str, bytes]:
    return {"": out.read_bytes()} if out.is_file() else files(out)


@pytest.mark.parametrize("name", sorted(with_out()))
def test_a_finished_result_is_kept_unless_fresh(
    place: Path, tmp_path: Path, name: str
) -> None:
    call, out = CALLS[name], tmp_path / f"out{ENDINGS.get(name, '')}"
    call(place, out, 1)
    made = content(out)
    call(place, out, 1)
    assert content(out) == made
    with pytest.raises(
        ConfigError, match=r"out.*; give fresh=True to replace it, or another out="
    ):
        call(place, out, 0)
    assert content(out) == made
    call(place, out, 0, fresh=True)
    assert content(out) != made
    call(place, out, 0)


def test_texts_are_added_to_an_index(place: Path, tmp_path: Path) -> None:
    how: dict[str, Any] = {"model": place / "bert", "out": tmp_path / "index", **quiet}
    assert (
        aoe_train.index(
            [{"text": text, "id": n} for n, text in enumerate(TEXTS[:50])], **how
        ).rows
        == 50
    )
    more = aoe_train.index(
        [{"text": text, "open": True} for text in TEXTS[48:53]], **how
    )
    assert (more.rows, more.encoded, more.missing) == (53, 3, 48)
    first = [
        aoe_train.search(how["out"], text, top=1)[0].row
        for text in (TEXTS[7], TEXTS[48])
    ]
    assert [(row["id"], row["open"]) for row in first] == [(7, None), (None, True)]
    assert (
        "48 of the texts are not in this input; remove_missing=True removes them"
        in more.notes()[1]
    )
    with pytest.raises(ConfigError, match="other types"):
        aoe_train.index([{"text": "a dog", "open": date(2020, 1, 1)}], **how)
    assert aoe_train.index(TEXTS[50:53], **how, remove_missing=True).rows == 3

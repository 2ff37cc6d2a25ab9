"""Our models in mteb: its own evaluators on them, its figures beside ours, its faults as our errors."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from aoe_train._evaluate import SUITES, Vectors, find_tasks
from aoe_train._evaluate.mteb_tasks import _numbers, run_mteb
from aoe_train._prompts import NamedPrompts
from aoe_train._settings import Similarity
from pairkit.errors import ConfigError, DataError, RemoteError
from pairkit.files import sha256
from tests.published import REAL, real_data, write_sts

OURS = {"STSBenchmark": "STS-B", "SICK-R": "SICK-R", **{f"STS{year}": f"STS{year}" for year in range(12, 17)}}


WORDS = [*["man", "woman", "dog", "cat", "plays", "eats", "red", "blue", "guitar", "bread", "house", "crash"]]


class Words:
    """An embedder of words and their places, so that no model is needed; remembers what it was asked for."""

    name = "models/my words"
    identity = "0123abcd"
    separator = " "
    prompts = NamedPrompts({})
    similarity: Similarity = "cosine"

    def __init__(self) -> None:
        self.texts: list[str] = []

    def encode(self, texts: list[str], prompt: str | None = None) -> np.ndarray:
        self.texts += texts
        directions = np.random.default_rng(0).normal(size=(26, 8))
        vectors = [
            # each place counts differently, so that no two pairs have the same cosine
            sum(
                (1 + place / 7) * directions[ord(word[0].lower()) % 26]
                for place, word in enumerate(text.split())
            )
            for text in texts
        ]
        return np.array(vectors, np.float32)


class Broken(Words):
    """Its vectors are no numbers."""

    def encode(self, texts: list[str], prompt: str | None = None) -> np.ndarray:
        return np.full((len(texts), 3), np.nan, np.float32)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with as many pairs of STS-B as are published, of words drawn by chance."""
    draw = random.Random(0)
    lines = ["score\tsentence1\tsentence2"]
    for _ in range(1379):
        one = [draw.choice(WORDS) for _ in range(8)]
        same = draw.randint(0, 7)
        other = one[:same] + [draw.choice(WORDS) for _ in range(7 - same)] + ["zebra"]
        lines.append(f"{same * 5 / 7}\t{' '.join(one)}\t{' '.join(other)}")
    (tmp_path / "stsb").mkdir()
    (tmp_path / "stsb" / "stsb-test.tsv").write_text("\n".join(lines) + "\n")
    return tmp_path


def ours(embedder: Any, task: str, data: Path) -> dict[str, float]:
    (found,), _ = find_tasks(SUITES["sts"](), data, names=[task])
    return found.judge(Vectors(embedder.encode, [found.texts])).whole.scores()


def test_mteb_gives_our_figures_on_the_same_file(data: Path, tmp_path: Path) -> None:
    found = run_mteb(Words(), ["STSBenchmark"], data_dir=data, cache=tmp_path / "results", progress=False)
    task, expected = found["STSBenchmark"], ours(Words(), "STS-B", data)
    figures = task["scores"]["test"]["default"]
    assert expected["spearman"] > 0.3
    assert figures["cosine_spearman"] == pytest.approx(expected["spearman"], abs=1e-5)
    assert figures["cosine_pearson"] == pytest.approx(expected["pearson"], abs=1e-5)
    assert figures["spearman"] == pytest.approx(expected["spearman"], abs=1e-5)  # the model's own similarity
    assert (task["main_score"], task["metric"]) == (figures["cosine_spearman"], "cosine_spearman")
    assert "hf_subset" not in figures


def test_what_mteb_has_kept_is_not_run_again(data: Path, tmp_path: Path) -> None:
    def run(embedder: Words) -> dict[str, Any]:
        return run_mteb(embedder, ["STSBenchmark"], data_dir=data, cache=tmp_path / "results", progress=False)

    first, again, other = Words(), Words(), Words()
    other.identity = "4567"
    found = run(first)
    assert len(first.texts) > 1379
    assert run(again) == found
    assert len(again.texts) == 1  # the one that tells the dimension
    run(other)
    assert other.texts == first.texts
    kept = {
        path.relative_to(tmp_path / "results/results").as_posix() for path in tmp_path.rglob("*-local-*.json")
    }
    file = f"STSBenchmark-local-{sha256(data / 'stsb' / 'stsb-test.tsv')[:8]}.json"
    assert kept == {f"models__my_words/{name}/{file}" for name in ("0123abcd", "4567")}


def test_a_file_that_has_changed_is_judged_anew(data: Path, tmp_path: Path) -> None:
    def run() -> float:
        found = run_mteb(Words(), ["STSBenchmark"], data_dir=data, cache=tmp_path / "results", progress=False)
        score: float = found["STSBenchmark"]["main_score"]
        return score

    before, file = run(), data / "stsb" / "stsb-test.tsv"
    head, *rows = file.read_text().splitlines()
    turned = [f"{5 - float(score)}\t{texts}" for score, _, texts in (row.partition("\t") for row in rows)]
    file.write_text("\n".join([head, *turned]) + "\n")
    assert run() == pytest.approx(-before, abs=1e-5)


def test_a_main_score_that_is_no_number_is_an_error_and_another_one_is_none(
    data: Path, tmp_path: Path
) -> None:
    class Same(Words):
        def encode(self, texts: list[str], prompt: str | None = None) -> np.ndarray:
            return np.ones((len(texts), 3), np.float32)

    with pytest.raises(DataError, match=r"^STSBenchmark: mteb's cosine_spearman is not a number"):
        run_mteb(Same(), ["STSBenchmark"], data_dir=data, cache=tmp_path / "results", progress=False)
    assert _numbers({"ap": float("nan"), "f1": 0.12345678, "hf_subset": "x"}) == {"ap": None, "f1": 0.123457}


def test_a_task_of_pictures_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"VisualSTS-b-Eng: a task of image, but these models read text alone"
    ):
        run_mteb(Words(), ["VisualSTS-b-Eng"], progress=False)


def test_an_error_of_the_system_elsewhere_is_not_blamed_on_the_cache(data: Path, tmp_path: Path) -> None:
    class Fails(Words):
        def encode(self, texts: list[str], prompt: str | None = None) -> np.ndarray:
            if len(texts) > 1:
                raise BrokenPipeError("elsewhere")
            return super().encode(texts)

    with pytest.raises(BrokenPipeError, match="elsewhere"):
        run_mteb(Fails(), ["STSBenchmark"], data_dir=data, cache=tmp_path / "results", progress=False)


def test_a_result_that_cannot_be_kept_is_told(data: Path, tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "results").write_text("in the way")
    with pytest.raises(ConfigError, match="results: can't be written"):
        run_mteb(Words(), ["STSBenchmark"], data_dir=data, cache=tmp_path / "results", progress=False)


def test_a_damaged_result_is_named(data: Path, tmp_path: Path) -> None:
    run_mteb(Words(), ["STSBenchmark"], data_dir=data, cache=tmp_path / "results", progress=False)
    (kept,) = tmp_path.rglob("STSBenchmark-local-*.json")
    kept.write_text('{"task_name": ')
    with pytest.raises(
        DataError, match=r"STSBenchmark-local-\w{8}\.json: a damaged result of mteb; delete this file"
    ):
        run_mteb(Words(), ["STSBenchmark"], data_dir=data, cache=tmp_path / "results", progress=False)


def test_other_kinds_of_tasks_run_too() -> None:
    import mteb
    from mteb.mocks.mock_tasks import MockClassificationTask, MockRetrievalTask

    from aoe_train._evaluate.mteb_tasks.model import MtebModel

    model = MtebModel(Words())
    assert model.mteb_model_meta.name == "models/my words"
    assert (model.mteb_model_meta.revision, model.mteb_model_meta.embed_dim) == ("0123abcd", 8)
    for task in (MockClassificationTask(), MockRetrievalTask()):
        result = mteb.evaluate(model, task, cache=None, show_progress_bar=False, co2_tracker=False)
        assert 0 <= result.task_results[0].get_score() <= 1


@pytest.mark.slow
def test_all_kinds_of_tasks_run() -> None:
    import mteb

    from aoe_train._evaluate.mteb_tasks.model import MtebModel

    found = mteb.mock_run(MtebModel(Words()))
    assert found.all_passed
    assert sum(result is not None for _, result in found.items()) > 20


@pytest.mark.parametrize(
    ("name", "shown"), [("minilm", "local/minilm"), ("a/b", "a/b"), ("/one/two/three/", "local/three")]
)
def test_mteb_sees_an_organisation_and_a_name(name: str, shown: str) -> None:
    from aoe_train._evaluate.mteb_tasks.model import MtebModel

    embedder = Words()
    embedder.name = name
    assert MtebModel(embedder).mteb_model_meta.name == shown


def test_faults(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "results"
    with pytest.raises(ConfigError, match=r"no such mteb task: 'STSBenchmrk' not found.*STSBenchmark"):
        run_mteb(Words(), ["STSBenchmrk"], cache=cache)
    with pytest.raises(DataError, match="vectors that are not numbers"):
        run_mteb(Broken(), ["STSBenchmark"], data_dir=data, cache=cache, progress=False)
    (data / "stsb" / "stsb-test.tsv").write_text("score\tsentence1\tsentence2\n1\ta\tb\n")
    with pytest.raises(DataError, match=r"1 rows, but 1,379 are published"):
        run_mteb(Words(), ["STSBenchmark"], data_dir=data, cache=cache)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="file: can't be written"):
        run_mteb(Words(), ["STS12"], cache=tmp_path / "file", progress=False)
    monkeypatch.setitem(sys.modules, "mteb", None)
    with pytest.raises(ConfigError, match=r"pip install 'aoe-toolkit\[eval\]'"):
        run_mteb(Words(), ["STS12"], cache=cache)


def test_a_dataset_that_cannot_be_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    with pytest.raises(
        RemoteError, match=r"STS12: the dataset mteb/sts12-sts could not be fetched .*HF_HOME"
    ):
        run_mteb(Words(), ["STS12"], data_dir=tmp_path, cache=tmp_path / "results", progress=False)
    assert datasets.is_progress_bar_enabled()


@pytest.mark.slow
@pytest.mark.parametrize("published", [False, pytest.param(True, marks=real_data)])
def test_minilm_has_mtebs_figures_on_all_seven(minilm: Path, tmp_path: Path, published: bool) -> None:
    from aoe_train._encoder import Encoder
    from aoe_train._evaluate.embedders.cached import CachedEmbedder
    from aoe_train._evaluate.embedders.local import LocalEmbedder
    from aoe_train._evaluate.embedders.vector_store import VectorStore

    local = LocalEmbedder(Encoder.load(minilm), str(minilm))
    embedder = CachedEmbedder(local, VectorStore(tmp_path, local.identity), progress=False)
    data = REAL if published else write_sts(tmp_path / "data")
    found = run_mteb(embedder, list(OURS), data_dir=data, cache=tmp_path / "results", progress=False)
    for name, task in OURS.items():
        expected = ours(embedder, task, data)
        assert found[name]["main_score"] == pytest.approx(expected["spearman"], abs=5e-5)
        pearson = found[name]["scores"]["test"]["default"]["cosine_pearson"]
        assert pearson == pytest.approx(expected["pearson"], abs=5e-5)


def test_prompts_are_chosen_as_for_a_model_of_sentence_transformers(bert: Path, tmp_path: Path) -> None:
    import mteb
    from mteb.models.sentence_transformer_wrapper import SentenceTransformerEncoderWrapper
    from mteb.types import PromptType
    from sentence_transformers import SentenceTransformer

    from aoe_train._encoder import Encoder
    from aoe_train._evaluate.embedders.local import LocalEmbedder
    from aoe_train._evaluate.mteb_tasks.model import MtebModel

    prompts = {
        "query": "the man: ",
        "document": "a road ",
        "STS": "is a cat ",
        "NFCorpus-query": "in the city ",
    }
    more = {"prompts": prompts, "default_prompt_name": "document", "similarity_fn_name": "dot"}
    Encoder.load(bert, device="cpu", **more).save(tmp_path / "m")
    ours = MtebModel(LocalEmbedder(Encoder.load(tmp_path / "m", device="cpu"), "m"))
    theirs = SentenceTransformerEncoderWrapper(SentenceTransformer(str(tmp_path / "m"), device="cpu"))
    assert ours.mteb_model_meta.similarity_fn_name == "dot"
    found = []
    for task, kind in (
        ("SciFact", PromptType.query),
        ("SciFact", PromptType.document),
        ("NFCorpus", PromptType.query),
        ("STS12", None),
        ("Banking77Classification", None),
    ):
        how = {"task_metadata": mteb.get_task(task).metadata, "hf_split": "test", "hf_subset": "default"}
        batches = [{"text": ["a cat", "bread"]}, {"text": ["a dog"]}]
        expected = theirs.encode(_Batches(batches), prompt_type=kind, show_progress_bar=False, **how)
        found.append(ours.encode(_Batches(batches), prompt_type=kind, **how))  # type: ignore[arg-type]
        np.testing.assert_allclose(found[-1], expected, atol=1e-6)
    assert (
        len({one.tobytes() for one in found}) == 4
    )  # without a prompt of its own, a task has the default one


class _Batches(list[dict[str, list[str]]]):
    """As much of a DataLoader as mteb looks at."""

    dataset: ClassVar[Any] = SimpleNamespace(features={"text": None}, column_names=["text"])
    collate_fn = None


def test_a_distance_is_nothing_that_mteb_compares_by() -> None:
    from aoe_train._evaluate.mteb_tasks.model import MtebModel

    class Distant(Words):
        similarity: Similarity = "euclidean"

    with pytest.raises(ConfigError, match="compared by euclidean, which mteb can't do"):
        MtebModel(Distant())

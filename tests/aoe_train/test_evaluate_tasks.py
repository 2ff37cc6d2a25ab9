"""Suites, pairs, splits and folders in BEIR's layout, and the overlap with training texts."""

import shutil
import subprocess
from itertools import product
from string import ascii_lowercase

import numpy as np
import polars as pl
import pytest
from scipy import stats
from scipy.spatial import distance
from sklearn import metrics
from sklearn.metrics import ndcg_score

import aoe_train
import pairkit
from tests.aoe_train.shorthand import figures, stderr
from tests.aoe_train.tiny import unit, write_rows
from tests.published import REAL, STS_SIZES, real_data, write_sts, write_table
from tests.support.shorthand import (
    approx,
    config_error,
    data_error,
    module_fixture,
    pair_table,
    parametrize,
    raises,
    table,
    text_lines,
    values,
)


def letters(texts):
    """Counts of letters: vectors without a model."""
    return np.float32(
        [[text.lower().count(a) for a in f"{ascii_lowercase} "] for text in texts]
    )


def evaluate(model=letters, **options):
    return aoe_train.evaluate(model, resamples=0, **options)


@module_fixture
def published(tmp_path_factory):
    """Test sets of the published sizes."""
    return write_sts(tmp_path_factory.mktemp("sts"))


def by_hand(rows):
    """Spearman and Pearson, computed by scipy."""
    found = cosines(rows.select("sentence1", "sentence2").rows())
    return [
        measure(found, rows["score"]).statistic
        for measure in (stats.spearmanr, stats.pearsonr)
    ]


def test_a_year_as_a_whole_and_by_subset(published, tmp_path):
    found = figures(evaluate(data_dir=published, tasks=["STS16"]))
    rows = pl.read_csv(published / "sts/STS16.tsv", separator="\t", quote_char=None)
    assert list(found) == ["spearman", "pearson", "n", "subsets", "overlap"]
    for scores, part in (
        (found, rows),
        (found["subsets"]["news"], rows.filter(subset="news")),
    ):
        assert [scores["spearman"], scores["pearson"]] == approx(
            by_hand(part), abs=1e-9
        )
        assert scores["n"] == part.height
    table = values("""
        x | 4 | rain falls | rain fell
        x | 4 | a b | b a
        y | 1 | a | b
        y | 2 | a | a
    """)
    path = write_table(
        tmp_path / "pairs.tsv", "subset\tscore\tsentence1\tsentence2", table
    )
    found = figures(evaluate(data=path))
    assert found["subsets"]["x"] == {"n": 2}  # constant labels have no correlation
    rows = pair_table(TEST).with_columns(subset=pl.Series([1, 1, 1, 2, 2, None]))
    parts = figures(evaluate(data=rows, suite="sts"))["subsets"]
    assert {name: part["n"] for name, part in parts.items()} == {"1": 3, "2": 2}
    lists = rows.with_columns(pl.concat_list("subset"))
    assert "subsets" not in figures(evaluate(data=lists, suite="sts"))


@parametrize("real", [False, pytest.param(True, marks=real_data)])
def test_files_of_the_published_size(published, real):
    table = evaluate(data_dir=REAL if real else published)
    (scores,) = table.scores.values()
    assert {name: score.result.n for name, score in scores.items()} == STS_SIZES
    assert table.missing == {}
    for score in scores.values():
        assert sum(part.n for part in score.result.subsets.values()) in (
            0,
            score.result.n,
        )
    # Letters alone correlate with meaning.
    assert scores["STS15"].result.scores["spearman"] > 0.4


def test_missing_tasks_have_a_reason(published, tmp_path, capsys):
    (tmp_path / "stsb").mkdir()
    for split in ("test", "dev"):
        shutil.copy(
            published / "stsb/stsb-test.tsv", tmp_path / f"stsb/stsb-{split}.tsv"
        )
    missing = " ".join(evaluate(data_dir=tmp_path, progress=True).missing)
    assert missing == "STS12 STS13 STS14 STS15 STS16 SICK-R"
    told = f"left out SICK-R: no file {tmp_path / 'sick' / 'sick-test.tsv'}"
    assert told in stderr(capsys)
    for folder, options, error, words in values(
        """
            NONE | {} | DataError | contains none of the tasks
            SOME | {'tasks': ['STS11']} | ConfigError | no task 'STS11'; choose from STS12, S
            SOME | {'split': 'validation'} | DataError | has 1,379 rows instead of the published
            ALL | {'split': 'validation'} | DataError | STS12: has no validation split
            """,
        NONE=tmp_path / "sick",
        SOME=tmp_path,
        ALL=published,
    ):
        with raises(error, match=words):
            evaluate(data_dir=folder, **options)


TEST = values(
    """
    panic on save | panic on saving | 1
    panic on save | the window is red | 0
    slow start | start is slow | 1
    slow start | low stars | 0
    LONG | LONGEST | 0
    LONG | LONGER | 1
    """,
    LONG="x" * 1200,
    LONGEST="y" * 3600 + " x",
    LONGER="x" * 1100,
)
DEV = values("""
    typo | type | 1
    typo | manual | 0
    crash | crab | 1
    crash | docs | 0
""")


def cosines(rows):
    """Computed by scipy."""
    one, other = (letters([row[side] for row in rows]).astype(float) for side in (0, 1))
    pairs = zip(one, other, strict=True)
    return 1 - np.array([distance.cosine(*pair) for pair in pairs])


def write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    pair_table(rows).write_ndjson(path)


@pytest.fixture
def dataset(tmp_path):
    """A dataset with all splits, its test split in two files."""
    folder = tmp_path / "issues"
    write(folder / "data/test-00000-of-00002.jsonl", TEST[:4])
    write(folder / "data/test-00001-of-00002.jsonl", TEST[4:])
    write(folder / "data/validation.jsonl", DEV)
    write(folder / "data/train.jsonl", [("never", "read", 1)])
    return folder


def scores_of(data, **options):
    scores = figures(evaluate(data=data, suite="binary", **options))
    del scores["n"], scores["overlap"]
    return scores


def test_thresholds_are_chosen_on_validation_and_applied_to_test(dataset):
    found = scores_of(dataset)
    labels, known = ([int(row[2]) for row in rows] for rows in (TEST, DEV))
    assert found["roc_auc"] == approx(metrics.roc_auc_score(labels, cosines(TEST)))
    for name, score in (("f1", metrics.f1_score), ("accuracy", metrics.accuracy_score)):
        limit = found[f"{name}_threshold"]
        chosen_on = [
            score(known, cosines(DEV) >= value) for value in (limit, *cosines(DEV))
        ]
        assert chosen_on[0] == max(chosen_on)
        assert found[name] == approx(score(labels, cosines(TEST) >= limit))
    # Parts by length use the thresholds of all pairs; one pair has no metrics.
    parts = found["subsets"]
    sizes = {name: part["n"] for name, part in parts.items()}
    assert sizes == {"<128": 4, "128-255": 1, ">=512": 1}
    assert parts["<128"]["f1_threshold"] == found["f1_threshold"]
    assert parts["<128"]["roc_auc"] == metrics.roc_auc_score(
        [1, 0, 1, 0], cosines(TEST[:4])
    )
    assert parts[">=512"] == {"n": 1}


def test_no_threshold_metrics_without_validation(dataset, capsys):
    names = text_lines("""
        spearman
        roc_auc
        average_precision
        best_f1
        best_accuracy
        pearson
    """)
    validation = dataset / "data/validation.jsonl"
    for data, options in ((dataset, {"split": "validation"}), (validation, {})):
        assert [*scores_of(data, **options)][:-1] == names
    write(validation, [row for row in DEV if row[2]])
    note = f"{dataset}: validation has only one label, so it can't choose thresholds"
    for suite in ("binary", None):
        found = figures(evaluate(data=dataset, suite=suite))
        assert [*found][: len(names)] == names
        assert stderr(capsys).count(note) == 1


def test_splits_of_a_folder(tmp_path, capsys):
    write(tmp_path / "train.jsonl", TEST)
    with data_error(r"no split 'test'; there are train"):
        scores_of(tmp_path, split="test")
    with config_error("a file has no splits"):
        scores_of(tmp_path / "train.jsonl", split="validation")
    for note in ("using its only split, train", "has no test split, using validation"):
        assert scores_of(tmp_path, progress=True)["subsets"]["<128"]["n"] == 4
        assert f"{tmp_path}: {note}" in stderr(capsys)
        write(tmp_path / "validation.jsonl", TEST)
    for split, label in values("""
            train | 1
            validation | 0
            test | 1
            """):
        (tmp_path / f"{split}.jsonl").unlink(missing_ok=True)
        rows = [("ab", "ab", label), ("ab", "xyz", 1 - label)]
        pair_table(rows).write_csv(tmp_path / f"{split}.csv")
    for name, spearman in values("""
            None | 1
            test | 1
            validation | -1
            """):
        found = figures(evaluate(data=tmp_path, split=name, suite="sts"))
        assert found["spearman"] == approx(spearman)
    in_memory = {"test": pairkit.read(tmp_path)["test"]}
    assert figures(evaluate(data=in_memory, split="test"))["n"] == 2


@module_fixture
def trained(bert, tmp_path_factory):
    """A model that was trained on the texts a, b and c."""
    out = tmp_path_factory.mktemp("trained") / "model"
    rows = [
        {"text1": a, "text2": b, "score": 1.0 * (a < b)}
        for a, b in product("abc", "abc")
    ]
    aoe_train.train(rows, backbone=bert, out=out, epochs=1, preset="cosent")
    return out


@table(
    """
    pairs, expected, is_known
    [('a', 'b'), ('a', 'x'), ('y', 'z'), ('B', ' a ')] | [4, 7, 2, 4] | True
    [('A  a', 'x'), ('ab', 'y')] | [0, 4, 0, 2] | False
    """,
)
def test_overlap_with_training_texts(pairs, expected, is_known, trained, capsys):
    table = evaluate(trained, data=scored(pairs))
    overlap = figures(table)["overlap"]
    assert [*overlap.values()] == expected
    told = "trained on 2 of its 4 examples (all their texts) and on 4 of its 7 texts"
    assert (told in stderr(capsys)) == is_known
    assert (f"model was {told}" in table.to_markdown()) == is_known
    (shown,) = table.tables()
    assert (shown.headings[-1] == "trained on") == is_known
    assert (shown.rows[0][-1] == "50.0%") == is_known


def test_overlap_is_reported_once_for_each_model_by_its_name_in_the_table(
    trained, tmp_path, capsys
):
    options = {"data": scored([("a", "b"), ("a", "x"), ("y", "z")]), "resamples": 0}
    namesake = shutil.copytree(trained, tmp_path / trained.name)
    aoe_train.evaluate([str(trained), str(namesake)], **options)
    told = stderr(capsys)
    for model in (trained, namesake):
        assert told.count(f"{model} was trained on") == 1
    aoe_train.evaluate(trained, layers="2,1", dim=[32, 8], **options)
    assert stderr(capsys).count("was trained on") == 1
    found = aoe_train.evaluate(trained, against=namesake, **options)
    assert ([*found.scores], found.against) == ([str(trained)], str(namesake))


def scored(pairs):
    return [
        {"text1": one, "text2": two, "score": place}
        for place, (one, two) in enumerate(pairs)
    ]


@table(
    """
    pairs, verdict
    [('B.', ' a'), ('c', 'A!'), ('x', 'y')] | not judged: the list given: trained on 2 of 3 rows
    [('b', 'A'), ('a', 'x'), ('x', 'y'), ('y', 'z')] | 3 pairs, without 1 trained on: too few to tell)
    [('a', 'x'), ('b', 'x')] | 2 pairs: too few to tell)
    """,
)
def test_verdicts_leave_out_trained_rows(pairs, verdict, trained, bert):
    for model, against in ((trained, bert), (bert, trained)):
        found = aoe_train.evaluate(
            model, against=against, data=scored(pairs), resamples=100
        )
        assert found.verdicts()[0].endswith(verdict)


def test_overlap_of_single_inputs(trained):
    class Mine:
        """A task without rows, so each input is an example."""

        name = "mine"
        texts = "a", ("a", "b"), ("b", "x")

        def measure(self, vectors):
            sizes = np.ones(len(vectors.rows(self.texts)))
            return aoe_train.tasks.MeanMetrics({"size": sizes})

    overlap = evaluate(trained, tasks=Mine()).to_dict()["mine"]["overlap"]
    assert overlap == {"texts": 2, "of_texts": 3, "rows": 2, "of_rows": 3}


DOCUMENTS = 130


def write_beir(folder, rows, split="test"):
    """A folder of texts that are numbers; query q3 has the id of a document."""
    documents = [
        {"_id": f"d{n}", "title": f"{n}" if n % 2 else "", "text": f"of {n}"}
        for n in range(DOCUMENTS)
    ]
    queries = [
        {"_id": "d7" if n == 3 else f"q{n}", "text": f"query {n}"} for n in range(9)
    ]
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    write_rows(folder / "corpus.jsonl", documents)
    write_rows(folder / "queries.jsonl", queries)
    head = "query-id\tcorpus-id\tscore"
    (folder / "qrels" / f"{split}.tsv").write_text("\n".join([head, *rows]) + "\n")
    return folder


def encode(texts):
    vectors = [np.random.default_rng([*text.encode()]).normal(size=6) for text in texts]
    return np.float32(vectors)


def scores(folder, **more):
    return figures(evaluate(encode, data=folder, **more))


def test_metrics_equal_those_of_a_sorted_list(tmp_path):
    random = np.random.default_rng(0)
    gains = np.zeros((8, DOCUMENTS), int)
    for row in gains:
        row[random.choice(DOCUMENTS, 12, replace=False)] = random.integers(4, size=12)
    gains[3, 7] = 0  # query d7 and document d7
    rows = [
        f"{'d7' if query == 3 else f'q{query}'}\td{number}\t{gain}"
        for (query, number), gain in np.ndenumerate(gains)
    ]
    found = scores(write_beir(tmp_path, rows))
    texts = [f"{n} of {n}" if n % 2 else f"of {n}" for n in range(DOCUMENTS)]
    asked = [f"query {query}" for query in range(8)]
    cosines = unit(encode(asked)) @ unit(encode(texts)).T
    cosines[3, 7] = -1  # isn't ranked
    order = np.argsort(-cosines, axis=1)
    is_hit = np.take_along_axis(gains, order, axis=1) > 0
    first = np.where(is_hit[:, :10].any(axis=1), is_hit.argmax(axis=1), np.inf)
    shares = np.cumsum(is_hit, axis=1) / is_hit.sum(axis=1, keepdims=True)
    expected = {
        "ndcg@10": ndcg_score(gains, cosines, k=10),
        "mrr@10": (1 / (1 + first)).mean(),
        "recall@10": shares[:, 9].mean(),
        "recall@100": shares[:, 99].mean(),
        "n": 8,
    }
    assert {name: found[name] for name in expected} == approx(expected)
    # A second file of the same split, of which one judgement repeats.
    first, *others = rows
    write_beir(tmp_path, [first, *others[:50]], "test-a")
    write_beir(tmp_path, others, "test")
    assert scores(tmp_path) == approx(found)


def test_relevant_documents_are_pairs(tmp_path):
    folder = write_beir(tmp_path, ["q0\td5\t1", "q0\td6\t0", "q2\td4\t2"], "dev")
    write_beir(folder, ["d7\td7\t1"], "train")
    subprocess.run(["gzip", folder / "corpus.jsonl"], check=True)
    known, dev = (
        pairkit.read(folder)[split].select("text1", "text2").rows()
        for split in ("train", "validation")
    )
    assert known == [("query 3", "7 of 7")]
    assert dev == [("query 0", "5 of 5"), ("query 2", "of 4")]
    row = {"query-id": "q1", "corpus-id": "d4", "score": 1}
    pl.DataFrame(row).write_ndjson(folder / "qrels/test.jsonl")
    assert pairkit.read(folder)["test"]["text2"].to_list() == ["of 4"]


def test_a_text_in_place_of_a_folder_is_refused():
    with config_error(r"not a valid path \(File name too long\)"):
        evaluate(encode, data="a text " * 100)


def test_a_relevant_document_may_have_the_id_of_its_query(tmp_path, capsys):
    folder = write_beir(tmp_path / "own", ["d7\td7\t1"])

    def same(texts):
        return encode(["7 of 7" if text == "query 3" else text for text in texts])

    assert evaluate(same, data=folder).to_dict()["own"]["mrr@10"] == 1
    assert "isn't ranked" not in stderr(capsys)
    evaluate(same, data=write_beir(folder, ["d7\td8\t1"]))
    assert "isn't ranked, as in BEIR: 1" in stderr(capsys)
    with config_error("BEIR's layout of own sets them; leave it out"):
        evaluate(same, data=folder, columns={"text1": "text"})
    with config_error("label_range= has no effect, because own has no labels"):
        evaluate(same, data=folder, label_range="0,5")


def test_ties_count_against_relevant_documents(tmp_path):
    folder = write_beir(tmp_path, ["q0\td5\t1"])
    found = evaluate(lambda texts: np.ones((len(texts), 2)), data=folder)
    assert figures(found)["recall@100"] == 0


def test_splits_and_unusable_rows(tmp_path, capsys):
    folder = write_beir(
        tmp_path, ["q0\td5\t1", "q0\tx\t1", "x\td5\t1", "q1\td1\t0"], "dev"
    )
    scores(folder, split="validation")
    assert "left out 2 judgements of unknown queries or documents" in stderr(capsys)
    for rows, split, message in values(r"""
            ['q0\td5\t1'] | test | no judgements of test, found validation; choose with split=
            ['q0\td5\tyes'] | validation | dev\.tsv:2: expected a number as score
            ['q0\td5\tNaN'] | validation | dev\.tsv:2: expected a number as score
            ['q0\td5\t1e400'] | validation | dev\.tsv:2: expected a number as score
            ['q0\tx\t1'] | validation | no relevant document of a query of validation
            """):
        write_beir(folder, rows, "dev")
        with data_error(message):
            scores(folder, split=split)
    with data_error(r"dev\.tsv:2: no query or document with the id q0 or x; remove"):
        pairkit.read(folder)
    for lines, message in values(r"""
            '{"id": "a", "text": "b"}' | : no column _id; expected _id and text
            '{"_id": "a", "text": "b"}\n{"_id": ["c"], "text": "d"}' | :2: the column _id has lists
            '{"_id": "a", "text": "b"}\n{"_id": "c", "text": {"d": 1}}' | :2: the column text has lists
            '{"_id": 1, "text": "b"}\n{"_id": "1", "text": "c"}' | :2: a second text with the id 1; remove
            """):
        (folder / "corpus.jsonl").write_text(lines + "\n")
        with data_error(rf"corpus\.jsonl{message}"):
            scores(folder, split="validation")

"""What `pairs` promises on its command line."""

from __future__ import annotations

from pathlib import Path

from tests.contract.conftest import environment, run_alone, run_pairs


def test_missing_and_malformed_datasets(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("text1\ttext2\tlabel\na\tb\t1\n \tb\t0\n")
    (tmp_path / "b.tsv").write_text("left\tright\nx\ty\n")
    done = run_pairs("export", str(tmp_path / "a.tsv"), "--out", str(tmp_path / "x"))
    assert done.code == 3
    assert "a.tsv:3" in done.error
    audited = run_pairs("audit", str(tmp_path / "a.tsv"))
    assert audited.code == 3
    assert f"empty text1 in 1 (first: {tmp_path / 'a.tsv'}:3); fill them" in audited.error
    skipped = run_pairs("audit", str(tmp_path / "a.tsv"), "--bad-rows", "skip")
    assert (skipped.code, "empty text1" in skipped.out) == (0, True)
    flags = ("--out", str(tmp_path / "y"), "--bad-rows", "skip")
    exported = run_alone("pairkit", "export", str(tmp_path / "a.tsv"), *flags, environ=environment())
    assert f"rows left out: empty text1 in 1 ({tmp_path / 'a.tsv'}:3)" in exported.err
    assert (tmp_path / "y.bad-rows.jsonl").is_file()
    assert run_pairs("audit", str(tmp_path / "b.tsv")).code == 3
    assert run_pairs("show", str(tmp_path / "a.tsv"), "--split", "nope").code in (2, 3)


def test_other_columns_and_labels_in_words_can_be_mapped(tmp_path: Path) -> None:
    path = str(tmp_path / "train.tsv")
    Path(path).write_text("left\tright\tsays\na\tb\tsame\nc\td\tother\n")
    columns = ("--columns", "text1=left,text2=right,label=says")
    assert "sentence1" in run_pairs("audit", path).error
    assert "map words to numbers" in run_pairs("audit", path, *columns).error
    done = run_pairs("audit", path, *columns, "--labels", "same=1,other=0", "--json")
    assert done.code == 0, done.err
    assert done.result["splits"]["train"]["positive_share"] == 0.5
    next_line = run_pairs("audit", path, *columns, "--labels", "same=1,other=0").err.splitlines()[-1]
    assert next_line == f"  pairs report {path} {' '.join(columns)} --labels same=1,other=0"
    for flags in (
        ("--labels", "yes"),
        ("--labels", "yes=high"),
        ("--columns", "text1="),
        ("--columns", "x=y"),
    ):
        assert run_pairs("audit", path, *flags).code == 2

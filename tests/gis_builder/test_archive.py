"""`gis archive`: equal datasets of any workers and settings, its card, limits, and failing tasks."""

import gzip
import json
import re
import shutil

import polars as pl

import gis_builder
from tests.gis_builder.archive_world import (
    HOURS,
    RANGE,
    build,
    events_of,
    files,
    lines_of,
    save_dump,
    times,
    write_hours,
)
from tests.support.shorthand import config_error, data_error, each_line


def test_card_run_and_notes_describe_the_dataset(built):
    assert built.positives > 30
    built.audit.check()
    card = (built.out / "README.md").read_text()
    assert "GH Archive" in card
    assert "| 2015-01 | 744 | 740 |" in card  # hours: all and missing
    assert "6 hours; 741 hours missing, 0 truncated" in built.notes()[-1]
    run = json.loads((built.out / "run.json").read_text())
    assert run["settings"]["hours"] == RANGE
    assert "workers" not in json.dumps(run)
    assert str(built.work) not in json.dumps(run)
    assert built.statistics["months"]["2015-02"]["events"] > 0
    assert built.to_dict()["positives"] == built.positives
    assert pl.read_parquet(built.work / "dropped.parquet")["reason"].null_count() == 0
    assert (
        f"list of rejected issues and pairs: {built.work / 'dropped.parquet'}"
        in built.notes()
    )


def test_verdicts_and_pairs_equal_those_of_a_build(built, threads, tmp_path):
    """Compare with an import of the same threads without duplicate marks."""
    for repo, own in threads.items():
        save_dump(tmp_path / "dump" / repo, own)
    work = tmp_path / "gis.work"
    gis_builder.import_tracker(tmp_path / "dump", work)
    gis_builder.detect(work)
    other = gis_builder.pair(work, tmp_path / "gis")
    mine, theirs = (
        {
            (row["url1"], row["url2"]): row
            for row in made.pairs.rows.to_dicts()
            if row["label"]
        }
        for made in (built, other)
    )
    both = mine.keys() & theirs.keys()
    assert len(both) >= 0.97 * max(len(mine), len(theirs))
    for key in both:
        for name in ("text1", "text2", "cluster", "relation", "reason", "evidence"):
            assert mine[key][name] == theirs[key][name]


def test_hours_can_be_read_and_deleted_one_by_one(built, source, tmp_path, capsys):
    folder, work = tmp_path / "hours", tmp_path / "gis.work"
    for hour in HOURS:
        folder.mkdir()
        # Two digits.
        shutil.copy(
            source / f"{hour}.json.gz", folder / f"{hour[:11]}0{hour[11:]}.json.gz"
        )
        read = gis_builder.read_hours(hour, folder, work=work, workers=1)
        assert isinstance(read, gis_builder.HoursRead)
        assert "in 1 hours; 0 hours missing" in read.notes()[0]
        assert re.search(rf"(?m)^{hour[:7]} +1 +0 +0 +0 +\d", repr(read))
        shutil.rmtree(folder)
    made = build(folder, tmp_path / "gis", work=work)
    assert files(made.out) == files(built.out)
    assert times(made.work).keys() == times(built.work).keys()
    (rows,) = work.glob(f"hours/{HOURS[0]}.*")
    rows.rename(
        rows.with_name(f"{HOURS[0]}.{'0' * 20}.{rows.name.split('.')[2]}.parquet")
    )
    assert files(build(folder, made.out, fresh=True, progress=True).out) == files(
        built.out
    )
    assert (
        f"1 hours without files, such as {HOURS[0]}: read by another version"
        in capsys.readouterr().err
    )


def test_changed_settings_repeat_only_dependent_tasks(built, source, tmp_path, work):
    shutil.copytree(built.work, work)
    pairs = {"pair.ratio": 0.5, "pair.relations": "all", "split.sizes": "0.5,0.25,0.25"}
    pairs |= {
        "limits.per_repo_max": 9,
        "pair.similar_at": 0.7,
        "pair.negatives": "hard",
    }
    detection = {"detect.min_confidence": 0.9}
    for settings, is_judged_again in ((pairs, False), (detection, True)):
        before = set(times(work))
        made = build(source, tmp_path / "gis", work=work, settings=settings, fresh=True)
        new = set(times(work)) - before
        assert any(path.startswith("judged/") for path in new) == is_judged_again
        if not is_judged_again:
            scratch = build(source, tmp_path / "scratch", settings=settings, fresh=True)
            assert files(made.out) == files(scratch.out) != files(built.out)


def test_limits_and_takedowns(built, source, tmp_path):
    rows = built.pairs.rows.filter(pl.col("label") == 1)
    repo = rows["repo"].sort()[0]
    others = sorted(set(rows["repo"]) - {repo})
    url = rows.filter(pl.col("repo") == others[0])["url1"][0]
    number = url.rpartition("/")[2]
    (tmp_path / "out.txt").write_text(f"{repo.upper()}\n{others[0]}#{number}\n")
    limited = {"limits.per_repo_max": 5}
    other = build(
        source, tmp_path / "gis", exclude=tmp_path / "out.txt", settings=limited
    )
    texts = other.pairs.rows
    assert repo not in set(texts["repo"])
    assert url not in {*texts["url1"], *texts["url2"]}
    assert texts.filter(pl.col("label") == 1)["repo"].value_counts()["count"].max() == 5
    assert other.statistics["archive_repositories"]["excluded"] == 1
    assert other.statistics["rejected_issues"]["excluded"] == 1
    assert other.statistics["dropped_positives"]["per_repo_max"] > 0
    assert "has more than 5 positives" in (other.out / "README.md").read_text()
    with data_error(
        r"no pairs: .* in 6 hours; 741 hours missing, 0 truncated, 0 broken"
    ):
        build(source, tmp_path / "none", settings={"limits.min_closed": 10_000})


@each_line("""
    words, why
    2014-12-31..2015-01-01 | have no texts
    2015-01-02..2015-01-01 | ends before
    0001-01-01..9999-12-31 | have no texts
    2015-01-01..9999-12-31 | ends after today
    2015-02-30 | 2015-02-30 doesn't exist
    2015-01-01..2015-01-01-24 | 2015-01-01-24 doesn't exist
    yesterday | expected days
    ..2015-01-01 | expected days
""")
def test_invalid_ranges_of_hours(words, why):
    with config_error(why):
        gis_builder.read_hours(words, "none")


def test_the_card_names_losses(source, tmp_path):
    """After May 23 of 2025 the archive lacks events; old events lack the authors' associations."""
    (tmp_path / "hours").mkdir()
    lines = b"".join(
        gzip.decompress((source / f"{hour}.json.gz").read_bytes()) for hour in HOURS
    )
    lines = lines.replace(b'"author_association":"NONE",', b"")
    for hour, end in {"2025-05-23-23": None, "2025-05-24-0": -9}.items():
        path = tmp_path / "hours" / f"{hour}.json.gz"
        path.write_bytes(gzip.compress(lines)[:end])
    cards = []
    for last in ("2025-05-23-23", "2025-05-24-1"):
        made = gis_builder.archive(
            f"2025-05-23-23..{last}", tmp_path / "hours", tmp_path / last, workers=1
        )
        cards.append((made.out / "README.md").read_text())
    sparse = "**After 2025-05-23 the archive lacks most events.**"
    assert [sparse in card for card in cards] == [False, True]
    assert "| 2025-05 | 3 | 1 | 1 | " in cards[1]  # hours, missing, truncated
    assert "events lack the author's association" in cards[0]


def test_a_recreated_repository_replaces_the_former_one(threads, tmp_path):
    own = next(iter(threads.values()))
    before = [
        t._replace(issue=t.issue | {"title": "Older: " + t.issue["title"]}) for t in own
    ]
    early = events_of(2, before)
    for event in early:
        event["created_at"] = "2014" + event["created_at"][4:]
    write_hours(tmp_path / "hours", lines_of([*events_of(1, own), *early]), HOURS)
    made = build(tmp_path / "hours", tmp_path / "gis")
    texts = [*made.pairs.rows["text1"], *made.pairs.rows["text2"]]
    assert not any(text.startswith("Older") for text in texts)
    assert made.statistics["archive_repositories"]["name_taken_over"] == 1


def test_invalid_archive_arguments(tmp_path):
    (tmp_path / "empty").mkdir()
    with data_error(r"2015-01-01-0\.json\.gz"):
        build(tmp_path / "empty", tmp_path / "gis")
    ray = {"engine": "ray", "workers": None}
    for given, why in (
        ({"settings": {"pair.negatives": len}}, "random, hard or mixed"),
        ({"settings": {"detect.allow_cross_repository": True}}, "judged by repository"),
        ({"workers": 0}, "workers = 0"),
        ({"address": "10.0.0.1:6379"}, "engine='ray'"),
        (ray, "needs address="),
        ({**ray, "address": "auto"}, "expected HOST:PORT"),
        ({**ray, "address": "127.0.0.1:1"}, "no Ray cluster answers"),
        ({"engine": "ray", "address": "127.0.0.1:1"}, "not available on a cluster"),
    ):
        with config_error(why):
            build(tmp_path / "none", tmp_path / "gis", **given)


def test_a_verdict_of_an_archive_is_explained(built, threads):
    dropped = pl.read_parquet(built.work / "dropped.parquet").row(0, named=True)
    why = gis_builder.explain(built.work, dropped["issue1"])
    assert why.outcome
    assert f"rejected [{dropped['reason']}]: {dropped['issue1']}" in why.text
    pair = built.pairs.rows.filter(pl.col("label") == 1).row(0, named=True)
    ends = [
        f"{pair['repo']}#{pair[name].rpartition('/')[2]}" for name in ("url1", "url2")
    ]
    assert "duplicate" in {gis_builder.explain(built.work, end).outcome for end in ends}
    with config_error("not among the issues"):
        gis_builder.explain(built.work, f"{next(iter(threads))}#999999")

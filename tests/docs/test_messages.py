"""Messages name an option once, by its flag, which readers in Python get as a keyword argument."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import pairkit
from pairkit import ConfigError
from tests.conftest import command_line
from tests.contract.conftest import ROOT, run_pairs

PACKAGES = ("gis_builder", "llm_labeler", "aoe_train", "pairkit")
# Patterns, and the shell's own.
SKIPPED = {
    "secrets",
    "detection",
    "options.py",
    "commands.py",
    "cli.py",
}
FLAG = re.compile(r"(?<![^\s(])--(?:no-(?=lora|grades|cache))?([a-z][a-z-]+)")
DECLARATION = re.compile(
    r"--[a-z-]+(?:[ /]-{1,2}[a-z-]+)*|(?:aoe|gis|label|pairs|torchrun|pip|zcat) .*"
)


def messages(source: str) -> Iterator[tuple[int, str]]:
    """The texts in a module's code that contain flags, without docstrings, commands and declarations."""
    tree = ast.parse(source)
    skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in node.values}
            parts = (
                part.value if isinstance(part, ast.Constant) else "0"
                for part in node.values
            )
            text = "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        text = re.sub("`[^`]*`", "", text)
        if (
            id(node) not in skipped
            and FLAG.search(text)
            and not DECLARATION.fullmatch(text)
        ):
            yield node.lineno, text


def options(package: str) -> dict[str, type]:
    """The type of each option of a package's commands, by flag."""
    return {
        (name if name != "settings" else "set").replace("_", "-"): option.kind
        for command in command_line(package).registered_commands
        for name, option in command.cls.declared.items()
    }


@pytest.mark.parametrize("package", PACKAGES)
def test_messages_name_declared_options_once(package: str) -> None:
    serves = PACKAGES if package == "pairkit" else (package,)
    kinds = {flag: kind for name in serves for flag, kind in options(name).items()}
    wrong = []
    for path in (ROOT / package).rglob("*.py"):
        found = (
            []
            if SKIPPED & {*path.parts}
            else messages(path.read_text(encoding="utf-8"))
        )
        for line, text in found:
            for flag in FLAG.findall(text):
                keyword = flag.replace("-", "_")
                is_twice = re.search(rf"(?<![-\w]){keyword}(=| \(--)", text)
                is_switch = str(ConfigError(f"--{flag}")).endswith("=True")
                if flag not in kinds or is_twice or is_switch != (kinds[flag] is bool):
                    wrong.append(f"{path}:{line}: --{flag} in {text!r}")
    assert wrong == []


@pytest.mark.parametrize(
    ("message", "in_python"),
    [
        (
            "give --fresh to replace it, or another --out",
            "give fresh=True to replace it, or another out=",
        ),
        (
            "give --columns text=NAME,b=1, or none",
            "give columns={'text': 'NAME', 'b': '1'}, or none",
        ),
        ("--suite foo: expected sts", "suite='foo': expected sts"),
        (
            "use --engine=ray (--no-lora: --lr 2e-5)",
            "use engine='ray' (lora=False: lr=2e-5)",
        ),
        (
            "--data PAIRS, --model --labels 'not so=1'",
            "data=PAIRS, model= labels='not so=1'",
        ),
        ("--set run.chunk=16.", "settings='run.chunk=16'."),
        (
            "a--fresh, `pairs audit --columns a=b`",
            "a--fresh, `pairs audit --columns a=b`",
        ),
        ("--columns 'text=a b'", "columns={'text': 'a b'}"),
    ],
)
def test_python_gets_keyword_arguments(message: str, in_python: str) -> None:
    assert str(ConfigError(message)) == in_python


def test_the_same_error_in_python_and_in_the_shell(tmp_path: Path) -> None:
    pairs, out = tmp_path / "pairs.tsv", tmp_path / "out"
    rows = [f"anchor {n}\tpositive {n}\t{n % 2}\n" for n in range(9)]
    pairs.write_text("text1\ttext2\tlabel\n" + "".join(rows))
    pairkit.split(pairs, out, split_sizes=(1, 0, 0))
    with pytest.raises(ConfigError, match="give fresh=True to replace it"):
        pairkit.split(pairs, out, split_sizes=(1, 0, 0), seed=7)
    done = run_pairs(
        "split", str(pairs), "--out", str(out), "--split-sizes", "1,0,0", "--seed", "7"
    )
    assert (done.code, "give --fresh to replace it" in done.error) == (2, True)

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pairkit import ConfigError, DataError
from pairkit.base.system.files import (
    check_free,
    open_own,
    sha256,
    whole_folder,
    write_errors,
    write_json,
    write_text,
)


def test_write_text_replaces_atomically(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "a.txt"
    write_text(path, "one")
    write_text(path, "zwei ✓")
    assert path.read_text(encoding="utf-8") == "zwei ✓"
    assert [p.name for p in path.parent.iterdir()] == ["a.txt"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_disk() -> None:
    path = Path("/dev/full")
    with pytest.raises(ConfigError, match="No space left"), write_errors(path), path.open("wb") as file:
        file.write(b"x" * 10_000)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("Error while serializing: I/O error: No space left on device (os error 28)", "No space left"),
        (
            "[enforce fail at inline_container.cc:672] . unexpected pos 109760 vs 109652",
            "most likely no space",
        ),
        ("288000 requested and 30688 written", "most likely no space"),  # an OSError of numpy
    ],
)
def test_disk_errors_wrapped_by_libraries(message: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=rf"a: can't be written \({reason}"), write_errors(Path("a")):
        raise OSError(message) if "requested" in message else RuntimeError(message)


@pytest.mark.parametrize("error", [RuntimeError("os error"), DataError("(os error 28)"), KeyError("x")])
def test_other_errors_are_unchanged(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, write_errors(Path("a")):
        raise error
    assert caught.value is error


def test_whole_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with whole_folder(out) as partial:
        (partial / "a").write_text("1")
        assert not out.exists()
    assert (out / "a").read_text() == "1"
    with whole_folder(out) as partial:
        (partial / "b").write_text("2")
    with pytest.raises(ZeroDivisionError), whole_folder(out) as partial:
        (partial / "c").write_text(str(1 // 0))
    assert [p.name for p in (*out.iterdir(), *tmp_path.iterdir())] == ["b", "out"]


def test_killed_writer_keeps_the_old_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with whole_folder(out) as partial:
        (partial / "a").write_text("1")
    program = (
        "import sys, time; from pathlib import Path; from pairkit.base.system.files import whole_folder\n"
        "with whole_folder(Path(sys.argv[1])) as p:\n"
        "    (p / 'b').write_text('2'); print('ready', flush=True); time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program, str(out)], stdout=subprocess.PIPE)
    if process.stdout is None:
        pytest.fail("no pipe")
    process.stdout.readline()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert [p.name for p in out.iterdir()] == ["a"]
    with whole_folder(out) as partial:
        assert list(partial.iterdir()) == []
        (partial / "c").touch(0o600)  # as safetensors writes
    (partial := tmp_path / "usual").touch()
    assert (out / "c").stat().st_mode == partial.stat().st_mode
    partial.unlink()
    assert [p.name for p in out.iterdir()] == ["c"]
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_open_own(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with open_own(path, private=True) as file:
        file.write(b"one")
    assert path.stat().st_mode & 0o777 == 0o600
    with open_own(path) as file:
        file.seek(3)
        file.write(b"two")
    assert path.read_bytes() == b"onetwo"
    open_own(path, "wb").close()
    assert path.read_bytes() == b""


def test_write_json_and_check_free(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"b": 1, "a": "ä"})
    write_json(tmp_path / "b.json", {"a": "ä", "b": 1})
    assert sha256(tmp_path / "a.json") == sha256(tmp_path / "b.json")
    with pytest.raises(ConfigError, match="already exists"):
        check_free(tmp_path / "a.json")

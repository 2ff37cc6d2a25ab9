"""WordNet's own files, as Debian's `wordnet-base` and Princeton ship them (see its `wndb(5WN)`).

| file | a line | |
|---|---|---|
| `index.noun` … | lemma, senses as offsets into `data.noun`, most frequent first | |
| `data.noun` … | synset: its words, its pointers to other synsets | found by its offset in bytes |
| `noun.exc` … | irregular form, its lemmas | |
| `cntlist.rev` | sense key, sense number, times seen in hand-tagged text | |

The indexes are read at once, since any word may be asked for; a synset is read when it is.
"""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Literal

from pairkit.errors import ConfigError, DataError

Pos = Literal["n", "v", "a", "r"]
DEBIAN = Path("/usr/share/wordnet")
_NAMES: dict[Pos, str] = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
# The part of speech in a sense key; 5 is an adjective that only resembles the head of its cluster.
_KEY_POS: dict[str, Pos] = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}


@dataclass(frozen=True, slots=True)
class Pointer:
    """A tie from a synset, or one of its words, to another."""

    symbol: str  # ! antonym, & similar, @ hypernym, …
    pos: Pos
    offset: int
    source: int  # place of the word in its synset, from 1; 0: the whole synset
    target: int


@dataclass(frozen=True, slots=True)
class Synset:
    """Words that mean the same in one of their senses."""

    pos: Pos
    offset: int
    words: tuple[str, ...]  # with spaces for underscores; a lemma's own capitals
    pointers: tuple[Pointer, ...]


@dataclass(frozen=True, slots=True)
class Sense:
    """One meaning of a lemma; its lemma's senses stand in order of frequency."""

    offset: int
    count: int  # times seen in hand-tagged text


class WordNet:
    """The database in one folder."""

    def __init__(self, folder: Path) -> None:
        wanted = [f"{kind}.{name}" for kind in ("index", "data") for name in _NAMES.values()]
        wanted += [f"{name}.exc" for name in _NAMES.values()] + ["cntlist.rev"]
        missing = [name for name in wanted if not (folder / name).is_file()]
        if missing:
            raise ConfigError(
                f"{folder}: no {missing[0]}; expected a WordNet database; `apt-get install wordnet-base` "
                f"puts one into {DEBIAN}; name another folder as the entry's `path` or in WORDNET_DIR"
            )
        self.folder = folder
        self._index = {pos: self._read_index(pos) for pos in _NAMES}
        self.exceptions = {pos: self._read_exceptions(pos) for pos in _NAMES}
        self._senses: dict[tuple[str, Pos], tuple[Sense, ...]] = {}
        self._synsets: dict[tuple[Pos, int], Synset] = {}

    def knows(self, lemma: str, pos: Pos) -> bool:
        """Whether a lemma, in small letters and with spaces, is in the index."""
        return lemma.replace(" ", "_") in self._index[pos]

    def senses(self, lemma: str, pos: Pos) -> tuple[Sense, ...]:
        """The meanings of a lemma, most frequent first; none if it is unknown."""
        key = (lemma, pos)
        if key not in self._senses:
            self._senses[key] = self._parse_index(lemma.replace(" ", "_"), pos)
        return self._senses[key]

    def count(self, lemma: str, pos: Pos) -> int:
        """How often the lemma was seen in hand-tagged text, all senses together."""
        return sum(sense.count for sense in self.senses(lemma, pos))

    def synset(self, pos: Pos, offset: int) -> Synset:
        """The synset that stands at an offset."""
        key = (pos, offset)
        if key not in self._synsets:
            self._synsets[key] = self._parse_synset(pos, offset)
        return self._synsets[key]

    @cached_property
    def first_of_compound(self) -> frozenset[str]:
        """Words that compounds of the noun index begin with."""
        return frozenset(lemma.split("_", 1)[0] for lemma in self._index["n"] if "_" in lemma)

    @cached_property
    def irregular_verbs(self) -> frozenset[str]:
        """Verbs with a past that doesn't end in -ed."""
        return frozenset(
            verb
            for form, verbs in self.exceptions["v"].items()
            if not form.endswith(("ed", "ing", "s"))
            for verb in verbs
        )

    @cached_property
    def _counts(self) -> dict[tuple[str, Pos], dict[int, int]]:
        found: dict[tuple[str, Pos], dict[int, int]] = defaultdict(dict)
        path = self.folder / "cntlist.rev"
        try:
            for line in _text(path).splitlines():
                key, number, count = line.split(" ")
                lemma, _, rest = key.rpartition("%")
                found[lemma, _KEY_POS[rest[0]]][int(number)] = int(count)
        except (ValueError, KeyError, IndexError) as error:
            raise _damaged(path, error) from error
        return found

    @cached_property
    def _data(self) -> dict[Pos, bytes]:
        return {pos: (self.folder / f"data.{name}").read_bytes() for pos, name in _NAMES.items()}

    def _read_index(self, pos: Pos) -> dict[str, str]:
        lines = _text(self.folder / f"index.{_NAMES[pos]}").splitlines()
        pairs = (line.partition(" ") for line in lines if not line.startswith(" "))  # not the licence
        return {lemma: rest for lemma, _, rest in pairs}

    def _read_exceptions(self, pos: Pos) -> dict[str, tuple[str, ...]]:
        rows = (line.split() for line in _text(self.folder / f"{_NAMES[pos]}.exc").splitlines())
        return {row[0].replace("_", " "): tuple(row[1:]) for row in rows if len(row) > 1}

    def _parse_index(self, lemma: str, pos: Pos) -> tuple[Sense, ...]:
        fields = self._index[pos].get(lemma, "").split()
        if not fields:
            return ()
        counts = self._counts.get((lemma, pos), {})
        try:
            offsets = [int(field) for field in fields[-int(fields[1]) :]]
        except (ValueError, IndexError) as error:
            raise _damaged(self.folder / f"index.{_NAMES[pos]}", error) from error
        return tuple(Sense(offset, counts.get(place, 0)) for place, offset in enumerate(offsets, 1))

    def _parse_synset(self, pos: Pos, offset: int) -> Synset:
        data = self._data[pos]
        line = data[offset : data.find(b"\n", offset)].decode("latin-1")
        fields = line.split(" | ", 1)[0].split()
        if fields[:1] != [f"{offset:08}"]:
            raise _damaged(self.folder / f"data.{_NAMES[pos]}", f"no synset at byte {offset}")
        try:
            end = 4 + 2 * int(fields[3], 16)
            words = tuple(word.replace("_", " ") for word in fields[4:end:2])
            ties = range(end + 1, end + 1 + 4 * int(fields[end]), 4)
            return Synset(pos, offset, words, tuple(_pointer(fields[at : at + 4]) for at in ties))
        except (ValueError, IndexError) as error:
            raise _damaged(self.folder / f"data.{_NAMES[pos]}", error) from error


def find_folder(path: Path | None) -> Path:
    """The database's folder: as configured, else as WORDNET_DIR says, else where Debian puts it."""
    return path or Path(os.environ.get("WORDNET_DIR") or DEBIAN)


@cache
def load(folder: Path) -> WordNet:
    """The database in a folder, read once in a process.

    Raises:
        ConfigError: no WordNet is there.
        DataError: a file is damaged.
    """
    return WordNet(folder)


def _pointer(fields: list[str]) -> Pointer:
    symbol, offset, pos, ends = fields
    known: Pos = "a" if pos == "s" else pos  # type: ignore[assignment]
    return Pointer(symbol, known, int(offset), int(ends[:2], 16), int(ends[2:], 16))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="latin-1")
    except OSError as error:
        raise ConfigError(f"{path}: not readable ({error}); fix its permissions") from error


def _damaged(path: Path, error: object) -> DataError:
    return DataError(f"damaged ({error}); install wordnet-base again", path=path)

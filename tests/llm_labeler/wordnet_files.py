"""A WordNet of a few dozen words of our own, in the files and format that Debian's wordnet-base has."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

NAMES = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
KEY_POS = {"n": 1, "v": 2, "a": 3, "r": 4}

# One synset a line: its words, how often each was seen in this sense, and the first word's opposite. A word's
# senses stand in the order of its lines.
SYNSETS = """
n doctor:75 physician:9
n person:100 individual:20 mortal:2
n cell:40
n white_blood_cell:0 leukocyte:0 leucocyte:0
n bank:20
n bank:15 depository:3
n book:80
n sentence:9
n village:30
n river:25
n house:90
n rain:12
n cat:30
n dog:30
n letter:20
n medicine:15
n pain:30
n fever:10
n cause:40
n help:5
n treatment:30
n bread:20
n ship:9
n light:20
n cold:5
n child:90
n mouse:9
v help:60 assist:8
v begin:120 get_down:2 start:40
v close:40 shut:20 !open
v open:60
v cause:70
v treat:40
v read:80
v rise:40 !fall
v fall:50
v carry:70
v see:200
v write:90
v take:200
v bake:9
v eat:60
v stop:60
v permit:20
v travel:20
v sleep:30
v visit:20
v find:80
v live:60
v try:60 attempt:9
v conceal:9 hide:12
a large:128 big:41 !small
a small:100
a open:30 !shut
a shut:5
a common:20
a rare:9
a dangerous:20 unsafe:2 !harmless
a harmless:4
a cold:35 !hot
a hot:40
a happy:30 !unhappy
a unhappy:6
a correct:20 !incorrect
a incorrect:3
a old:90
a quiet:20
a red:30
a sudden:9 !gradual
a gradual:7
a late:30
a light:20
a near:9
r often:155 frequently:39
r slowly:30 !quickly
r quickly:30
r seldom:9 rarely:20
r near:9
"""
EXCEPTIONS = {
    "noun": "children child\nmice mouse\n",
    "verb": (
        "fell fall\nfallen fall\npermitted permit\npermitting permit\nrose rise\nrisen rise\n"
        "saw see\nseen see\n"
    ),
    "adj": "larger large\n",
    "adv": "best well\n",
}
LICENCE = "  1 This file was made for tests.\n  2 It holds words of everyday English.\n"


@dataclass
class _Synset:
    pos: str
    words: list[tuple[str, int]]
    opposite: str
    offset: int = 0
    pointers: list[str] = field(default_factory=list)

    def line(self) -> str:
        words = " ".join(f"{word} 0" for word, _ in self.words)
        pointers = "".join(f" {pointer}" for pointer in self.pointers)
        head = (
            f"{self.offset:08} 00 {self.pos} {len(self.words):02x} {words} {len(self.pointers):03}{pointers}"
        )
        return f"{head}{' 00' if self.pos == 'v' else ''} | a meaning of {self.words[0][0]}  \n"


def write_wordnet(folder: Path) -> Path:
    """Write the database into a folder, which is made."""
    folder.mkdir(parents=True)
    synsets = [_parse(line) for line in SYNSETS.strip().splitlines()]
    counts: list[str] = []
    for pos, name in NAMES.items():
        own = [synset for synset in synsets if synset.pos == pos]
        _place(own)
        (folder / f"data.{name}").write_text(LICENCE + "".join(synset.line() for synset in own))
        senses: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for synset in own:
            for word, count in synset.words:
                senses[word].append((synset.offset, count))
        (folder / f"index.{name}").write_text(
            LICENCE
            + "".join(
                f"{word} {pos} {len(found)} 1 @ {len(found)} 0 {_offsets(found)}  \n"
                for word, found in sorted(senses.items())
            )
        )
        (folder / f"{name}.exc").write_text(EXCEPTIONS[name])
        counts += [
            f"{word}%{KEY_POS[pos]}:00:00:: {number} {count}\n"
            for word, found in sorted(senses.items())
            for number, (_, count) in enumerate(found, 1)
            if count
        ]
    (folder / "cntlist.rev").write_text("".join(counts))
    return folder


def _offsets(senses: list[tuple[int, int]]) -> str:
    return " ".join(f"{offset:08}" for offset, _ in senses)


def _parse(line: str) -> _Synset:
    pos, *words = line.split()
    opposite = words.pop()[1:] if words[-1].startswith("!") else ""
    counted = [word.rsplit(":", 1) for word in words]
    return _Synset(pos, [(word, int(count)) for word, count in counted], opposite)


def _place(synsets: list[_Synset]) -> None:
    """Give synsets their offsets, and ties to their opposites both ways."""
    first = {synset.words[0][0]: synset for synset in reversed(synsets)}
    for synset in synsets:
        if synset.opposite:
            first[synset.opposite].opposite = synset.words[0][0]
    # Offsets have eight digits whatever they are, so no line changes its length.
    offset = len(LICENCE)
    for synset in synsets:
        synset.pointers = [f"! {0:08} {synset.pos} 0101"] if synset.opposite else []
        synset.offset = offset
        offset += len(synset.line())
    for synset in synsets:
        if synset.opposite:
            synset.pointers = [f"! {first[synset.opposite].offset:08} {synset.pos} 0101"]

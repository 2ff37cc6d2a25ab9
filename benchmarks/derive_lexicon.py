"""How the rules' `lexicon.tsv` was made of WordNet 3.0's files, as Debian's `wordnet-base` has them.

`python -m benchmarks.derive_lexicon > llm_labeler/clients/wordnet/lexicon.tsv` makes it again.
A word counts only in its dominant sense: its only one, or the one that most of its occurrences in hand-tagged
text have. See `wndb(5WN)` and `cntlist(5WN)` for the formats.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from llm_labeler.clients.wordnet.substitutions import PhraseTable, read_table
from llm_labeler.clients.wordnet.tagged_sentence import word_set
from llm_labeler.clients.wordnet.wordnet_lexicon import Pos, lemmas

DEBIAN = Path("/usr/share/wordnet")
DOMINANT = 0.75  # share of a word's occurrences, one more of another sense imagined
NAMES = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
# 5: an adjective like the head of its cluster.
KEY_POS = {
    "1": "n",
    "2": "v",
    "3": "a",
    "4": "r",
    "5": "a",
}
HEAD = """\
# synonym or antonym, part of speech, lemma, words that say the same or the opposite; adjectives that are the
# opposite of what stands after their prefix; compounds not to break up.
# Derived from WordNet 3.0 by benchmarks/derive_lexicon.py. Its licence:
#
"""

# In WordNet the same in their main sense, and yet not said for one another.
UNLIKE = word_set(
    """
    accident accordingly adolescent advocate afterward again aid also apothecary apportion approve
    arbitrarily as assist assistance attempt attribute authorities babe bar beget beloved building bulk
    buy cease centrifuge certainly cheery class close clothing concisely construct cow creature data day
    dear dearly decent decidedly decree desire dictate diminutive earnestly easy edifice effect enough
    envisage expound feasible fiscal fleet foliage free fresh fright gasp goddam government handicapped
    happening help hence hour hunch ill imitation impute incline incur invariably kind lass lately leaf
    lessening loose merely merit metropolis might mortal motivate music near new night nighttime
    normally nothing percent percentage perish person phone plainly plenty populace presently pressing
    pretty prompt real reasonably recurrent regain remainder remarkably repeated rest retrieve routine
    sanction sanctioned scheme septic sis slumber smart sock soiled solace some someone soon sort
    speedily sporadically state student sunny sure systematically telephone thing thrice thwart tike
    twelvemonth unusually up upshot vast want ways wholly workout wound
    """
)
# Opposites of another sense than the one that is usually meant.
NOT_OPPOSITE = word_set(
    """
    amphoteric antecedent black brunet continual continued costive down equal first fractional
    frequently gaseous general greater hearing heavy immoderate induced infrequently intense
    irresponsible last left lesser like mild moderate naive natural often pro random rarely responsible
    rested right round sparse specific sporadic square unlike unready up vascular white whole
    """
)


@dataclass(frozen=True)
class Synset:
    """Words of one meaning; opposites as (word's place, part of speech, offset, other's place)."""

    key: tuple[str, int]
    words: tuple[str, ...]
    opposites: tuple[tuple[int, str, int, int], ...]


class WordNet:
    """The database in one folder."""

    def __init__(self, folder: Path) -> None:
        self.senses: dict[tuple[str, str], list[int]] = {}
        self.counts: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
        self.synsets: dict[tuple[str, int], Synset] = {}
        for pos, name in NAMES.items():
            for line in _lines(folder / f"index.{name}"):
                lemma, _, number, *rest = line.split()
                self.senses[lemma.replace("_", " "), pos] = [
                    int(offset) for offset in rest[-int(number) :]
                ]
            for line in _lines(folder / f"data.{name}"):
                synset = _synset(pos, line.split(" | ")[0].split())
                self.synsets[synset.key] = synset
        for line in _lines(folder / "cntlist.rev"):
            key, number, count = line.split()
            lemma, _, rest = key.rpartition("%")
            self.counts[lemma, KEY_POS[rest[0]]][int(number)] = int(count)

    def count(self, lemma: str, pos: str) -> int:
        """How often the lemma was seen in hand-tagged text, all senses together."""
        return sum(self.counts.get((lemma, pos), {}).values())

    def main_sense(self, lemma: str, pos: str) -> Synset | None:
        """The synset of the dominant sense; None if the lemma has none, or is unknown."""
        offsets = self.senses.get((lemma, pos))
        if not offsets:
            return None
        first = self.counts.get((lemma, pos), {}).get(1, 0)
        if len(offsets) > 1 and first / (self.count(lemma, pos) + 1) < DOMINANT:
            return None
        return self.synsets[pos, offsets[0]]

    def synonyms(self, lemma: str, pos: str) -> Iterator[str]:
        """Words of the same dominant sense that are in use, the most frequent first."""
        synset = self.main_sense(lemma, pos)
        if synset is None or lemma in UNLIKE:
            return
        for word in sorted(
            set(synset.words) - UNLIKE - {lemma},
            key=lambda word: (-self.count(word, pos), word),
        ):
            in_use = len(word) > 2 and _is_word(word) and self.count(word, pos) > 1
            if (
                in_use
                and not _alike(lemma, word)
                and self.main_sense(word, pos) == synset
            ):
                yield word

    def antonyms(self, lemma: str, pos: str) -> Iterator[str]:
        """Words that are the direct opposite in the dominant sense of both."""
        synset = self.main_sense(lemma, pos)
        if synset is None or lemma in NOT_OPPOSITE:
            return
        for place, other_pos, offset, target in synset.opposites:
            other = self.synsets[other_pos, offset]
            word = other.words[target - 1].split("(")[0]
            in_use = (
                _is_word(word)
                and word not in NOT_OPPOSITE
                and self.count(word, pos) > 0
            )
            if (
                synset.words[place - 1].lower() == lemma
                and in_use
                and self.main_sense(word, pos) == other
            ):
                yield word

    def opposites(self, lemma: str, pos: str) -> set[str]:
        """The direct opposites in any sense."""
        return {
            self.synsets[other_pos, offset].words[target - 1].split("(")[0]
            for sense in self.senses[lemma, pos]
            for _, other_pos, offset, target in self.synsets[pos, sense].opposites
        }


def derive(folder: Path = DEBIAN) -> str:
    """The text of `lexicon.tsv`."""
    wordnet = WordNet(folder)
    rows: list[str] = []
    known = {
        word.rstrip("*+")
        for rule in PhraseTable(read_table("contrasts")).rules
        for word in rule.left
    }
    for lemma, pos in sorted(wordnet.senses):
        if len(lemma) < 3 or not _is_word(lemma):
            continue
        for kind, found in (
            ("synonym", wordnet.synonyms(lemma, pos)),
            ("antonym", wordnet.antonyms(lemma, pos)),
        ):
            if (words := list(found)) and not (kind == "antonym" and pos == "n"):
                rows.append("\t".join((kind, pos, lemma, *words)))
                known.add(lemma)
        if (
            pos == "a"
            and lemma[:2] in ("un", "in", "im", "ir")
            and lemma[2:] in wordnet.opposites(lemma, pos)
        ):
            rows.append(f"prefixed\ta\t{lemma}")
    for lemma, pos in sorted(wordnet.senses):
        words = lemma.split()
        if (
            pos == "n"
            and 1 < len(words) < 4
            and any(known & {word, *_all_lemmas(word)} for word in words)
        ):
            rows.append(f"compound\tn\t{lemma}")
    return HEAD + _licence(folder) + "\n".join(rows) + "\n"


def _licence(folder: Path) -> str:
    text = (folder / "data.noun").read_text("latin-1")
    lines = (
        line.split(maxsplit=1)[1:] for line in text.splitlines() if line.startswith(" ")
    )
    return "".join(f"# {''.join(line)}".rstrip() + "\n" for line in lines)


def _all_lemmas(word: str) -> set[str]:
    parts: tuple[Pos, ...] = ("n", "v", "a", "r")
    return {lemma for pos in parts for lemma in lemmas(word, pos)}


def _is_word(word: str) -> bool:
    return word.isalpha() and word.islower()


def _alike(one: str, other: str) -> bool:
    """Whether two words are one in two spellings, or one of the other's derivations."""
    short = max(min(len(one), len(other)) * 2 // 3, 4)
    return one[:short] == other[:short] or one[1:] == other[1:]


def _lines(path: Path) -> list[str]:
    # Not the licence.
    return [
        line
        for line in path.read_text("latin-1").splitlines()
        if not line.startswith(" ")
    ]


def _synset(pos: str, fields: list[str]) -> Synset:
    end = 4 + 2 * int(fields[3], 16)
    words = tuple(word.replace("_", " ") for word in fields[4:end:2])
    pointers = (
        fields[at : at + 4] for at in range(end + 1, end + 1 + 4 * int(fields[end]), 4)
    )
    opposites = tuple(
        (int(places[:2], 16), other.replace("s", "a"), int(offset), int(places[2:], 16))
        for symbol, offset, other, places in pointers
        if symbol == "!"
    )
    return Synset((pos, int(fields[0])), words, opposites)


if __name__ == "__main__":
    sys.stdout.write(derive())

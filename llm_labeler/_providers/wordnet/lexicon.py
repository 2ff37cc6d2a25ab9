"""What WordNet says of words, as far as it can be trusted without knowing which sense is meant.

A word counts only in its dominant sense: its only one, or the one that most of its occurrences in hand-tagged
text have.
"""

from __future__ import annotations

from collections.abc import Iterator

from llm_labeler._providers.wordnet.files import Pos, Synset, WordNet
from llm_labeler._providers.wordnet.words import word_set

DOMINANT = 0.75  # share of a word's occurrences, one more of another sense imagined

# In WordNet the same in their main sense, and yet not said for one another.
_UNLIKE = word_set(
    """
    accident accordingly adolescent advocate afterward again aid also apothecary apportion approve
    arbitrarily as assist assistance attempt attribute authorities babe bar beget beloved building bulk
    buy cease centrifuge certainly cheery class close clothing concisely construct cow creature data day
    dear dearly decent decidedly decree desire dictate diminutive earnestly easy edifice effect envisage
    expound feasible fiscal fleet free fresh fright gasp goddam government handicapped happening help
    hence hour hunch ill imitation impute incline incur invariably kind lass lately lessening loose
    merely merit metropolis might mortal motivate music near new night nighttime normally nothing
    percent percentage perish person phone plainly presently pressing pretty prompt real reasonably
    recurrent regain remainder remarkably repeated rest retrieve routine sanction sanctioned scheme
    septic sis slumber smart sock soiled solace some someone soon sort speedily sporadically state
    student sunny sure systematically telephone thing thrice thwart tike twelvemonth unusually up upshot
    vast want ways wholly workout wound
    """
)
# Opposites of another sense than the one that is usually meant.
_NOT_OPPOSITE = word_set(
    """
    amphoteric antecedent black brunet continual continued costive down equal first fractional
    frequently gaseous general greater hearing heavy immoderate induced infrequently intense
    irresponsible last left lesser like mild moderate naive natural often pro random rarely responsible
    rested right round sparse specific sporadic square unlike unready up vascular white whole
    """
)


def main_sense(wordnet: WordNet, lemma: str, pos: Pos) -> Synset | None:
    """The synset of the dominant sense; None if the lemma has none, or is unknown."""
    senses = wordnet.senses(lemma, pos)
    if not senses:
        return None
    total = sum(sense.count for sense in senses)
    if len(senses) > 1 and senses[0].count / (total + 1) < DOMINANT:
        return None
    return wordnet.synset(pos, senses[0].offset)


def synonyms(wordnet: WordNet, lemma: str, pos: Pos) -> Iterator[str]:
    """Words of the same dominant sense that are in use, the most frequent first."""
    synset = main_sense(wordnet, lemma, pos)
    if synset is None or lemma in _UNLIKE:
        return
    usual = sorted(set(synset.words) - _UNLIKE - {lemma}, key=lambda word: (-wordnet.count(word, pos), word))
    for word in usual:
        in_use = len(word) > 2 and _is_word(word) and wordnet.count(word, pos) > 1
        if in_use and not _alike(lemma, word) and main_sense(wordnet, word, pos) == synset:
            yield word


def antonyms(wordnet: WordNet, lemma: str, pos: Pos) -> Iterator[str]:
    """Words that are the direct opposite in the dominant sense of both."""
    synset = main_sense(wordnet, lemma, pos)
    if synset is None or lemma in _NOT_OPPOSITE:
        return
    for pointer in synset.pointers:
        if pointer.symbol != "!" or synset.words[pointer.source - 1].lower() != lemma:
            continue
        other = wordnet.synset(pointer.pos, pointer.offset)
        word = other.words[pointer.target - 1].split("(")[0]
        in_use = _is_word(word) and word not in _NOT_OPPOSITE and wordnet.count(word, pos) > 0
        if in_use and main_sense(wordnet, word, pos) == other:
            yield word


def opposes(wordnet: WordNet, one: str, other: str, pos: Pos) -> bool:
    """Whether the second is the direct opposite of the first in any sense."""
    for sense in wordnet.senses(one, pos):
        for pointer in wordnet.synset(pos, sense.offset).pointers:
            if pointer.symbol == "!":
                words = wordnet.synset(pointer.pos, pointer.offset).words
                if words[pointer.target - 1].split("(")[0] == other:
                    return True
    return False


def is_compound(wordnet: WordNet, words: tuple[str, ...]) -> bool:
    """Whether words, in small letters, are one entry: `white blood cell`."""
    return wordnet.knows(" ".join(words), "n")


def _is_word(word: str) -> bool:
    return word.isalpha() and word.islower()


def _alike(one: str, other: str) -> bool:
    """Whether two words are one in two spellings, or one of the other's derivations."""
    short = min(len(one), len(other)) * 2 // 3
    return one[: max(short, 4)] == other[: max(short, 4)] or one[1:] == other[1:]

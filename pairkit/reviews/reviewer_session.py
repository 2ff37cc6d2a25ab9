"""What a person's page asks for: the next pair, and to keep what was said. Plain data in, plain data out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from datetime import UTC, datetime
from statistics import median
from typing import Annotated, Any

from pydantic import Field

from pairkit.app.errors import PairkitError
from pairkit.app.printable import printable
from pairkit.app.settings import Settings
from pairkit.dataset.judgements import SKIP, UNSURE, Person, ReviewJudgement, ReviewStore
from pairkit.similarity.measures import distinct_words, split_at_words
from pairkit.system.seeded import keyed_hash

_RECENT = 30  # judgements that the speed is taken from
_LONGEST_S = 600.0  # a pair in view for longer was left alone
MOST_CHARS = 200_000  # of a text
_SHORT_CHARS = 500  # up to this length, differing words say more of similar texts than shared ones
_WORD = re.compile(r"\w+")
Key = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{8,64}$")]


class NotAskedError(PairkitError):
    """An answer to no question of this person's."""


class SentJudgement(Settings):
    """A judgement as the page sends it."""

    key: Key
    pair: Annotated[str, Field(max_length=64)]
    answer: Annotated[str, Field(max_length=10)]
    relation: Annotated[str, Field(max_length=20)] = ""
    note: Annotated[str, Field(max_length=2000)] = ""
    seconds: Annotated[float, Field(ge=0)] = 0.0


class SentUndo(Settings):
    """Which judgement the page takes back."""

    key: Key


class ReviewerSession:
    """Where one person judges."""

    def __init__(self, store: ReviewStore, person: Person) -> None:
        self._store, self._person = store, person
        self._settings = store.settings
        self._known: dict[tuple[str, ...], list[str]] = {}  # by who reviews, of whom there may be more later

    def state(self) -> dict[str, Any]:
        """What the page shows: the next pair, how far the person is, and what was said last."""
        said = self._store.judgements_of(self._person)
        mine = self._pairs()
        done = {judgement.pair_id: judgement for judgement in said}
        left = [pair_id for pair_id in mine if pair_id not in done]
        skipped = sum(done[pair_id].answer == SKIP for pair_id in mine if pair_id in done)
        return {
            "person": self._person.name,
            "dataset": self._settings.dataset,
            "question": self._settings.question,
            "asked": self._settings.asked,
            "relations": list(self._settings.relations),
            "progress": {
                "done": len(mine) - len(left) - skipped,
                "all": len(mine),
                "skipped": skipped,
                "seconds_each": _speed(said),
            },
            "pair": self._pair(left[0]) if left else None,
            "last": self._last(said),
        }

    def judge(self, said: SentJudgement) -> None:
        """Keep what was said; the same, sent again, is kept once."""
        if said.pair not in self._pairs() or said.answer not in {*self._settings.answers, UNSURE, SKIP}:
            raise NotAskedError("no answer to any of your questions")
        if said.relation not in {"", *self._settings.relations}:
            raise NotAskedError("no relation that was asked about")
        self._store.add(
            ReviewJudgement(
                said.key,
                said.pair,
                self._person.name,
                said.answer,
                said.relation,
                said.note.encode("utf-8", "replace").decode(),
                min(said.seconds, _LONGEST_S),
                datetime.now(UTC).isoformat(timespec="seconds"),
            )
        )

    def undo(self, key: str) -> None:
        """Take a judgement back; its pair is the next one then, or soon."""
        self._store.undo(self._person, key)

    def take_up_skipped(self) -> None:
        """Have the pairs that were skipped asked about again."""
        mine = self._store.judgements_of(self._person)
        self._store.undo(self._person, *(said.key for said in mine if said.answer == SKIP))

    def _pairs(self) -> list[str]:
        people, settings = tuple(person.name for person in self._store.people()), self._settings
        if people not in self._known:
            self._known = {
                people: pairs_of(
                    self._person.name, self._store.pairs, people, seed=settings.seed, each=settings.each
                )
            }
        return self._known[people]

    def _pair(self, pair_id: str) -> dict[str, Any]:
        pair = self._store.pairs[pair_id]
        return {"id": pair.pair_id, **shown_pair(pair.text1, pair.text2, frozenset(self._settings.common))}

    def _last(self, mine: Sequence[ReviewJudgement]) -> dict[str, Any] | None:
        """What was said last, and now that it was judged where that pair is from."""
        if not mine:
            return None
        said = mine[-1]
        pair = self._store.pairs[said.pair_id]
        return {
            "key": said.key,
            "pair": said.pair_id,
            "answer": said.answer,
            "relation": said.relation,
            "note": said.note,
            "label": f"{pair.label:g}",
            "origin": dict(pair.origin),
        }


def shown_pair(one: str, other: str, common: Set[str]) -> dict[str, Any]:
    """Both texts in pieces, each with whether it is marked: shared words, or differing ones if similar."""
    whole = [printable(text.replace("\r\n", "\n")) for text in (one, other)]
    texts = [text[:MOST_CHARS] for text in whole]
    words = [{word.lower() for word in _WORD.findall(text)} for text in texts]
    shared = (distinct_words(texts[0]) & distinct_words(texts[1])) - common
    alike = len(words[0] & words[1]) >= len(words[0] | words[1]) / 3 and max(map(len, texts)) <= _SHORT_CHARS
    marked = (words[0] - words[1], words[1] - words[0]) if alike else (shared, shared)
    return {
        "marks": "own" if alike else "shared",
        "texts": [
            {"pieces": split_at_words(text, marked[side]), "left_out": len(whole[side]) - len(text)}
            for side, text in enumerate(texts)
        ],
    }


def _speed(said: Sequence[ReviewJudgement]) -> float | None:
    """Seconds that a pair takes, by the last ones; skips tell nothing."""
    seconds = [judgement.seconds for judgement in said if judgement.answer != SKIP][-_RECENT:]
    return round(median(seconds), 1) if seconds else None


def pairs_of(
    person: str, pair_ids: Iterable[str], people: Sequence[str], *, seed: int, each: int | None = None
) -> list[str]:
    """The pairs that a person judges, in their own order; `each` chooses people by rendezvous hashing."""

    def whose(pair_id: str) -> list[str]:
        return sorted(people, key=lambda name: keyed_hash(seed, "whose", pair_id, name))[:each]

    mine = [pair_id for pair_id in pair_ids if each is None or person in whose(pair_id)]
    return sorted(mine, key=lambda pair_id: keyed_hash(seed, "turn", person, pair_id))

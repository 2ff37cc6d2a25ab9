"""The server of a review at 127.0.0.1; it saves a judgement before it responds.

Only small requests of its own page are accepted (see `system.http_server`). Requests for data need a
person's token in a header, which other pages can't send. There are no cookies and no CORS headers.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, ValidationError

from pairkit.base.errors import PairkitError
from pairkit.base.extras import needed_for
from pairkit.base.printable import printable
from pairkit.base.settings import Settings
from pairkit.base.system.http_server import (
    LOOPBACK,
    PAGE_HEADERS,
    HttpServer,
    RefusedError,
    check_own_page,
    html_page,
    json_body,
    listening_socket,
)
from pairkit.base.system.seeded import keyed_hash
from pairkit.dataset.judgements import (
    SKIP,
    UNSURE,
    AnsweredError,
    Person,
    ReviewJudgement,
    ReviewSettings,
    ReviewStore,
)
from pairkit.similarity.terms import distinct_words, split_at_words, terms

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

# Limits of requests and connections.
_MAX_BODY_BYTES = 16 << 10
_CONNECTIONS = 256
_RECEIVE_S = 30
_STOP_S = 2

# Between the page's key and a number, in the keys of a turn's further answers.
_PART = "."
_MAX_RESULTS = 9  # of a query at a time, as each has a number key
_MAX_S = 600.0  # cap for the time on one pair, as the person may have left
_RECENT = 30  # judgements from which the speed is computed
_MAX_CHARS = 200_000  # of a text
# Up to this length, different words of similar texts are marked, not shared ones.
_SHORT_CHARS = 500

_PairId = Annotated[str, Field(max_length=64)]
_Answer = Annotated[str, Field(max_length=10)]


class ReviewServer(HttpServer):
    """A running server in its own thread. Use it as a context manager, or `close` it.

    Attributes:
        url: The address of the server.
        links: The link of each person, by name.
        by_query: Whether all results of a query are judged together.
    """

    def __init__(self, store: ReviewStore, people: Sequence[Person], port: int) -> None:
        """Start the server."""
        listening = listening_socket(LOOPBACK, port)
        port = listening.getsockname()[1]
        self.url = f"http://{LOOPBACK}:{port}"
        # After `#`, so that it is never sent, logged, or passed to another page.
        self.links = {person.name: f"{self.url}/#{person.token}" for person in people}
        self.by_query = store.settings.by_query
        self._store = store
        with needed_for("`pairs review`", "review"):
            app = application(store, {f"127.0.0.1:{port}", f"localhost:{port}"})
            super().__init__(
                app,
                listening,
                name="review",
                connections=_CONNECTIONS,
                receive_s=_RECEIVE_S,
                stop_s=_STOP_S,
            )

    def close(self) -> None:
        """Stop serving; may be called twice."""
        super().close()
        self._store.close()


def application(store: ReviewStore, hosts: Collection[str]) -> ASGIApp:
    """The application. It runs in one thread, so that the store has one user."""
    from starlette.applications import Starlette
    from starlette.responses import HTMLResponse, JSONResponse
    from starlette.routing import Route

    html, page_headers = html_page(__package__ or "")
    sessions: dict[Person, ReviewerSession] = {}

    def reply(content: dict[str, Any], status: int = 200) -> Response:
        return JSONResponse(content, status, headers=PAGE_HEADERS)

    async def home(request: Request) -> Response:
        check_own_page(request.headers, hosts, is_page=True)
        return HTMLResponse(html, headers=page_headers)

    def session_of(request: Request) -> ReviewerSession:
        """The session of the person who sent the request; refuses other pages and unknown tokens."""
        check_own_page(request.headers, hosts)
        authorization = request.headers.get("authorization", "")
        person = _authenticated_person(authorization, store.people())
        if person is None:
            raise RefusedError(401, "this link is not valid; ask for yours again")
        return sessions.setdefault(person, ReviewerSession(store, person))

    async def state(request: Request) -> Response:
        return reply({**session_of(request).state(), "error": None})

    async def change(
        act: Callable[[ReviewerSession, bytes], None], request: Request
    ) -> Response:
        session = session_of(request)
        body = await json_body(request, _MAX_BODY_BYTES, _RECEIVE_S)
        try:
            act(session, body)
        except AnsweredError as error:
            return reply({**session.state(), "error": str(error)}, 409)
        return reply({**session.state(), "error": None})

    async def failed(_: Request, error: Exception) -> Response:
        """Report an error; after one such as a full disk (503), the page sends the answer again."""
        if isinstance(error, ValidationError):
            return reply({"error": error.errors()[0]["msg"]}, 422)
        return reply({"error": str(error)}, getattr(error, "status", 503))

    routes = [
        Route("/", home, methods=["GET"]),
        Route("/api/state", state, methods=["GET"]),
    ]
    changes = {
        "judge": ReviewerSession.judge,
        "undo": ReviewerSession.undo,
        "skipped": ReviewerSession.take_up_skipped,
    }
    for name, act in changes.items():
        routes.append(Route(f"/api/{name}", partial(change, act), methods=["POST"]))
    return Starlette(
        routes=routes,
        exception_handlers=dict.fromkeys(
            (RefusedError, PairkitError, ValidationError), failed
        ),
    )


def _authenticated_person(
    authorization: str, people: Sequence[Person]
) -> Person | None:
    """The person whose token is in the header; all tokens are compared, each in constant time."""
    sent = authorization.encode("utf-8", "replace")
    matching = None
    for person in people:
        if hmac.compare_digest(f"Bearer {person.token}".encode(), sent):
            matching = person
    return matching


class SentUndo(Settings):
    """The judgement that the page undoes."""

    key: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{8,64}$")]


class SentJudgement(SentUndo):
    """The answers on a pair, or on the results of a query, as the page sends them."""

    answers: Annotated[
        dict[_PairId, _Answer], Field(min_length=1, max_length=_MAX_RESULTS)
    ]
    relation: Annotated[str, Field(max_length=20)] = ""
    note: Annotated[str, Field(max_length=2000)] = ""
    seconds: Annotated[float, Field(ge=0)] = 0.0


class ReviewerSession:
    """The pairs and judgements of one person. A turn has one pair, or results of one query."""

    def __init__(self, store: ReviewStore, person: Person) -> None:
        self._store = store
        self._person = person
        self._settings = store.settings
        self._people: list[str] = []
        self._turns: list[list[str]] = []

    def state(self) -> dict[str, Any]:
        """The state of the page: next turn, progress and last judgement."""
        judgements = self._store.judgements(self._person)
        answers = {judgement.pair_id: judgement.answer for judgement in judgements}
        left = []
        skipped = 0
        turns = self._current_turns()
        for turn in turns:
            unanswered = [pair_id for pair_id in turn if pair_id not in answers]
            if unanswered:
                left.append(unanswered)
            elif all(answers[pair_id] == SKIP for pair_id in turn):
                skipped += 1
        return {
            "person": self._person.name,
            "dataset": self._settings.dataset,
            "question": self._settings.question,
            "asked": "results" if self._settings.by_query else self._settings.asked,
            "relations": list(self._settings.relations),
            "progress": {
                "done": len(turns) - len(left) - skipped,
                "all": len(turns),
                "skipped": skipped,
                "seconds_each": _seconds_per_turn(judgements),
            },
            "pair": self._turn_content(left[0]) if left else None,
            "last": self._last_answers(judgements),
        }

    def _turn_content(self, pair_ids: Sequence[str]) -> dict[str, Any]:
        """The texts of a turn for the page: cut to `_MAX_CHARS`, in pieces with a flag for marked words."""
        pairs = [self._store.pairs[pair_id] for pair_id in pair_ids]
        texts = [pairs[0].text1, *(pair.text2 for pair in pairs)]
        full_texts = [printable(text.replace("\r\n", "\n")) for text in texts]
        shown = [text[:_MAX_CHARS] for text in full_texts]
        # Words aren't marked in results, as this would favour rankings by words.
        marks = "shared"
        marked = [set[str]()] * len(shown)
        if not self._settings.by_query:
            text1, text2 = shown
            marks, marked = _marked_words(text1, text2, {*self._settings.common})
        contents = [
            {"pieces": split_at_words(text, words), "left_out": len(full) - len(text)}
            for full, text, words in zip(full_texts, shown, marked, strict=True)
        ]
        return {"id": pair_ids[0], "ids": pair_ids, "marks": marks, "texts": contents}

    def judge(self, body: bytes) -> None:
        """Save the answers of a turn, once if they are sent again; refuses pairs of others and unknown answers."""
        sent = SentJudgement.model_validate_json(body)
        is_assigned = any({*sent.answers} <= {*turn} for turn in self._current_turns())
        allowed = {*self._settings.answers, UNSURE, SKIP}
        if not is_assigned or not {*sent.answers.values()} <= allowed:
            raise RefusedError(422, "expected an answer to one of your pairs")
        if sent.relation not in {"", *self._settings.relations}:
            raise RefusedError(422, "expected one of the relations of this review")
        now = datetime.now(UTC).isoformat(timespec="seconds")
        judgements = []
        key = sent.key
        seconds = min(sent.seconds, _MAX_S)
        for number, (pair_id, answer) in enumerate(sent.answers.items(), 1):
            judgements.append(
                ReviewJudgement(
                    key=key,
                    pair_id=pair_id,
                    person=self._person.name,
                    answer=answer,
                    relation=sent.relation,
                    note=sent.note,
                    seconds=seconds,
                    at=now,
                )
            )
            # The time of a turn is counted once.
            key = f"{sent.key}{_PART}{number}"
            seconds = 0
        self._store.add(judgements)

    def undo(self, body: bytes) -> None:
        """Undo the answers of a turn, so that it is shown again."""
        key = SentUndo.model_validate_json(body).key
        self._undo_if(lambda judgement: _sent_key(judgement) == key)

    def take_up_skipped(self, _: bytes) -> None:
        """Show the skipped pairs again."""
        self._undo_if(lambda judgement: judgement.answer == SKIP)

    def _undo_if(self, is_chosen: Callable[[ReviewJudgement], bool]) -> None:
        chosen = filter(is_chosen, self._store.judgements(self._person))
        keys = [judgement.key for judgement in chosen]
        self._store.undo(self._person, *keys)

    def _current_turns(self) -> list[list[str]]:
        """The turns, which change if people are added."""
        people = [person.name for person in self._store.people()]
        if people != self._people:
            self._people = people
            self._turns = self._turns_among(people)
        return self._turns

    def _turns_among(self, people: Sequence[str]) -> list[list[str]]:
        """The ids of this person's pairs by turn; results of a query follow each other."""
        settings = self._settings
        groups = {
            pair.pair_id: pair.text1 if settings.is_search else pair.pair_id
            for pair in self._store.pairs.values()
        }
        pair_ids = _pairs_of(self._person.name, groups, people, settings)
        size = _MAX_RESULTS if settings.by_query else 1
        turns: list[list[str]] = []
        for _, group in groupby(pair_ids, key=groups.__getitem__):
            together = [*group]
            starts = range(0, len(together), size)
            turns.extend(together[start : start + size] for start in starts)
        return turns

    def _last_answers(
        self, judgements: Sequence[ReviewJudgement]
    ) -> dict[str, Any] | None:
        """The last answers; with label and origin of a judged pair.

        A skipped pair may be shown again, and those of a result would reveal its ranking.
        """
        if not judgements:
            return None
        key = _sent_key(judgements[-1])
        turn = [judgement for judgement in judgements if _sent_key(judgement) == key]
        first = turn[0]
        last = {
            "key": key,
            "pair": first.pair_id,
            "answers": {judgement.pair_id: judgement.answer for judgement in turn},
            "relation": first.relation,
            "note": first.note,
        }
        if self._settings.by_query or first.answer == SKIP:
            return last
        pair = self._store.pairs[first.pair_id]
        return {**last, "label": f"{pair.label:g}", "origin": pair.origin}


def _seconds_per_turn(judgements: Sequence[ReviewJudgement]) -> float | None:
    """The median time of the last turns that weren't skipped; the first judgement of each has its time."""
    seconds = [
        judgement.seconds
        for judgement in judgements
        if judgement.key == _sent_key(judgement) and judgement.answer != SKIP
    ]
    recent = seconds[-_RECENT:]
    return round(median(recent), 1) if recent else None


def _sent_key(judgement: ReviewJudgement) -> str:
    """The key with which the page sent the judgements of a turn."""
    return judgement.key.partition(_PART)[0]


def _marked_words(
    text1: str, text2: str, common: Set[str]
) -> tuple[str, list[set[str]]]:
    """The words that both texts share, or the different words of similar texts."""
    terms1 = {*terms(text1)}
    terms2 = {*terms(text2)}
    are_similar = len(terms1 & terms2) >= len(terms1 | terms2) / 3
    if are_similar and max(len(text1), len(text2)) <= _SHORT_CHARS:
        return "own", [terms1 - terms2, terms2 - terms1]
    shared = distinct_words(text1) & distinct_words(text2)
    return "shared", [shared - common] * 2


def _pairs_of(
    person: str,
    groups: Mapping[str, str],
    people: Sequence[str],
    settings: ReviewSettings,
) -> list[str]:
    """The ids of a person's pairs, shuffled per person; pairs of a group follow each other."""
    seed = settings.seed

    def is_assigned(group: str) -> bool:
        if settings.each is None:
            return True
        # Rendezvous hashing: if people are added, only the groups that they get move.
        by_hash = sorted(
            people, key=lambda name: keyed_hash(seed, "whose", group, name)
        )
        return person in by_hash[: settings.each]

    def order(pair_id: str) -> tuple[int, int]:
        group_hash = keyed_hash(seed, "turn", person, groups[pair_id])
        return group_hash, keyed_hash(seed, "turn", person, pair_id)

    mine = [pair_id for pair_id, group in groups.items() if is_assigned(group)]
    return sorted(mine, key=order)

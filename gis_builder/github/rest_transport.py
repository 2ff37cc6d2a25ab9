"""One REST request through PyGithub and its answer. PyGithub signs and addresses; what came is judged by us.

PyGithub follows a redirect without its query string, sleeps where it sees fit and raises exceptions that hold
the request. So it is given a connection of ours, which keeps the answer for us and shows it an empty one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from urllib.parse import SplitResult, urlsplit

import requests
from github import Github
from github.Auth import Auth
from github.Requester import HTTPSRequestsConnectionClass, RequestsResponse

from gis_builder.github.answers import Answer, AnswerKind, classify
from gis_builder.github.rest_client import REDIRECTS, RestReply
from gis_builder.github.tokens import Token
from gis_builder.github.transport import Transport, no_answer

_NEXT = re.compile(r'<([^<>]*)>[^<>]*\brel="?next\b')
# These say something about what was asked for; to ask again would bring the same.
_TELLING = REDIRECTS | {404, 410, 422, 451}


class RestTransport(Transport):
    """Asks one server's REST API with one token."""

    def __init__(self, api_url: str, token: Token, timeout_s: float) -> None:
        super().__init__(api_url, token, timeout_s)
        self._root = urlsplit(api_url.rstrip("/"))
        self._line = _Line(self._root, timeout_s, self._judge)
        self._github = Github(
            auth=_Signing(token),
            base_url=self._root.geturl(),
            user_agent="aoe-toolkit",
            retry=None,
            seconds_between_requests=None,
            seconds_between_writes=None,
        )

    def ask(self, query: str) -> Answer:
        """GET `query`, a path below the root, once. The data of an answer is a `RestReply` under "reply".

        Raises:
            AuthError: a GitHub App's installation gives no token to sign with.
        """
        try:
            self._github.requester.requestJson(
                "GET", query, headers={"Accept": "application/vnd.github+json"}, cnx=self._line
            )
        except requests.RequestException as error:
            return no_answer(error)
        answer = self._line.came
        # A page of a list can't be asked for in halves without losing its place.
        return replace(answer, kind=AnswerKind.TRANSIENT) if answer.kind is AnswerKind.TOO_HEAVY else answer

    def close(self) -> None:
        """Close the connections."""
        super().close()
        self._line.close()
        self._github.close()

    def _judge(self, response: requests.Response) -> Answer:
        raw = self._read(response)
        if isinstance(raw, Answer):
            return raw
        answer = classify(raw.status, raw.headers, raw.body, graphql=False).rephrased(self._token.mask)
        if answer.kind is AnswerKind.OK or raw.status in _TELLING:
            reply = self._reply(raw.status, raw.headers, answer)
            return Answer(AnswerKind.OK, data={"reply": reply}, budget=answer.budget)
        return answer

    def _reply(self, status: int, headers: Mapping[str, str], answer: Answer) -> RestReply:
        location = headers.get("location")
        if status in REDIRECTS:
            return RestReply(status, location=location and self._path_here(location), message=answer.message)
        found = _NEXT.search(headers.get("link", ""))
        return RestReply(status, answer.data, self._path(found[1]) if found else None, message=answer.message)

    def _path_here(self, address: str) -> str | None:
        """The path of an address on this server; None for one elsewhere."""
        parts = urlsplit(address)
        is_here = (parts.scheme, parts.netloc) in (("", ""), (self._root.scheme, self._root.netloc))
        return self._path(address) if is_here else None

    def _path(self, address: str) -> str:
        parts = urlsplit(address)
        path = parts.path.removeprefix(self._root.path)
        return f"{path}?{parts.query}" if parts.query else path


class _Signing(Auth):
    """Lets PyGithub sign; asks for the secret anew each time, since a GitHub App's runs out."""

    def __init__(self, token: Token) -> None:
        self._source = token

    @property
    def token_type(self) -> str:
        return "Bearer"

    @property
    def token(self) -> str:
        return self._source.reveal()

    @property
    def _masked_token(self) -> str:
        return "****"


class _Line(HTTPSRequestsConnectionClass):
    """The connection, kept open, that PyGithub sends its requests over."""

    came: Answer  # the last

    def __init__(
        self, root: SplitResult, timeout_s: float, judge: Callable[[requests.Response], Answer]
    ) -> None:
        super().__init__(root.hostname or "")
        self._root = f"{root.scheme}://{root.netloc.rpartition('@')[2]}"
        self._timeout_s, self._judge = timeout_s, judge

    def getresponse(self) -> RequestsResponse:
        with self.session.get(
            self._root + self.url,
            headers=self.headers,
            timeout=self._timeout_s,
            allow_redirects=False,
            stream=True,
        ) as response:
            self.came = self._judge(response)
            return _Unseen(response)


class _Unseen(RequestsResponse):
    """What PyGithub gets to see of every answer: that there is one."""

    def __init__(self, response: requests.Response) -> None:
        super().__init__(response)
        self.status = 200
        self.headers = requests.structures.CaseInsensitiveDict()

    def read(self) -> str:
        return ""

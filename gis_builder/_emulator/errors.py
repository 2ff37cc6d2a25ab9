"""Refusals, as GitHub words them: they are answers of the emulated server, not errors of the emulator."""

from __future__ import annotations

from typing import Any


class GraphQLRefusal(Exception):  # noqa: N818 - it becomes one entry of an answer's `errors`
    """One field can't be resolved; `kind` is GitHub's `type` of the error."""

    def __init__(self, kind: str, message: str) -> None:
        self.kind = kind
        super().__init__(message)


class RestRefusal(Exception):  # noqa: N818 - it becomes a whole answer
    """A REST request is answered with an error status or a redirection."""

    def __init__(
        self, status: int, message: str, *, location: str | None = None, errors: list[Any] | None = None
    ) -> None:
        self.status = status
        self.location = location
        self.errors = errors
        super().__init__(message)


class SearchRefusal(Exception):  # noqa: N818 - GraphQL and REST turn it into their own form
    """A search query that GitHub would not run."""


class NothingToSearch(SearchRefusal):
    """None of the repositories and owners that a query names can be seen."""


def not_found() -> RestRefusal:
    """What GitHub says about what is not there and about what must not be seen alike."""
    return RestRefusal(404, "Not Found")

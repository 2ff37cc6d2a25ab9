"""Pages of REST lists: page numbers, cursors and the Link header."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlencode

from gis_builder._emulator.cursors import decode_cursor, encode_cursor
from gis_builder._emulator.errors import RestRefusal

MAX_PER_PAGE = 100
_DEFAULT_PER_PAGE = 30

T = TypeVar("T")


@dataclass(frozen=True)
class PageRequest:
    """Which page of a list, from the query string of `url`."""

    url: str  # without its query string
    parameters: Mapping[str, str]

    @property
    def size(self) -> int:
        """Items a page: 1 to 100, 30 unless told."""
        return min(MAX_PER_PAGE, _number(self.parameters.get("per_page"), _DEFAULT_PER_PAGE))

    @property
    def number(self) -> int:
        """The page's number, from 1."""
        return _number(self.parameters.get("page"), 1)

    def link(self, **changes: str | int | None) -> str:
        """The address of another page of the same list; None takes a parameter away."""
        merged = {**self.parameters, **changes}
        return f"{self.url}?{urlencode({key: value for key, value in merged.items() if value is not None})}"


def cut(items: Sequence[T], request: PageRequest, depth: int) -> tuple[Sequence[T], dict[str, str]]:
    """One page of a list and its headers.

    Lists of up to `depth` items are paged by number, with links to all four neighbours. Longer ones give
    links with cursors only to the next and the previous page, and page numbers reach no further than `depth`.

    Raises:
        RestRefusal: 422 for a page number beyond `depth`, or a cursor that is none.
    """
    size = request.size
    if len(items) <= depth and not {"after", "before"} & request.parameters.keys():
        start = (request.number - 1) * size
        return items[start : start + size], _link_header(_numbered(len(items), request))
    start = _start(len(items), request, depth)
    stop = min(len(items), start + size)
    return items[start:stop], _link_header(_by_cursor(len(items), start, stop, request))


def cut_search(
    items: Sequence[T], request: PageRequest, reachable: int
) -> tuple[Sequence[T], dict[str, str]]:
    """One page of search results, of which only the first `reachable` can be had.

    Raises:
        RestRefusal: 422 for a page that starts beyond them.
    """
    start = (request.number - 1) * request.size
    if start >= reachable:
        raise RestRefusal(422, f"Only the first {reachable} search results are available")
    shown = items[:reachable]
    return shown[start : start + request.size], _link_header(_numbered(len(shown), request))


def _start(total: int, request: PageRequest, depth: int) -> int:
    for key in ("after", "before"):
        cursor = request.parameters.get(key)
        if cursor is None:
            continue
        position = decode_cursor(cursor)
        if position is None:
            raise RestRefusal(422, f"The cursor {cursor!r} is invalid")
        return min(total, position + 1) if key == "after" else max(0, position - request.size)
    if request.number * request.size >= depth:
        raise RestRefusal(
            422,
            "Pagination with the page parameter is not supported for large datasets, "
            "please use cursor based pagination (after/before)",
        )
    return (request.number - 1) * request.size


def _numbered(total: int, request: PageRequest) -> dict[str, str]:
    last = max(1, -(-total // request.size))
    links: dict[str, int] = {}
    if request.number > 1:
        links |= {"prev": min(request.number - 1, last)}
    if request.number < last:
        links |= {"next": request.number + 1, "last": last}
    if request.number > 1:
        links |= {"first": 1}
    return {rel: request.link(page=page) for rel, page in links.items()}


def _by_cursor(total: int, start: int, stop: int, request: PageRequest) -> dict[str, str]:
    links = {}
    if stop < total:
        links["next"] = request.link(after=encode_cursor(stop - 1), before=None, page=request.number + 1)
    if start > 0:
        links["prev"] = request.link(before=encode_cursor(start), after=None, page=max(1, request.number - 1))
    return links


def _link_header(links: Mapping[str, str]) -> dict[str, str]:
    return {"link": ", ".join(f'<{url}>; rel="{rel}"' for rel, url in links.items())} if links else {}


def _number(text: str | None, default: int) -> int:
    return int(text) if text is not None and text.isdecimal() and int(text) > 0 else default

"""A crawl as a command runs it: tokens found, progress shown, the route chosen."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from gis_builder._github import GitHub, GraphQLRoute, RestRoute, find_tokens
from gis_builder._settings import BuildSettings
from gis_builder._store import Store
from gis_builder._watch import CrawlWatch
from pairkit.terminal import say


class Crawler:
    """Finds the tokens before anything is opened, so that a missing one costs nothing.

    Args:
        settings: Where and how to crawl.
        token_file: One token a line, instead of the environment's.
        quiet: Show neither progress nor notes.

    Raises:
        ConfigError: there is no token.
    """

    def __init__(
        self, settings: BuildSettings, token_file: Path | None = None, *, quiet: bool = False
    ) -> None:
        self._settings, self._quiet = settings, quiet
        self._tokens = find_tokens(
            settings.crawl.api_url, file=token_file, plain_http=settings.crawl.plain_http
        )
        self._watch = CrawlWatch(quiet=quiet)

    def open(self, store: Store) -> GitHub:
        """A client that crawls into `store` and tells the display of it."""
        route = RestRoute if self._settings.api == "rest" else GraphQLRoute
        return GitHub(self._settings.crawl, self._tokens, store, self._watch, route)

    def say(self, words: str) -> None:
        """Tell the person which stage begins."""
        say(words, quiet=self._quiet)

    def __enter__(self) -> Self:
        self._watch.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watch.__exit__(kind, error, trace)

"""Options that several public functions share, and the conversion of their arguments."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY
from pathlib import Path
from typing import TYPE_CHECKING

from pairkit.base.cli.options import RUN, Option, Request
from pairkit.base.errors import ConfigError, DataError
from pairkit.dataset.shared_options import SHARED

if TYPE_CHECKING:
    from gis_builder.api.crawls import CrawlRequest
    from gis_builder.api.datasets import BuildRequest, PairRequest, PlanRequest
    from gis_builder.crawl_progress import RunDisplay
    from gis_builder.crawling.github import GitHub
    from gis_builder.settings import BuildSettings
    from gis_builder.store import Store
    from pairkit.base.cli.progress import Listener

_SERVER = "Server"
_PAIRS = "Pairs"
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+:/")
# GitHub's rules: logins have letters, digits and hyphens, and those of managed users an underscore; names may
# also have dots.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,38}/(?P<name>[A-Za-z0-9._-]{1,100})")
# Of a repository or one of its pages.
_ADDRESS = re.compile(
    r"(?:(?:https?://|ssh://git@)?(?:www\.)?github\.com/|git@github\.com:)"
    r"(?P<name>[^/]+/[^/?#]++).*"
)

options = SHARED.extended(
    repos=Option(
        "Repositories as owner/name,owner/name, or a file with one per line. In Python also a list.",
        short="-r",
        metavar="FILE|NAMES",
    ),
    work=Option("Folder of the crawl.", short="-w", metavar="DIR"),
    strategy=Option(setting="crawl.strategy", metavar="NAME", main=True),
    api_url=Option(setting="crawl.api_url", metavar="URL", panel=_SERVER),
    token=Option(
        "A GitHub token, or several separated by commas. Default: from GITHUB_TOKEN, a GitHub App's variables"
        " or `gh auth login`.",
        hidden=True,
    ),
    token_file=Option(
        "A file with one token per line, instead of GITHUB_TOKEN.",
        metavar="FILE",
        panel=_SERVER,
    ),
    split_sizes=Option(setting="split.sizes", metavar="A,B,C", panel=_PAIRS, main=True),
    relations=Option(setting="pair.relations", metavar="NAMES", panel=_PAIRS),
    min_same_probability=Option(
        setting="pair.min_same_probability", metavar="P", panel=_PAIRS, main=True
    ),
    negatives=Option(setting="pair.negatives", metavar="NAME", panel=_PAIRS, main=True),
    match=Option(setting="pair.match", metavar="NAME", panel=_PAIRS),
    ratio=Option(setting="pair.ratio", panel=_PAIRS),
    all_within_cluster=Option(setting="pair.all_within_cluster", panel=_PAIRS),
    cluster_cap=Option(setting="pair.cluster_cap", panel=_PAIRS),
    seed=Option(setting="seed", panel=RUN),
)


class GitHubRequest(
    Request, shared=options, settings="gis_builder.settings:BuildSettings"
):
    """The arguments that say what to fetch from which server, and with which token."""

    _: KW_ONLY
    strategy: str | None = None
    api_url: str | None = None
    token: str | None = None
    token_file: str | Path | None = None


def path_of(name: str, value: str | Path) -> Path:
    """A path of this machine."""
    from pairkit.base.settings import argument

    path: Path = argument(name, value, Path)
    if _SCHEME.match(str(path)):  # otherwise a folder called s3: would be created
        raise ConfigError(f"{name} = {path}: expected a path, not a URL")
    return path


def build_settings(
    request: BuildRequest | CrawlRequest | PairRequest | PlanRequest,
) -> BuildSettings:
    """The settings of a request: its own options, `settings` and the file `config`."""
    from gis_builder.settings import BuildSettings
    from pairkit.base.settings import load_settings

    return load_settings(
        BuildSettings, request.flags(), config=request.config, settings=request.settings
    )


def display(progress: bool | Listener) -> RunDisplay:
    """The display of a run."""
    from gis_builder.crawl_progress import RunDisplay

    return RunDisplay(progress)


def opener(
    request: GitHubRequest, settings: BuildSettings, show: RunDisplay
) -> Callable[[Store], GitHub]:
    """Return a factory of the crawl's client; tokens are found now, so that a missing token fails early."""
    from gis_builder.crawling.github import GitHub, find_tokens
    from pairkit.base.settings import argument

    token = argument("token", request.token, str | None)
    environ: Mapping[str, str] = os.environ
    if token is not None:
        environ = {"GITHUB_TOKEN": token}
    file = None
    if request.token_file is not None:
        file = path_of("token_file", request.token_file)
    if token is not None and file is not None:
        raise ConfigError("token and token_file: give only one of them")
    crawl = settings.crawl
    tokens = find_tokens(
        crawl.api_url, file=file, environ=environ, plain_http=crawl.plain_http
    )
    return lambda store: GitHub(crawl, tokens, store, show)


def read_repos(source: str | Path | Iterable[str]) -> list[str]:
    """The distinct repositories of a file with one per line, a list, or a comma-separated text, in order."""
    from pairkit.base.settings import argument

    # `Path.is_file` raises an error if the text is too long for a path.
    if isinstance(source, Path) or (isinstance(source, str) and os.path.isfile(source)):  # noqa: PTH113
        return _distinct(_read_file(Path(source)))
    listed = source.split(",") if isinstance(source, str) else source
    entries = [entry.strip() for entry in argument("repos", listed, list[str])]
    names = [_parse(entry) for entry in filter(None, entries)]
    if not names:
        raise _not_repositories(source)
    return _distinct(names)


def without_address(repo: str) -> str:
    """The name of a repository that may be given by an address on GitHub."""
    address = _ADDRESS.fullmatch(repo.strip())
    name = address["name"] if address else repo.strip()
    return name.removesuffix("/").removesuffix(".git")


def _not_repositories(source: object) -> ConfigError:
    return ConfigError(
        f"repos = {source!r}: neither an existing file nor owner/name; "
        "give a file with one owner/name per line, or owner/name,owner/name"
    )


def _read_file(path: Path) -> list[str]:
    from pairkit.base.system.text_lines import read_text_lines

    names = []
    for row, line in read_text_lines(path):
        entry = re.sub(r"(^|\s)#.*$", "", line).strip()
        if not entry:
            continue
        try:
            names.append(_parse(entry))
        except ConfigError:
            fault = f"{entry!r} is not a repository; expected owner/name, such as rust-lang/rust"
            raise DataError(fault, path=path, row=row) from None
    if not names:
        raise DataError("no repository; expected one owner/name per line", path=path)
    return names


def _parse(entry: str) -> str:
    """The name of a repository, from a name or an address."""
    match = _NAME.fullmatch(without_address(entry))
    if match is None or match["name"] in {".", ".."}:
        raise _not_repositories(entry)
    return match[0]


def _distinct(names: Iterable[str]) -> list[str]:
    """The distinct names, each in its first spelling; GitHub's names ignore case."""
    first: dict[str, str] = {}
    for name in names:
        first.setdefault(name.lower(), name)
    return list(first.values())

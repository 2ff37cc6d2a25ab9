"""The main job for real, without token or network: a build of the sample tracker from a local emulator."""

from __future__ import annotations

from pathlib import Path

from gis_builder._build import Built, build
from gis_builder._emulator import serve
from gis_builder._github import CrawlSettings, GitHub, Token
from gis_builder._settings import BuildSettings
from gis_builder._store import Store
from gis_builder._watch import CrawlWatch
from pairkit.errors import ConfigError
from pairkit.folders import work_beside
from pairkit.terminal import say

_PACKAGE = Path(__file__).resolve().parent
_PLACES = (_PACKAGE / "data" / "sample", _PACKAGE.parent / "data" / "sample")


def sample_folder() -> Path:
    """The sample tracker: beside the package in a source tree, inside it once installed.

    Raises:
        ConfigError: it was left out of this installation.
    """
    for place in _PLACES:
        if place.is_dir():
            return place
    raise ConfigError("the sample tracker is not part of this installation; reinstall aoe-toolkit")


def run_demo(out: Path, *, quiet: bool = False) -> Built:
    """Serve the sample, build its dataset over HTTP to `out`, and shut the server down."""
    sample = sample_folder()
    repos = [f"{path.parent.parent.name}/{path.parent.name}" for path in sorted(sample.glob("*/*/repo.json"))]
    with serve(sample) as server, CrawlWatch(quiet=quiet) as watch:
        say(f"a local GitHub with {len(repos)} sample projects listens at {server.url}", quiet=quiet)
        settings = BuildSettings(crawl=CrawlSettings(api_url=server.url))

        def open_github(store: Store) -> GitHub:
            return GitHub(settings.crawl, [Token("demo", server.url)], store, watch)

        return build(
            repos,
            out,
            work_beside(out),
            settings,
            open_github,
            lambda words: say(words, quiet=quiet),
        )

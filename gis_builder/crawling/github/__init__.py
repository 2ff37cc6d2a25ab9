"""The crawl: GitHub's issues into a store, with the fewest requests, resumable at every page."""

from gis_builder.crawling.github.crawler import GitHub
from gis_builder.crawling.github.tokens import Token, find_tokens
from gis_builder.progress import Advanced, Began, CrawlEvent, CrawlListener, Finished, Waiting
from gis_builder.settings.crawl import CrawlSettings

__all__ = [
    "Advanced",
    "Began",
    "CrawlEvent",
    "CrawlListener",
    "CrawlSettings",
    "Finished",
    "GitHub",
    "Token",
    "Waiting",
    "find_tokens",
]

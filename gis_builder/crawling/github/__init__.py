"""Crawls GitHub's issues into a store, with few requests; a crawl can be resumed after every page."""

from gis_builder.crawling.github.access_tokens import find_tokens
from gis_builder.crawling.github.crawler import GitHub

__all__ = ["GitHub", "find_tokens"]

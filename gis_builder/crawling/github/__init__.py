"""Crawls GitHub's issues into a store, with few requests; a crawl can be resumed after every page."""

from gis_builder.crawling.github.crawler import GitHub
from gis_builder.crawling.github.tokens import Token, find_tokens

__all__ = ["GitHub", "Token", "find_tokens"]
